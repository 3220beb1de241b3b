"""Responses made here: refusals, mapped files and texts, pages of the certificate site."""

from __future__ import annotations

import errno
import mimetypes
import os
import stat
from http import HTTPStatus
from typing import BinaryIO

from dari.proxy.engine.hooks import LocalResponse
from dari.proxy.flow import Headers

_BLOCK_BYTES = 128 * 1024
_REASONS = {status.value: status.phrase.encode("ascii") for status in HTTPStatus}


def reason_of(status: int) -> bytes:
    return _REASONS.get(status, b"Unknown")


def named_status(status: int) -> bytes:
    """As the original shows it in `x-crab-mitm-status-rewrite`."""
    return b"%d %b" % (status, _REASONS.get(status, b"<unknown status code>"))


def status_line(status: int, reason: bytes | None = None) -> bytes:
    return b"HTTP/1.1 %d %s" % (status, reason_of(status) if reason is None else reason)


def make_refusal(status: int, reason: str) -> LocalResponse:
    text = f"{status} {reason_of(status).decode('ascii')}: {reason}\n"
    return LocalResponse(status, ((b"Content-Type", b"text/plain; charset=utf-8"),), text.encode("utf-8", "replace"))


def may_have_body(status: int, method: str) -> bool:
    return method != "HEAD" and status >= 200 and status not in (204, 304)


class LocalBody:
    """The body of a local answer, in blocks, so that a large file is never in memory as a whole."""

    def __init__(self, answer: LocalResponse) -> None:
        """Raises OSError when the answer's file cannot be opened."""
        self._body = answer.body
        self._file: BinaryIO | None = None
        self.headers: Headers = list(answer.headers)
        self.length = len(answer.body)
        if answer.file is not None:
            self._file = _opened(answer.file)
            self.length = os.fstat(self._file.fileno()).st_size
            if not any(name.lower() == b"content-type" for name, _ in self.headers):
                kind = mimetypes.guess_type(answer.file)[0] or "application/octet-stream"
                self.headers.append((b"Content-Type", kind.encode("ascii")))
        self._left = self.length

    def block(self) -> bytes:
        """The next bytes, empty at the end. Raises OSError when the file became shorter."""
        if self._file is None:
            body, self._body = self._body, b""
            return body
        if not self._left:
            return b""
        data = self._file.read(min(_BLOCK_BYTES, self._left))
        if not data:
            raise OSError("the file became shorter")
        self._left -= len(data)
        return data

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _opened(path: str) -> BinaryIO:
    # Opening a FIFO would wait for its writer, with the whole proxy.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(number, "rb")
