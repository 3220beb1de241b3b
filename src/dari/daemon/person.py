"""Whether a process acts for a person: it runs outside of everything that an agent drives.

`find_agent` names the reason when it does not:

- it is below this daemon or below the terminal's daemon: a server that we run, or a pane. Both are subreapers, so
  double forks and `setsid` do not lead out
- it carries the mark of a pane or a server: a variable in the environment, or the *brand*, a resource limit without
  effect (RLIMIT_RSS) that fork and exec hand on and that only CAP_SYS_RESOURCE could raise again
- it is below the program that started a live MCP server of ours: the agent's host, with its own shell

Same-user processes that are not confined can still get out, for instance by killing our daemons as root: this is a
guard-rail, and the sandbox (`sandbox = "workspace"` in crux.toml) is the boundary. Without /proc (macOS) the parents
come from `ps`, and there are no brands.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from dari.daemon.ancestry import ancestors, list_processes, read_proc

MIN_BRAND, MAX_BRAND = 1 << 60, 1 << 62
PANE_BRAND = (1 << 61) | 0x70616E65
"""RLIMIT_RSS of the programs in panes; those of servers are random, below 1 << 61."""
MARKS = ("DARI_CHILD", "CRUX_PANE", "CRUX_PANE_TOKEN")
MCP_COMMANDS = ("crux-mcp-bridge", "crab-mcp")
_MCP_MODULES = ("dari.cli.crux_mcp_bridge", "dari.cli.crab_mcp")
_TERMINAL_DAEMON = ("cruxd", "dari.cli.cruxd")
_DAEMONS = ("dari.cli.cruxd", "dari.cli.crabd", "dari.cli.kebabd")
_COMMANDS_WITH_MCP = ("dari", "dari.cli.main", "dari.__main__", "kebab", "dari.cli.kebab.fast_client")
_LAUNCHERS = frozenset(
    [
        *("sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "busybox", "env", "nice", "nohup", "setsid", "timeout"),
        *("uv", "uvx", "npx", "npm", "sudo", "doas", "stdbuf", "script", "xargs", "time"),
    ]
)
_MANAGERS = frozenset(["systemd", "init", "launchd", "tini", "dumb-init", "docker-init", "catatonit"])


def find_agent(pid: int | None, started: str | None = None) -> str:
    """Why this process may act for an agent, as a fact to show; empty when nothing says so.

    `started` is when the caller's process was started, where that is known: another process may have its pid by now.
    """
    if pid is None:
        return "the kernel does not say which process is calling"
    chain = ancestors(pid)
    if not chain or started not in (None, chain[0].started):
        return f"process {pid} has ended"
    own = os.getpid()
    if any(each.pid == own for each in chain[1:]):
        return f"process {pid} was started by a server or pane of this daemon"
    if is_branded(pid) or any(has_mark(each.pid) for each in chain):
        return f"process {pid} runs in a pane or in a server that we run"
    for each in chain[1:]:
        if _runs(each.argv, _TERMINAL_DAEMON):
            return f"process {pid} runs in a pane"
    hosts = mcp_hosts()
    for each in chain:
        if each.pid in hosts:
            return f"process {pid} is below process {each.pid} ({each.program}), which started an MCP server of ours"
    return ""


def mcp_hosts() -> dict[int, int]:
    """Programs that started a MCP server of ours that still runs, and the servers themselves, by pid."""
    processes = list_processes()
    hosts: dict[int, int] = {}
    for each in processes.values():
        if not is_mcp_server(each.argv):
            continue
        hosts[each.pid] = each.pid
        host = processes.get(each.parent)
        # `sh -c 'dari mcp'`: the agent's host is above the launcher. A shell that a person types into reads a terminal.
        while host is not None and host.program in _LAUNCHERS and not _reads_terminal(host.pid):
            host = processes.get(host.parent)
        if host is not None and host.pid > 1 and host.program not in _MANAGERS:
            hosts[host.pid] = each.pid
    return hosts


def is_mcp_server(argv: Sequence[str]) -> bool:
    """Whether this command line is `dari mcp`, `kebab mcp`, `crux-mcp-bridge` or `crab-mcp`, however Python runs it."""
    if _runs(argv, (*MCP_COMMANDS, *_MCP_MODULES)):
        return True
    words = [word for word in argv if not word.startswith("-")]
    at = next((at for at, word in enumerate(words[:4]) if _names(word, _COMMANDS_WITH_MCP)), -1)
    named = words[at + 1 :]
    return at >= 0 and (named[:1] == ["mcp"] or named[:2] == ["knowledge", "mcp"])


def is_own_daemon(pid: int) -> bool:
    """Whether it is a daemon of ours that we started, and not a server or a pane that took its name."""
    chain = ancestors(pid)
    return bool(chain) and not is_branded(pid) and not has_mark(pid) and _runs(chain[0].argv, _DAEMONS)


def is_branded(pid: int) -> bool:
    for line in read_proc(f"/proc/{pid}/limits").splitlines():
        if line.startswith(b"Max resident set"):
            value = line.split()[-2]
            return value.isdigit() and MIN_BRAND <= int(value) < MAX_BRAND
    return False


def has_mark(pid: int) -> bool:
    wanted = tuple(f"{name}=".encode() for name in MARKS)
    return any(entry.startswith(wanted) for entry in read_proc(f"/proc/{pid}/environ").split(b"\0"))


def _runs(argv: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of these is the program, the script or module that Python runs, or what `python_command` names."""
    return any(_names(word, names) for word in argv[:5])


def _names(word: str, names: Sequence[str]) -> bool:
    """Also `python -c 'from dari.cli.cruxd import main; …'`, as our daemons are started."""
    return os.path.basename(word) in names or any("." in name and name in word for name in names)


def _reads_terminal(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/0").startswith(("/dev/pts/", "/dev/tty", "/dev/console"))
    except OSError:
        return False
