"""`sandbox = "workspace"`: what a pane that an agent opened can do, tried in real panes of a real daemon."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dari.daemon.client import DaemonClient
from dari.daemon.lock import lock_holder
from dari.daemon.paths import DaemonPaths
from dari.errors import Denied, InvalidInput, Unavailable
from dari.process.spawner import Spawner
from dari.sandbox.capabilities import SandboxCapabilities, probe_capabilities
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.pane import Pane
from dari.terminal.panes.shell_integration import plan_launch
from dari.terminal.panes.workspace_sandbox import WorkspaceSandbox, is_workspace
from dari.terminal.paths import CruxPaths
from dari.terminal.policy.config import Security, parse_security
from tests.support.crux_command import Crux, crux_in
from tests.support.requirements import require_bubblewrap
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not probe_capabilities().landlock_abi, reason="panes are confined by Landlock"
)
CONFIG = """
[mcp.security]
sandbox = "workspace"
dangerous_patterns = []
"""


@pytest.fixture(scope="module")
def crux() -> Iterator[Crux]:
    with TemporaryDirectory(prefix="workspace-") as home, crux_in(Path(home)) as made:
        config = Path(home) / ".config/crux/crux.toml"
        config.parent.mkdir(parents=True)
        config.write_text(CONFIG)
        config.chmod(0o600)
        (Path(home) / "project").mkdir()
        yield made


class Agent:
    """Calls cruxd with the agent's token; its pane is in the folder `project`."""

    def __init__(self, crux: Crux) -> None:
        self.home = crux.home

    def call(self, method: str, **params: object) -> Any:
        async def ask() -> Any:
            paths = CruxPaths.of_environment()
            async with DaemonClient(paths, "mcp", command=paths.command()) as client:
                return await client.call(method, params)

        return asyncio.run(ask())

    def pane(self, shell: str = "bash", cwd: str = "") -> str:
        return str(self.call("crux:pane/split", cwd=cwd or str(self.home / "project"), shell=shell)["id"])

    def run(self, command: str, pane: str) -> tuple[int, str]:
        done = self.call("crux:command/execute", command=command, pane_id=pane, timeout_ms=20_000)
        return done["exit_code"], done["stdout"]

    def attempt(self, command: str, pane: str) -> tuple[int, str]:
        """Run it in a program that the policy does not see into: an agent that got past it."""
        script = f"import subprocess, sys; sys.exit(subprocess.run(['sh', '-c', {command!r}]).returncode)"
        (self.home / "project/attempt.py").write_text(script)
        return self.run(f"{sys.executable} {self.home}/project/attempt.py", pane)


@pytest.fixture
def agent(crux: Crux) -> Agent:
    return Agent(crux)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "sh"])
def test_exit_codes_are_known_in_a_confined_shell(agent: Agent, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    pane = agent.pane(shell)
    assert agent.run("true", pane)[0] == 0
    code, shown = agent.run("sh -c 'echo said; exit 7'", pane)
    assert (code, shown.strip()) == (7, "said")


def test_the_workspace_can_be_worked_in(agent: Agent) -> None:
    pane = agent.pane()
    assert agent.run("git init -q . && git status", pane)[0] == 0
    (agent.home / "project/made.py").write_text("open('by-python', 'w').write('x'); print(6 * 7)")
    code, shown = agent.run(f"{sys.executable} made.py", pane)
    assert (code, shown.strip()) == (0, "42")
    assert (agent.home / "project/by-python").exists()
    code, shown = agent.run("mktemp && : > /dev/tty", pane)
    assert code == 0 and Path(shown.strip()).exists()
    agent.call("crux:pane/close", pane_id=pane)
    assert not Path(shown.strip()).exists()


@pytest.mark.parametrize("kills_keeper", [False, True])
def test_a_killed_daemon_leaves_no_temporary_folder_of_a_pane(agent: Agent, kills_keeper: bool) -> None:
    control = r"tr '\0' '\n' < /proc/$$/environ | sed -n s/^CRUX_CONTROL=//p"
    code, shown = agent.run(f"mktemp -d; {control}", agent.pane())
    made = [Path(line) for line in shown.split()]
    assert code == 0 and len(made) == 2 and all(path.is_dir() for path in made)
    daemon = lock_holder(CruxPaths.of_environment().lock)
    assert daemon is not None
    children = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
    for pid in [daemon, *(map(int, children) if kills_keeper else ())]:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(path.exists() for path in made))


def test_our_own_files_are_hidden(agent: Agent) -> None:
    pane = agent.pane()
    paths = CruxPaths.of_environment()
    token = next(path for path in paths.run_dir.iterdir() if "token" in path.name)
    assert token.stat().st_size
    for path in (token, agent.home / ".config/crux/crux.toml"):
        assert agent.attempt(f"cat {path}", pane)[0] != 0, path
        assert agent.attempt(f"cat /proc/1/root{path} /proc/$PPID/root{path}", pane)[0] != 0
        assert agent.attempt(f"ln -f {path} stolen || ln -sf {path} stolen; cat stolen", pane)[0] != 0
    assert agent.attempt(f"echo x >> {token}", pane)[0] != 0


