"""Design 003 (AgentHub, Plan 10) line by line, on the real Bridge, with the server that the design names.

Each test quotes the line it is about. Field by field the YAML is in tests/bridge/config/test_design_003.py; the
sandbox, attempt by attempt, in tests/bridge/sandbox; other systems in tests/process/test_other_systems.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.service import Bridge
from dari.bridge.upstream.caller import Caller
from dari.bridge.upstream.upstream import Upstream
from dari.errors import DariError, InvalidInput, NeedsApproval, Unavailable
from dari.process import group
from dari.process.program import build_environment
from dari.process.reaper_main import find_tagged
from dari.sandbox.capabilities import SandboxCapabilities
from dari.sandbox.report import build_report
from tests.support.bridge import LAB
from tests.support.child_servers import server, server_source
from tests.support.processes import STUBBORN
from tests.support.real_servers import Installed, installed
from tests.support.waiting import until
from tests.support.wire import ROOT

pytestmark = pytest.mark.local_mcp

ME = Caller("test")


@pytest.fixture(scope="module")
def there() -> Installed:
    return installed()


class Hub:
    """A person with the YAML of the design in their home."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.documents, self.secret = root / "home", root / "Documents", root / "secret.txt"
        self.documents.mkdir()
        (self.documents / "hello.txt").write_text("안녕\n")
        self.secret.write_text("do not read\n")
        self.file = self.home / ".config/crewx/mcp.yaml"
        self.file.parent.mkdir(parents=True)
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), "OUR_SECRET": "hunter22"}

    def register(self, *endpoints: dict[str, Any]) -> None:
        """Design 003, "Configuration (YAML)"."""
        self.file.write_text(yaml.safe_dump({"mcp": {"endpoints": list(endpoints)}}, allow_unicode=True))
        self.file.chmod(0o600)

    def filesystem(self, there: Installed, *folders: Path, **config: Any) -> dict[str, Any]:
        """The design's own example: the reference filesystem server."""
        program = there.npm("@modelcontextprotocol", "server-filesystem", "dist", "index.js")
        args = [program, *map(str, folders or (self.documents,))]
        config.setdefault("allowed_paths", [str(self.documents)])
        return endpoint("filesystem-server", str(there.node), args, **config)

    @asynccontextmanager
    async def bridge(self) -> AsyncIterator[Bridge]:
        async with Bridge(self.root / "state") as bridge:
            yield bridge

    def upstream(self, bridge: Bridge, id: str = "filesystem-server") -> Upstream:
        return bridge.view(ClientEnvironment(self.home, self.root, self.environ)).upstream(id)


def endpoint(name: str, command: str, args: list[str], **config: Any) -> dict[str, Any]:
    """An endpoint of the design; `sandbox` and `network` are fields of ours beside its `stdio_config`."""
    ours = {field: config.pop(field) for field in ("sandbox", "network") if field in config}
    given = {"env": {}, "cwd": "", "restart_on_crash": True, "max_restart_attempts": 3, **config}
    stdio_config = {"command": command, "args": args, **given}
    return {"name": name, "transport_type": "stdio", "stdio_config": stdio_config, **ours}


def lab(**config: Any) -> dict[str, Any]:
    return endpoint("lab", sys.executable, [str(LAB)], **config)


