"""Real interpreters and servers inside the sandbox, our own sockets outside of it, and the end of it all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from dari.bridge.children.channel import ChildSession
from dari.daemon.paths import DaemonPaths
from dari.daemon.server import DaemonServer
from dari.errors import Denied, Unavailable
from dari.process.child import ChildSpec, StopTimeouts
from dari.process.children import Children
from dari.sandbox.capabilities import SandboxCapabilities
from dari.sandbox.confinement import Confinement, PathRule
from tests.support.child_servers import server
from tests.support.processes import left_of, wait_for_end, wait_for_line
from tests.support.requirements import require_asking, require_bubblewrap, require_kernel, require_node
from tests.support.sandboxes import outcome, said
from tests.support.wire import ROOT

pytestmark = pytest.mark.local_mcp

BOTH = pytest.mark.parametrize("wrapped", [False, True], ids=["landlock", "bubblewrap"])

# A file server that trusts its client, as the reference one does with `roots`: whatever is asked for is read.
FILE_SERVER = """
const fs = require('fs');
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
  const {id, method, params} = JSON.parse(line);
  const reply = (result) => console.log(JSON.stringify({jsonrpc: '2.0', id, result}));
  if (method === 'initialize')
    reply({protocolVersion: '2025-11-25', capabilities: {tools: {}}, serverInfo: {name: 'files', version: '1'}});
  if (method === 'tools/call') {
    let text;
    try { text = fs.readFileSync(params.arguments.path, 'utf8'); } catch (error) { text = error.code; }
    reply({content: [{type: 'text', text}]});
  }
});
"""


def confined(*paths: PathRule, wrapped: bool = False, network: str = "none") -> Confinement:
    require_kernel()
    if wrapped:
        require_bubblewrap()
    return Confinement("enforce", paths, network, uses_bubblewrap=wrapped)  # type: ignore[arg-type]


@BOTH
async def test_a_node_server_reads_what_is_allowed_and_nothing_else(tmp_path: Path, wrapped: bool) -> None:
    node = require_node()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "open.txt").write_text("open")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "secret.txt")
    confinement = confined(PathRule.of(tmp_path / "data"), wrapped=wrapped)

    async def read(confinement: Confinement, *names: str) -> list[str]:
        spec = ChildSpec("files", (node, "-e", FILE_SERVER), confinement=confinement)
        async with Children() as children:
            session = await ChildSession.open(children, spec, mode="handshake")
            paths = [str(tmp_path / name) for name in names]
            texts = [(await session.client.call_tool("read", {"path": path})).text for path in paths]
            await session.close()
        return texts

    names = ("data/open.txt", "secret.txt", "data/link", "data/../secret.txt")
    allowed, *escapes = await read(confinement, *names)
    assert allowed == "open" and set(escapes) <= {"EACCES", "ENOENT"}
    assert await read(Confinement("off"), *names) == ["open", "secret", "secret", "secret"]


@BOTH
async def test_a_python_server_in_a_virtual_environment_runs_inside(tmp_path: Path, wrapped: bool) -> None:
    spec = server()
    inside = ChildSpec("demo", spec.command, confinement=confined(PathRule.of(tmp_path, "rw"), wrapped=wrapped))
    async with Children() as children:
        session = await ChildSession.open(children, inside, mode="handshake")
        assert (await session.client.call_tool("hello")).text == "hello"
        await session.close()


@BOTH
async def test_a_script_with_a_first_line_finds_its_interpreter_and_its_modules(tmp_path: Path, wrapped: bool) -> None:
    program = tmp_path / "project" / "tool"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport part; print(part.word)\n")
    (program.parent / "part.py").write_text("word = 'whole'\n")
    program.chmod(0o755)
    assert await said((str(program),), confined(wrapped=wrapped), cwd=tmp_path) == "whole\n"


async def test_a_sandboxed_child_cannot_reach_a_daemon_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_kernel()
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "home"))
    files = DaemonPaths("testd")
    steps = [("unix", files.socket), ("read", files.token("cli"))]
    async with DaemonServer(files, []):
        assert await outcome(Confinement("off"), steps) == {" ".join(map(str, step)): "ok" for step in steps}
        for network in ("none", "loopback", "all"):
            confinement = Confinement("enforce", (), network, uses_bubblewrap=False)  # type: ignore[arg-type]
            assert set((await outcome(confinement, steps)).values()) == {"EACCES"}
        # Allowed by mistake, together with the home of somebody: no start.
        async with Children(protected=[tmp_path / "home"]) as children:
            wide = Confinement("enforce", (PathRule.of(tmp_path),), uses_bubblewrap=False)
            with pytest.raises(Denied):
                await children.start(ChildSpec("wide", ("true",), confinement=wide))


async def test_bubblewrap_hides_our_files_in_a_folder_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "token").write_text("secret")
    (tmp_path / "other").write_text("x")
    confinement = confined(PathRule.of(tmp_path), wrapped=True)
    async with Children(protected=[tmp_path / "run"]) as children:
        command = ("sh", "-c", f"ls {tmp_path} {tmp_path}/run; cat {tmp_path}/run/token >&2")
        child = await children.start(ChildSpec("wide", command, confinement=confinement))
        stdin, stdout = child.take_pipes()
        with stdin, stdout:
            listing = (await asyncio.to_thread(stdout.read)).decode()
        await child.ended(10)
    assert "other" in listing and "token" not in listing


async def test_sigterm_lets_a_server_behind_bubblewrap_tidy_up(tmp_path: Path) -> None:
    confinement = confined(PathRule.of(tmp_path, "rw"), wrapped=True)
    script = f"trap 'sleep 0.2; echo tidy > {tmp_path}/done; exit' TERM; echo ready; while :; do sleep 0.05; done"
    async with Children() as children:
        spec = ChildSpec("tidy", ("sh", "-c", script), confinement=confinement, patience=StopTimeouts(0.0, 15.0))
        child = await children.start(spec)
        await asyncio.to_thread(wait_for_line, child.stdout.fileno())
        await child.stop()
        assert left_of(child.tag.as_dict()) == []
    assert (tmp_path / "done").read_text() == "tidy\n"


@BOTH
def test_a_sandboxed_family_does_not_survive_a_killed_daemon(tmp_path: Path, wrapped: bool) -> None:
    confined(wrapped=wrapped)
    code = f"""
