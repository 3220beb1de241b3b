"""What real servers can reach: the roots bypass of the file server, and repositories that were not allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dari.bridge.children.channel import ChildSession
from dari.bridge.service import Bridge
from dari.bridge.upstream.caller import Caller
from dari.bridge.upstream.upstream import Upstream
from dari.process.child import ChildSpec
from dari.process.children import Children
from dari.sandbox.confinement import Confinement, PathRule
from tests.support.real_servers import Installed, Json, RealServer, make_repository, payload
from tests.support.real_servers_home import House
from tests.support.requirements import require_bubblewrap, require_kernel

pytestmark = [pytest.mark.local_mcp, pytest.mark.xdist_group("real servers")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to allow; one path leads out of it."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "file.txt").write_text("open")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "open" / "link.txt").symlink_to(tmp_path / "secret.txt")
    return tmp_path / "open"


def ways_out(folder: Path) -> list[str]:
    names = ("../secret.txt", "link.txt", "../../../../../../../../../../proc/1/environ")
    return [str(folder.parent / "secret.txt"), *(f"{folder}/{name}" for name in names), "/proc/1/environ"]


def is_readable(path: str) -> bool:
    """Whether we can do it ourselves: in a container the first process may be nobody's to read."""
    try:
        Path(path).read_bytes()
    except OSError:
        return False
    return True


def file_server(there: Installed, *words: str) -> tuple[str, ...]:
    return (str(there.node), there.npm("@modelcontextprotocol", "server-filesystem", "dist", "index.js"), *words)


async def read_with_every_root(command: tuple[str, ...], confinement: Confinement, *paths: str) -> list[str]:
    """What a client gets that says its root is `/`, which the server takes instead of its own list of folders."""

    async def everything() -> list[str]:
        return ["file:///"]

    async with Children() as children:
        spec = ChildSpec("files", command, confinement=confinement)
        session = await ChildSession.open(children, spec, on_roots=everything)
        try:
            # It asks for roots after the handshake, and has them when it says so.
            while (await session.client.call_tool("list_allowed_directories", {})).text != "Allowed directories:\n/":
                pass
            return [(await session.client.call_tool("read_text_file", {"path": path})).text for path in paths]
        finally:
            await session.close()


async def call(upstream: Upstream, caller: Caller, tool: str, **arguments: object) -> Json:
    return payload(bytes(await upstream.call_tool(tool, json.dumps(arguments).encode(), caller)))


@pytest.mark.parametrize("wrapped", [False, True], ids=["landlock", "bubblewrap"])
async def test_the_kernel_holds_where_roots_replace_the_servers_own_list(
    wrapped: bool, there: Installed, folder: Path
) -> None:
    require_kernel()
    if wrapped:
        require_bubblewrap()
    confinement = Confinement("enforce", (PathRule.of(folder),), "none", uses_bubblewrap=wrapped)
    command = file_server(there, str(folder))
    allowed, *escapes = await read_with_every_root(command, confinement, f"{folder}/file.txt", *ways_out(folder))
    assert allowed == "open"
    for path, text in zip(ways_out(folder), escapes, strict=True):
        assert any(word in text for word in ("EACCES", "ENOENT", "EPERM")), (path, text)


async def test_without_walls_the_same_calls_succeed(there: Installed, folder: Path) -> None:
    paths = [path for path in ways_out(folder) if is_readable(path)]
    texts = await read_with_every_root(file_server(there, str(folder)), Confinement("off"), *paths)
    assert texts[:3] == ["secret"] * 3
    assert not any(word in text for text in texts for word in ("EACCES", "ENOENT", "EPERM"))


@pytest.mark.parametrize("sandbox", ["off", "enforce"])
async def test_through_the_bridge_roots_are_the_allowed_paths_whatever_the_client_says(
    sandbox: str, there: Installed, folder: Path, tmp_path: Path
) -> None:
    if sandbox == "enforce":
        require_kernel()
    (folder / "inner").mkdir()
    command, *words = file_server(there, str(folder / "inner"))
    entry = {"command": command, "args": words, "allowedPaths": [str(folder)], "sandbox": sandbox}
    house = House(tmp_path / "home", [RealServer("files", entry)])

    async def answer(method: str, params: object) -> Json:
        return {"roots": [{"uri": "file:///"}]}

    greedy = Caller("greedy", session="g", ask=answer)
    async with Bridge(tmp_path / "state") as bridge:
        files = bridge.view(house.around).upstream("files")
        seen: list[str] = []
        # What its arguments say counts until it has asked for roots and has taken them.
        while f"Allowed directories:\n{folder}" not in seen:
            seen.append((await call(files, greedy, "list_allowed_directories"))["content"][0]["text"])
        assert "Allowed directories:\n/" not in seen
        for path in ways_out(folder):
            assert (await call(files, greedy, "read_text_file", path=path))["isError"] is True, path


@pytest.mark.parametrize(("sandbox", "is_refused"), [("enforce", True), ("off", False)])
async def test_a_server_that_checks_nothing_is_kept_in_its_repository_under_enforce_and_not_with_off(
    sandbox: str, is_refused: bool, there: Installed, tmp_path: Path
) -> None:
    require_kernel()
    ours, others = tmp_path / "ours", tmp_path / "others"
    for repository in (ours, others):
        make_repository(repository)
    (ours / "link").symlink_to(others)
    entry = {"command": there.script("mcp-server-git"), "allowedPaths": [str(ours)], "sandbox": sandbox}
    house = House(tmp_path / "home", [RealServer("git", entry)])
    async with Bridge(tmp_path / "state") as bridge:
        git = bridge.view(house.around).upstream("git")
        for path, is_outside in ((ours, False), (others, True), (ours / "link", True)):
            told = await call(git, Caller("me"), "git_log", repo_path=str(path), max_count=1)
            assert told["isError"] is (is_refused and is_outside), (path, told)
            assert told["isError"] or "Two ends" in told["content"][0]["text"]
