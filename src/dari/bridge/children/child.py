"""One child process: its pipes, its last words, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO

from dari.bridge.children.exits import watch_exit
from dari.bridge.children.family import Family
from dari.bridge.children.marks import Mark
from dari.bridge.children.network_advice import network_advice
from dari.bridge.children.spec import ChildSpec, Patience
from dari.bridge.children.tail import Tail
from dari.errors import DariError, Unavailable
from dari.sandbox.builder import SandboxedCommand

# How long what a dead child has written may take to arrive.
LAST_WORDS_S = 0.3
REAP_S = 1.0


class Child:
    """Made by `Children.start`. Its stdin and stdout belong to whoever talks to it; its stderr is read here."""

    def __init__(
        self, spec: ChildSpec, popen: subprocess.Popen[bytes], family: Family, mark: Mark, prepared: SandboxedCommand
    ) -> None:
        self.spec = spec
        self.pid = popen.pid
        self.mark = mark
        self.tail = Tail()
        self.findings = tuple(prepared.findings)
        self.warnings = tuple(prepared.warnings)
        self._popen = popen
        self._family = family
        self._prepared = prepared
        self._owns_pipes = True
        self._has_ended = asyncio.Event()
        self._is_gone = asyncio.Event()
        self._on_exit: list[Callable[[], None]] = []
        self._on_gone: list[Callable[[], None]] = []
        self._errors: asyncio.ReadTransport | None = None
        self._clearing: asyncio.Task[None] | None = None
        self._stop_watching = watch_exit(popen, self._ended)

    @property
    def stdin(self) -> IO[bytes]:
        assert self._popen.stdin is not None
        return self._popen.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._popen.stdout is not None
        return self._popen.stdout

    def take_pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """stdin and stdout, which the caller closes from now on; otherwise they close with the child's end."""
        self._owns_pipes = False
        return self.stdin, self.stdout

    @property
    def scratch(self) -> Path | None:
        """Its own temporary folder, if it has one."""
        return self._prepared.scratch

    @property
    def has_ended(self) -> bool:
        return self._has_ended.is_set()

    @property
    def returncode(self) -> int | None:
        """As subprocess has it: negative for a signal, None while it runs."""
        return self._popen.returncode

    @property
    def status(self) -> str:
        """How it ended, in words."""
        code = self._popen.returncode
        if code is None:
            return "has ended" if self.has_ended else "still running"
        if code >= 0:
            return f"exit status {code}"
        return f"signal {next((known.name for known in signal.Signals if known == -code), -code)}"

    def on_exit(self, call: Callable[[], None]) -> None:
        """Called in the event loop when the process ends, whoever ended it."""
        self._on_exit.append(call)

    def on_gone(self, call: Callable[[], None]) -> None:
        """Called when nothing of it is left either."""
        self._on_gone.append(call)

    async def listen(self) -> None:
        """Start reading stderr."""
        assert self._popen.stderr is not None
        loop = asyncio.get_running_loop()
        self._errors, _ = await loop.connect_read_pipe(lambda: self.tail, self._popen.stderr)

    async def ended(self, within_s: float) -> bool:
        """Wait for the end of the process itself; a grandchild that holds its pipes does not count."""
        return await _set_within(self._has_ended, within_s)

    async def gone(self) -> None:
        """Wait until nothing of it is left: the process, its group, what it started elsewhere."""
        await self._is_gone.wait()

    async def stop(self, patience: Patience | None = None) -> None:
        """Close its stdin, wait, SIGTERM to the group, wait, SIGKILL to the group and all that bears its mark.

        Safe to call twice, and to cancel: what is cancelled goes on to the end at once.
        """
        patience = patience or self.spec.patience
        try:
            self.close_stdin()
            if not await self.ended(patience.after_eof_s):
                self._family.terminate()
                await self.ended(patience.after_term_s)
        finally:
            self.kill()
        await self.gone()

    def close_stdin(self) -> None:
        """Unless somebody took it: a transport must not lose its descriptor under its hands."""
        if self._owns_pipes:
            try:
                self.stdin.close()
            except OSError:
                pass

    def kill(self) -> None:
        """End it at once. `gone()` tells when the rest of it has ended too."""
        self._family.kill()

    async def last_words(self) -> str:
        """What it wrote to stderr, after a moment for what is still in the pipe."""
        await _set_within(self.tail.ended, LAST_WORDS_S)
        return self.tail.text()

    def explain(self, what: str, kind: type[DariError] = Unavailable) -> DariError:
        """An error with the child's own last words."""
        said = self.tail.text()
        hint = f"it wrote on stderr:\n{said}" if said else "it wrote nothing on stderr"
        if advice := network_advice(said):
            hint = f"{advice}\n{hint}"
        return kind(f"{self.spec.name}: {os.path.basename(self.spec.command[0])} {what}", hint)

    def _ended(self) -> None:
        """The process has ended: the rest of its group goes with it, then it is reaped, then strays are looked for."""
        self._family.kill()
        try:
            self._popen.wait(REAP_S)
        except subprocess.TimeoutExpired:
            pass  # stuck in the kernel; it ends when the kernel lets go of it
        self._has_ended.set()
        for call in self._on_exit:
            call()
        self._clearing = asyncio.get_running_loop().create_task(self._clear())

    async def _clear(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._family.clear)
            await _set_within(self.tail.ended, LAST_WORDS_S)
        finally:
            if self._errors is not None:
                self._errors.close()
            if self._owns_pipes:
                self.close_stdin()
                self.stdout.close()
            self._prepared.discard()
            self._is_gone.set()
            for call in self._on_gone:
                call()


async def _set_within(event: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
