"""Parsers in child processes: a file that hangs, crashes or eats memory costs that file and a new child.

A child gets a file's bytes on its stdin and can open nothing but Python and the parsers' libraries; it has no
network, no environment of ours, and limits on memory, processor time and output.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import msgspec

from dari.errors import Unavailable
from dari.knowledge.document import ParsedDocument
from dari.knowledge.parse.dispatch import is_simple, open_regular, parse_safely
from dari.knowledge.parse.frames import PIECE_BYTES, BrokenPipe, Reply, decode_reply, read_frame, write_request
from dari.knowledge.parse.limits import FailureReason, ParseFailed, ParseLimits
from dari.process.children import to_rlimits
from dari.process.group import ProcessGroup, choose_group_type
from dari.process.tag import ProcessTag

if TYPE_CHECKING:
    from dari.sandbox.builder import SandboxedCommand
    from dari.sandbox.confinement import Confinement

START_S = 30.0
INLINE_BYTES = 32 << 10
"""Markdown and text up to here are parsed in this process: our own code, in linear time, where a child would cost more
than the parsing. The most hostile 32 KiB that we know of take 0.2 s."""
_CHECK_EVERY_S = 0.1
_PACKAGE_ROOT = Path(__file__).resolve().parents[3]


class ParserPool:
    """`with ParserPool(limits, workers=2) as pool: document = pool.parse(path, "notes/a.md")`.

    Thread-safe: as many files at a time as there are workers, others wait. Children start with the first file and
    stay for the next ones.
    """

    def __init__(
        self, limits: ParseLimits | None = None, workers: int = 1, *, inline_bytes: int = INLINE_BYTES
    ) -> None:
        self.limits = limits or ParseLimits()
        self._inline_bytes = min(inline_bytes, self.limits.max_file_bytes)
        self._free: deque[_Worker] = deque()
        self._turns = threading.BoundedSemaphore(max(1, workers))
        self._lock = threading.Lock()
        self._all: set[_Worker] = set()
        self._watchdog = _Watchdog()
        self._is_closed = False
        self.restarts = 0
        """Children that were killed or died."""

    def __enter__(self) -> ParserPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """The children that run now."""
        with self._lock:
            return tuple(worker.pid for worker in self._all)

    def parse(self, path: Path, doc_path: str) -> ParsedDocument:
        """ParseFailed says why this file was not read; Unavailable: no parser process can be started."""
        with open_regular(path, doc_path) as file:
            if (size := os.fstat(file.fileno()).st_size) > self.limits.max_file_bytes:
                raise ParseFailed(
                    "size_exceeded",
                    f"a file must have at most {self.limits.max_file_bytes} bytes, got {size}: {doc_path}",
                    "split it, or raise ingest.max_file_bytes",
                )
            if size <= self._inline_bytes:
                return self.parse_bytes(file.read(), doc_path)
            return self._parse(lambda: file.read(PIECE_BYTES), doc_path)

    def parse_bytes(self, data: bytes, doc_path: str) -> ParsedDocument:
        """The same for bytes without a file, such as stdin, or that were read already."""
        if len(data) <= self._inline_bytes and is_simple(doc_path, data):
            return parse_safely(data, doc_path, self.limits)
        if len(data) < PIECE_BYTES:
            rest = [b"", data]
            return self._parse(lambda: rest.pop() if rest else b"", doc_path)
        pieces = iter([data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)])
        return self._parse(lambda: next(pieces, b""), doc_path)

    def close(self) -> None:
        """End all children. Files that are being parsed fail."""
        with self._lock:
            self._is_closed = True
            workers, self._all = list(self._all), set()
            self._free.clear()
        for worker in workers:
            worker.end()
        self._watchdog.close()

    def _parse(self, read: Callable[[], bytes], doc_path: str) -> ParsedDocument:
        with self._turns:
            worker = self._take()
            try:
                reply = worker.ask(read, doc_path)
            except BaseException as error:
                self._drop(worker, is_lost=True)
                if isinstance(error, (BrokenPipe, BrokenPipeError, OverflowError, msgspec.MsgspecError)):
                    raise worker.explain(error, doc_path) from None
                raise
            if reply.is_last:
                self._drop(worker, is_lost=False)
            else:
                self._give_back(worker)
        if reply.document is None:
            raise ParseFailed(cast(FailureReason, reply.reason), reply.message, reply.hint)
        return reply.document

    def _take(self) -> _Worker:
        with self._lock:
            if not self._is_closed and self._free:
                return self._free.pop()
        if not self._is_closed:
            worker = _Worker(self.limits, self._watchdog)
            with self._lock:
                # `close` may have ended all others while this one was made.
                if not self._is_closed:
                    self._all.add(worker)
                    return worker
            worker.end()
        raise Unavailable("the parser pool is closed", "open a new one")

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._is_closed:
                self._free.append(worker)

    def _drop(self, worker: _Worker, *, is_lost: bool) -> None:
        with self._lock:
            self._all.discard(worker)
            self.restarts += is_lost
        worker.end()


class _Worker:
    """One child process. One file at a time."""

    def __init__(self, limits: ParseLimits, watchdog: _Watchdog) -> None:
        self._limits = limits
        self._watchdog = watchdog
        self._was_late = False
        self._prepared, tag = _command(limits)
        group_type = choose_group_type()
        try:
            self._process = subprocess.Popen(
                self._prepared.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._prepared.environment,
                cwd="/" if os.name == "posix" else None,
                pass_fds=self._prepared.inherited,
                **group_type.popen_options,
            )
        except OSError as error:
            self._prepared.discard()
            raise Unavailable(
                f"a parser's process does not start: {error.strerror}", f"does {sys.executable} run?"
            ) from None
        self._group: ProcessGroup = group_type(self._process, tag, is_wrapped=self._prepared.is_wrapped)
        self._prepared.hand_over()
        self._is_new = True

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, read: Callable[[], bytes], doc_path: str) -> Reply:
        stdin, stdout = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        within_s = self._limits.max_wall_s + (START_S if self._is_new else 0)
        self._is_new = False
        self._watchdog.watch(self, time.monotonic() + within_s)
        try:
            try:
                write_request(stdin, doc_path, read, self._limits.max_file_bytes)
            except OverflowError:
                raise ParseFailed("size_exceeded", f"{doc_path} grew beyond the limit while it was read") from None
            return decode_reply(read_frame(stdout, self._limits.max_output_bytes))
        finally:
            self._watchdog.forget(self)

    def explain(self, error: Exception, doc_path: str) -> ParseFailed:
        """Why no reply came. Called after `end`."""
        if isinstance(error, OverflowError):
            return ParseFailed("output_exceeded", f"the parsed text of {doc_path} is too long", "split it")
        if isinstance(error, msgspec.MsgspecError):
            return ParseFailed("crashed", f"the parser answered nonsense for {doc_path}")
        code = self._process.returncode
        if self._was_late:
            return ParseFailed("timeout", f"{doc_path} was not parsed within {self._limits.max_wall_s:g} s")
        if os.name == "posix" and code == -signal.SIGXCPU:
            return ParseFailed(
                "timeout", f"{doc_path} was not parsed within {self._limits.max_cpu_s} s of processor time"
            )
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        return ParseFailed("crashed", f"the parser of {doc_path} ended with {how}", "the file is broken or hostile")

    def kill_late(self) -> None:
        self._was_late = True
        self._group.kill()

    def end(self) -> None:
        """At once, with all that it started. It has nothing to lose."""
        if self._process.returncode is None:
            # One that has ended says how; the kill is for the others.
            try:
                self._process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        self._group.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass
        self._prepared.discard()


class _Watchdog:
    """One thread that kills workers whose time is up. It runs while something is parsed."""

    def __init__(self) -> None:
        self._deadlines: dict[_Worker, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def watch(self, worker: _Worker, deadline: float) -> None:
        with self._changed:
            is_first = not self._deadlines
            self._deadlines[worker] = deadline
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kebab-parse-watchdog", daemon=True)
                self._thread.start()
            elif is_first:
                self._changed.notify()

    def forget(self, worker: _Worker) -> None:
        with self._changed:
            self._deadlines.pop(worker, None)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._is_closed:
                now = time.monotonic()
                for worker in [one for one, deadline in self._deadlines.items() if deadline <= now]:
                    del self._deadlines[worker]
                    worker.kill_late()
                self._changed.wait(_CHECK_EVERY_S if self._deadlines else None)


def _command(limits: ParseLimits) -> tuple[SandboxedCommand, ProcessTag]:
    from dari.sandbox.builder import build_command

    tag = ProcessTag.new()
    environment = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TESSDATA_PREFIX") if name in os.environ}
    environment |= {"LANG": "C.UTF-8", "OMP_THREAD_LIMIT": "1", **tag.environment()}
    arguments = ["-I", "-m", "dari.knowledge.parse.child", msgspec.json.encode(limits).decode()]
    rlimits = {"as": limits.max_memory_bytes, "core": 0, "nofile": 256}
    prepared = build_command(
        Path(sys.executable),
        arguments,
        environment,
        Path("/"),
        _confinement(),
        limits=to_rlimits(rlimits) if os.name == "posix" else (),
    )
    return prepared, tag


def _confinement() -> Confinement:
    """Python and the libraries can be read, a temporary folder of its own written, nothing reached."""
    from dari.sandbox.confinement import Confinement, PathRule

    libraries = {Path(one) for one in sys.path if one.endswith(("site-packages", "dist-packages"))}
    readable = {_PACKAGE_ROOT, *libraries}
    if tesseract := shutil.which("tesseract"):
        readable.add(Path(tesseract).resolve().parent)
    if data := os.environ.get("TESSDATA_PREFIX"):
        readable.add(Path(data))
    paths = tuple(PathRule.of(one) for one in sorted(readable) if one.is_dir())
    return Confinement(paths=paths, network="none", uses_bubblewrap=False)