@pytest.mark.parametrize("daemon", ["cruxd", "hub"])
def test_no_socket_of_ours_is_reached(agent: Agent, daemon: str) -> None:
    pane = agent.pane()
    path = (CruxPaths.of_environment() if daemon == "cruxd" else DaemonPaths("bridge")).socket
    code = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"
    done, shown = agent.attempt(f'{sys.executable} -c "{code}"', pane)
    assert done != 0 and "PermissionError" in shown


def test_nothing_is_written_outside_of_the_workspace(agent: Agent) -> None:
    pane = agent.pane()
    outside = agent.home / "outside"
    outside.write_text("kept")
    for attempt in (
        f"echo x > {outside}",
        f": > {outside}",
        f"rm -f {outside}",
        f"mv {outside} .",
        f"touch {agent.home}/new",
    ):
        assert agent.attempt(attempt, pane)[0] != 0, attempt
    assert agent.attempt(f"ln -s {outside} link; echo x > link", pane)[0] != 0
    assert outside.read_text() == "kept" and not (agent.home / "new").exists()


def test_a_daemon_of_ours_is_not_signalled(agent: Agent) -> None:
    pane = agent.pane()
    pid = agent.call("crux:server/info")["pid"]
    assert agent.attempt(f"kill -0 {pid}", pane)[0] != 0
    assert agent.attempt(f"cat /proc/{pid}/environ", pane)[0] != 0


def test_a_home_as_working_folder_is_only_read(agent: Agent) -> None:
    pane = agent.pane(cwd=str(agent.home))
    assert agent.attempt("echo x >> .bashrc", pane)[0] != 0
    assert agent.attempt("cat .bashrc", pane)[0] == 0


def test_a_persons_pane_is_not_confined_and_not_the_agents(agent: Agent, crux: Crux) -> None:
    made = agent.home / "by-a-person"
    pane = crux.json("split-pane")["id"]
    assert crux("exec", "-t", pane, f"touch {made}").code == 0
    assert made.exists()
    with pytest.raises(Denied):
        agent.run("true", pane)
    with pytest.raises(Denied):
        agent.call("crux:pane/send-text", pane_id=pane, text="true", enter=True)


async def test_a_pane_that_is_opened_for_nobody_in_particular_is_confined(tmp_path: Path) -> None:
    """As by a tool over MCP, whose calls have no process that could be a person's."""
    (tmp_path / "project").mkdir()
    async with Multiplexer(Security(sandbox="workspace"), tmp_path / "mcp.sock", tmp_path / "control") as multiplexer:
        pane = await multiplexer.open(cwd=str(tmp_path / "project"), shell="bash")
        assert pane.is_confined
        await pane.commands.ready(20.0)
        assert await multiplexer.run_quietly(pane, "export MADE=1; echo said") == b"said\n"
        again = await multiplexer.respawn(pane.id, shell="bash", force=True)
        assert again.is_confined


@pytest.mark.parametrize("shell", ["bash", "zsh"])
async def test_bubblewrap_confines_where_there_is_no_landlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    require_bubblewrap()
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    (tmp_path / "dari").mkdir()
    (tmp_path / "dari/token").write_text("secret")
    (tmp_path / "project/inner").mkdir(parents=True)
    sandbox = WorkspaceSandbox([tmp_path / "dari/token"], replace(probe_capabilities(), landlock_abi=0))
    async with Spawner() as spawner:
        place = str(tmp_path / "project")
        pane = await Pane.open(spawner, "1", cwd=place, shell=shell, is_plain=True, sandbox=sandbox)
        await pane.commands.ready(20.0)
        codes = [
            (await pane.execute(command)).exit_code
            for command in (f"cat {tmp_path}/dari/token", f"touch {tmp_path}/new", "touch made", "sh -c 'exit 7'")
        ]
        assert codes[0] != 0 and codes[1] != 0 and codes[2:] == [0, 7]
        await pane.execute("cd inner")
        assert pane.cwd() == f"{place}/inner"
        await pane.close(force=True)


def test_without_landlock_and_bubblewrap_no_pane_is_prepared(tmp_path: Path) -> None:
    machine = SandboxCapabilities("linux", "x86_64", has_seccomp=True)
    launch = plan_launch((), "sh", {"PATH": "/usr/bin:/bin"})
    with pytest.raises(Unavailable, match="Landlock"):
        WorkspaceSandbox(machine=machine).prepare(launch, str(tmp_path), "/dev/tty")


def test_an_unknown_value_names_the_allowed_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_security(b'[mcp.security]\nsandbox = "strict"\n', "crux.toml", tmp_path)
    assert "crux.toml:2" in refused.value.message
    assert '"off"' in refused.value.hint and '"workspace"' in refused.value.hint


def test_which_folders_are_workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert is_workspace(tmp_path / "project") and is_workspace(Path("/srv/project"))
    for folder in (
        tmp_path,
        tmp_path.parent,
        tmp_path / ".config/fish",
        Path("/"),
        Path("/etc"),
        Path("/usr/local/bin"),
    ):
        assert not is_workspace(folder)
