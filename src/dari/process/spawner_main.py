"""The spawner: a small process that starts the programs of panes, reports how they ended, and leaves none behind.

It runs as a script under `python -IS`, so this file imports nothing but the standard library's core. The daemon
speaks to it over a socket, one JSON object a line; the terminal of a new program comes along as a descriptor.

    → {"start": 7, "argv": […], "env": {…}, "cwd": "/", "token": "…",
       "folders": ["/tmp/…"]}                                            ← {"started": 7, "pid": 4711}
                                                                         ← {"failed": 7, "errno": 2, …}
    → {"end": 4711, "token": "…", "hangup_s": 0.5, "term_s": 5}          ← {"ended": 4711} when none is left
                                                                         ← {"exit": 4711, "code": 0}

Forking here and not in the daemon is safe (no threads, no locks held) and cheap (little memory to copy). As their
subreaper, the spawner also inherits programs that detach themselves. A pane's first program is reaped when the pane is
ended, not before: until then no other process can have its number, by which the rest of the pane is found. When the
socket ends, because the daemon ended or was killed, everything that carries the token of one of its panes is ended
too, and what a killed daemon left is removed: its sockets (named with their inodes in `sockets`) and the temporary
folders of its panes (`folders`). When the spawner itself is killed, its *understudy* does that: a fork of it that only
waits for its end.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import select
import signal
import socket
import sys
import termios
import time
from collections.abc import Iterable

PANE_VARIABLE = "CRUX_PANE_TOKEN"
PANE_BRAND = (1 << 61) | 0x70616E65
SWEEP_S = 5.0
_PR_SET_CHILD_SUBREAPER = 36


class SpawnerMain:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._descriptors: list[int] = []
        self._rest = b""
        self._tokens: dict[int, str] = {}
        self._folders: dict[int, list[str]] = {}  # pid → the temporary folders of a confined pane
        self._running: set[int] = set()  # the first programs of panes that have not ended
        self._ending: dict[int, tuple[str, float, float]] = {}  # pid → token, when to ask again, when to kill
        self._sockets: list[list] = []  # type: ignore[type-arg]
        self._understudy = 0
        self._cue = -1

    def run(self, wake: int) -> None:
        self._engage()
        while True:
            timeout = 0.02 if self._ending else None
            line = self._line.fileno()
            ready, _, _ = select.select([line, wake], [], [], timeout)
            if wake in ready:
                os.read(wake, 4096)
            self._reap()
            self._sweep()
            if line in ready and not self._hear():
                break
        for path, inode in self._sockets:
            _remove_socket(path, inode)
        self._end_all()
        os.write(self._cue, b"done\n")

    def _engage(self) -> None:
        """Fork the understudy. It knows what we know now, and hears what comes."""
        if self._cue >= 0:
            os.close(self._cue)
        heard, self._cue = os.pipe()
        os.set_inheritable(self._cue, False)
        pid = os.fork()
        if pid:
            os.close(heard)
            self._understudy = pid
            return
        try:
            self._wait_for_cue(heard)
        finally:
            os._exit(0)

    def _wait_for_cue(self, heard: int) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # The daemon must see the end of the spawner's socket, and terminals must not stay open here.
        os.closerange(3, heard)
        os.closerange(heard + 1, 1024)
        os.setsid()
        self._understudy, rest = 0, b""
        self._running.clear()  # not our children
        while data := os.read(heard, 1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line == b"done":
                    return
                order = json.loads(line)
                self._forget(order["pid"])
                if "token" in order:
                    self._keep(order["pid"], order["token"], order["folders"])
        self._end_all()  # the daemon may live: its sockets stay

    def _keep(self, pid: int, token: str, folders: list[str]) -> None:
        self._tokens[pid] = token
        if folders:
            self._folders[pid] = folders

    def _forget(self, pid: int) -> None:
        self._tokens.pop(pid, None)
        self._folders.pop(pid, None)

    def _brief(self, **words: object) -> None:
        """Tell the understudy; another one is forked when it is gone, and knows it already."""
        try:
            os.write(self._cue, json.dumps(words).encode() + b"\n")
        except OSError:
            self._engage()

    def _hear(self) -> bool:
        try:
            data, ancillary, _, _ = self._line.recvmsg(1 << 16, socket.CMSG_SPACE(16 * 4))
        except ConnectionError:
            return False
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(payload[: len(payload) - len(payload) % found.itemsize])
                self._descriptors += found
        if not data:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))
        return True

    def _obey(self, wish: dict) -> None:  # type: ignore[type-arg]
        if "start" in wish:
            terminal = self._descriptors.pop(0)
            inherited = {number: self._descriptors.pop(0) for number in wish["inherited"]}
            self._sockets = wish["sockets"]
            try:
                pid = _start(wish["argv"], wish["env"], wish["cwd"], terminal, inherited)
            except OSError as error:
                self._say(failed=wish["start"], errno=error.errno, reason=error.strerror or str(error))
                return
            finally:
                for descriptor in (terminal, *inherited.values()):
                    os.close(descriptor)
            self._keep(pid, wish["token"], wish["folders"])
            self._running.add(pid)
            self._brief(pid=pid, token=wish["token"], folders=wish["folders"])
            self._say(started=wish["start"], pid=pid)
        elif "end" in wish:
            pid = wish["end"]
            token = self._tokens.get(pid, wish["token"])
            ask_at = time.monotonic() + wish["hangup_s"]
            if wish["hangup_s"] > 0:
                for member in _members(pid, token):
                    _signal(member, signal.SIGHUP)
                    _signal(member, signal.SIGCONT)
            self._ending[pid] = (token, ask_at, ask_at + wish["term_s"])
            self._sweep()

    def _sweep(self) -> None:
        for pid, (token, ask_at, kill_at) in list(self._ending.items()):
            left = _members(pid, token)
            now = time.monotonic()
            if left and now >= ask_at:
                for member in left:
                    _signal(member, signal.SIGKILL if now >= kill_at else signal.SIGTERM)
                if now < kill_at:
                    self._ending[pid] = (token, kill_at, kill_at)
            if not left or time.monotonic() >= kill_at + SWEEP_S:
                del self._ending[pid]
                self._forget(pid)
                self._reap()
                self._brief(pid=pid)
                self._say(ended=pid)

    def _reap(self) -> None:
        for pid in list(self._running):
            if (code := _exit_code(pid)) is not None:
                self._running.remove(pid)
                self._say(exit=pid, code=code)
        for pid in ({self._understudy} | _children()) - self._tokens.keys() - self._running - {0}:
            if os.waitpid(pid, os.WNOHANG)[0] and pid == self._understudy:
                self._engage()

    def _say(self, **words: object) -> None:
        try:
            self._line.sendall(json.dumps(words).encode() + b"\n")
        except OSError:
            pass  # the daemon is gone; the next read finds out

    def _end_all(self) -> None:
        deadline = time.monotonic() + SWEEP_S
        for number in (signal.SIGHUP, signal.SIGKILL):
            until = time.monotonic() + 0.3 if number == signal.SIGHUP else deadline
            while True:
                # As their subreaper, the spawner is by now also the parent of those that left their pane.
                left = {member for pid, token in self._tokens.items() for member in _members(pid, token)}
                if sys.platform == "linux":
                    left.update(_members(os.getpid(), ""))
                left.discard(self._understudy)
                if not left or time.monotonic() > until:
                    break
                for member in left:
                    _signal(member, number)
                    if number == signal.SIGHUP:
                        _signal(member, signal.SIGCONT)
                time.sleep(0.02)
                self._reap()
        if self._folders:
            import shutil

            for folders in self._folders.values():
                for path in folders:
                    shutil.rmtree(path, ignore_errors=True)


def _start(argv: list[str], env: dict[str, str], cwd: str, terminal: int, inherited: dict[int, int]) -> int:
    """Fork and exec on the terminal; OSError when the program or the directory cannot be used.

    `inherited` are descriptors to hand on, by the numbers that the program knows them by.
    """
    problem, teller = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            # Out of the way of the numbers that are wanted.
            above = max((2, *inherited)) + 1
            teller = fcntl.fcntl(teller, fcntl.F_DUPFD_CLOEXEC, above)
            moved = {number: fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, above) for number, one in inherited.items()}
            terminal = fcntl.fcntl(terminal, fcntl.F_DUPFD_CLOEXEC, above)
            os.setsid()
            _brand()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            for descriptor in (0, 1, 2):
                os.dup2(terminal, descriptor)
            for number, one in moved.items():
                os.dup2(one, number)
            first = 3
            for number in sorted((teller, *moved)):
                os.closerange(first, number)
                first = number + 1
            os.closerange(first, 1024)
            signal.set_wakeup_fd(-1)
            _restore_signals()
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        except OSError as error:
            os.write(teller, b"%d" % (error.errno or 0))
        finally:
            os._exit(127)
    os.close(teller)
    reported = os.read(problem, 16)
    os.close(problem)
    if reported:
        os.waitpid(pid, 0)
        raise OSError(int(reported), os.strerror(int(reported)))
    return pid


def _restore_signals() -> None:
    """What we ignore is not for panes, nor is what the daemon's starter did (a script's `&`: SIGINT and SIGQUIT)."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # the C library keeps it to itself
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _brand() -> None:
    """A resource limit without effect that fork and exec hand on: by it a program in a pane is known for one, wherever
    it goes (`dari.daemon.person.PANE_BRAND`)."""
    if sys.platform == "linux":
        import resource

        try:
            resource.setrlimit(resource.RLIMIT_RSS, (PANE_BRAND, PANE_BRAND))
        except (OSError, ValueError):
            pass  # our own limit is lower: we run in a pane or server ourselves, and its brand stays


