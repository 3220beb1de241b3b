"""Messages on a byte stream: newline-delimited, or with `Content-Length` headers where the peer starts so."""

from __future__ import annotations

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_MAX_HEADER_BYTES = 8192
_LSP = b"content-length:"


class Framing:
    """Splits what was read into messages and wraps what is written, in the framing the peer chose.

    `feed` returns None in place of a message that is longer than the limit: it was skipped, not kept.
    """

    def __init__(self, most_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self.is_lsp = False
        self._most_bytes = most_bytes
        self._decided = False
        self._buffer = bytearray()
        self._skipping = False
        self._skip_bytes = 0

    def feed(self, data: bytes) -> list[bytes | None]:
        if not self._decided:
            data = self._decide(data)
        if self.is_lsp:
            return self._feed_lsp(data)
        return self._feed_lines(data)

    def is_whole(self, data: bytes) -> bool:
        """Whether these are whole lines, and nothing before them waits for its end."""
        return data[-1:] == b"\n" and self._decided and not (self.is_lsp or self._buffer or self._skipping)

    def rest(self) -> bytes:
        """Bytes that do not make a whole message yet."""
        return bytes(self._buffer)

    def wrap(self, message: bytes) -> bytes:
        if self.is_lsp:
            return b"Content-Length: %d\r\n\r\n%b" % (len(message), message)
        return message + b"\n"

    def _decide(self, data: bytes) -> bytes:
        """Look at the first bytes that are not blank; a prefix of the header name is not enough to tell."""
        start = (bytes(self._buffer) + data).lstrip()
        self._buffer.clear()
        head = start[: len(_LSP)].lower()
        if head and not _LSP.startswith(head):
            self._decided = True
        elif head == _LSP:
            self._decided = self.is_lsp = True
        else:
            self._buffer += start
            return b""
        return start

    def _feed_lines(self, data: bytes) -> list[bytes | None]:
        if b"\n" not in data:
            self._keep(data)
            return []
        if not self._buffer and not self._skipping and data.find(b"\n") == len(data) - 1 <= self._most_bytes:
            return [line] if (line := data[:-1]).strip() else []  # one whole line, as most reads have
        first, *middle, last = data.split(b"\n")
        messages: list[bytes | None] = []
        if self._skipping:
            self._skipping = False
            messages.append(None)
        else:
            line = bytes(self._buffer) + first if self._buffer else first
            if line.strip():
                messages.append(line if len(line) <= self._most_bytes else None)
        self._buffer.clear()
        messages += [line if len(line) <= self._most_bytes else None for line in middle if line.strip()]
        self._keep(last)
        return messages

    def _keep(self, data: bytes) -> None:
        if self._skipping:
            return
        self._buffer += data
        if len(self._buffer) > self._most_bytes:
            self._buffer.clear()
            self._skipping = True

    def _feed_lsp(self, data: bytes) -> list[bytes | None]:
        messages: list[bytes | None] = []
        self._buffer += data
        while True:
            if self._skip_bytes:
                dropped = min(self._skip_bytes, len(self._buffer))
                del self._buffer[:dropped]
                self._skip_bytes -= dropped
                if self._skip_bytes:
                    return messages
                messages.append(None)
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEADER_BYTES:
                    self._buffer.clear()
                    messages.append(None)
                return messages
            length = _content_length(bytes(self._buffer[:end]))
            if length is None:
                del self._buffer[: end + 4]
                messages.append(b"")
            elif length > self._most_bytes:
                del self._buffer[: end + 4]
                self._skip_bytes = length
            elif len(self._buffer) < end + 4 + length:
                return messages
            else:
                messages.append(bytes(self._buffer[end + 4 : end + 4 + length]))
                del self._buffer[: end + 4 + length]


def _content_length(head: bytes) -> int | None:
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == b"content-length":
            value = value.strip()
            return int(value) if value.isdigit() and len(value) < 16 else None
    return None
