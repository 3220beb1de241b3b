"""Programs that agents run in: those that started an MCP server of ours (`dari mcp`, `crux-mcp-bridge`, …).

A host stays one while it lives, also when its server has ended: an agent can end its server before it tries something.
What a host starts and lets go of (`setsid`, a double fork, a tmux server) has no parent that leads back to it. So what
was detached since a host of this home was started, in the host's own cgroup, is taken for its work as well. A terminal
window or a login has a cgroup of its own where systemd runs; elsewhere one that is older than the host is free.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from dari.daemon.ancestry import Process, list_processes, read_proc, read_process
from dari.daemon.lock import lock_holder
from dari.daemon.paths import DaemonPaths

MAX_KNOWN = 1000
_MCP_COMMANDS = ("crux-mcp-bridge", "crab-mcp", "dari.cli.crux_mcp_bridge", "dari.cli.crab_mcp")
_COMMANDS_WITH_MCP = ("dari", "dari.cli.main", "dari.__main__", "kebab", "dari.cli.kebab.fast_client")
_CODE_TOOLS = ("crewx-tools", "dari.cli.crewx_tools.main")
_LAUNCHERS = frozenset(
    [
        *("sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "busybox", "env", "nice", "nohup", "setsid", "timeout"),
        *("uv", "uvx", "npx", "npm", "sudo", "doas", "stdbuf", "script", "xargs", "time"),
    ]
)
_MANAGERS = frozenset(["systemd", "init", "launchd", "tini", "dumb-init", "docker-init", "catatonit"])


class AgentHosts:
    """Hosts that were seen, each with the time at which its process was started."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def look(self) -> set[int]:
        """Remember the hosts that run now; their pids, and those of the servers. Reads every process."""
        processes = list_processes()
        found: set[int] = set()
        for server in processes.values():
            if is_mcp_server(server.argv):
                host = _host_of(server, processes.get)
                found |= {server.pid} if host is None else {server.pid, host.pid}
                self._remember(server, host)
        return found

    def note_client(self, pid: int | None) -> None:
        """Remember the host of a process that has connected, if that is an MCP server of ours."""
        server = None if pid is None else read_process(pid)
        if server is not None and is_mcp_server(server.argv):
            self._remember(server, _host_of(server, read_process))

    def find_above(self, chain: Sequence[Process]) -> str:
        """Why the process at the start of the chain belongs to an agent's host; empty when it does not."""
        pid, live = chain[0].pid, self.look()
        self._known = {known: started for known, started in self._known.items() if _is_still(known, started)}
        for each in chain:
            if each.pid in live or each.pid in self._known:
                host = f"process {each.pid} ({each.program})"
                return f"process {pid} is below {host}, which started an MCP server of ours"
        top = _detached(chain)
        for host_pid, started in self._known.items():
            if top is not None and int(top.started) >= int(started) and _cgroup(pid) == _cgroup(host_pid):
                since = f"since process {host_pid} was started, which started an MCP server of ours"
                return f"process {top.pid} ({top.program}) was detached from its parents {since}"
        return ""

    def _remember(self, server: Process, host: Process | None) -> None:
        """Not the shell of a person who tries a server, nor the host of a server of another home."""
        if host is None or host.program in _LAUNCHERS or not _is_of_our_home(server.pid):
            return
        self._known[host.pid] = host.started
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]


def is_mcp_server(argv: Sequence[str]) -> bool:
    """Whether this command line is a server of ours that an agent's host starts (`dari mcp`, `kebab mcp`, `crab-mcp`,
    `crux-mcp-bridge`, `crewx-tools serve`), however Python runs it."""
    if runs(argv, _MCP_COMMANDS):
        return True
    words = [
        word
        for before, word in zip(("", *argv), argv, strict=False)
        if not word.startswith("-") and before != "--config"
    ]
    at = next((at for at, word in enumerate(words[:4]) if _names(word, (*_COMMANDS_WITH_MCP, *_CODE_TOOLS))), -1)
    if at < 0:
        return False
    named = words[at + 1 :]
    if _names(words[at], _CODE_TOOLS):
        return named[:1] == ["serve"]
    return named[:1] == ["mcp"] or named[:2] == ["knowledge", "mcp"]


def runs(argv: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of these is the program, the script or module that Python runs, or what `python_command` names."""
    return any(_names(word, names) for word in argv[:5])


def _names(word: str, names: Sequence[str]) -> bool:
    """Also `python -c 'from dari.cli.cruxd import main; …'`, as our daemons are started."""
    return os.path.basename(word) in names or any("." in name and name in word for name in names)


def _host_of(server: Process, find: Callable[[int], Process | None]) -> Process | None:
    """`sh -c 'dari mcp'`: the agent's host is above the launcher. A shell that a person types into reads a terminal.
    The hub starts a `crab-mcp` for the person who asks for one in the console, and is nobody's host by that."""
    host = find(server.parent)
    if host is not None and host.pid == hub_pid():
        return None
    while host is not None and host.program in _LAUNCHERS and not _reads_terminal(host.pid):
        host = find(host.parent)
    return host if host is not None and host.pid > 1 and host.program not in _MANAGERS else None


def hub_lock() -> str:
    return DaemonPaths("bridge", lock_name="host.lock").lock_text


def hub_pid() -> int | None:
    """The process that holds the lock of the hub."""
    return lock_holder(hub_lock())


def _detached(chain: Sequence[Process]) -> Process | None:
    """The highest process of the chain below the first process and managers of services, which take in what loses its
    parent; None where the chain leads elsewhere (`docker exec`), and without /proc."""
    if sys.platform != "linux" or chain[-1].pid != 1:
        return None
    return next((each for each in reversed(chain[:-1]) if each.program not in _MANAGERS), None)


def _is_still(pid: int, started: str) -> bool:
    found = read_process(pid)
    return found is not None and found.started == started and not found.is_ended


def _is_of_our_home(pid: int) -> bool:
    """As far as it can be read. One user may have several homes, each with a DARI_HOME of its own."""
    theirs = dict(entry.split(b"=", 1) for entry in read_proc(f"/proc/{pid}/environ").split(b"\0") if b"=" in entry)
    if not theirs:
        return True
    try:
        their_folder = os.readlink(f"/proc/{pid}/cwd").encode()
    except OSError:
        their_folder = b"/"
    if _home(os.environb, os.getcwdb) == _home(theirs, lambda: their_folder):
        return True
    is_named = os.environb.get(b"DARI_HOME") or theirs.get(b"DARI_HOME")
    return not is_named and os.environb.get(b"HOME") == theirs.get(b"HOME")  # the terminal's daemon is in HOME


def _home(environment: Mapping[bytes, bytes], folder: Callable[[], bytes]) -> bytes:
    """Where Dari keeps things in this environment (`dari.home.home_dir`), however it is spelled."""
    user = environment.get(b"HOME", b"")
    chosen = environment.get(b"DARI_HOME", b"")
    if not chosen:
        data = environment.get(b"XDG_DATA_HOME", b"")
        chosen = os.path.join(data if os.path.isabs(data) else os.path.join(user, b".local/share"), b"dari")
    if chosen == b"~" or chosen.startswith(b"~/"):
        chosen = user + chosen[1:]
    return os.path.realpath(chosen if os.path.isabs(chosen) else os.path.join(folder(), chosen))


def _cgroup(pid: int) -> bytes:
    return read_proc(f"/proc/{pid}/cgroup")


def _reads_terminal(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/0").startswith(("/dev/pts/", "/dev/tty", "/dev/console"))
    except OSError:
        return False
