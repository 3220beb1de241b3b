"""A server as a child process in a session of its own: pipes as its channel, the end of its stderr, a sure end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from dari.errors import InvalidInput, Unavailable
from dari.mcp.client.channel import Inbox
from dari.mcp.client.lines import MAX_LINE_BYTES
from dari.process.exit_watch import watch_exit
from dari.process.program import build_environment
from dari.process.stderr_tail import StderrTail
from dari.transport.client.pipes import LAST_WORDS_S, PipeChannel

AFTER_EOF_S = 2.0
AFTER_TERM_S = 5.0
REAP_S = 1.0


class ServerProcess:
    """Starts at once; `end` it. Its group dies with it."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path | None, on_exit: Callable[[], None]
    ) -> None:
        if not command:
            raise InvalidInput("the command is empty", "name the program and its arguments")
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


class ChildChannel(PipeChannel):
    """Starts the command when it is opened, and ends it, with its whole process group, when it is closed.

    Of our environment the child sees only HOME, LANG, LOGNAME, PATH, SHELL, TERM and USER, and what is given.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        most_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        super().__init__(most_bytes)
        self._command = tuple(command)
        self._env = dict(env or {})
        self._cwd = cwd
        self._process: ServerProcess | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def last_words(self) -> str:
        """The last of what the child wrote to stderr."""
        return "" if self._process is None else self._process.tail.text()

    async def open(self, inbox: Inbox) -> None:
        self._reset()
        self.inbox = inbox
        process = self._process = ServerProcess(self._command, self._env, self._cwd, self._over.set)
        stdin, stdout, stderr = process.pipes
        try:
            await self._attach(stdin, stdout)
            self._errors, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: process.tail, stderr)
        except BaseException:
            process.kill()
            for pipe in process.pipes:
                pipe.close()
            self._process = self.inbox = None
            raise
        self._watching = asyncio.get_running_loop().create_task(self._watch(process, inbox))

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._watching.cancel()
        self.inbox = None
        try:
            await self._detach(process.end())
        finally:
            self._errors.close()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._detached()
        await process.tail.ended.wait()

    async def _watch(self, process: ServerProcess, inbox: Inbox) -> None:
        await self._over.wait()
        closed = await self._last_words(process.exited(LAST_WORDS_S), process.tail.ended)
        if process.has_exited:
            process.kill()
            inbox.lost(process.explain(f"ended ({process.status})"))
        else:
            inbox.lost(process.explain(f"closed its {closed}"))
