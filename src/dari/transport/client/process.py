"""A server as a child process in a session of its own: pipes, the end of its stderr, and a sure end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from dari.errors import InvalidInput, Unavailable
from dari.process.environment import build_environment
from dari.process.exit_watch import watch_exit
from dari.process.stderr_tail import StderrTail

AFTER_EOF_S = 2.0
AFTER_TERM_S = 5.0
REAP_S = 1.0


class ServerProcess:
    """Starts at once; `end` it. Its group dies with it."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path | None, on_exit: Callable[[], None]
    ) -> None:
        if not command:
            raise InvalidInput("there is no command to run", "name the program and its arguments")
        self._name = command[0]
        try:
            self._popen = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=build_environment(env),
                cwd=cwd,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            missing = f" in {cwd}" if cwd is not None and not cwd.is_dir() else ""
            raise Unavailable(f"cannot run {self._name!r}{missing}: {reason}", "check the command and PATH") from None
        self.pid = self._popen.pid
        self.tail = StderrTail()
        self._exited = asyncio.Event()
        self._on_exit = on_exit
        self._stop_watching = watch_exit(self._popen, self._ended)

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """stdin, stdout and stderr."""
        popen = self._popen
        assert popen.stdin is not None and popen.stdout is not None and popen.stderr is not None
        return popen.stdin, popen.stdout, popen.stderr

    @property
    def has_exited(self) -> bool:
        return self._exited.is_set()

    async def exited(self, within_s: float) -> bool:
        """Wait for its end, without reaping it: its process id stays ours."""
        try:
            async with asyncio.timeout(within_s):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    async def end(self) -> None:
        """Its stdin is closed by now. Give it two seconds, then SIGTERM, five seconds, then SIGKILL."""
        try:
            if not await self.exited(AFTER_EOF_S):
                self._signal(signal.SIGTERM)
                await self.exited(AFTER_TERM_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it at once, with all that is left of its group."""
        self._stop_watching()
        if self._popen.returncode is not None:
            return
        # Reaped after the signal, never before it: until then nobody else can have its group id.
        self._signal(signal.SIGKILL)
        try:
            self._popen.wait(REAP_S)
        except subprocess.TimeoutExpired:
            pass  # stuck in the kernel; it ends when the kernel lets go of it
        self._exited.set()

    @property
    def status(self) -> str:
        """How it ended, in words."""
        code = self._popen.returncode
        if code is None:
            return "still running"
        if code >= 0:
            return f"exit status {code}"
        return f"signal {next((known.name for known in signal.Signals if known == -code), -code)}"

    def explain(self, what: str) -> Unavailable:
        """An error with the process's own last words."""
        said = self.tail.text()
        hint = f"it wrote on stderr:\n{said}" if said else "it wrote nothing on stderr"
        return Unavailable(f"{os.path.basename(self._name)} {what}", hint)

    def _ended(self) -> None:
        self._exited.set()
        self._on_exit()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
