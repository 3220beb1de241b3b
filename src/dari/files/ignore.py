"""`.gitignore`, and an ignore file of our own beside it: which files of a folder are left alone.

The rules are git's: the last line that matches decides, `!` takes a file back in, a file of a deeper folder wins over
one of a higher folder, and nothing inside an ignored folder can be taken back. Our own file wins over `.gitignore`.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.files.globs import Words, compile_parts, glob_matches
from dari.paths import read_regular

GITIGNORE = ".gitignore"
MAX_IGNORE_BYTES = 256 * 1024
MAX_PATTERNS = 2000
_log = logging.getLogger("dari.files")
_SPECIAL = re.compile(r"[*?\[\\]")
# Bounded: of a line of brackets each would be followed to its end.
_ESCAPE_OR_SET = re.compile(r"\\(.)|\[([!^]?)(\]?(?:\[:[a-z]{1,9}:\]|\[(?!:[a-z]{1,9}:\])|\\.|[^\[\]\\]){0,100})\]")
_IN_SET = re.compile(r"\[:([a-z]{1,9}):\]|\\(.)")
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9a-fA-F",
    "space": " \t\n\r\v\f",
    "blank": " \t",
}

IgnoredBy = Literal["git", "own"]


class IgnoreRule(Struct, frozen=True):
    """One line. The common ones, a name or `*.ext`, are compared as text; without `/` only the last name counts."""

    is_negated: bool
    only_folders: bool
    name: str = ""
    suffix: str = ""
    pattern: re.Pattern[str] | None = None
    words: Words = ()

    def matches(self, names: Sequence[str], is_folder: bool) -> bool:
        """`names` is the path below the folder of the ignore file."""
        if self.only_folders and not is_folder:
            return False
        if self.name:
            return names[-1] == self.name
        if self.suffix:
            return names[-1].endswith(self.suffix)
        if self.pattern is not None:
            return self.pattern.match(names[-1]) is not None
        return glob_matches(self.words, names)


class IgnoreRules:
    """The lines of one ignore file. Names are looked up, however many they are; patterns are tried one by one, and
    those after the first `MAX_PATTERNS` do not count: a folder may come with an ignore file of its own making."""

    def __init__(self, lines: Sequence[str]) -> None:
        rules = [rule for line in lines if (rule := _parse_line(line)) is not None]
        self._names: dict[str, list[tuple[int, IgnoreRule]]] = {}
        self._patterns: list[tuple[int, IgnoreRule]] = []
        for place, rule in enumerate(rules):
            if not rule.name:
                self._patterns.append((place, rule))
        self.is_cut = len(self._patterns) > MAX_PATTERNS
        self._patterns = self._patterns[:MAX_PATTERNS][::-1]
        for place, rule in reversed(list(enumerate(rules))):
            # Of one name two lines count: the last one, and where that is about folders the last one about files.
            known = self._names.setdefault(rule.name, []) if rule.name else None
            if known is not None and (not known or (known[-1][1].only_folders and not rule.only_folders)):
                known.append((place, rule))

    def __bool__(self) -> bool:
        return bool(self._names or self._patterns)

    def decide(self, names: Sequence[str], is_folder: bool) -> bool | None:
        """True: ignored; False: taken back in; None: no line is about it."""
        at, found = -1, None
        for place, rule in self._names.get(names[-1], ()):
            if rule.matches(names, is_folder):
                at, found = place, rule
                break
        for place, rule in self._patterns:
            if place < at:
                break
            if rule.matches(names, is_folder):
                found = rule
                break
        return None if found is None else not found.is_negated


NO_RULES, TOO_LONG, UNREADABLE = IgnoreRules(()), IgnoreRules(()), IgnoreRules(())
TOO_LONG.is_cut = True
# A file that is not there, that is not a file, or that leads to none has no rules. Of any other failure nobody knows
# which files it would have kept out.
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.ENXIO)


class IgnoreLevel(Struct, frozen=True):
    """The ignore files of one folder, `depth` names below the top."""

    depth: int
    git: IgnoreRules = NO_RULES
    own: IgnoreRules = NO_RULES
    cut: tuple[str, ...] = ()
    """Names of those that are too long to be obeyed as a whole."""
    unreadable: tuple[str, ...] = ()
    """Names of those that are there and cannot be read: what they keep out is not known."""


def read_level(folder: str, depth: int, *, gitignore: bool, own: str = "") -> IgnoreLevel | None:
    """None when the folder has no ignore file. `own` is the name of the one that wins over `.gitignore`."""
    git = _read(os.path.join(folder, GITIGNORE)) if gitignore else NO_RULES
    ours = _read(os.path.join(folder, own)) if own else NO_RULES
    if git is NO_RULES and ours is NO_RULES:
        return None
    cut = tuple(name for name, rules in ((GITIGNORE, git), (own, ours)) if rules.is_cut)
    for name in cut:
        _log.warning(
            "files event=ignore_file_too_long file=%r: %d patterns of it count, of a file above %d bytes none",
            os.path.join(folder, name),
            MAX_PATTERNS,
            MAX_IGNORE_BYTES,
        )
    unreadable = tuple(name for name, rules in ((GITIGNORE, git), (own, ours)) if rules is UNREADABLE)
    for name in unreadable:
        _log.warning("files event=ignore_file_unreadable file=%r", os.path.join(folder, name))
    return IgnoreLevel(depth, git, ours, cut, unreadable)


def ignored_by(levels: Sequence[IgnoreLevel], names: Sequence[str], is_folder: bool) -> IgnoredBy | None:
    """Which kind of file ignores the path; `names` is all of it, from the top."""
    for level in reversed(levels):
        verdict = level.own.decide(names[level.depth :], is_folder) if level.own else None
        if verdict is not None:
            return "own" if verdict else None
    for level in reversed(levels):
        verdict = level.git.decide(names[level.depth :], is_folder) if level.git else None
        if verdict is not None:
            return "git" if verdict else None
    return None


def _read(path: str) -> IgnoreRules:
    try:
        text = read_regular(Path(path), MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        if error.errno == errno.EFBIG:
            return TOO_LONG
        return NO_RULES if error.errno in _ABSENT else UNREADABLE
    return IgnoreRules(text.removeprefix("\ufeff").splitlines())


def _parse_line(line: str) -> IgnoreRule | None:
    text = _without_blanks(line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text[1:] if is_negated else text
    only_folders = text.endswith("/")
    text = text.removesuffix("/")
    is_anchored = "/" in text
    text = text.removeprefix("/")
    if not text or re.search(r"(?<!\\)(?:\\\\)*\\$", text):
        return None
    if not is_anchored:
        if not _SPECIAL.search(text):
            return IgnoreRule(is_negated, only_folders, name=text)
        if text[0] == "*" and len(text) > 1 and not _SPECIAL.search(text[1:]):
            return IgnoreRule(is_negated, only_folders, suffix=text[1:])
        (pattern,) = compile_parts([_as_fnmatch(text)]) if text != "**" else compile_parts(["*"])
        return IgnoreRule(is_negated, only_folders, pattern=pattern)
    return IgnoreRule(is_negated, only_folders, words=compile_parts([_as_fnmatch(part) for part in text.split("/")]))


def _without_blanks(line: str) -> str:
    r"""Blanks at the end do not count, unless the first is written as `\ `."""
    text = line.rstrip(" ")
    return f"{text} " if text.endswith("\\") and len(line) > len(text) else text


def _as_fnmatch(part: str) -> str:
    r"""A name as fnmatch spells it: `\*` is `[*]`, `[^a]` is `[!a]`, `[[:digit:]]` is `[0-9]`."""

    def spell(found: re.Match[str]) -> str:
        if found[1] is not None:
            return f"[{found[1]}]" if found[1] in "*?[" else found[1]
        inside = _IN_SET.sub(lambda one: _CLASSES.get(one[1], "") if one[1] else one[2], found[3])
        # A bracket stands first in a set, or it would end it.
        first = "]" if "]" in inside else ""
        return f"[{'!' if found[2] else ''}{first}{inside.replace(']', '')}]"

    return _ESCAPE_OR_SET.sub(spell, part)
