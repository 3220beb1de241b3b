"""A host of the bridge as a process, with commands of the tests' own: `demo_daemon.py KIND [VERSION]`."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import signal
import sys

from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.service import Bridge
from dari.cli.hub import daemon, server
from dari.cli.hub.paths import BridgePaths
from dari.cli.hub.socket_console import SocketConsole
from dari.runtime import run_to_exit
from tests.support.hub_socket import make_server


class Demo:
    def __init__(self) -> None:
        self.cancelled = asyncio.Event()

    async def run(self, program: str, argv: list[str], terminal: SocketConsole, around: ClientEnvironment) -> int:
        code: int = await getattr(self, f"do_{argv[0]}")(terminal, around, *argv[1:])
        return code

    async def do_say(self, terminal: SocketConsole, around: ClientEnvironment, out: str, err: str, code: str) -> int:
        terminal.out(out)
        terminal.err(err)
        return int(code)

    async def do_where(self, terminal: SocketConsole, around: ClientEnvironment, name: str) -> int:
        terminal.out(f"{around.cwd} {around.environ.get(name)} {os.environ.get(name)} {terminal.columns}\n")
        return 0

    async def do_wait(self, terminal: SocketConsole, around: ClientEnvironment) -> int:
        terminal.out("entered\n")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return 0

    async def do_stubborn(self, terminal: SocketConsole, around: ClientEnvironment) -> int:
        """Does not end when it is cancelled."""
        terminal.out("entered\n")
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                terminal.out("not yet\n")

    async def do_cancelled(self, terminal: SocketConsole, around: ClientEnvironment) -> int:
        """Ends when another command has been cancelled."""
        await self.cancelled.wait()
        return 0

    async def do_count(self, terminal: SocketConsole, around: ClientEnvironment, lines: str) -> int:
        """Lines of eight bytes, as fast as they are read."""
        for start in range(0, int(lines), 1000):
            terminal.out("".join(f"{n:07}\n" for n in range(start, start + 1000)))
            await terminal.drain()
        return 0

    async def do_endless(self, terminal: SocketConsole, around: ClientEnvironment) -> int:
        try:
            return await self.do_count(terminal, around, str(10**12))
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def do_peak(self, terminal: SocketConsole, around: ClientEnvironment) -> int:
        """The most memory this process ever had, in kB."""
        terminal.out(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}")
        return 0

    async def do_stdin(self, terminal: SocketConsole, around: ClientEnvironment) -> int:
        terminal.out(hashlib.sha256(await terminal.read_stdin()).hexdigest())
        return 0

    async def do_stdin_first(self, terminal: SocketConsole, around: ClientEnvironment) -> int:
        """Wants stdin, but does not wait for its end."""
        reading = asyncio.create_task(terminal.read_stdin())
        terminal.out("entered\n")
        await asyncio.sleep(0)
        reading.cancel()
        return 5

    async def do_ask(self, terminal: SocketConsole, around: ClientEnvironment, prompt: str, secret: str) -> int:
        terminal.out(f"<{await terminal.ask(prompt, secret=secret == 'secret')}>\n")
        return 0

    async def do_die(self, terminal: SocketConsole, around: ClientEnvironment) -> int:
        terminal.out("half")
        await terminal.drain()
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


async def main(kind: str, version: str) -> int:
    if version:
        server.CliSocketServer.__init__.__kwdefaults__["version"] = version  # the release that this host claims to be
    place = BridgePaths()
    demo = Demo()
    bridge = Bridge(place.state_dir, protected=place.protected)
    async with daemon.host(place, bridge, demo.run, make_server, kind=kind) as hosted:  # type: ignore[arg-type]
        print("ready", flush=True)
        await hosted.lifetime.stopped()
    return 0


if __name__ == "__main__":
    sys.exit(run_to_exit(lambda: main(sys.argv[1], "".join(sys.argv[2:3]))))