def _members(leader: int, token: str) -> list[int]:
    """Living processes of a pane: those of its session, those that carry its token, and what these have started."""
    if not os.path.isdir("/proc/self"):
        return _members_by_ps(leader)
    wanted = f"{PANE_VARIABLE}={token}".encode()
    own = os.getpid()
    found = {leader}
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == own:
            continue
        fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
        if len(fields) < 4 or fields[0] in (b"Z", b"X"):
            continue
        pid = int(name)
        parents[pid] = int(fields[1])
        if int(fields[3]) == leader or (token and wanted in _read(f"/proc/{name}/environ").split(b"\0")):
            found.add(pid)
    return [pid for pid in parents if not found.isdisjoint(_ancestors(pid, parents))]


def _children() -> set[int]:
    """Ours, orphans of panes included. Empty without /proc, where orphans do not come to us."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", "rb") as file:
            return set(map(int, file.read().split()))
    except OSError:  # not every kernel has that file
        names = os.listdir("/proc") if os.path.isdir("/proc/self") else []
        stats = {int(name): _read(f"/proc/{name}/stat").rpartition(b")")[2].split() for name in names if name.isdigit()}
        return {pid for pid, fields in stats.items() if len(fields) > 1 and int(fields[1]) == own}


def _exit_code(pid: int) -> int | None:
    """Of a child that has ended, which stays a zombie where the system can leave it one; None while it runs."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        ended, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _members_by_ps(leader: int) -> list[int]:
    """Without /proc (macOS): the process groups whose terminal's session this is, as far as `ps` tells."""
    import subprocess

    listed = subprocess.run(["ps", "-axo", "pid=,ppid=,pgid=,stat="], capture_output=True, text=True).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()]
    parents = {int(row[0]): int(row[1]) for row in rows if len(row) == 4 and not row[3].startswith("Z")}
    groups = {int(row[0]): int(row[2]) for row in rows if len(row) == 4}
    return [pid for pid in parents if groups[pid] == leader or leader in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> Iterable[int]:
    """The process itself, its parent, and so on up to one that is not known."""
    seen = set()
    while pid not in seen:
        seen.add(pid)
        yield pid
        pid = parents.get(pid, pid)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _remove_socket(path: str, inode: int) -> None:
    """Unless it is gone, or another daemon's by now."""
    try:
        if os.lstat(path).st_ino == inode:
            os.unlink(path)
    except OSError:
        pass


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    line.setblocking(True)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The terminal's own ^C, and signals meant for the daemon's group, are not for the spawner.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    SpawnerMain(line).run(woken)


if __name__ == "__main__":
    main()
