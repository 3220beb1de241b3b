from __future__ import annotations

import os
import subprocess
import sys

from dari.daemon.agent_hosts import is_mcp_server
from dari.daemon.ancestry import ancestors, is_descendant, list_processes, read_process
from dari.daemon.launch import python_command
from tests.support.waiting import wait_until

# A child that starts a grandchild, tells its pid and waits for the end of stdin.
NESTED = """
import subprocess, sys
child = subprocess.Popen(["cat"], stdin=sys.stdin)
print(child.pid, flush=True)
child.wait()
"""


def test_the_chain_leads_from_a_process_to_the_first_one() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NESTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        grandchild = int(child.stdout.readline())
        wait_until(lambda: ancestors(grandchild)[0].argv)  # past its exec
        chain = ancestors(grandchild)
        assert [each.pid for each in chain[:3]] == [grandchild, child.pid, os.getpid()]
        assert chain[-1].parent == 0 or chain[-1].pid == 1
        assert chain[1].argv[-1] == NESTED and chain[0].program == "cat"
        assert is_descendant(grandchild, os.getpid()) and not is_descendant(os.getpid(), grandchild)
        assert list_processes()[grandchild].started == chain[0].started
        child.stdin.close()


def test_a_process_that_has_ended_has_no_ancestors_and_counts_as_a_descendant() -> None:
    """Whoever asks refuses what it cannot tell."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert ancestors(ended.pid) == [] and read_process(ended.pid) is None
    assert is_descendant(ended.pid, os.getpid())


def test_a_zombie_is_known_as_one() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    process = read_process(child.pid)
    assert process is not None and process.is_ended
    child.wait()


def test_a_daemon_is_known_by_the_command_that_starts_it() -> None:
    assert is_mcp_server(python_command("dari.cli.crab_mcp", "--transport", "http"))
    assert not is_mcp_server(python_command("dari.cli.crabd", "serve"))
