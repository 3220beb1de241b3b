"""The daemon's door as a channel of our MCP client: whoever opens it first starts the daemon."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from dari.bridge.cli_socket.client import CliSocketRefused, open_mcp
from dari.bridge.paths import BridgePaths
from dari.daemon.launch import ensure_started_sync
from dari.daemon.unix_socket import socket_address
from dari.errors import Unavailable
from dari.mcp.client.channel import Inbox
from dari.paths import log_hint
from dari.transport.client.unix import UnixChannel

START_S = 30.0
ROUNDS = 3


class DoorChannel(UnixChannel):
    """MCP with a server that the daemon makes for this directory and environment."""

    def __init__(
        self,
        place: BridgePaths,
        options: Mapping[str, object],
        environ: Mapping[str, str],
        cwd: str,
        *,
        starts: bool = True,
    ) -> None:
        """`starts`: a daemon is started where nobody hosts the bridge."""
        super().__init__(place.cli_socket)
        self._place = place
        self._options = dict(options)
        self._environ = dict(environ)
        self._cwd = cwd
        self._starts = starts

    async def open(self, inbox: Inbox) -> None:
        self._reset()
        self._lost = asyncio.Event()
        sock, heard = await asyncio.to_thread(self._knock)
        try:
            transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=sock)
        except BaseException:
            sock.close()
            raise
        self._adopt(transport, inbox)
        if heard:
            self.data_received(heard)

    def _farewell(self, exc: Exception | None) -> Unavailable:
        return Unavailable("the daemon of the bridge has ended", "call again: it is started anew")

    def _knock(self) -> tuple[socket.socket, bytes]:
        """Blocking: connect, after starting the daemon where there is none."""
        place = self._place
        run_dir = str(place.run_dir)
        problem = "it ends again and again"
        socket_address(place.cli_socket)
        for _ in range(ROUNDS):
            try:
                plain, heard = open_mcp(run_dir, self._options, self._environ, self._cwd)
                sock = socket.socket(fileno=plain.detach())
                sock.setblocking(False)
                return sock, heard
            except FileNotFoundError:
                if not self._starts:
                    problem = "nobody hosts it"
                    break
                ensure_started_sync(place, place.command(), socket=place.cli_socket_text)
            except ConnectionResetError:
                continue  # it was on its way out
            except CliSocketRefused as refused:
                if refused.code != "skew":
                    raise _Refusal(refused.message, refused.hint) from None
                self._end_older_daemon(run_dir)
            except OSError as error:
                problem = error.strerror or str(error)
                break
        raise Unavailable(f"the daemon of the bridge does not answer: {problem}", log_hint(place.log))

    def _end_older_daemon(self, run_dir: str) -> None:
        from dari.bridge.cli_socket.client import ask_to_finish

        try:
            ask_to_finish(run_dir, START_S)
        except CliSocketRefused as refused:
            raise _Refusal(refused.message, refused.hint) from None
        except TimeoutError:
            raise Unavailable("a daemon of another release does not end", "end it: dari remote daemon stop") from None


class _Refusal(Unavailable):
    """The door does not let us in."""
