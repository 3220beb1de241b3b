"""Whole bodies on disk, capped, oldest out first.

A body that fits the flow's own sample needs no file. A longer one is written as it passes, to a file named after
its flow and direction. A failing disk costs the copy, never the request.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dari.errors import Unavailable
from dari.os_errors import describe_os_error, suggest_next_step
from dari.paths import private_dir
from dari.proxy.flow import SAMPLE_BYTES, Body, Flow

MAX_TOTAL_BYTES = 512 * 1024 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
_READ_BYTES = 64 * 1024


@dataclass(slots=True)
class _Writing:
    """A body on its way to its file."""

    name: str
    file: int | None = None
    size_bytes: int = 0
    is_over: bool = False
    """The rest is not kept: the body's cap is reached, or the disk failed."""


class BodyStore:
    """Files are 0600 in a directory of 0700. Any thread may call: an import writes beside the event loop."""

    def __init__(self, directory: Path, total_bytes: int = MAX_TOTAL_BYTES, body_bytes: int = MAX_BODY_BYTES) -> None:
        self.directory = private_dir(directory)
        self.total_bytes = total_bytes
        self.body_bytes = min(body_bytes, total_bytes)
        self.used_bytes = 0
        self.evicted = 0
        self.failed = 0
        self._lock = threading.Lock()
        self._sizes: dict[str, int] = {}
        self._held: dict[tuple[int, bool], bytes] = {}
        """Bodies that may still fit the sample; most do, and cost no more than this."""
        self._writing: dict[tuple[int, bool], _Writing] = {}
        for name, size_bytes in sorted(self._found(), key=lambda found: _flow_id(found[0])):
            self._sizes[name] = size_bytes
            self.used_bytes += size_bytes
        self._make_room(0)

    @property
    def last_flow_id(self) -> int:
        """The highest id that has a file: a new flow must not take its name."""
        return max((_flow_id(name) for name in self._sizes), default=0)

    def keep_only(self, flow_ids: set[int]) -> None:
        """Remove the files of other flows: bodies of requests that a crash cut short."""
        with self._lock:
            for name in [name for name in self._sizes if _flow_id(name) not in flow_ids]:
                self._remove(name)

    def write(self, flow: Flow, from_client: bool, chunk: bytes) -> None:
        """Take the next bytes of a body."""
        key = flow.id, from_client
        if not self._writing or key not in self._writing:
            held = self._held.pop(key, None)
            chunk = chunk if held is None else held + chunk
            if len(chunk) <= SAMPLE_BYTES:
                self._held[key] = chunk
                return
        with self._lock:
            writing = self._writing.get(key)
            if writing is None:
                name = f"{flow.id}.{'request' if from_client else 'response'}"
                writing = self._writing[key] = _Writing(name)
            if not writing.is_over:
                self._append(writing, chunk)

    def finish(self, flow: Flow) -> None:
        """The flow ended: name in it the files that hold its bodies."""
        if not self._held and not self._writing:
            return
        for from_client, body in ((True, flow.request_body), (False, flow.response_body)):
            key = flow.id, from_client
            held = self._held.pop(key, None)
            if held is not None and len(held) > len(body.sample):  # an engine set to smaller samples
                body.sample = held
            if key in self._writing:
                with self._lock:
                    self._close(self._writing.pop(key), body)

    def keep(self, flow: Flow, from_client: bool, data: bytes) -> None:
        """Store a body that is known as a whole, as an import does."""
        body = flow.request_body if from_client else flow.response_body
        body.sample, body.size_bytes = data[:SAMPLE_BYTES], len(data)
        self.write(flow, from_client, data)
        self.finish(flow)

    def pieces(self, body: Body) -> Iterator[bytes]:
        """The body's bytes as far as they were kept."""
        if body.spool is None or not _is_name(body.spool):
            if body.sample:
                yield body.sample
            return
        try:
            file = os.open(self.directory / body.spool, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # evicted since
            if body.sample:
                yield body.sample
            return
        with open(file, "rb", buffering=0) as stream:
            while piece := stream.read(_READ_BYTES):
                yield piece

    def kept_bytes(self, body: Body) -> int:
        """How many bytes of it `pieces` would give."""
        return self._sizes.get(body.spool or "", len(body.sample))

    def is_whole(self, body: Body) -> bool:
        return body.outcome != "error" and self.kept_bytes(body) == body.size_bytes

    def closed_names(self) -> list[str]:
        """The files that are there now and not being written."""
        with self._lock:
            writing = {writing.name for writing in self._writing.values()}
            return [name for name in self._sizes if name not in writing]

    def remove(self, names: list[str]) -> None:
        """Remove these files; Unavailable names one that cannot be removed, after the others."""
        problem: OSError | None = None
        for name in names:
            try:
                with self._lock:  # for one at a time: requests write beside this
                    self._remove(name)
            except OSError as error:
                problem = error
        if problem is not None:
            raise Unavailable(
                f"cannot remove {problem.filename}: {describe_os_error(problem)}",
                suggest_next_step(problem, "check the folder, then clear again"),
            ) from problem

    def _close(self, writing: _Writing, body: Body) -> None:
        if writing.file is not None:
            os.close(writing.file)
            if writing.name in self._sizes:
                body.spool = writing.name

    def _append(self, writing: _Writing, chunk: bytes) -> None:
        room = self.body_bytes - writing.size_bytes
        kept = chunk if len(chunk) <= room else chunk[:room]
        try:
            self._make_room(len(kept), writing.name)
            if writing.file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
                writing.file = os.open(self.directory / writing.name, flags, 0o600)
                self._sizes[writing.name] = 0
            view = memoryview(kept)
            while view:
                view = view[os.write(writing.file, view) :]
        except OSError:
            self.failed += 1
            writing.is_over = True
            with suppress(OSError):  # half a body is left behind, and counted
                self._remove(writing.name)
            return
        writing.size_bytes += len(kept)
        self.used_bytes += len(kept)
        self._sizes[writing.name] = writing.size_bytes
        # Also when another body pushed this one out while it ran: half a file must not pass for a whole one.
        writing.is_over = len(kept) < len(chunk)

    def _make_room(self, wanted_bytes: int, sparing: str = "") -> None:
        while self.used_bytes + wanted_bytes > self.total_bytes:
            oldest = next((name for name in self._sizes if name != sparing), None)
            if oldest is None:
                return
            for writing in self._writing.values():
                if writing.name == oldest:
                    writing.is_over = True
            self._remove(oldest)
            self.evicted += 1

    def _remove(self, name: str) -> None:
        if _is_name(name):
            (self.directory / name).unlink(missing_ok=True)
        self.used_bytes -= self._sizes.pop(name, 0)

    def _found(self) -> Iterator[tuple[str, int]]:
        with os.scandir(self.directory) as found:
            for item in found:
                if _is_name(item.name) and item.is_file(follow_symlinks=False):
                    yield item.name, item.stat(follow_symlinks=False).st_size


def _is_name(name: str) -> bool:
    """Names come back from the database, and must not leave the directory."""
    number, _, direction = name.partition(".")
    return number.isascii() and number.isdigit() and direction in ("request", "response")


def _flow_id(name: str) -> int:
    return int(name.partition(".")[0])
