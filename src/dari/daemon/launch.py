"""Start a daemon that does not run yet. However many callers come at once, one of them starts it, the others wait.

The first command of a session waits for this, so modules are loaded where they are used: a start that succeeds needs
neither `subprocess` nor `pathlib`.
"""

from __future__ import annotations

import os
import sys
from time import monotonic, sleep

from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.unix_socket import answers, socket_address
from dari.home import absolute

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dari.daemon.paths import DaemonPaths

    AnyPath = str | os.PathLike[str]

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 1.0
POLL_S = 0.004
MAX_LOG_BYTES = 1024 * 1024
MAX_LOG_TAIL_BYTES = 2000

_KEPT_VARIABLES = frozenset(("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "TMPDIR"))
_KEPT_PREFIXES = ("LC_", "XDG_", "DARI_")


def python_command(module: str, *words: str) -> list[str]:
    """The command that runs `main()` of a module of ours as a daemon: in `/`, with a private umask and no files of its
    starter. -P: what lies in the folder it is started in must not be imported."""
    prepare = "import os, sys; os.closerange(3, 4096); os.chdir('/'); os.umask(0o077); del sys.argv[1]"
    run = f"from {module} import main; raise SystemExit(main())"
    # The module's name as a word of its own, by which `dari.daemon.person` and people with `ps` know the daemon.
    return [sys.executable, "-P", "-c", f"{prepare}; {run}", module, *words]


async def ensure_started(paths: DaemonPaths, command: Sequence[str]) -> int | None:
    """`ensure_started_sync` for callers with a loop to keep running."""
    import asyncio

    if answers(paths.socket_text):
        return None
    return await asyncio.to_thread(ensure_started_sync, paths, command)


def ensure_started_sync(
    paths: DaemonPaths, command: Sequence[str], *, socket: AnyPath = "", timeout_s: float = START_TIMEOUT_S
) -> int | None:
    """Return once the daemon accepts connections: its pid when this call started it, None when it was there.

    `socket` is the one to wait for when it is not the daemon's first. A daemon that ends or hangs at start is an error
    with its exit status and the last lines of its log, and is gone.
    """
    waited = socket_address(socket or paths.socket_text)
    if answers(waited):
        return None
    deadline_s = monotonic() + timeout_s
    make_private_dir(paths.run_dir_text)
    lock = FileLock(paths.start_lock_text)
    if not lock.acquire_blocking(timeout_s, give_up=lambda: answers(waited)):
        if answers(waited):
            return None
        from dari.errors import TimedOut

        raise TimedOut(f"process {lock_holder(lock.path)} is still starting the daemon", f"it holds {lock.path}")
    try:
        if answers(waited):
            return None
        return _start(command, waited, paths.log_text, deadline_s)
    finally:
        lock.release()


def start_unattended(paths: DaemonPaths, command: Sequence[str]) -> None:
    """Start the daemon and do not wait for it. The start lock is kept until this process ends, so that nobody starts
    a second one meanwhile; the next caller that waits gets the error."""
    try:
        make_private_dir(paths.run_dir_text)
        lock = FileLock(paths.start_lock_text)
        if lock.try_acquire():
            _UNATTENDED.append((lock, DetachedProcess(command, paths.log_text)))
    except Exception:
        return


_UNATTENDED: list[tuple[FileLock, DetachedProcess]] = []


def _start(command: Sequence[str], socket: str, log: str, deadline_s: float) -> int | None:
    daemon = DetachedProcess(command, log)
    try:
        while not answers(socket):
            if (status := daemon.exit_status()) is not None:
                if answers(socket):
                    return None  # it ended because another one serves already
                from dari.errors import Unavailable

                raise Unavailable(f"the daemon ended at start with {status}", daemon.log_hint())
            if monotonic() > deadline_s:
                from dari.errors import TimedOut

                raise TimedOut(f"the daemon does not answer on {socket}", daemon.log_hint())
            sleep(POLL_S)
    except BaseException:
        daemon.end()
        raise
    daemon.reap()
    return daemon.pid


class DetachedProcess:
    """A process that outlives us: a session of its own, stdout and stderr in a log, a bare environment.

    `reap()` it when it is up, or `end()` it.
    """

    def __init__(self, command: Sequence[str], log: AnyPath) -> None:
        self._log = os.fspath(log)
        file = _open_log(self._log)
        try:
            self._log_start_bytes = os.fstat(file).st_size
            self.pid = _spawn(command, file)
        except OSError as error:
            from dari.errors import Unavailable

            reason = f"cannot run {command[0]}: {error.strerror}"
            raise Unavailable(f"the daemon did not start: {reason}", "check the command's path") from error
        finally:
            os.close(file)
        self._status: int | None = None

    def exit_status(self) -> str | None:
        """How it ended, in words; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == 0:
                return None
            self._status = os.waitstatus_to_exitcode(status)
        if self._status >= 0:
            return f"exit status {self._status}"
        import signal

        return f"signal {signal.Signals(-self._status).name}"

    def log_hint(self) -> str:
        """The end of its log, as a hint of an error."""
        tail = self.log_tail()
        return f"{self._log} ends with:\n{tail}" if tail else "it said nothing; `dari doctor` checks disk and paths"

    def log_tail(self) -> str:
        """The last lines it wrote, without anything that looks like a secret."""
        try:
            with open(self._log, "rb") as log:
                log.seek(max(self._log_start_bytes, os.fstat(log.fileno()).st_size - MAX_LOG_TAIL_BYTES))
                if log.tell() > self._log_start_bytes:
                    log.readline()  # a line cut in half may show the value of a secret without its name
                text = log.read(MAX_LOG_TAIL_BYTES).decode("utf-8", "replace")
        except OSError as error:
            return f"({error.strerror})"
        return _without_secrets(text).strip()

    def reap(self) -> None:
        """Leave it running; a thread waits for its end, so that a long-lived starter keeps no zombie."""
        import threading

        threading.Thread(target=_wait_for, args=(self.pid,), name=f"reap-{self.pid}", daemon=True).start()

    def end(self) -> None:
        """End it and what it started, by force if need be."""
        from signal import SIGKILL, SIGTERM

        for number in (SIGTERM, SIGKILL):
            deadline_s = monotonic() + STOP_TIMEOUT_S
            if self.exit_status() is None:
                os.killpg(self.pid, number)
            while self.exit_status() is None and monotonic() < deadline_s:
                sleep(POLL_S)
            if self.exit_status() is not None:
                return


def bare_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a daemon may know of its starter: where it lives and which language it speaks, no secrets. It runs in `/`,
    so homes that its starter found from its own folder are named from the root."""
    kept = {
        name: value for name, value in environment.items() if name in _KEPT_VARIABLES or name.startswith(_KEPT_PREFIXES)
    }
    return kept | {name: absolute(os.path.expanduser(kept[name])) for name in ("HOME", "DARI_HOME") if kept.get(name)}


def make_private_dir(folder: str) -> None:
    """`dari.paths.private_dir`, which is loaded only when there is more to do than to make the directory."""
    try:
        info = os.lstat(folder)
    except FileNotFoundError:
        mask = os.umask(0o077)  # which also holds for the parents that are missing
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            info = os.lstat(folder)
        except OSError:
            info = None  # the long way tells what is wrong
        finally:
            os.umask(mask)
    except OSError:
        info = None
    if info is None or info.st_mode != 0o040700 or info.st_uid != os.geteuid():
        from pathlib import Path

        from dari.paths import private_dir

        private_dir(Path(folder))


def _spawn(command: Sequence[str], log: int) -> int:
    # `posix_spawn` sets neither folder nor umask and closes nothing; a `python_command` does that itself.
    if tuple(command[:2]) == (sys.executable, "-P"):
        from _signal import SIGKILL, SIGSTOP, valid_signals  # type: ignore[import-not-found]

        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]  # type: ignore[list-item]
        try:
            return os.posix_spawn(
                command[0],
                list(command),
                bare_environment(os.environ),
                file_actions=actions,
                setsid=True,
                # A script's `&` ignores SIGINT and SIGQUIT for us and all that we start; `trap '' CHLD` hides how
                # programs ended.
                setsigdef=valid_signals() - {SIGKILL, SIGSTOP},
                setsigmask=(),
            )
        except NotImplementedError:  # a system without POSIX_SPAWN_SETSID
            pass
    import subprocess

    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd="/",
        env=bare_environment(os.environ),
        start_new_session=True,
        umask=0o077,
    )
    process.returncode = 0  # it is waited for here, and no warning at its deletion
    return process.pid


def _wait_for(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except OSError:
        pass


def _open_log(path: str) -> int:
    """A 0600 file to append to; one that has grown past the cap becomes `<name>.1` first."""
    make_private_dir(os.path.dirname(path))
    try:
        if os.stat(path).st_size > MAX_LOG_BYTES:
            os.replace(path, f"{path}.1")
    except FileNotFoundError:
        pass
    try:
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        from dari.errors import Unavailable
        from dari.os_errors import describe_os_error, suggest_next_step

        problem = f"cannot open the log {path}: {describe_os_error(error)}"
        raise Unavailable(problem, suggest_next_step(error, "move it away")) from error
    os.fchmod(log, 0o600)
    return log


def _without_secrets(text: str) -> str:
    import re

    secret = (
        r"[\w-]{20,}\.[\w-]{43}"  # our own tokens
        r"|authorization\W.*"
        r"|bearer\s+\S+"
        r"|(token|secret|passwd|password|api[-_]?key)[\"']?\s*[=:]\s*\S+"
    )
    return re.sub(secret, "<redacted>", text, flags=re.IGNORECASE)
