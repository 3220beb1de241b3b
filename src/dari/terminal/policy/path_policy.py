"""Where a command would reach: its arguments as real paths, from every directory that the text may have gone to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dari.terminal.policy.ast import SimpleCommand, Word
from dari.terminal.policy.patterns import SYSTEM_DIRECTORIES

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HARMLESS = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"))
_NO_PATHS = frozenset(("echo", "printf", "true", "false", ":", "test", "[", "kill", "sleep", "seq", "expr"))


MAX_DIRECTORIES = 16
"""How many directories a text may go to before where it is counts as unknown."""
MAX_LOOKUPS = 1_000
"""How often the file system is asked for one text; paths after that count as unknown."""


@dataclass(frozen=True, slots=True)
class TouchedPath:
    """`path` is real (links followed); None when it is known only at run time. `word` is how it was written."""

    path: str | None
    word: str


class PathPolicy:
    """Follows `cd` through a text. Whether each `cd` runs is not known, so all directories stay possible."""

    def __init__(self, cwd: str, home: Path) -> None:
        self.home = str(home)
        self.directories: list[str] = [os.path.realpath(cwd)]
        self.is_lost = False
        self.lookups = 0

    def of(self, command: SimpleCommand) -> Iterator[TouchedPath]:
        """What the command names: arguments, option values, redirections, its own path."""
        name = command.name or ""
        if "/" in name and name.rpartition("/")[0] not in SYSTEM_DIRECTORIES:
            yield from self._resolve(command.words[0], name)
        if name in ("cd", "pushd", "popd", "chdir", "z", "j"):
            yield from self._go(command)
            return
        if name not in _NO_PATHS:
            for word in command.words[1:]:
                yield from self._argument(word)
        for redirect in command.redirects:
            if redirect.writes or redirect.reads:
                yield from self._resolve(redirect.target, redirect.target.text)

    def _go(self, command: SimpleCommand) -> Iterator[TouchedPath]:
        targets = [word for word in command.words[1:] if not re.fullmatch(r"-[LPeqsn@]+|--", word.text)]
        if command.name in ("popd", "z", "j") or (targets and targets[0].text == "-") or len(targets) > 1:
            self.is_lost = True
            yield TouchedPath(None, str(command))
            return
        target = targets[0] if targets else Word("~", has_tilde=True)
        for place in list(self._resolve(target, target.text)):
            if place.path is None:
                self.is_lost = True
            elif place.path not in self.directories:
                self.is_lost = self.is_lost or len(self.directories) >= MAX_DIRECTORIES
                if not self.is_lost:
                    self.directories.append(place.path)
            yield place

    def _argument(self, word: Word) -> Iterator[TouchedPath]:
        text = word.text
        if not word.is_known:
            yield TouchedPath(None, text)
            return
        if _URL.match(text) and not text.startswith("file:"):
            return
        parts = [text]
        if text.startswith("-"):
            # `--file=/x`, `-f/x`, `-I../x`: the value may be a path.
            parts = [text.partition("=")[2]] if "=" in text else [text[2:]] if text[:2] != "--" else []
        elif "=" in text:
            parts.append(text.partition("=")[2])
        for part in parts:
            if part.startswith("file://"):
                part = part[len("file://") :]
            for piece in part.split(":") if ":" in part and "/" in part else [part]:
                if self._is_path(piece):
                    yield from self._resolve(word if piece == text else Word(piece, has_glob=word.has_glob), piece)

    def _is_path(self, text: str) -> bool:
        if not text or text == "{}":
            return False
        if "/" in text or text in (".", "..", "~"):
            return True
        # A plain word may be a link that leads out.
        self.lookups += len(self.directories)
        return self.lookups > MAX_LOOKUPS or any(
            os.path.lexists(os.path.join(directory, text)) for directory in self.directories
        )

    def _resolve(self, word: Word, text: str) -> Iterator[TouchedPath]:
        if not word.is_known:
            yield TouchedPath(None, text)
            return
        path = text
        if path.startswith("~") and (word.has_tilde or text is not word.text):
            if path != "~" and not path.startswith("~/"):
                yield TouchedPath(None, text)
                return
            path = self.home + path[1:]
        if word.has_glob:
            match = re.search(r"[*?\[]", path)
            head = path[: match.start()] if match else path
            if "/.." in path[len(head) :] or "../" in path[len(head) :]:
                yield TouchedPath(None, text)
                return
            path = head.rpartition("/")[0] + "/" if "/" in head else "."
        if path in _HARMLESS:
            return
        self.lookups += len(self.directories)
        if self.lookups > MAX_LOOKUPS:
            yield TouchedPath(None, text)
            return
        if os.path.isabs(path):
            yield TouchedPath(os.path.realpath(path), text)
            return
        if self.is_lost:
            yield TouchedPath(None, text)
        for directory in self.directories:
            yield TouchedPath(os.path.realpath(os.path.join(directory, path)), text)


def is_below(path: str, directories: Iterable[str]) -> bool:
    """Whether the real path is one of these directories or below one."""
    return any(path == directory or path.startswith(directory.rstrip("/") + "/") for directory in directories)
