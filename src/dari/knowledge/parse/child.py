"""The parser's process: reads files from its stdin, answers with documents, has no right to open anything else.

Started by `ParserPool` as `python -I -m dari.knowledge.parse.child`, below resource limits and a sandbox.
"""

from __future__ import annotations

import os
import sys
from typing import IO

import msgspec

from dari.knowledge.parse.dispatch import parse_safely
from dari.knowledge.parse.frames import PIECE_BYTES, BrokenPipe, Reply, encode_reply, read_frame, write_frame
from dari.knowledge.parse.limits import ParseFailed, ParseLimits
from dari.struct_types import ready

MAX_FILES = 5_000
"""A child is replaced after so many files: parsers leak."""
MAX_GROWN_BYTES = 256 << 20
"""And when its memory has grown by so much."""


def main() -> None:
    limits = msgspec.json.decode(sys.argv[1], type=ready(ParseLimits))
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    # A library that prints must not write into our frames.
    silent = os.open(os.devnull, os.O_RDWR)
    os.dup2(silent, 0)
    os.dup2(silent, 1)
    # Linux begins a process's peak with that of the process that started it, which may hold a model.
    max_peak_bytes = _peak_bytes() + MAX_GROWN_BYTES
    for number in range(MAX_FILES):
        try:
            doc_path, data = _read_request(requests, limits)
        except BrokenPipe:
            return
        _allow_cpu_time(limits.max_cpu_s)
        reply = _answer(data, doc_path, limits)
        del data
        is_last = reply.is_last or number == MAX_FILES - 1 or _peak_bytes() > max_peak_bytes
        try:
            encoded = encode_reply(msgspec.structs.replace(reply, is_last=is_last) if is_last else reply)
        except UnicodeEncodeError:
            encoded = encode_reply(Reply(None, "malformed", "a text must be Unicode, got lone surrogates", "", is_last))
        if len(encoded) > limits.max_output_bytes:
            encoded = encode_reply(_too_long(doc_path, limits, is_last))
        write_frame(replies, encoded)
        if is_last:
            return


def _read_request(pipe: IO[bytes], limits: ParseLimits) -> tuple[str, bytes]:
    doc_path = read_frame(pipe, PIECE_BYTES).decode("utf-8", "surrogatepass")
    pieces = [read_frame(pipe, PIECE_BYTES)]
    while piece := read_frame(pipe, PIECE_BYTES):
        pieces.append(piece)
    return doc_path, pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _answer(data: bytes, doc_path: str, limits: ParseLimits) -> Reply:
    try:
        return Reply(parse_safely(data, doc_path, limits))
    except ParseFailed as error:
        return Reply(None, error.reason, error.message, error.hint, is_last=error.reason == "memory")


def _too_long(doc_path: str, limits: ParseLimits, is_last: bool) -> Reply:
    message = f"the text of a file must have at most {limits.max_output_bytes} bytes: {doc_path}"
    return Reply(None, "output_exceeded", message, "split it", is_last)


def _allow_cpu_time(seconds: int) -> None:
    """The kernel ends a parser that computes longer, also when nothing is left that could: limits count from a
    process's start, so each file moves the limit on."""
    if sys.platform == "win32":
        return
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    ceiling = int(usage.ru_utime + usage.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard), hard))


def _peak_bytes() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