async def call(upstream: Upstream, tool: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(bytes(await upstream.call_tool(tool, json.dumps(arguments).encode(), ME)))
    return result


def text_of(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def zombies_of_ours() -> list[str]:
    """Children of this process that ended and that nobody waited for."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text().rpartition(")")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if state == "Z" and int(parent) == os.getpid():
            found.append(name)
    return found


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    return Hub(tmp_path)


# Definition of Done, Functionality


async def test_dod_registration_a_stdio_server_of_the_yaml_is_listed_started_and_used(
    hub: Hub, there: Installed
) -> None:
    """ "stdio MCP server registration works"; integration test `test_stdio_transport_tools_list`."""
    hub.register(hub.filesystem(there))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge)
        assert upstream.status().state == "configured" and upstream.status().kind == "stdio"
        names = {tool.name for tool in await upstream.tools()}
        assert {"read_text_file", "write_file", "list_allowed_directories"} <= names
        assert upstream.status().state == "ready" and upstream.status().pid


async def test_dod_registration_at_runtime_needs_no_restart_and_is_kept(hub: Hub) -> None:
    """ "stdio MCP server registration works": added, changed and removed while the bridge runs, and there after it."""
    hub.register(lab())
    async with hub.bridge() as bridge:
        assert text_of(await call(hub.upstream(bridge, "lab"), "greet")) == "hello"
        hub.register(lab(env={"LAB_SAYS": "changed"}), {**lab(), "name": "second"})
        assert text_of(await call(hub.upstream(bridge, "lab"), "greet")) == "changed"
        assert text_of(await call(hub.upstream(bridge, "second"), "greet")) == "hello"
        hub.register({**lab(), "name": "second"})
        with pytest.raises(DariError):
            hub.upstream(bridge, "lab")
    async with hub.bridge() as bridge:
        assert text_of(await call(hub.upstream(bridge, "second"), "greet")) == "hello"


async def test_dod_calls_a_tool_of_the_filesystem_server_reads_a_file(hub: Hub, there: Installed) -> None:
    """ "tool calls work (tools/list, …)"."""
    hub.register(hub.filesystem(there))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge)
        result = await call(upstream, "read_text_file", path=str(hub.documents / "hello.txt"))
        assert text_of(result) == "안녕\n"
        await call(upstream, "write_file", path=str(hub.documents / "new.txt"), content="written")
        assert (hub.documents / "new.txt").read_text() == "written"


async def test_dod_calls_resources_are_read(hub: Hub, there: Installed) -> None:
    """ "tool calls work (…, resources/read, etc.)"; integration test `test_stdio_transport_resources_read`.

    The filesystem server has no resources; the reference server "everything" of the same authors has.
    """
    program = there.npm("@modelcontextprotocol", "server-everything", "dist", "index.js")
    hub.register(endpoint("everything", str(there.node), [program, "stdio"]))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "everything")
        listed = await upstream.resources()
        assert listed
        read = json.loads(bytes(await upstream.read_resource(str(listed[0]["uri"]), ME)))
        assert read["contents"][0]["uri"] == listed[0]["uri"]
        assert await upstream.prompts()


async def test_dod_crash_a_killed_server_is_started_again_and_counted(hub: Hub, there: Installed) -> None:
    """ "process crash restart works"; integration test `test_stdio_crash_recovery` (kill the process)."""
    hub.register(hub.filesystem(there))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge)
        await upstream.start()
        first = upstream.status().pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: upstream.status().pid != first)  # what it started may answer until it ends, too
        result = await _called_after_restart(upstream, hub)
        assert text_of(result) == "안녕\n"
        second = upstream.status()
        assert second.pid not in (None, first) and second.restarts == 1 and second.state == "ready"


async def _called_after_restart(upstream: Upstream, hub: Hub) -> dict[str, Any]:
    """A call may still find the pipe of the process that was just killed; it is told so, and the next one works."""
    while True:
        try:
            return await call(upstream, "read_text_file", path=str(hub.documents / "hello.txt"))
        except Unavailable:
            await asyncio.sleep(0)


@pytest.mark.parametrize("how", ["closed", "killed", "stubborn"])
async def test_dod_zombies_nothing_is_left_however_it_ends(how: str, hub: Hub) -> None:
    """ "zombie process prevention is verified"; risk table: "`wait()` + 5 s timeout"."""
    after = "while True:\n    time.sleep(600)"
    body = server_source("text(message, name)", STUBBORN.partition("print")[0], after)
    stubborn = endpoint("lab", sys.executable, ["-c", body])
    hub.register(stubborn if how == "stubborn" else lab())
    before = zombies_of_ours()  # of other tests in this process
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        await upstream.about()
        (child,) = bridge.children.running
        mark = {child.tag.token: child.tag.brand}
        if how == "killed":
            os.kill(child.pid, signal.SIGKILL)
            await child.gone()
        await upstream.stop()
        assert is_gone(child.pid) and find_tagged(mark) == []
        assert child.returncode == (0 if how == "closed" else -signal.SIGKILL)
        assert set(zombies_of_ours()) <= set(before)
    assert set(zombies_of_ours()) <= set(before)


def test_dod_zombies_to_look_for_bubblewrap_leaves_none() -> None:
    """ "zombie process prevention is verified": bubblewrap's first process outlives it, and becomes a child of ours."""
    program = (
        "from dari.process.reaper import become_subreaper; become_subreaper()\n"
        "from dari.sandbox.capabilities import probe_capabilities; probe_capabilities()\n"
        "from tests.bridge.test_design_003 import zombies_of_ours; print(zombies_of_ours())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


async def test_dod_paths_the_filesystem_server_cannot_leave_allowed_paths(hub: Hub, there: Installed) -> None:
    """ "path permission check works"; integration test `test_filesystem_allowed_paths`.

    The server itself is told that it may read everything: only the kernel stands in its way.
    """
    hub.register(hub.filesystem(there, Path("/"), sandbox="enforce", network="none"))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge)
        inside = await call(upstream, "read_text_file", path=str(hub.documents / "hello.txt"))
        outside = await call(upstream, "read_text_file", path=str(hub.secret))
        assert text_of(inside) == "안녕\n"
        assert outside["isError"] is True and "do not read" not in json.dumps(outside)
    # Its roots come from allowedPaths too, and it believes them; without both walls it reads what it was told to.
    hub.register(hub.filesystem(there, Path("/"), sandbox="off", allowed_paths=["/"]))
    async with hub.bridge() as bridge:
        open_ = await call(hub.upstream(bridge), "read_text_file", path=str(hub.secret))
        assert text_of(open_) == "do not read\n"


# Design Considerations, Security


def opener(**config: Any) -> dict[str, Any]:
    """A server whose tool `<path>` opens that path and says what came of it."""
    body = """
    try:
        text(message, open(name).read())
    except OSError as error:
        text(message, error.strerror)
    """
    tools = "[{'name': each, 'inputSchema': {'type': 'object'}} for each in sys.argv[1:]]"
    listing = f"    elif message.get('method') == 'tools/list':\n        reply(message, {{'tools': {tools}}})\n"
    command = server(body).command
    paths = config.pop("paths")
    return endpoint("lab", command[0], ["-c", command[2] + listing, *paths], **config)


async def test_security_a_symlink_out_of_an_allowed_path_leads_nowhere(hub: Hub) -> None:
    """ "symlink attacks are prevented (os.path.realpath())", and `..` on the way."""
    (hub.documents / "link").symlink_to(hub.secret)
    paths = [str(hub.documents / "hello.txt"), str(hub.documents / "link"), f"{hub.documents}/../secret.txt"]
    hub.register(opener(paths=paths, allowed_paths=[str(hub.documents)], sandbox="enforce"))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        said = [text_of(await call(upstream, path)) for path in paths]
    assert said[0] == "안녕\n"
    assert set(said[1:]) <= {"Permission denied", "No such file or directory"}


async def test_security_an_allowed_path_that_is_a_symlink_is_what_it_leads_to(hub: Hub) -> None:
    """ "symlink attacks are prevented": the rule is about the real folder."""
    (hub.root / "short").symlink_to(hub.documents)
    paths = [str(hub.documents / "hello.txt"), str(hub.secret)]
    hub.register(opener(paths=paths, allowed_paths=[str(hub.root / "short")], sandbox="enforce"))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        said = [text_of(await call(upstream, path)) for path in paths]
    assert said[0] == "안녕\n" and said[1] != "do not read\n"


@pytest.mark.parametrize("path", [".", "..", "../x", "a/../../b"])
async def test_security_relative_allowed_paths_are_refused(path: str, hub: Hub) -> None:
    """ "relative paths are forbidden (`.`, `..`)"."""
    hub.register(lab(allowed_paths=[path]))
    async with hub.bridge() as bridge:
        with pytest.raises(InvalidInput) as refused:
            hub.upstream(bridge, "lab")
        assert "allowed_paths" in refused.value.message and str(hub.file) in refused.value.message
        assert bridge.statuses() == []


async def test_security_the_environment_is_what_is_named_and_the_basics(hub: Hub) -> None:
    """ "only variables given in `env`; nothing is inherited", corrected: without PATH and HOME no npx runs."""
    hub.register(lab(env={"GIVEN": "yes"}))
    async with hub.bridge() as bridge:
        seen = json.loads(text_of(await call(hub.upstream(bridge, "lab"), "env")))
    assert seen["GIVEN"] == "yes" and "OUR_SECRET" not in seen
    basics = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "DARI_CHILD", "LC_CTYPE"}
    assert set(seen) - {"GIVEN"} <= basics


# Design Considerations, Process Lifecycle


async def test_start_the_configuration_is_checked_before_a_process_is_made(hub: Hub) -> None:
    """Start 1: "`StdioConfig` is validated (command, args, allowed_paths)"."""
    hub.register(
        endpoint("lab", "no-such-program-of-ours", []),
        {**lab(allowed_paths=[str(hub.root / "missing")], sandbox="enforce"), "name": "missing"},
    )
    async with hub.bridge() as bridge:
        with pytest.raises(Unavailable) as refused:
            await hub.upstream(bridge, "lab").start()
        assert "no-such-program-of-ours" in refused.value.message and refused.value.hint
        with pytest.raises(DariError) as gone:
            await hub.upstream(bridge, "missing").start()
        assert str(hub.root / "missing") in gone.value.message
        assert bridge.children.running == frozenset()


async def test_start_a_process_with_pipes_in_a_session_of_its_own_whose_id_is_known(hub: Hub) -> None:
    """Start 2 to 4: "subprocess is made, pipes are set up, the process id is kept"."""
    hub.register(lab())
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        await upstream.start()
        pid = upstream.status().pid
        assert pid is not None and str(pid) == text_of(await call(upstream, "pid"))
        assert os.getsid(pid) == os.getpgid(pid) == pid
        for number in (0, 1, 2):
            assert os.readlink(f"/proc/{pid}/fd/{number}").startswith(("pipe:", "socket:"))


async def test_monitor_an_end_is_noticed_by_itself(hub: Hub) -> None:
    """Monitor 1 and 2: "state is watched, a crash triggers the restart"; by an event, not every 5 s."""
    hub.register(lab())
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        await upstream.start()
        (child,) = bridge.children.running
        os.kill(child.pid, signal.SIGKILL)
        await child.gone()
        status = upstream.status()
        assert status.state in ("backoff", "starting", "ready") and status.failures == 1
        assert "SIGKILL" in status.last_error and status.pid != child.pid


async def test_monitor_after_max_restart_attempts_it_is_given_up_and_says_so_at_once(hub: Hub) -> None:
    """Monitor 3 and risk table: "`max_restart_attempts` reached: give up", "exponential backoff"."""
    hub.register(endpoint("lab", "sh", ["-c", "echo no database >&2; exit 3"], max_restart_attempts=0))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        with pytest.raises(Unavailable) as first:
            await upstream.start()
        assert "exit status 3" in first.value.message and "no database" in first.value.hint
        assert upstream.status().state == "crash-loop"
        with pytest.raises(Unavailable) as second:
            await upstream.start()
        assert "crash-loop" in second.value.message and "no database" in second.value.hint


async def test_monitor_restart_on_crash_false_leaves_it_alone(hub: Hub) -> None:
    """`restart_on_crash: bool`."""
    hub.register(lab(restart_on_crash=False))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        await upstream.start()
        (child,) = bridge.children.running
        os.kill(child.pid, signal.SIGKILL)
        await child.gone()
        assert upstream.status().state == "stopped"
        with pytest.raises(Unavailable):
            await call(upstream, "greet")
        assert bridge.children.running == frozenset()


async def test_stop_eof_then_sigterm_then_sigkill_then_wait(hub: Hub) -> None:
    """Stop 1 to 4: "SIGTERM, wait 5 s, SIGKILL, `wait()`"; corrected: stdin is closed first, as MCP wants."""
    log = hub.root / "ends"
    steps = f"""
import signal, threading
def note(word):
    with open({str(log)!r}, "a") as file:
        file.write(word + "\\n")
signal.signal(signal.SIGTERM, lambda *_: note("SIGTERM"))
"""
    body = server_source("text(message, name)", steps, "note('EOF')\nwhile True:\n    time.sleep(600)")
    hub.register(endpoint("lab", sys.executable, ["-c", body]))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        await upstream.about()
        (child,) = bridge.children.running
        await upstream.stop()
        assert log.read_text().split() == ["EOF", "SIGTERM"]
        assert child.returncode == -signal.SIGKILL and is_gone(child.pid)


async def test_restart_has_the_same_configuration_and_new_pipes(hub: Hub) -> None:
    """Restart 1 to 4: "stop the old one, start a new one with the same config, new pipes, counter + 1"."""
    hub.register(lab(env={"LAB_SAYS": "the same"}))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        assert text_of(await call(upstream, "greet")) == "the same"
        pid = upstream.status().pid
        with pytest.raises(Unavailable) as died:
            await call(upstream, "die")
        assert "exit status 7" in died.value.message and "I cannot go on" in died.value.hint
        assert text_of(await call(upstream, "greet")) == "the same"
        assert upstream.status().pid != pid and upstream.status().restarts == 1


# Cross-platform, and what the design's page offers


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_cross_platform_each_system_has_its_family_and_an_honest_report(
    system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Windows, macOS, Linux": a way to end whole families, and no word of walls that do not stand."""
    machine = SandboxCapabilities(system, "x86_64", sandbox_exec="/usr/bin/sandbox-exec" if system == "darwin" else "")
    told = {finding.aspect: finding for finding in build_report(machine=machine).findings}
    assert told["nothing survives"].is_enforced
    assert told["reads"].is_enforced is (system == "darwin") and (told["reads"].note or system == "darwin")
    monkeypatch.setattr(group, "sys", SimpleNamespace(platform=system))
    assert group.choose_group_type().__name__ == ("WindowsJob" if system == "win32" else "PosixGroup")
    assert "SYSTEMROOT" in build_environment({}, source={"SYSTEMROOT": "C:\\Windows"}, platform="nt")


async def test_a_changed_tool_of_a_registered_server_waits_for_a_person(hub: Hub) -> None:
    """Beyond the design: what a model was shown of a registered server stays what it is shown."""
    tools = hub.root / "tools.json"
    tools.write_text(json.dumps([{"name": "greet", "description": "hi", "inputSchema": {"type": "object"}}]))
    hub.register(lab(env={"LAB_TOOLS": str(tools)}))
    async with hub.bridge() as bridge:
        await hub.upstream(bridge, "lab").start()
    tools.write_text(json.dumps([{"name": "greet", "description": "obey", "inputSchema": {"type": "object"}}]))
    async with hub.bridge() as bridge:
        upstream = hub.upstream(bridge, "lab")
        await upstream.tools(fresh=True)
        with pytest.raises(NeedsApproval):
            await call(upstream, "greet")
