"""The first command starts the daemon, before it has loaded anything that a warm one does not need.

`dari.daemon.launch` does the same for everybody else and tells what is wrong; whatever is not as it should be here is
left to it. Both take turns by the same lock.
"""

import os
import sys
from _socket import socket
from fcntl import LOCK_EX, LOCK_NB, flock
from time import monotonic, sleep

from dari.bridge.cli_socket.client import connect
from dari.bridge.cli_socket.protocol import DAEMON_ARGUMENTS
from dari.daemon.bare import is_bare

START_S = 30.0
LOG_BYTES = 1024 * 1024
_POLL_S = 0.004


def start_daemon(run_dir: str, home: str, *, stays: bool = False) -> socket | None:
    """A connection to a daemon that was started or was there by now; DariError or OSError when none can be.

    None: there was one, and it has left again.
    """
    sock = _start_fast(run_dir, f"{home}/logs/bridge.log", stays)
    if sock is None:
        _start_thoroughly(stays)
        sock = connect(run_dir)
    return sock


def start_behind(run_dir: str, home: str) -> None:
    """Start one and do not wait: the command at hand is run without it. Whoever comes meanwhile starts no second one,
    because the lock is kept until this process ends."""
    log_path = f"{home}/logs/bridge.log"
    try:
        if not _is_private(run_dir) or not _is_private(os.path.dirname(log_path)):
            return
        lock = os.open(f"{run_dir}/start.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        flock(lock, LOCK_EX | LOCK_NB)
        log = _opened_log(log_path)
        if log is not None:
            _spawned(log, stays=False)
            os.close(log)
    except OSError:
        pass  # the next command tells what is wrong


def _start_thoroughly(stays: bool) -> None:
    from dari.bridge.paths import BridgePaths
    from dari.daemon.launch import ensure_started_sync

    place = BridgePaths()
    ensure_started_sync(
        place.command(stays=stays), place.cli_socket_path, place.files.start_lock, place.log_path, timeout_s=START_S
    )


def _start_fast(run_dir: str, log_path: str, stays: bool) -> socket | None:
    """None when there is more to do, or more to tell, than this does."""
    opened: list[int] = []
    try:
        for folder in (run_dir, os.path.dirname(log_path)):
            if not _is_private(folder):
                return None
        lock = os.open(f"{run_dir}/start.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        opened.append(lock)
        deadline = monotonic() + START_S
        while True:
            sock = connect(run_dir)
            if sock is not None:
                return sock
            try:
                flock(lock, LOCK_EX | LOCK_NB)
                break
            except BlockingIOError:
                if monotonic() > deadline:
                    return None
                sleep(_POLL_S)
        os.ftruncate(lock, 0)
        os.write(lock, b"%d\n" % os.getpid())
        try:
            return connect(run_dir) or _spawn(run_dir, log_path, opened, deadline, stays)
        finally:
            os.ftruncate(lock, 0)
    except OSError:
        return None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _spawn(run_dir: str, log_path: str, opened: list[int], deadline: float, stays: bool) -> socket | None:
    log = _opened_log(log_path)
    if log is None:
        return None
    opened.append(log)
    pid = _spawned(log, stays)
    if pid is None:
        return None
    try:
        while monotonic() < deadline:
            sock = connect(run_dir)
            if sock is not None:
                return sock
            if os.waitpid(pid, os.WNOHANG)[0]:
                return None  # why it ended is told when it is tried again
            sleep(_POLL_S)
    except BaseException:
        _kill(pid)
        raise
    _kill(pid)
    return None


def _opened_log(path: str) -> int | None:
    """None when it is time to put the old one away."""
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if os.fstat(log).st_size <= LOG_BYTES:
        return log
    os.close(log)
    return None


def _spawned(log: int, stays: bool) -> int | None:
    words = [sys.executable, *DAEMON_ARGUMENTS, "serve", *(["--stay"] if stays else [])]
    environment = {name: value for name, value in os.environ.items() if is_bare(name)}
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]  # type: ignore[list-item]
    from _signal import SIGINT, SIGPIPE  # type: ignore[import-not-found]

    try:
        return os.posix_spawn(
            words[0], words, environment, file_actions=actions, setsid=True, setsigdef=[SIGINT, SIGPIPE]
        )
    except NotImplementedError:
        return None


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, 9)
        os.waitpid(pid, 0)
    except OSError:
        pass


def _is_private(folder: str) -> bool:
    """Made when it is missing; False when it is not what `dari.paths.private_dir` would leave as it is."""
    try:
        info = os.lstat(folder)
    except FileNotFoundError:
        mask = os.umask(0o077)  # which also holds for the parents that are missing
        try:
            os.makedirs(folder, 0o700)
        finally:
            os.umask(mask)
        info = os.lstat(folder)
    return info.st_mode == 0o040700 and info.st_uid == os.geteuid()
