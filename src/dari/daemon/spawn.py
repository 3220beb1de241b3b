"""A process that outlives the one that starts it: detached, with a log and a bare environment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from dari.daemon.bare import is_bare
from dari.errors import Unavailable
from dari.os_errors import describe_os_error, suggest_next_step
from dari.paths import private_dir

MAX_LOG_BYTES = 1024 * 1024
MAX_LOG_TAIL_BYTES = 2000
END_TIMEOUT_S = 1.0

_SECRET = re.compile(
    r"[\w-]{20,}\.[\w-]{43}"  # our own tokens
    r"|authorization\W.*"
    r"|bearer\s+\S+"
    r"|(token|secret|passwd|password|api[-_]?key)[\"']?\s*[=:]\s*\S+",
    re.IGNORECASE,
)


def bare_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a daemon may know of its starter: where it lives and which language it speaks, no secrets."""
    return {name: value for name, value in environment.items() if is_bare(name)}


class DetachedProcess:
    """A process in a session of its own. `reap()` it when it is up, or `end()` it."""

    def __init__(self, command: Sequence[str], log_path: Path) -> None:
        self._log_path = log_path
        log = _open_log(log_path)
        try:
            self._log_start_bytes = os.fstat(log).st_size
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=bare_environment(os.environ),
                start_new_session=True,
                umask=0o077,
            )
        except OSError as error:
            reason = f"cannot run {command[0]}: {error.strerror}"
            raise Unavailable(f"the daemon did not start: {reason}", "check the command's path") from error
        finally:
            os.close(log)
        self.pid = self._process.pid

    def exit_status(self) -> str | None:
        """How it ended, in words; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        return f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"

    def log_tail(self) -> str:
        """The last lines it wrote, without anything that looks like a secret."""
        try:
            with self._log_path.open("rb") as log:
                log.seek(max(self._log_start_bytes, os.fstat(log.fileno()).st_size - MAX_LOG_TAIL_BYTES))
                if log.tell() > self._log_start_bytes:
                    log.readline()  # a line cut in half may show the value of a secret without its name
                text = log.read(MAX_LOG_TAIL_BYTES).decode("utf-8", "replace")
        except OSError as error:
            return f"({error.strerror})"
        return _SECRET.sub("<redacted>", text).strip()

    def reap(self) -> None:
        """Leave it running; a thread waits for its end, so that a long-lived starter keeps no zombie."""
        threading.Thread(target=self._process.wait, name=f"reap-{self.pid}", daemon=True).start()

    def end(self) -> None:
        """End it and what it started, by force if need be."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                os.killpg(self.pid, number)
            try:
                self._process.wait(END_TIMEOUT_S)
                return
            except subprocess.TimeoutExpired:
                continue


def _open_log(path: Path) -> int:
    """A 0600 file to append to; one that has grown past the cap becomes `<name>.1` first."""
    private_dir(path.parent)
    try:
        if path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
    except FileNotFoundError:
        pass
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        log = os.open(path, flags, 0o600)
    except OSError as error:
        raise Unavailable(
            f"cannot open the log {path}: {describe_os_error(error)}", suggest_next_step(error, "move it away")
        ) from error
    os.fchmod(log, 0o600)
    return log
