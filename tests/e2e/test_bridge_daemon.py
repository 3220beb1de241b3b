"""The bridge's daemon as commands start, use, lose, replace and stop it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.cli.hub.paths import BridgePaths
from dari.daemon.unix_socket import answers
from tests.cli.hub.processes import WITHIN_S, crewx, crewx_process, daemon_pid, kill_daemon, private_home
from tests.support.peer_server import peer
from tests.support.processes import wait_for_end
from tests.support.remote_command import profiles
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

CREWX = str(Path(sys.executable).with_name("crewx"))
SERVER = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        who = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": who}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("pid", "hang")]}
    elif method == "tools/call" and message["params"]["name"] == "hang":
        continue
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": str(os.getpid())}]}
    else:
        result = None
    reply = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"""
"""Tells its pid, and has a tool that never answers."""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with private_home(monkeypatch) as path:
        yield path


def add_server(home: Path) -> None:
    (home / "server.py").write_text(SERVER)
    folder = home / ".config" / "crewx"
    folder.mkdir(parents=True)
    entry = {"id": "s", "kind": "stdio", "command": sys.executable, "args": [str(home / "server.py")], "sandbox": "off"}
    (folder / "mcp.json").write_text(json.dumps({"version": "1", "servers": [entry]}))
    (folder / "mcp.json").chmod(0o600)


def pid_of_server() -> int:
    done = crewx("call-tool", "s/pid", "--raw")
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["content"][0]["text"])


def test_twenty_first_commands_at_once_start_one_daemon(home: Path) -> None:
    words = (sys.executable, "-m", "dari.cli.crewx", "mcp", "remote", "servers", "--json")
    pipe = subprocess.PIPE
    started = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) for _ in range(20)]
    results = [process.communicate(timeout=WITHIN_S) for process in started]
    assert {process.returncode for process in started} == {0}
    assert [(profiles(out), err) for out, err in results] == [([], b"")] * 20
    assert BridgePaths().log.read_text().count("event=open ") == 1


def test_an_address_does_not_wait_for_the_daemon_that_it_starts_for_the_next(home: Path) -> None:
    with peer() as far:
        done = crewx("call-tool", "crewx_listAgents", "--endpoint", far.url, "--raw")
        assert done.returncode == 0, done.stderr
        assert far.of("tools/call")
        wait_until(lambda: answers(BridgePaths().cli_socket_text))
        assert crewx("daemon", "status").stdout.startswith(b"The daemon runs")
        assert BridgePaths().log.read_text().count("event=open ") == 1


def test_a_server_stays_warm_between_commands_and_ends_with_the_daemon(home: Path) -> None:
    add_server(home)
    server = pid_of_server()
    assert pid_of_server() == server
    daemon = daemon_pid()
    assert daemon is not None
    done = crewx("daemon", "stop")
    assert (done.returncode, done.stdout.decode()) == (0, f"The daemon (pid {daemon}) and its servers have ended.\n")
    wait_for_end(daemon, 0.0)
    wait_for_end(server, 0.0)
    assert daemon_pid() is None
    assert sorted(os.listdir(BridgePaths().run_dir)) == ["daemon.pid", "host.lock", "start.lock"]


def test_after_a_killed_daemon_the_next_command_works_and_nothing_of_the_old_one_runs(home: Path) -> None:
    add_server(home)
    server = pid_of_server()
    killed = kill_daemon()
    wait_for_end(server)
    assert pid_of_server() != server
    assert daemon_pid() not in (None, killed)


def test_a_daemon_killed_during_a_call_is_told_and_leaves_no_server(home: Path) -> None:
    add_server(home)
    server = pid_of_server()
    with crewx_process("call-tool", "s/hang", "--timeout", "60000") as process:
        wait_for_call()
        kill_daemon()
        assert process.wait(WITHIN_S) == 2
        assert process.stderr is not None
        assert b"the daemon ended before the command had" in process.stderr.read()
    wait_for_end(server)


def test_ctrl_c_during_a_call_is_4_and_the_daemon_goes_on(home: Path) -> None:
    add_server(home)
    server = pid_of_server()
    with crewx_process("call-tool", "s/hang", "--timeout", "60000") as process:
        wait_for_call()
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 4
    assert calls_running() == 0
    assert pid_of_server() == server


def test_a_client_killed_during_a_call_takes_the_call_along(home: Path) -> None:
    add_server(home)
    server = pid_of_server()
    with crewx_process("call-tool", "s/hang", "--timeout", "60000") as process:
        wait_for_call()
        process.kill()
    while calls_running():
        pass
    assert pid_of_server() == server


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_and_its_servers(number: signal.Signals, home: Path) -> None:
    add_server(home)
    server = pid_of_server()
    kill_daemon(number)
    wait_for_end(server, 0.0)
    log = BridgePaths().log.read_text()
    assert "event=closed" in log
    assert "Traceback" not in log


