"""TLS over a transport, on `ssl.MemoryBIO`: bytes that were read before it began can be given to it, alerts are
seen, and uvloop and stock asyncio behave alike (with `start_tls` they did not).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, cast

# OpenSSL gives one record at a time, and `read(n)` allocates n bytes first: 256 KiB cost 16 µs more than 16.
_READ_BYTES = 16 * 1024
# A memory BIO never shrinks: in larger pieces every connection would keep 256 KiB for good, four times over.
_SLICE_BYTES = 64 * 1024


class TlsLayer(asyncio.Transport, asyncio.Protocol):
    """A protocol towards the raw transport and a transport towards `app`.

    `app.connection_made` is called when the handshake is done; when it fails, `on_failed` is called instead.
    """

    def __init__(
        self,
        app: asyncio.Protocol,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_hostname: str | None = None,
        on_failed: Callable[[Exception], None],
        on_ready: Callable[[], None] | None = None,
        session: ssl.SSLSession | None = None,
        on_session: Callable[[ssl.SSLSession], None] | None = None,
    ) -> None:
        """`session` resumes an earlier one; at a regular end `on_session` is given what the next can resume."""
        super().__init__()
        self._on_ready = on_ready
        self._on_session = on_session
        self._app = app
        self._on_failed = on_failed
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname, session=session
        )
        self._raw: asyncio.Transport
        self._is_ready = False
        self._is_paused = False
        self._is_closing = False
        self._is_over = False
        self._has_ended = False
        self._has_written_eof = False

    def start(self, raw: asyncio.Transport, first: bytes = b"") -> None:
        """Begin the handshake on `raw`, with what was already read from it."""
        self._raw = raw
        raw.set_protocol(self)
        if first:
            self._incoming.write(first)
        self._shake_hands()

    # Towards the raw transport.

    def data_received(self, data: bytes) -> None:
        if len(data) <= _SLICE_BYTES or not self._is_ready:
            self._incoming.write(data)
            if self._is_ready:
                self._pump()
            else:
                self._shake_hands()
            return
        view = memoryview(data)
        for start in range(0, len(view), _SLICE_BYTES):
            self._incoming.write(view[start : start + _SLICE_BYTES])
            self._pump()

    def eof_received(self) -> bool:
        if not self._is_ready:
            self._fail(ConnectionResetError("closed during the TLS handshake"))
            return False
        self._pump()
        return self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        # By now the tickets have arrived that a server sends behind its handshake.
        is_regular = self._is_ready and exc is None
        if is_regular and self._on_session is not None and (session := self._tls.session) is not None:
            self._on_session(session)
        self._is_closing = True
        if self._is_over:
            return
        if self._is_ready:
            self._is_over = True
            self._app.connection_lost(exc)
        else:
            self._fail(exc or ConnectionResetError("closed during the TLS handshake"))

    def pause_writing(self) -> None:
        if self._is_ready:
            self._app.pause_writing()

    def resume_writing(self) -> None:
        if self._is_ready:
            self._app.resume_writing()

    # Towards the application.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self._has_written_eof or not data:
            return
        try:
            # Partial writes are on in `ssl`: one record of 16 KiB at a time.
            done = self._tls.write(data)
            if done < len(data):
                view = memoryview(data)
                while done < len(view):
                    if self._outgoing.pending >= _SLICE_BYTES:
                        self._raw.write(self._outgoing.read())
                    done += self._tls.write(view[done:])
        except ssl.SSLError as error:
            self._break(error)
            return
        self._raw.write(self._outgoing.read())

    def close(self) -> None:
        if self._is_closing:
            return
        self.write_eof()
        self._is_closing = True
        self._raw.close()

    def abort(self) -> None:
        self._is_closing = True
        self._raw.abort()

    def is_closing(self) -> bool:
        return self._is_closing or self._raw.is_closing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Send close_notify and go on reading: the nearest that TLS has to a half-close."""
        if self._has_written_eof or self._is_closing or not self._is_ready:
            return
        self._has_written_eof = True
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # it waits for the peer's close_notify; ours is written
        self._flush()

    def pause_reading(self) -> None:
        self._is_paused = True
        if not self._raw.is_closing():
            self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if not self._raw.is_closing():
            self._raw.resume_reading()
        if self._incoming.pending or self._tls.pending():
            # Not from inside the caller's frame: it may be in the middle of handing over what came before.
            asyncio.get_running_loop().call_soon(self._pump)

    def is_reading(self) -> bool:
        return not self._is_paused and not self._is_closing

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._app = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._app

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else self._raw.get_extra_info(name, default)

    # Inside.

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except (ssl.SSLError, ValueError, OSError) as error:
            self._flush()  # the alert tells the peer why
            self._fail(error)
            return
        self._flush()
        self._is_ready = True
        if self._on_ready is not None:
            self._on_ready()
        self._app.connection_made(self)
        if self._incoming.pending or self._tls.pending():
            self._pump()

    def _pump(self) -> None:
        if self._is_paused or self._is_closing or self._has_ended:
            return
        parts: list[bytes] = []
        ended = False
        problem: ssl.SSLError | None = None
        read, pending = self._tls.read, self._tls.pending
        try:
            while True:
                part = read(_READ_BYTES)
                if not part:
                    ended = True
                    break
                parts.append(part)
                if not self._incoming.pending and not pending():
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            ended = True
        except ssl.SSLError as error:
            problem = error
        self._flush()
        if parts:
            self._app.data_received(parts[0] if len(parts) == 1 else b"".join(parts))
        if problem is not None:
            self._break(problem)
        elif ended:
            self._end()

    def _end(self) -> bool:
        """The peer sends nothing more. True keeps the raw transport open."""
        if self._has_ended:
            return True
        self._has_ended = True
        if self._app.eof_received():
            return True
        self.close()
        return False

    def _flush(self) -> None:
        if self._outgoing.pending and not self._raw.is_closing():
            self._raw.write(self._outgoing.read())

    def _fail(self, error: Exception) -> None:
        self._is_closing = True
        if not self._is_over:
            self._is_over = True
            self._on_failed(error)
            self._raw.close()

    def _break(self, error: ssl.SSLError) -> None:
        self._is_closing = True
        if not self._is_over:
            self._is_over = True
            self._raw.abort()
            self._app.connection_lost(error)
