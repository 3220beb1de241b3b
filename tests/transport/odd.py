"""The demo server with tools and signals that only the tests of the transports need, as a program."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys

from dari.core.context import Context
from dari.core.tool import tool
from dari.daemon.listener import is_listening
from dari.transport import supervisor
from tests.support import demo_server


class OddTools(demo_server.DemoTools):
    """Tools named `demo_<method>`."""

    def __init__(self) -> None:
        super().__init__()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.break_http)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, self.release.set)

    def break_http(self) -> None:
        """The kernel takes the listening socket of HTTP away, as `ss -K` or a stray `shutdown` does."""
        for found in gc.get_objects():
            if isinstance(found, socket.socket) and found.family == socket.AF_INET and is_listening(found):
                found.shutdown(socket.SHUT_RDWR)

    @tool()
    async def stray(self) -> str:
        """Write to standard output in every way there is."""
        print("stray print", flush=True)
        sys.stdout.write("stray write\n")
        sys.stdout.flush()
        os.write(1, b"stray descriptor\n")
        await asyncio.to_thread(subprocess.run, ["echo", "stray child"], check=True)
        return "written"

    @tool()
    async def stdin(self) -> str:
        """Read what a child of ours reads from standard input."""
        return repr(os.read(0, 100))

    @tool()
    async def flood(self, context: Context, megabytes: int, waits: bool = False) -> str:
        """Send log records until that much was sent."""
        if waits:
            await self.say(context)
        for _ in range(megabytes * 10):
            await context.log("info", "x" * 100_000)
        return "flooded"

    @tool()
    async def say(self, context: Context) -> str:
        """Tell on standard error that the call has begun, then wait."""
        sys.stderr.write("the call has begun\n")
        sys.stderr.flush()
        await self.release.wait()
        return "said"


if __name__ == "__main__":
    demo_server.DemoTools = OddTools  # type: ignore[misc]
    if os.environ.get("ODD_PANIC"):
        supervisor.TransportSupervisor.run = None  # type: ignore[method-assign, assignment]
    raise SystemExit(demo_server.main())
