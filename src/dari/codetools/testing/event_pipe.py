"""Events of a test run beside its output: a named pipe, since tests print what they like."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MAX_EVENT_BYTES = 1 << 20
MAX_STACK_CHARS = 20_000
_READ_BYTES = 1 << 16

Event = Mapping[str, Any]


class EventPipe:
    """`with EventPipe(on_event) as pipe:` … the program writes a JSON object a line into `pipe.path`.

    Lines that are not JSON are `stack`: what faulthandler wrote when the time was over. `folder` is private and gone at
    the end. What a hostile test writes here costs at most its own result.
    """

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event
        self._pending = bytearray()
        self._is_skipping = False
        self.stack = ""

    def __enter__(self) -> EventPipe:
        self.folder = Path(tempfile.mkdtemp(prefix=f"dari-tests-{os.getpid()}-"))
        self.path = self.folder / "events"
        os.mkfifo(self.path, 0o600)
        # For reading and writing: without a writer of ours every gap between two writers would be an end of file.
        self._file = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._file, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._file)
        os.close(self._file)
        shutil.rmtree(self.folder, ignore_errors=True)

    def drain(self) -> None:
        """Read what is left, after the program has ended."""
        while self._read():
            pass

    def _read(self) -> bool:
        try:
            data = os.read(self._file, _READ_BYTES)
        except BlockingIOError:
            return False
        *lines, rest = (bytes(self._pending) + data).split(b"\n")
        for line in lines:
            if self._is_skipping:
                self._is_skipping = False  # the end of a line that was too long
            else:
                self._line(line)
        self._pending[:] = rest
        if len(self._pending) > MAX_EVENT_BYTES:
            self._pending.clear()
            self._is_skipping = True
        return bool(data)

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"{"):
            if len(self.stack) < MAX_STACK_CHARS:
                self.stack += line.decode("utf-8", "replace") + "\n"
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        try:
            self._on_event(event)
        except (KeyError, TypeError, ValueError, AttributeError):
            return  # not one of ours: a test found the pipe
