"""Calls to a daemon from a command: one question, one answer, and nothing loaded that is not used.

`dari.daemon.client` does the same for programs with a loop. A command has none, and asyncio would be most of what it
costs: a call through here takes little more than the start of an interpreter.
"""

from __future__ import annotations

import os
import sys

from dari.daemon import unix_socket
from dari.errors import DariError
from dari.rpc import plain_json

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Sequence
    from typing import Any

    from dari.daemon.paths import DaemonPaths

READ_BYTES = 1 << 18
HANDSHAKE_TIMEOUT_S = 30.0
"""A daemon that was stopped, or hangs, still accepts connections."""
MAX_LOG_TAIL_BYTES = 8192


class BlockingClient:
    """Calls to a daemon, one after the other. With a `command`, the first one starts a daemon that does not run.

    `server` is what messages call the daemon, `start_hint` what a person does where none runs.
    """

    def __init__(
        self,
        paths: DaemonPaths,
        principal: str,
        *,
        command: Callable[[], Sequence[str]] | None = None,
        server: str = "daemon",
        start_hint: str = "start the daemon",
    ) -> None:
        self.paths = paths
        self._principal = principal
        self._command = command
        self._server = server
        self._start_hint = start_hint
        self._socket: socket | None = None
        self._rest = b""
        self._count = 0
        self._is_new = False
        """Whether this client started the daemon it talks to."""

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
            command, self._command = self._command, None
            try:
                self._connected()
            except DariError:
                return False
            finally:
                self._command = command
        return True

    def server_pid(self) -> int:
        """Of the daemon, as we number processes: in a box it has another number for itself. 0 when not known."""
        if sys.platform != "linux":
            return 0
        from _socket import SO_PEERCRED, SOL_SOCKET

        return int.from_bytes(self._connected().getsockopt(SOL_SOCKET, SO_PEERCRED, 12)[:4], sys.byteorder)

    def wait_end(self) -> None:
        """Return once the daemon has hung up."""
        while self._connected().recv(READ_BYTES):
            pass

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket, self._rest = None, b""

    def _send(self, method: str, params: dict[str, Any]) -> None:
        connection = self._connected()
        self._count += 1
        request = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        # Command-line words outside UTF-8 have lone surrogates, which JSON cannot carry.
        text = plain_json.dumps(request).encode("utf-8", "replace")
        try:
            connection.sendall(text + b"\n")
        except TimeoutError:
            raise self._hangs() from None
        except OSError:
            raise self._gone(method) from None

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
                piece = connection.recv(READ_BYTES)
            except TimeoutError:
                raise self._hangs() from None
            except ConnectionError:
                piece = b""
            if not piece:
                raise self._gone(method)
            pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line

    def _connected(self) -> socket:
        if self._socket is not None:
            return self._socket
        pauses_s = iter(unix_socket.HANDSHAKE_PAUSES_S if self._command is not None else ())
        while True:
            connection = self._socket = self._open()
            try:
                connection.settimeout(HANDSHAKE_TIMEOUT_S)
                self._shake_hands()
                connection.settimeout(None)
                return connection
            except BaseException as error:
                self.close()
                pause_s = next(pauses_s, None)
                if pause_s is None or getattr(error, "name", "") != "unavailable":
                    raise
            import time

            time.sleep(pause_s)

    def _open(self) -> socket:
        path = self.paths.socket_text
        try:
            return _connect(path)
        except OSError as error:
            if self._command is None:
                from dari.errors import Unavailable

                raise Unavailable(f"no {self._server} runs on {path} ({error.strerror})", self._start_hint) from None
        from dari.daemon.launch import ensure_started_sync

        self._is_new = ensure_started_sync(self.paths, self._command()) is not None
        return _connect(path)

    def _shake_hands(self) -> None:
        path = self.paths.token_text(self._principal)
        try:
            with open(path, encoding="ascii") as file:
                token = file.read().strip()
        except FileNotFoundError:
            if not unix_socket.answers(self.paths.socket_text):
                raise self._gone("system.handshake") from None  # it was on its way out, and took its tokens along
            raise self._no_token(path, "it does not exist") from None
        except OSError as error:
            raise self._no_token(path, error.strerror) from None
        self._send("system.handshake", {"protocol_version": 1, "token": token, "client_type": self._principal})
        self._answer("system.handshake")

    def _no_token(self, path: str, why: str | None) -> DariError:
        from dari.errors import Denied

        return Denied(f"cannot read the token in {path}: {why}", "is it your daemon?")

    def _hangs(self) -> DariError:
        from dari.errors import TimedOut

        what = f"the {self._server} on {self.paths.socket_text} did not answer in {HANDSHAKE_TIMEOUT_S:g} s"
        return TimedOut(what, f"it runs and hangs: look at {self.paths.log_text}, or end its process")

    def _gone(self, method: str) -> DariError:
        from dari.errors import Unavailable

        log = self.paths.log_text
        try:
            with open(log, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_LOG_TAIL_BYTES))
                lines = file.read().decode(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        at = max((number for number, line in enumerate(lines) if " ERROR " in line), default=-1)
        why = f", which ends with: {lines[at].partition(' ERROR ')[2]}" if 0 <= at >= len(lines) - 3 else ""
        hint = f"it ended during {method}" + (f"; its log is {log}{why}" if lines else "")
        return Unavailable(f"the {self._server} hung up", hint)


def _connect(path: str) -> socket:
    connection = unix_socket.connect(path)
    try:
        unix_socket.check_daemon_owner(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _restored(body: dict[str, Any]) -> DariError:
    from dari.daemon.errors import DaemonError, from_daemon_error

    data = body.get("data") or {}
    return from_daemon_error(DaemonError(body["code"], body["message"], data.get("hint", ""), data.get("name", "")), {})
