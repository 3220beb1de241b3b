"""A script without its comments and the white space that means nothing: what is left parses to the same program."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[\w$\\]+)
    |(?P<space>\s+)
    |(?P<sign>.)""",
    re.S | re.X,
)
_PATTERN = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
_WORD = re.compile(r"[\w$\\]")
# After these words, and after any sign but a closing one, a slash begins a regular expression. No statement of ours
# begins with one (after `}` or `if (…)` it would be taken for a division): a test compares every script as parsed.
_BEFORE_PATTERN = frozenset(["return", "typeof", "case", "in", "of", "throw", "await", "yield", "else", "do"])


def compact(source: str) -> str:
    """The same program in fewer characters. Names stay, and so does the end of a line that may end a statement."""
    pieces: list[str] = []
    _copy(source, 0, pieces, is_nested=False)
    return "".join(pieces).strip()


def _copy(source: str, at: int, pieces: list[str], *, is_nested: bool) -> int:
    """Up to the end, or (in `${…}`) to behind the brace that closes it; the place after what was copied."""
    depth, last, gap = 0, "", ""
    while at < len(source):
        found = _TOKEN.match(source, at)
        assert found is not None
        kind, token = found.lastgroup, found[0]
        if kind in ("space", "comment"):
            # A comment across lines ends a statement as a line does.
            gap = "\n" if "\n" in token or gap == "\n" else " "
            at = found.end()
            continue
        if token == "/" and (pattern := _pattern(source, at, last)):
            token = pattern
        if gap and _matters(gap, last, token):
            pieces.append(gap)
        gap, last = "", token
        pieces.append(token)
        at += len(token)
        if token == "`":
            at = _copy_template(source, at, pieces)
        elif token in ("{", "}"):
            depth += 1 if token == "{" else -1
            if is_nested and depth < 0:
                return at
    return at


def _copy_template(source: str, at: int, pieces: list[str]) -> int:
    """From behind the opening backtick to behind the closing one."""
    begin = at
    while True:
        if source[at] == "\\":
            at += 2
        elif source.startswith("${", at):
            pieces.append(source[begin : at + 2])
            begin = at = _copy(source, at + 2, pieces, is_nested=True)
        elif source[at] == "`":
            pieces.append(source[begin : at + 1])
            return at + 1
        else:
            at += 1


def _pattern(source: str, at: int, last: str) -> str:
    """The regular expression that begins here; empty when the slash divides."""
    is_value = last[-1:] in (")", "]", "}", "`", '"', "'") or (_WORD.match(last[-1:]) and last not in _BEFORE_PATTERN)
    found = None if is_value else _PATTERN.match(source, at)
    return found[0] if found else ""


def _matters(gap: str, last: str, token: str) -> bool:
    if not last:
        return False
    if gap == "\n" and last[-1] not in "{([,;" and token[0] not in "})],.":
        return True
    if _WORD.match(last[-1]) and _WORD.match(token[0]):
        return True
    return (last[-1], token[0]) in (("+", "+"), ("-", "-"), ("/", "/"))
