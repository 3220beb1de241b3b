"""`python -m dari.bridge.schemas.worker`: runs schemas of strangers in a process that the kernel stops.

Reads jobs on stdin and answers on stdout until stdin ends. A job that takes more processor time or memory than it
may ends the process: the default action of SIGPROF needs no bytecode to run, so no native code can hold it up.
"""

from __future__ import annotations

import signal
import struct
import sys
from typing import Any, BinaryIO

import msgspec

from dari.bridge.schemas.validation import BadSchema, compiled, complaints

CPU_LIMIT_S = 2.0
MEMORY_LIMIT_BYTES = 768 * 1024 * 1024
HEAD = struct.Struct(">II")
"""The sizes of the two parts of a message: schema and arguments of a job, problem and complaints of an answer."""
_MOST_KEPT = 64


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    kept: dict[bytes, Any] = {}
    while len(head := source.read(HEAD.size)) == HEAD.size:
        schema_bytes, arguments_bytes = HEAD.unpack(head)
        schema, arguments = source.read(schema_bytes), source.read(arguments_bytes)
        _limit_s(CPU_LIMIT_S)
        problem, found = _judged(schema, arguments, kept)
        _limit_s(0)
        said = msgspec.json.encode(found)
        sink.write(HEAD.pack(len(problem), len(said)) + problem + said)
        sink.flush()


def _judged(schema: bytes, arguments: bytes, kept: dict[bytes, Any]) -> tuple[bytes, list[str]]:
    """Why the schema cannot be used, and what does not fit it. Without arguments the schema alone is tried."""
    try:
        validator = kept.pop(schema, None) or compiled(msgspec.json.decode(schema))
    except (BadSchema, msgspec.DecodeError, RecursionError) as error:
        return str(error).encode("utf-8", "replace"), []
    kept[schema] = validator
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]
    return b"", complaints(validator, msgspec.json.decode(arguments)) if arguments else []


def _limit_s(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _limit_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)
