"""A definition in one line: its signature, and the first line of what is written about it."""

from __future__ import annotations

import re

from dari.syntax.definitions import Definition
from dari.syntax.parsing import SourceTree

MAX_SIGNATURE_CHARS = 160
MAX_DOC_CHARS = 160
_MAX_COMMENT_LINES = 60
_BLANKS = re.compile(r"\s+")
_DOCSTRING = re.compile(r"[rRuU]?(\"\"\"|'''|\"|')\s*(.*)")
_COMMENT = re.compile(r"\s*(?://[/!]?|/\*[*!]?|\*/?|--+|;+|%+)\s?(.*?)\s*(?:\*/)?\s*$")
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
