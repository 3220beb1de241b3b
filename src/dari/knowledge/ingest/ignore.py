"""`.gitignore` and `.kebabignore`: which files of a folder are not meant to be indexed.

The rules are git's: the last line that matches decides, `!` takes a file back in, a file of a deeper folder wins over
one of a higher folder, and nothing inside an ignored folder can be taken back. `.kebabignore` wins over `.gitignore`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.knowledge.globs import Words, compile_parts, glob_matches
from dari.paths import read_regular

GITIGNORE, KEBABIGNORE = ".gitignore", ".kebabignore"
MAX_IGNORE_BYTES = 256 * 1024
_SPECIAL = re.compile(r"[*?\[\\]")

IgnoredBy = Literal["gitignore", "kebabignore"]


class IgnoreRule(Struct, frozen=True):
    """One line. The common ones, a name or `*.ext`, are compared as text."""

    is_negated: bool
    only_folders: bool
    name: str = ""
    suffix: str = ""
    words: Words = ()

    def matches(self, names: Sequence[str], is_folder: bool) -> bool:
        """`names` is the path below the folder of the ignore file."""
        if self.only_folders and not is_folder:
            return False
        if self.name:
            return names[-1] == self.name
        if self.suffix:
            return names[-1].endswith(self.suffix)
        return glob_matches(self.words, names)


def parse_rules(lines: Sequence[str]) -> tuple[IgnoreRule, ...]:
    """The lines of an ignore file, the last first; what git cannot read either is left out."""
    return tuple(rule for line in reversed(lines) if (rule := _parse_line(line)) is not None)


def decide(rules: Sequence[IgnoreRule], names: Sequence[str], is_folder: bool) -> bool | None:
    """True: ignored; False: taken back in; None: no line is about it."""
    for rule in rules:
        if rule.matches(names, is_folder):
            return not rule.is_negated
    return None


class IgnoreLevel(Struct, frozen=True):
    """The ignore files of one folder, `depth` names below the top."""

    depth: int
    git: tuple[IgnoreRule, ...] = ()
    kebab: tuple[IgnoreRule, ...] = ()


def read_level(folder: str, depth: int, *, gitignore: bool) -> IgnoreLevel | None:
    """None when the folder has no ignore file."""
    git = _read(os.path.join(folder, GITIGNORE)) if gitignore else ()
    kebab = _read(os.path.join(folder, KEBABIGNORE))
    return IgnoreLevel(depth, git, kebab) if git or kebab else None


def ignored_by(levels: Sequence[IgnoreLevel], names: Sequence[str], is_folder: bool) -> IgnoredBy | None:
    """Which kind of file ignores the path; `names` is all of it, from the top."""
    for level in reversed(levels):
        verdict = decide(level.kebab, names[level.depth :], is_folder) if level.kebab else None
        if verdict is not None:
            return "kebabignore" if verdict else None
    for level in reversed(levels):
        verdict = decide(level.git, names[level.depth :], is_folder) if level.git else None
        if verdict is not None:
            return "gitignore" if verdict else None
    return None


def _read(path: str) -> tuple[IgnoreRule, ...]:
    try:
        text = read_regular(Path(path), MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ()
    return parse_rules(text.removeprefix("\ufeff").splitlines())


def _parse_line(line: str) -> IgnoreRule | None:
    text = re.sub(r"(?<!\\) +$", "", line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text[1:] if is_negated else text
    only_folders = text.endswith("/")
    text = text.rstrip("/") if only_folders else text
    is_anchored = "/" in text
    text = text.removeprefix("/")
    if not text or re.search(r"(?<!\\)(?:\\\\)*\\$", text):
        return None
    if not is_anchored:
        if not _SPECIAL.search(text):
            return IgnoreRule(is_negated, only_folders, name=text)
        if text[0] == "*" and len(text) > 1 and not _SPECIAL.search(text[1:]):
            return IgnoreRule(is_negated, only_folders, suffix=text[1:])
    parts = text.split("/") if is_anchored else ["**", text]
    return IgnoreRule(is_negated, only_folders, words=compile_parts([_unescape(part) for part in parts]))


def _unescape(part: str) -> str:
    r"""`\*` as the `[*]` of fnmatch."""
    return re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], part)
