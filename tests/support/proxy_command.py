"""`dari proxy` in this process or as a command, against a crabd of its own and origins on threads."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dari.cli.main import main
from dari.daemon.lock import lock_holder
from dari.proxy.ca import CertificateAuthority
from dari.proxy.daemon import CrabPaths
from tests.support.command_result import CommandResult
from tests.support.origins.origin import OK, Handler, Line, Origin, answering, origin

THEIRS = CertificateAuthority.generate("the origins' CA")
THEIRS.alpn = ["http/1.1"]
JSON_BODY = b'{"name":"Ada","token":"s3cr3t-t0k3n-value"}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(JSON_BODY),
    JSON_BODY,
)
PROGRAM_S = 40


@dataclass
class Shell:
    """Runs commands in this process; what they print is caught."""

    home: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str, code: int = 0) -> CommandResult:
        self.capture.readouterr()
        ended = main(["proxy", *words])
        out, err = self.capture.readouterr()
        assert ended == code, f"dari proxy {' '.join(words)} ended with {ended}:\n{out}\n{err}"
        return CommandResult(ended, out, err)

    def json(self, *words: str, code: int = 0) -> Any:
        said = self(*words, "--json", code=code)
        assert said.out.count("\n") == 1, said.out
        return said.json

    def refused(self, *words: str) -> str:
        """What the parser says about words that it does not take."""
        self.capture.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(["proxy", *words])
        assert caught.value.code == 2
        return self.capture.readouterr().err

    @property
    def place(self) -> CrabPaths:
        return CrabPaths()

    @property
    def daemon_pid(self) -> int | None:
        return lock_holder(self.place.lock) or lock_holder(self.place.state_dir / "lock")

    def started(self) -> str:
        """The proxy runs, on a free port; its URL."""
        url: str = self.json("start", "--listen", "127.0.0.1:0")["proxy_url"]
        return url

    def asleep(self) -> None:
        """crabd does not run, and will listen on a free port when it does."""
        self("set", "listen", "127.0.0.1:0")
        self("stop", "--daemon")


def dari(*words: str, **options: Any) -> subprocess.Popen[str]:
    """The command itself, in a session of its own; the caller waits for its end."""
    command = [sys.executable, "-m", "dari", "proxy", *words]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True} | options
    return subprocess.Popen(command, stdin=options.pop("stdin", subprocess.DEVNULL), **options)


def ran(*words: str, **options: Any) -> CommandResult:
    process = dari(*words, **options)
    try:
        out, err = process.communicate(timeout=PROGRAM_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return CommandResult(process.returncode, out, err)


@contextmanager
def serving(handle: Handler | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Origin]:
    """An origin on a thread with a loop of its own: the commands have theirs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait_for(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(40)

    stack = AsyncExitStack()
    lines: list[Line] = []

    async def noted(line: Line) -> None:
        lines.append(line)
        await (handle or answering(OK))(line)

    async def ended() -> None:
        await stack.aclose()
        for line in lines:  # TLS would wait half a minute for the other side's goodbye
            line.reset()
        await asyncio.sleep(0)

    try:
        made: Origin = wait_for(stack.enter_async_context(origin(noted, tls)))
        yield made
    finally:
        try:
            wait_for(ended())
        finally:  # else the thread would outlive the test, and pytest never end
            loop.call_soon_threadsafe(loop.stop)
            thread.join(40)
            loop.close()


def trusting_origins(shell: Shell) -> None:
    """Let the proxy trust the CA of our origins."""
    path = shell.home / "origins-ca.pem"
    path.write_bytes(THEIRS.pem)
    shell("set", "upstream", "--ca-file", str(path))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
