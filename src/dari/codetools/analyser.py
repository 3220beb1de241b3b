"""Parsing in a process of its own: a source that hangs or crashes a grammar costs that file and a new process."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from dari.process.child import Child, ChildSpec, StopTimeouts
from dari.process.children import Children
from dari.sandbox.confinement import Confinement, PathRule
from dari.struct_types import ready
from dari.syntax.analysis import FRAME, MAX_FRAME_BYTES, AnalysisRequest, Answer

FILE_S = 8.0
"""For one file; the first one also waits for the process to start."""
START_S = 20.0
IDLE_S = 60.0
PROCESSES = min(4, os.cpu_count() or 1)
MAX_MEMORY_BYTES = 3 << 30
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ready(Answer)).decode


class ParserFailed(Exception):
    """The file was not parsed: it took too long, or the grammar crashed on it."""


class Analyser:
    """Each process has one file at a time. They start when questions wait, and end after a minute without one.

    They see the bytes that they are given and, besides Python and the grammars, no file and no network.
    """

    def __init__(self, children: Children, *, file_s: float = FILE_S, processes: int = PROCESSES) -> None:
        self._children = children
        self._file_s = file_s
        self._turns = asyncio.Semaphore(processes)
        self._free: list[_Worker] = []
        self._idle: asyncio.TimerHandle | None = None

    async def ask(self, question: AnalysisRequest) -> Answer:
        """ParserFailed says why this file has no answer; the next file has a new process."""
        async with self._turns:
            if self._idle is not None:
                self._idle.cancel()
            worker = self._take()
            limit_s = self._file_s
            try:
                if worker is None:
                    limit_s += START_S
                    worker = await _start(self._children)
                async with asyncio.timeout(limit_s):
                    answer = _decode(await worker.exchange(_encode(question)))
            except TimeoutError:
                raise ParserFailed(f"its grammar took longer than {self._file_s:g} s") from None
            except (asyncio.IncompleteReadError, OSError, msgspec.MsgspecError):
                assert worker is not None
                await worker.child.ended(1.0)
                raise ParserFailed(f"the grammar of {question.language} crashed ({worker.child.status})") from None
            else:
                self._free.append(worker)
                worker = None
                return answer
            finally:
                if worker is not None:  # late, crashed or cancelled in the middle of an answer
                    worker.end()
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end)

    def _take(self) -> _Worker | None:
        while self._free:
            worker = self._free.pop()
            if not worker.child.has_ended:
                return worker
        return None

    def _end(self) -> None:
        while self._free:
            self._free.pop().end()


class _Worker:
    def __init__(self, child: Child, reader: asyncio.StreamReader, pipe: asyncio.WriteTransport) -> None:
        self.child = child
        self._reader = reader
        self._pipe = pipe

    async def exchange(self, data: bytes) -> bytes:
        self._pipe.write(FRAME.pack(len(data)) + data)
        size = FRAME.unpack(await self._reader.readexactly(FRAME.size))[0]
        if size > MAX_FRAME_BYTES:
            raise OSError("an answer is too long")
        return await self._reader.readexactly(size)

    def end(self) -> None:
        self.child.kill()
        self._pipe.close()


async def _start(children: Children) -> _Worker:
    spec = ChildSpec(
        "the parser",
        (sys.executable, "-I", "-m", "dari.syntax.analysis"),
        env={"LANG": "C.UTF-8"},
        cwd=Path("/"),
        limits={"as": MAX_MEMORY_BYTES, "core": 0, "nofile": 64} if os.name == "posix" else {},
        confinement=_confinement(),
        patience=StopTimeouts(after_eof_s=0.0, after_term_s=0.5),
    )
    child = await children.start(spec)
    loop = asyncio.get_running_loop()
    try:
        inbox, outbox = child.take_pipes()
        reader = asyncio.StreamReader()
        reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), outbox)
        child.on_gone(reading.close)
        writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, inbox)
        child.on_gone(writing.close)
    except BaseException:
        child.kill()
        raise
    return _Worker(child, reader, writing)


def _confinement() -> Confinement:
    libraries = {Path(one) for one in sys.path if one.endswith(("site-packages", "dist-packages"))}
    paths = tuple(PathRule.of(one) for one in sorted({_PACKAGE_ROOT, *libraries}) if one.is_dir())
    return Confinement(paths=paths, network="none", uses_bubblewrap=False)
