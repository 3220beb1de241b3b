"""A deadline for a whole HTTP request. The timeout of a socket begins again with every byte, so that a server which
sends one a minute is never late; this ends the connection when the time is up, whatever was sent until then."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from http.client import HTTPConnection
    from urllib.request import OpenerDirector


class RequestDeadline:
    """`with RequestDeadline(30) as deadline: deadline.opener().open(…)`. What reads then gets the end of the data or
    an error, at once; `has_passed` says why."""

    def __init__(self, within_s: float) -> None:
        self.has_passed = False
        self._timer = threading.Timer(within_s, self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._connection: HTTPConnection | None = None
        self._socket: socket.socket | None = None

    def __enter__(self) -> RequestDeadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._connection = self._socket = None

    def opener(self) -> OpenerDirector:
        """One that follows no redirect: it would carry the key and the documents to a server nobody configured."""
        import urllib.request

        deadline = self

        class Http(urllib.request.HTTPHandler):
            def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
                return super().do_open(deadline._watch(http_class), req, **options)

        class Https(urllib.request.HTTPSHandler):
            def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
                return super().do_open(deadline._watch(http_class), req, **options)

        class NoRedirects(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_: Any) -> None:
                return None

        return urllib.request.build_opener(Http, Https, NoRedirects)

    def _watch(self, http_class: Any) -> Any:
        """The connections of this class, known to the deadline."""

        def make(host: str, **options: Any) -> Any:
            connection = http_class(host, **options)
            connect = connection.connect

            def connect_watched() -> None:
                connect()
                # The connection forgets its socket as soon as the response has it.
                self._hold(connection, connection.sock)

            connection.connect = connect_watched
            self._hold(connection, None)
            return connection

        return make

    def _hold(self, connection: HTTPConnection, connected: socket.socket | None) -> None:
        with self._lock:
            self._connection, self._socket = connection, connected
        if self.has_passed:
            self._shut()

    def _end(self) -> None:
        self.has_passed = True
        self._shut()

    def _shut(self) -> None:
        with self._lock:
            held = self._socket or getattr(self._connection, "sock", None)
        if held is not None:
            try:
                # Not that of an SSL socket, which takes away what another thread is reading with.
                socket.socket.shutdown(held, socket.SHUT_RDWR)
            except OSError:
                pass