import asyncio, os
from dari.process.children import Children
from dari.process.child import ChildSpec
from dari.sandbox.confinement import Confinement
from tests.support.processes import HOUSEHOLDS, wait_for_line
async def main():
    children = Children()
    command = HOUSEHOLDS["a grandchild that lost its parent"][0]
    confinement = Confinement("enforce", (), "none", uses_bubblewrap={wrapped})
    child = await children.start(ChildSpec("x", command, confinement=confinement))
    os.write(child.stdin.fileno(), b"begin\\n")
    await asyncio.to_thread(wait_for_line, child.stdout.fileno())
    print(*children.reaper_pids[:1], child.tag.token, child.tag.brand, child.scratch, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    daemon = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT)
    assert daemon.stdout is not None
    with daemon.stdout:
        try:
            guardian, token, brand, scratch = wait_for_line(daemon.stdout.fileno()).decode().split()
            marks = {token: int(brand)}
            assert len(left_of(marks)) >= 2 and Path(scratch).is_dir()
        finally:
            daemon.kill()
            daemon.wait()
    wait_for_end(int(guardian))
    assert left_of(marks) == [] and not Path(scratch).exists()


def test_everything_holds_under_uvloop_too(tmp_path: Path) -> None:
    require_asking()
    confinement = confined(PathRule.of(tmp_path, "rw"), network="loopback")
    steps = [("read", "/etc/shadow"), ("write", tmp_path / "x"), ("tcp", "127.0.0.1", "1"), ("tcp", "203.0.113.1", "1")]
    found = list(uvloop.run(outcome(confinement, steps)).values())
    assert found == ["EACCES", "ok", "ECONNREFUSED", "EACCES"]


async def test_a_bubblewrap_that_fails_is_an_error_with_its_words(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'no namespaces for you' >&2; exit 1\n")
    broken.chmod(0o755)
    machine = SandboxCapabilities("linux", os.uname().machine, 0, True, False, str(broken), "")
    async with Children(machine=machine) as children:
        with pytest.raises(Unavailable, match="exit status 1") as caught:
            await children.start(ChildSpec("x", ("true",), confinement=Confinement("enforce", (), "none")))
        assert "no namespaces for you" in caught.value.hint


async def test_auto_starts_where_nothing_can_be_enforced_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    machine = SandboxCapabilities("linux", os.uname().machine)
    async with Children(machine=machine) as children:
        child = await children.start(ChildSpec("x", ("true",), confinement=Confinement("auto", (), "none")))
        assert await child.ended(10) and child.returncode == 0
        assert any(warning.startswith("reads not confined") for warning in child.warnings)
    assert "reads not confined" in caplog.text


async def test_a_confined_child_cannot_end_its_guardian(tmp_path: Path) -> None:
    async with Children() as children:
        await (await children.start(ChildSpec("first", ("true",)))).gone()
        guardian = children.reaper_pids[0]
        spec = ChildSpec("killer", ("sh", "-c", f"kill -9 {guardian}"), confinement=confined())
        child = await children.start(spec)
        assert await child.ended(10) and child.returncode not in (0, -signal.SIGKILL)
        assert guardian in children.reaper_pids and Path(f"/proc/{guardian}").exists()
