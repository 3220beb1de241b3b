"""Whether a process acts for a person: it runs outside of everything that an agent drives.

`find_agent` names the reason when it does not:

- it is below this daemon, the hub or the terminal's daemon: a server that we run, or a pane. They are subreapers, so
  double forks and `setsid` do not lead out
- it carries the mark of a pane or a server: a variable in the environment, or the *brand*, a resource limit without
  effect (RLIMIT_RSS) that fork and exec hand on and that only CAP_SYS_RESOURCE could raise again
- it is below the program that started an MCP server of ours (the agent's host, with its own shell), or was detached
  since that was started: `dari.daemon.agent_hosts`

Same-user processes that are not confined can still get out, for instance by killing our daemons as root: this is a
guard-rail, and the sandbox (`sandbox = "workspace"` in crux.toml) is the boundary. Without /proc (macOS) the parents
come from `ps`, and there are no brands.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from dari.daemon.agent_hosts import AgentHosts, hub_pid, runs
from dari.daemon.ancestry import Process, ancestors, read_proc

MIN_BRAND, MAX_BRAND = 1 << 60, 1 << 62
PANE_BRAND = (1 << 61) | 0x70616E65
"""RLIMIT_RSS of the programs in panes; those of servers are random, below 1 << 61."""
MARKS = ("DARI_CHILD", "CRUX_PANE", "CRUX_PANE_TOKEN")
_TERMINAL_DAEMON = ("cruxd", "dari.cli.cruxd")
_DAEMONS = ("dari.cli.cruxd", "dari.cli.crabd", "dari.cli.kebabd")

AGENT_HOSTS = AgentHosts()
"""Those that this process has seen."""


@cache
def user_name() -> str:
    """The person whose processes these are, as records and panes name them."""
    import getpass  # seldom needed, and slow to import

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "a person"


def find_agent(pid: int | None, started: str | None = None) -> str:
    """Why this process may act for an agent, as a fact to show; empty when nothing says so.

    `started` is when the caller's process was started, where that is known: another process may have its pid by now.
    """
    chain = ancestors(pid) if pid is not None else []
    return _find_confinement(chain, pid, started) or AGENT_HOSTS.find_above(chain)


def find_confined(pid: int | None, started: str | None = None) -> str:
    """Why this process may run in a pane or in a server that we run; empty when nothing says so."""
    return _find_confinement(ancestors(pid) if pid is not None else [], pid, started)


def _find_confinement(chain: Sequence[Process], pid: int | None, started: str | None) -> str:
    if pid is None:
        return "the kernel does not say which process is calling"
    if not chain or started not in (None, chain[0].started):
        return f"process {pid} has ended"
    own = os.getpid()
    if any(each.pid == own for each in chain[1:]):
        return f"process {pid} was started by a server or pane of this daemon"
    if is_branded(pid) or any(has_mark(each.pid) for each in chain):
        return f"process {pid} runs in a pane or in a server that we run"
    hub = hub_pid()
    for each in chain[1:]:
        if runs(each.argv, _TERMINAL_DAEMON):
            return f"process {pid} runs in a pane"
        if each.pid == hub:
            return f"process {pid} was started by a server of the hub"
    return ""


def is_own_daemon(pid: int) -> bool:
    """Whether it is a daemon of ours that we started, and not a server or a pane that took its name."""
    chain = ancestors(pid)
    return bool(chain) and not is_branded(pid) and not has_mark(pid) and runs(chain[0].argv, _DAEMONS)


def is_branded(pid: int) -> bool:
    for line in read_proc(f"/proc/{pid}/limits").splitlines():
        if line.startswith(b"Max resident set"):
            value = line.split()[-2]
            return value.isdigit() and MIN_BRAND <= int(value) < MAX_BRAND
    return False


def has_mark(pid: int) -> bool:
    wanted = tuple(f"{name}=".encode() for name in MARKS)
    return any(entry.startswith(wanted) for entry in read_proc(f"/proc/{pid}/environ").split(b"\0"))
