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

MAX_ERRORS = 5
MAX_ERROR_CHARS = 500
_PATTERN_BYTES = 1024 * 1024


class BadSchema(ValueError):
    """What a server calls a schema cannot be used as one; the message says why."""


def compile_schema(schema: Any) -> Any:
    """A validator. Raises ImportError without `jsonschema-rs`, and BadSchema."""
    import jsonschema_rs

    # The engine that knows no look-around and does not backtrack.
    options = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse_to_fetch, pattern_options=options)
    except Exception as error:  # whatever a server calls a schema
        raise BadSchema((str(error).splitlines() or ["no reason given"])[0][:MAX_ERROR_CHARS]) from None


def find_errors(validator: Any, value: Any) -> list[str]:
    """What does not fit, with its place; empty when all does."""
    if validator.is_valid(value):
        return []
    found: list[str] = []
    for error in validator.iter_errors(value):
        where = ".".join(str(step) for step in error.instance_path)
        text = f"{where}: {error.message}" if where else str(error.message)
        found.append(text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}…")
        if len(found) == MAX_ERRORS:
            break
    return found or ["it does not fit the schema"]


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")


CPU_LIMIT_S = 2.0
MEMORY_LIMIT_BYTES = 768 * 1024 * 1024
HEAD = struct.Struct(">II")
"""The sizes of the two parts of a message: schema and arguments of a job, problem and complaints of an answer."""
_MAX_CACHED_SCHEMAS = 64


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    kept: dict[bytes, Any] = {}
    while len(head := source.read(HEAD.size)) == HEAD.size:
        schema_bytes, arguments_bytes = HEAD.unpack(head)
        schema, arguments = source.read(schema_bytes), source.read(arguments_bytes)
        _limit_s(CPU_LIMIT_S)
        problem, found = _check_arguments(schema, arguments, kept)
        _limit_s(0)
        said = msgspec.json.encode(found)
        sink.write(HEAD.pack(len(problem), len(said)) + problem + said)
        sink.flush()


def _check_arguments(schema: bytes, arguments: bytes, kept: dict[bytes, Any]) -> tuple[bytes, list[str]]:
    """Why the schema cannot be used, and what does not fit it. Without arguments the schema alone is tried."""
    try:
        validator = kept.pop(schema, None) or compile_schema(msgspec.json.decode(schema))
    except (BadSchema, msgspec.DecodeError, RecursionError) as error:
        return str(error).encode("utf-8", "replace"), []
    kept[schema] = validator
    if len(kept) > _MAX_CACHED_SCHEMAS:
        del kept[next(iter(kept))]
    return b"", find_errors(validator, msgspec.json.decode(arguments)) if arguments else []


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
