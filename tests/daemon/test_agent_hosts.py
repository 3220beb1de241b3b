"""Programs that agents run in, tried with real processes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dari.daemon.agent_hosts import AgentHosts
from dari.daemon.ancestry import ancestors
from dari.daemon.paths import DaemonPaths

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
HOST = """
import os, subprocess
server = subprocess.Popen(["bash", "-c", "exec -a crux-mcp-bridge cat"], stdin=subprocess.PIPE)
print(server.pid, flush=True)
input()
server.kill()
server.wait()
shell = subprocess.Popen(["sh", "-c", "echo $$; read line"])
shell.wait()
"""


@contextmanager
def host(**environment: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program with an MCP server; the server ends at the first line that the program reads."""
    argv = [sys.executable, "-c", HOST]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        server = int(process.stdout.readline())
        while not read_name(server).endswith("crux-mcp-bridge"):
            os.sched_yield()
        yield process, server
        process.stdin.close()


def read_name(pid: int) -> str:
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().partition("\0")[0]


def shell_of(process: subprocess.Popen[str]) -> int:
    """The host ends its server; the pid of the shell that it starts then."""
    assert process.stdout is not None and process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_a_host_whose_server_connected_stays_one_after_the_servers_end() -> None:
    hosts = AgentHosts()
    with host() as (process, server):
        hosts.note_client(server)
        found = hosts.find_above(ancestors(shell_of(process)))
        assert f"below process {process.pid}" in found


def test_a_host_that_was_seen_among_all_processes_stays_one_too() -> None:
    hosts = AgentHosts()
    with host() as (process, server):
        assert {process.pid, server} <= hosts.look()
        assert f"below process {process.pid}" in hosts.find_above(ancestors(shell_of(process)))


@pytest.mark.parametrize("spelling", ["{home}/", "{home}/../{name}", "{link}", "./{name}"])
def test_a_home_that_is_spelled_otherwise_is_the_same_home(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, link = tmp_path / "home", tmp_path / "link"
    home.mkdir()
    link.symlink_to(home)
    monkeypatch.setenv("DARI_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    hosts = AgentHosts()
    with host(DARI_HOME=spelling.format(home=home, name=home.name, link=link)) as (process, server):
        hosts.note_client(server)
        assert "started an MCP server of ours" in hosts.find_above(ancestors(shell_of(process)))


def test_a_host_of_another_home_is_one_only_while_its_server_runs() -> None:
    hosts = AgentHosts()
    with host(DARI_HOME="/nowhere") as (process, server):
        hosts.note_client(server)
        assert hosts.find_above(ancestors(process.pid)) != ""
        assert hosts.find_above(ancestors(shell_of(process))) == ""


def test_the_hub_is_no_host_by_the_server_that_a_person_started_in_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    with host(DARI_HOME=str(tmp_path)) as (process, server):
        lock = Path(DaemonPaths("bridge", lock_name="host.lock").lock_text)
        lock.parent.mkdir(parents=True)
        with lock.open("w+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{process.pid}\n")
            file.flush()
            hosts = AgentHosts()
            hosts.note_client(server)
            assert process.pid not in hosts.look()
            assert server in hosts.look()
            assert hosts.find_above(ancestors(process.pid)) == ""


def test_what_is_older_than_every_host_is_not_taken_for_its_work() -> None:
    hosts = AgentHosts()
    with host() as (_, server):
        hosts.note_client(server)
        assert hosts.find_above(ancestors(os.getpid())) == ""


def test_a_process_that_is_not_a_server_of_ours_makes_nobody_a_host() -> None:
    hosts = AgentHosts()
    with host() as (process, _):
        hosts.note_client(process.pid)
        hosts.note_client(None)
        assert hosts.find_above(ancestors(shell_of(process))) == ""
