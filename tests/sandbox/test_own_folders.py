"""What is ours (tokens, keys, sockets, logs, people's servers) is hidden from every sandboxed child."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Denied
from dari.paths import own_paths
from dari.process.child import ChildSpec
from dari.process.children import Children
from dari.sandbox import seatbelt
from dari.sandbox.capabilities import SandboxCapabilities
from dari.sandbox.confinement import Confinement, PathRule
from tests.support.processes import wait_for_line
from tests.support.requirements import require_bubblewrap, require_kernel

SECRET = "s3cret-of-ours"
OURS = {
    "the token of the hub": "data/dari/mcp.token",
    "the key of the CA": "data/dari/crabd/ca.key",
    "the audit log": "data/dari/bridge/audit/1.jsonl",
    "crabd's run folder": "run/dari/crabd/mcp.token",
    "cruxd's folder": "home/.crux/token",
    "people's servers": "home/.config/crewx/mcp.json",
    "the terminal's policy": "config/crux/crux.toml",
    "a file that CREWX_MCP_JSON names": "elsewhere/servers.json",
    "the folder beside CRUX_SOCKET": "elsewhere/team.crux/token",
}


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with everything of ours in it, where XDG says."""
    monkeypatch.delenv("DARI_HOME", raising=False)
    for name, folder in {"HOME": "home", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("CREWX_MCP_JSON", str(tmp_path / "elsewhere/servers.json"))
    monkeypatch.setenv("CRUX_SOCKET", str(tmp_path / "elsewhere/team.sock"))
    for path in (*OURS.values(), "home/notes.txt", "elsewhere/free.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(SECRET if path in OURS.values() else "free")
    return tmp_path


async def read_by_child(path: Path, confinement: Confinement) -> str:
    async with Children() as children:
        spec = ChildSpec("reader", ("sh", "-c", f"cat '{path}' 2>/dev/null || echo no; echo"), confinement=confinement)
        child = await children.start(spec)
        said = wait_for_line(child.stdout.fileno()).decode().strip()
        await child.gone()
        return said or "no"


@pytest.mark.parametrize("wrapped", [False, True], ids=["landlock", "bubblewrap"])
@pytest.mark.parametrize("path", OURS.values(), ids=OURS.keys())
async def test_a_child_without_a_network_cannot_read_what_is_ours(person: Path, path: str, wrapped: bool) -> None:
    (require_bubblewrap if wrapped else require_kernel)()
    walls = Confinement("enforce", None, "none", uses_bubblewrap=wrapped)
    assert await read_by_child(person / path, walls) == "no"


@pytest.mark.parametrize("wrapped", [False, True], ids=["landlock", "bubblewrap"])
async def test_what_lies_beside_a_file_of_ours_in_a_folder_of_ours_is_hidden_too(
    person: Path, wrapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (require_bubblewrap if wrapped else require_kernel)()
    monkeypatch.setenv("CREWX_MCP_JSON", str(person / "data/dari/servers.json"))
    (person / "data/dari/servers.json").write_text(SECRET)
    walls = Confinement("enforce", None, "none", uses_bubblewrap=wrapped)
    assert await read_by_child(person / "data/dari/mcp.token", walls) == "no"


@pytest.mark.parametrize("wrapped", [False, True], ids=["landlock", "bubblewrap"])
@pytest.mark.parametrize("path", ["home/notes.txt", "elsewhere/free.txt", "/etc/hostname", "/dev/null"])
async def test_it_reads_everything_else_as_before(person: Path, path: str, wrapped: bool) -> None:
    (require_bubblewrap if wrapped else require_kernel)()
    walls = Confinement("enforce", None, "none", uses_bubblewrap=wrapped)
    if path != "/dev/null":
        assert await read_by_child(person / path, walls) == Path(person / path).read_text().strip()
    async with Children() as children:
        writes = f"echo x > {person}/home/notes.txt && mkdir {person}/home/.cache2 2>/dev/null; echo done >/dev/null"
        (person / "home/work").mkdir()
        writes += f"; echo x > {person}/home/work/new"
        child = await children.start(ChildSpec("writer", ("sh", "-c", writes), confinement=walls))
        await child.gone()
    assert (person / "home/work/new").read_text() == "x\n" and (person / "home/notes.txt").read_text() == "x\n"


async def test_a_link_to_what_is_ours_leads_nowhere(person: Path) -> None:
    require_kernel()
    (person / "elsewhere/link").symlink_to(person / "data/dari")
    walls = Confinement("enforce", None, "none", uses_bubblewrap=False)
    assert await read_by_child(person / "elsewhere/link/mcp.token", walls) == "no"


async def test_an_allowed_home_does_not_show_what_is_ours_in_it(person: Path) -> None:
    require_bubblewrap()
    walls = Confinement("enforce", (PathRule(person, "rw"),), "none")
    assert await read_by_child(person / "data/dari/mcp.token", walls) == "no"
    assert await read_by_child(person / "home/notes.txt", walls) == "free"


async def test_where_nothing_can_hide_it_enforce_refuses(person: Path) -> None:
    async with Children(machine=SandboxCapabilities("linux", "x86_64", has_seccomp=True)) as children:
        spec = ChildSpec("reader", ("true",), confinement=Confinement("enforce", None, "none"))
        with pytest.raises(Denied):
            await children.start(spec)


def test_on_macos_the_last_rules_of_the_profile_hide_it(person: Path) -> None:
    rules = seatbelt.seatbelt_profile(Confinement("auto", (PathRule(person, "rw"),), "none"), [], own_paths())
    hiding = f'(deny file-read* file-write* (subpath "{person}/data/dari"))'
    assert rules.index(hiding) > rules.index("(allow file-write*")
