"""Which processes may act for a person: the rules of `dari.daemon.person`, tried with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Protocol

import pytest

from dari.daemon.agent_hosts import is_mcp_server
from dari.daemon.ancestry import ancestors, read_process
from dari.daemon.caller_scopes import limit_scopes, require_person, serve_own_process
from dari.daemon.errors import NotAPerson
from dari.daemon.person import PANE_BRAND, find_agent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="marks and brands are read from /proc")


WAIT = ["sh", "-c", "echo $$; read line"]


class Judge(Protocol):
    def __call__(self, argv: list[str]) -> str: ...


@pytest.fixture
def judge() -> Judge:
    """What another process, which is not above it, finds out about the process that `argv` names on its stdout."""

    def find(argv: list[str]) -> str:
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            pid = int(process.stdout.readline())
            code = f"from dari.daemon.person import find_agent; print(find_agent({pid}))"
            found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=30, text=True)
            process.stdin.close()
            return found.stdout.strip()

    return find


def test_our_own_process_is_a_persons() -> None:
    assert find_agent(os.getpid()) == ""


def test_a_process_that_the_kernel_does_not_name_is_refused() -> None:
    assert find_agent(None) != ""


def test_a_process_that_has_ended_is_refused() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert find_agent(process.pid) != ""


@pytest.mark.skipif(sys.platform != "linux", reason="the start is read from /proc")
def test_a_later_process_with_the_callers_pid_is_refused() -> None:
    own = read_process(os.getpid())
    assert own is not None
    assert find_agent(os.getpid(), own.started) == ""
    assert find_agent(os.getpid(), str(int(own.started) - 1)) != ""


def test_a_process_below_ours_is_refused() -> None:
    with subprocess.Popen(WAIT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        assert [each.pid for each in ancestors(process.pid)][:2] == [process.pid, os.getpid()]
        assert "was started by" in find_agent(process.pid)
        process.stdin.close()


@pytest.mark.parametrize("name", ["DARI_CHILD", "CRUX_PANE", "CRUX_PANE_TOKEN"])
def test_a_mark_in_the_environment_of_a_parent_counts(name: str, judge: Judge) -> None:
    assert "in a pane or in a server" in judge(["env", f"{name}=1", "sh", "-c", "env -i sh -c 'echo $$; read line'; :"])


def test_a_brand_counts_when_the_environment_was_cleared(judge: Judge) -> None:
    branded = f"import os, resource; resource.setrlimit(resource.RLIMIT_RSS, ({PANE_BRAND},) * 2);"
    run = "os.execvpe('sh', ['sh', '-c', 'echo $$; read line'], {'PATH': os.environ['PATH']})"
    assert "in a pane or in a server" in judge([sys.executable, "-c", branded + run])


def test_a_process_below_the_terminals_daemon_is_refused(judge: Judge) -> None:
    assert "in a pane" in judge(["bash", "-c", "exec -a cruxd sh -c 'sh -c \"echo \\$\\$; read line\"; :'"])


def test_a_process_below_the_hub_is_refused_by_other_daemons_too(judge: Judge) -> None:
    """Also one that was quicker than its brand and cleared its environment."""
    hub = textwrap.dedent(
        """
        import os, subprocess
        from dari.daemon.agent_hosts import hub_lock
        from dari.daemon.lock import FileLock
        os.makedirs(os.path.dirname(hub_lock()), 0o700, exist_ok=True)
        assert FileLock(hub_lock()).try_acquire()
        subprocess.run(["env", "-i", "sh", "-c", "(echo $$; read line); :"])
        """
    )
    assert "by a server of the hub" in judge([sys.executable, "-c", hub])


def test_the_host_of_a_live_mcp_server_and_all_below_it_are_refused(judge: Judge) -> None:
    """A host that starts the server through a shell, and a shell of its own beside it."""
    host = textwrap.dedent(
        """
        import subprocess
        pipe = subprocess.PIPE
        words = ["bash", "-c", "(exec -a crux-mcp-bridge cat); :"]
        server = subprocess.Popen(words, stdin=pipe, stdout=pipe, bufsize=0)
        server.stdin.write(b"up\\n")
        server.stdout.readline()  # past its exec
        subprocess.run(["sh", "-c", "echo $$; read line"])
        server.communicate()
        """
    )
    assert "started an MCP server" in judge([sys.executable, "-c", host])


def test_a_plain_process_elsewhere_is_a_persons(judge: Judge) -> None:
    assert judge(WAIT) == ""


@pytest.mark.parametrize(
    "argv",
    [
        ["/venv/bin/python", "/venv/bin/dari", "mcp"],
        ["dari", "mcp", "--profile", "x"],
        ["python", "-m", "dari", "mcp"],
        ["/venv/bin/python3", "/venv/bin/crux-mcp-bridge"],
        ["python3.11", "-P", "-m", "dari.cli.crab_mcp"],
        ["/venv/bin/python", "/venv/bin/kebab", "mcp", "--config", "x"],
        ["/venv/bin/python", "/venv/bin/kebab", "--config", "x", "mcp"],
        ["dari", "knowledge", "mcp"],
        ["dari", "knowledge", "--config=x", "mcp"],
    ],
)
def test_command_lines_of_mcp_servers_are_recognised(argv: list[str]) -> None:
    assert is_mcp_server(argv)


@pytest.mark.parametrize(
    "argv", [["dari", "approvals"], ["vim", "dari-mcp.md"], ["dari", "remote", "list"], ["kebab", "search", "mcp"], []]
)
def test_other_command_lines_are_not(argv: list[str]) -> None:
    assert not is_mcp_server(argv)


def test_without_a_caller_nobody_is_a_person() -> None:
    with pytest.raises(NotAPerson):
        require_person("approving a call")
    with limit_scopes(["admin"]), pytest.raises(NotAPerson):
        require_person("approving a call")
    with serve_own_process(["admin"]):
        require_person("approving a call")
