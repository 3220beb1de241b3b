"""Operating system commands: OSC 7 (the directory of the shell), and OSC 133 and 7700 … 7799, which panes act on
at their exact place in the stream.

The watch looks at bytes on their way into an engine. It holds nothing back: a sequence that is cut by the end of
a chunk goes in at once, and what is missing is awaited in the next chunk.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from functools import cache, lru_cache
from urllib.parse import unquote

MAX_OSC_BYTES = 100_000
_BEGIN = re.compile(rb"\x1b\](133|77\d\d);")
_BEGIN_OURS = re.compile(rb"\x1b\](77\d\d);")
# What may be the beginning of one at the end of a chunk.
_CUT = re.compile(rb"\x1b(?:\](?:1(?:3(?:3)?)?|7(?:7(?:\d(?:\d)?)?)?)?)?\Z")
_END = re.compile(rb"[\x07\x18\x1a]|\x1b\\?")


class OscWatch:
    """Cuts chunks after each sequence that is watched for."""

    def __init__(self) -> None:
        self.hears_prompts = True
        self.held = b""  # the beginning of a sequence that the next chunk goes on with

    def cut(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """(offset just after a sequence, its number, its payload) for each that ends in this chunk."""
        held, self.held = self.held, b""
        whole = held + data if held else data
        shift = len(held)
        position = 0
        search = (_BEGIN if self.hears_prompts else _BEGIN_OURS).search
        while begin := search(whole, position):
            end = _END.search(whole, begin.end())
            if end is None or (end[0] == b"\x1b" and end.end() == len(whole)):
                self.held = whole[begin.start() :] if len(whole) - begin.start() <= MAX_OSC_BYTES else b""
                return
            position = end.end()
            if end[0] == b"\x1b":  # another sequence began inside: this one was given up
                position -= 1
            elif end[0] in (b"\x07", b"\x1b\\"):
                yield position - shift, int(begin[1]), whole[begin.end() : end.start()]
        tail = _CUT.search(whole, max(position, len(whole) - 8))
        if tail is not None:
            self.held = tail[0]

    @property
    def is_quiet(self) -> bool:
        """No sequence is awaited; a chunk without ESC at its end and without `ESC ]` needs no watching."""
        return not self.held


@lru_cache(maxsize=16)  # a pane is asked at each prompt
def parse_osc7_path(url: str) -> str:
    """The path of a `file://host/path`; empty for another machine, and for anything else."""
    for scheme in ("file://", "kitty-shell-cwd://"):
        if url.startswith(scheme):
            host, slash, path = url[len(scheme) :].partition("/")
            if not slash or host.lower() not in _own_names():
                return ""
            return unquote("/" + path) if scheme == "file://" else "/" + path
    return url if url.startswith("/") else ""


@cache
def _own_names() -> frozenset[str]:
    name = socket.gethostname().lower()
    return frozenset(("", "localhost", name, name.partition(".")[0]))