def test_a_daemon_that_nobody_needs_ends(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_BRIDGE_IDLE_S", "0.2")
    assert crewx("servers").returncode == 0
    log = BridgePaths().log
    pid = int(log.read_text().partition("event=open ")[2].partition("pid=")[2].split()[0])
    wait_for_end(pid)
    assert "event=closed" in log.read_text()
    assert crewx("servers").returncode == 0, "and the next command starts another"


def test_daemon_start_status_and_stop(home: Path) -> None:
    """Design 001 §14.3."""
    add_server(home)
    assert crewx("daemon", "status").stdout.startswith(b"No daemon runs.")
    assert json.loads(crewx("daemon", "status", "--json").stdout) == {"running": False}
    assert crewx("daemon", "stop").stdout == b"No daemon runs.\n"
    assert crewx("daemon", "stop", "--server", "s").stdout.startswith(b"No daemon runs")
    assert daemon_pid() is None, "to be told that none runs starts none"
    started = crewx("daemon", "start", "--server", "s")
    assert started.returncode == 0, started.stderr
    assert b"s is warm" in started.stdout
    status = json.loads(crewx("daemon", "status", "--json").stdout)
    assert (status["running"], status["pid"]) == (True, daemon_pid())
    [server] = status["servers"]
    assert (server["id"], server["sessions"], server["tools"]) == ("s", 1, 2)
    assert b"SERVER" in crewx("daemon", "status").stdout
    assert crewx("daemon", "stop", "--server", "s").returncode == 0
    wait_for_end(server["pid"])
    assert daemon_pid() == status["pid"]
    assert crewx("daemon", "stop", "--server", "nope").returncode == 1
    assert crewx("daemon", "stop", "--all").returncode == 0
    assert daemon_pid() is None


@pytest.mark.parametrize(
    "words", [(), ("--help",), ("servers", "--help"), ("daemon", "stop", "--help"), ("daemon", "oops")]
)
def test_what_only_prints_a_text_starts_no_daemon(words: tuple[str, ...], home: Path) -> None:
    done = crewx(*words)
    assert done.returncode == (1 if words in ((), ("daemon", "oops")) else 0)
    assert done.stdout + done.stderr
    assert daemon_pid() is None
    assert not BridgePaths().log.exists()


@pytest.mark.parametrize(("words", "environment"), [(("--no-daemon",), {}), ((), {"DARI_NO_DAEMON": "1"})])
def test_without_a_daemon_on_request_the_command_runs_here_in_silence(
    words: tuple[str, ...], environment: dict[str, str], home: Path
) -> None:
    add_server(home)
    done = crewx("call-tool", "s/pid", "--raw", *words, env={**os.environ, **environment})
    assert (done.returncode, done.stderr) == (0, b"")
    wait_for_end(int(json.loads(done.stdout)["content"][0]["text"]), 0.0)
    assert not BridgePaths().log.exists()


def test_when_no_daemon_can_be_started_the_command_runs_here_and_says_so(home: Path) -> None:
    (home / "run").write_text("in the way")
    done = crewx("servers", "--json")
    assert (done.returncode, profiles(done.stdout)) == (0, [])
    assert done.stderr.startswith(b"warning: the daemon cannot be used (")
    assert done.stderr.count(b"\n") == 1


def test_the_installed_command_explains_itself(home: Path) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        done = subprocess.run((CREWX, *words), capture_output=True, text=True, timeout=WITHIN_S, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("--version")[0] == 0
    assert run("--help") == run("mcp", "--help")
    assert "crewx mcp remote list-tools" in run("--help")[1]
    assert run()[0] == 1
    assert run("mcp", "remot") == (
        1,
        "",
        "error: crewx mcp has no command 'remot'\nhint: did you mean 'crewx mcp remote'?\n",
    )
    assert "did you mean 'crewx mcp remote servers'?" in run("mcp", "servers")[2]
    assert "did you mean 'crewx mcp'?" in run("mpc")[2]
    assert daemon_pid() is None


def calls_running() -> int:
    [server] = json.loads(crewx("daemon", "status", "--json").stdout)["servers"]
    return int(server["calls"])


def wait_for_call() -> None:
    """Return when a call is under way."""
    while not calls_running():
        pass


def test_a_hub_in_the_background_has_no_console_and_says_how_to_get_one(home: Path) -> None:
    assert crewx("servers").returncode == 0  # which starts it
    done = subprocess.run(
        [sys.executable, "-m", "dari", "console", "--print"], capture_output=True, text=True, timeout=WITHIN_S
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "in the background" in done.stderr and "hint: run `dari up`" in done.stderr
