"""Questions about one source file, and a process that answers them.

Grammars are C code that others wrote: some inputs of a few kilobytes keep one busy for half a minute, and nested YAML
of 20 kB ends the process with a bus error (tree-sitter 0.25.2). So a server of others asks a process of its own:
`python -m dari.syntax.analysis` reads an `AnalysisRequest` per frame from stdin and writes an `Answer` per frame to
stdout.
"""

from __future__ import annotations

import os
import re
import struct
from typing import IO

import msgspec
from msgspec import Struct

from dari.struct_types import ready
from dari.syntax.definitions import Definition, find_definitions
from dari.syntax.grammars import UnknownLanguage
from dari.syntax.occurrences import Occurrence, find_occurrences
from dari.syntax.parsing import SourceTree, parse_source

FRAME = struct.Struct("<I")
MAX_FRAME_BYTES = 64 << 20


class Symbol(Struct, frozen=True, omit_defaults=True):
    """A definition as an outline shows it. Lines are counted from 1, the last one is within."""

    kind: str
    symbol: str
    line: int
    end_line: int
    depth: int
    signature: str = ""
    doc: str = ""


class AnalysisRequest(Struct, frozen=True, omit_defaults=True):
    """Definitions of a file, and where `name` stands where one is given."""

    data: bytes
    language: str
    name: str = ""
    wants_symbols: bool = True
    wants_text: bool = True
    """Signatures and first lines of docs."""


class Answer(Struct, frozen=True, omit_defaults=True):
    symbols: list[Symbol] = []
    occurrences: list[Occurrence] = []
    is_unknown: bool = False
    """There is no grammar of the language."""
    is_partial: bool = False
    has_errors: bool = False
    """The source does not parse as a whole; what is found is what could be read."""


def analyse(question: AnalysisRequest) -> Answer:
    try:
        tree = parse_source(question.data, question.language)
    except UnknownLanguage:
        return Answer(is_unknown=True)
    definitions = find_definitions(tree)
    symbols: list[Symbol] = []
    if question.wants_symbols:
        for one in definitions:
            signature, doc = (signature_of(one, tree), doc_line(one, tree)) if question.wants_text else ("", "")
            symbols.append(Symbol(one.kind, one.symbol, one.line, one.end_line, one.depth, signature, doc))
    return Answer(
        symbols,
        find_occurrences(tree, question.name, definitions) if question.name else [],
        is_partial=not tree.is_complete,
        has_errors=tree.root.has_error,
    )


def main() -> None:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # A library that prints must not write into our frames.
    silent = os.open(os.devnull, os.O_RDWR)
    os.dup2(silent, 0)
    os.dup2(silent, 1)
    questions, answers = msgspec.msgpack.Decoder(ready(AnalysisRequest)), msgspec.msgpack.Encoder()
    while (frame := _read(requests)) is not None:
        data = answers.encode(analyse(questions.decode(frame)))
        replies.write(FRAME.pack(len(data)) + data)
        replies.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(FRAME.size)
    if len(head) < FRAME.size:
        return None
    size = FRAME.unpack(head)[0]
    data = pipe.read(size) if size <= MAX_FRAME_BYTES else b""
    return data if len(data) == size else None


MAX_SIGNATURE_CHARS = 160
MAX_DOC_CHARS = 160
_MAX_COMMENT_LINES = 60
_BLANKS = re.compile(r"\s+")
_DOCSTRING = re.compile(r"[rRuU]?(\"\"\"|'''|\"|')\s*(.*)")
# Possessive: a comment of four hundred blanks takes the third power of them otherwise.
_COMMENT = re.compile(r"\s*(?://[/!]?|/\*[*!]?|\*/?|--+|;+|%+)\s?(.*?)\s*+(?:\*/)?\s*+$")
_HASH_COMMENT = re.compile(r"\s*#+(?![\[!])\s?(.*?)\s*$")
_HASH_LANGUAGES = frozenset(
    (
        "bash",
        "ruby",
        "perl",
        "r",
        "julia",
        "elixir",
        "make",
        "yaml",
        "toml",
        "nix",
        "terraform",
        "powershell",
        "fish",
        "nim",
    )
)
_ATTRIBUTE = re.compile(r"\s*(?:#\[|@|\[)")


def signature_of(definition: Definition, tree: SourceTree) -> str:
    """What stands before the body, on one line."""
    data = tree.data
    start = max(data.rfind(b"\n", 0, definition.name_byte) + 1, definition.start_byte)
    end = definition.body_byte
    if end >= definition.end_byte:
        stop = data.find(b"\n", definition.name_byte, definition.end_byte)
        end = stop if stop > 0 else definition.end_byte
    text = data[start : min(end, start + 4 * MAX_SIGNATURE_CHARS)].decode("utf-8", "replace")
    line = _BLANKS.sub(" ", text).strip().rstrip("{:=;").rstrip().removesuffix("=>").rstrip()
    return _cut(line, MAX_SIGNATURE_CHARS)


def doc_line(definition: Definition, tree: SourceTree) -> str:
    """The first line of its docstring, or of the comment right above it; empty without one."""
    data = tree.data
    if tree.language == "python":
        if definition.body_byte >= definition.end_byte:
            return ""
        found = _DOCSTRING.match(data[definition.body_byte : definition.body_byte + 400].decode("utf-8", "replace"))
        return _cut(found[2].partition(found[1])[0].strip(), MAX_DOC_CHARS) if found else ""
    comment = _HASH_COMMENT if tree.language in _HASH_LANGUAGES else _COMMENT
    at = data.rfind(b"\n", 0, definition.start_byte)
    if at < 0 or data[at + 1 : definition.start_byte].strip():
        return ""  # it shares its line with what is before it
    best = ""
    for _ in range(_MAX_COMMENT_LINES):
        before = data.rfind(b"\n", 0, at)
        line = data[before + 1 : at][:400].decode("utf-8", "replace")
        found = comment.match(line)
        if found is None and (best or not _ATTRIBUTE.match(line)):
            break
        best = (found[1] if found else "") or best
        if before < 0:
            break
        at = before
    return _cut(best, MAX_DOC_CHARS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


if __name__ == "__main__":
    main()
