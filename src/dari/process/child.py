"""One child process: its pipes, its last words, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec import Struct, field

from dari.errors import DariError, Unavailable
from dari.process.exit_watch import watch_exit
from dari.process.group import ProcessGroup
from dari.process.stderr_tail import StderrTail
from dari.process.tag import ProcessTag
from dari.sandbox.confinement import UNCONFINED, Confinement

if TYPE_CHECKING:
    from dari.sandbox.builder import SandboxedCommand


class StopTimeouts(Struct, frozen=True):
    """How long each step of an end may take, in seconds; then comes the next, harder one."""

    after_eof_s: float = 2.0
    after_term_s: float = 5.0
    """As design 003 says: SIGTERM, five seconds, SIGKILL."""


class ChildSpec(Struct, frozen=True):
    name: str
    """The server, as people know it."""
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    inherit_env: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None
    """Where inherited names are taken from; None: from our own environment."""
    cwd: Path | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    """Resource limits by their short names: as, nofile, cpu …"""
    confinement: Confinement = UNCONFINED
    patience: StopTimeouts = StopTimeouts()
    is_single: bool = False
    """Known to start no other program: at its end nobody looks for what it left behind, which reads all of /proc."""


_TLS = re.compile(
    r"CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY|GET)_|DEPTH_ZERO_SELF_SIGNED"
    r"|invalid peer certificate"
    r"|certificate (?:verify failed|signed by unknown authority|has expired)|self[- ]signed certificate|UnknownIssuer"
    r"|unable to get local issuer|SSL certificate problem",
    re.IGNORECASE,
)
_PROXY = re.compile(
    r"\b407\b|Proxy Authentication Required|ERR_PROXY|tunnel(?:ing)? socket|proxy connection", re.IGNORECASE
)
_NETWORK = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED.*(?:registry|proxy)|getaddrinfo|Temporary failure in name resolution"
    r"|dns error|failed to (?:fetch|download|lookup)|network (?:is unreachable|timeout)|error sending request",
    re.IGNORECASE,
)


def network_advice(said: str) -> str:
    """The next step, or nothing when its words do not speak of the network."""
    if _TLS.search(said):
        return (
            "it does not trust the certificate it was shown: name your company's CA in SSL_CERT_FILE and "
            "NODE_EXTRA_CA_CERTS where Dari starts (servers inherit both), or in env of its profile"
        )
    if _PROXY.search(said):
        return "a proxy refused it: check HTTPS_PROXY and its login where Dari starts, or in env of its profile"
    if _NETWORK.search(said):
        return (
            "it could not reach the network: set HTTPS_PROXY and NO_PROXY where Dari starts if you are behind a proxy, "
            "and see network in its profile"
        )
    return ""


# How long what a dead child has written may take to arrive.
LAST_WORDS_S = 0.3
REAP_S = 1.0


class Child:
    """Made by `Children.start`. The user of the child owns its stdin and stdout; its stderr is read here."""

    def __init__(
        self,
        spec: ChildSpec,
        popen: subprocess.Popen[bytes],
        group: ProcessGroup,
        tag: ProcessTag,
        prepared: SandboxedCommand,
    ) -> None:
        self.spec = spec
        self.pid = popen.pid
        self.tag = tag
        self.tail = StderrTail()
        self.findings = tuple(prepared.findings)
        self.warnings = tuple(prepared.warnings)
        self._popen = popen
        self._group = group
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
        """Called in the event loop when the process ends, for any reason."""
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

    async def stop(self, patience: StopTimeouts | None = None) -> None:
        """Close its stdin, wait, SIGTERM to the group, wait, SIGKILL to the group and all that bears its tag.

        Safe to call twice, and to cancel: what is cancelled goes on to the end at once.
        """
        patience = patience or self.spec.patience
        try:
            self.close_stdin()
            if not await self.ended(patience.after_eof_s):
                self._group.terminate()
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
        self._group.kill()

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
        self._group.kill()
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
            if not self.spec.is_single:
                await asyncio.get_running_loop().run_in_executor(None, self._group.clear)
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
