"""A line to cruxd for one command: one question, one answer, and nothing loaded that is not used.

`dari.daemon.client` does the same for programs with a loop. A command has none, and asyncio would be most of what it
costs: a call through here takes little more than the start of an interpreter. `_socket` is what `socket` wraps in
15 ms of enums.
"""

from __future__ import annotations

import os
import sys

from dari.cli.crux import plain_json
from dari.daemon import unix_socket
from dari.errors import DariError
from dari.terminal.paths import CruxPaths

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any

PIECE = 1 << 18


class Line:
    """Calls to the daemon, one after the other. With `starts`, the first one starts it where none answers."""

    def __init__(self, place: CruxPaths, *, starts: bool = True) -> None:
        self.place = place
        self._starts = starts
        self._socket: socket | None = None
        self._rest = b""
        self._count = 0
        self._has_started = False

    def call(self, method: str, **params: Any) -> Any:
        """The result as plain JSON values; a refusal is the error that it names. A None is not sent."""
        self._send(method, {name: value for name, value in params.items() if value is not None})
        return self._answer(method)

    def ask(self, method: str, **params: Any) -> None:
        """Send a question; `answer` waits for what comes back."""
        self._send(method, params)

    def answer(self, method: str) -> Any:
        return self._answer(method)

    def fileno(self) -> int:
        """The connection, to wait on for an answer."""
        return self._connected().fileno()

    @property
    def has_answer(self) -> bool:
        """A whole answer has been read already."""
        return b"\n" in self._rest

    def is_up(self) -> bool:
        """Whether a daemon answers; it is not started."""
        if self._socket is None:
            starts, self._starts = self._starts, False
            try:
                self._connected()
            except DariError:
                return False
            finally:
                self._starts = starts
        return True

    def server_pid(self) -> int:
        """Of the daemon, as we number processes: in a box it has another number for itself. 0 when not known."""
        if sys.platform != "linux":
            return 0
        from _socket import SO_PEERCRED, SOL_SOCKET

        return int.from_bytes(self._connected().getsockopt(SOL_SOCKET, SO_PEERCRED, 12)[:4], sys.byteorder)

    def wait_end(self) -> None:
        """Return once the daemon has hung up."""
        while self._connected().recv(PIECE):
            pass

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, method: str, params: dict[str, Any]) -> None:
        connection = self._connected()
        self._count += 1
        request = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        # Words of the command line that are no UTF-8 are lone surrogates, which no JSON carries.
        text = plain_json.dumps(request).encode("utf-8", "replace")
        try:
            connection.sendall(text + b"\n")
        except OSError:
            raise _gone(method, self.place) from None

    def _answer(self, method: str) -> Any:
        reply = plain_json.loads(self._read_line(method))
        if "error" in reply:
            raise _restored(reply["error"])
        return reply["result"]

    def _read_line(self, method: str) -> bytes:
        connection = self._connected()
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            try:
                piece = connection.recv(PIECE)
            except ConnectionError:
                piece = b""
            if not piece:
                raise _gone(method, self.place)
            pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line

    def _connected(self) -> socket:
        if self._socket is None:
            self._socket = self._open()
            try:
                self._shake_hands()
            except BaseException:
                self.close()
                raise
        return self._socket

    def _open(self) -> socket:
        try:
            return _connect(self.place.socket_text)
        except OSError as error:
            if not self._starts:
                from dari.errors import Unavailable

                raise Unavailable(
                    f"no terminal server runs on {self.place.socket_text} ({error.strerror})",
                    "open a pane to start one: crux split-pane",
                ) from None
        self._start()
        return _connect(self.place.socket_text)

    def _shake_hands(self) -> None:
        try:
            with open(self.place.token_text("cli"), encoding="ascii") as file:
                token = file.read().strip()
        except OSError as error:
            from dari.errors import Denied

            raise Denied(
                f"cannot read the token in {self.place.token_text('cli')}: {error.strerror}", "is it your daemon?"
            ) from None
        params = {"protocol_version": 1, "token": token, "client_type": "cli"}
        self._send("system.handshake", params)
        self._answer("system.handshake")
        if self._has_started and _has_person():
            # As with tmux, panes have the environment of the person who started the server.
            self._has_started = False
            self._send("crux:server/adopt-environment", {"variables": dict(os.environ)})
            self._answer("crux:server/adopt-environment")

    def _start(self) -> None:

        from dari.daemon.launch import ensure_started_sync

        self._has_started = ensure_started_sync(self.place, self.place.command()) is not None


def _has_person() -> bool:
    """Whether one of our streams is a terminal: an agent's tool that runs `crux` has none."""
    return any(os.isatty(number) for number in (0, 1, 2))


def _connect(path: str) -> socket:
    connection = unix_socket.connect(path)
    try:
        unix_socket.check_daemon_owner(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _gone(method: str, place: CruxPaths) -> DariError:
    from dari.errors import Unavailable

    log = place.log_text
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    at = max((number for number, line in enumerate(lines) if " ERROR " in line), default=-1)
    why = f", which ends with: {lines[at].partition(' ERROR ')[2]}" if 0 <= at >= len(lines) - 3 else ""
    return Unavailable(
        "the terminal server hung up", f"it ended during {method}" + (f"; its log is {log}{why}" if lines else "")
    )


def _restored(body: dict[str, Any]) -> DariError:
    from dari.daemon.errors import DaemonError, from_daemon_error

    data = body.get("data") or {}
    return from_daemon_error(DaemonError(body["code"], body["message"], data.get("hint", ""), data.get("name", "")), {})
