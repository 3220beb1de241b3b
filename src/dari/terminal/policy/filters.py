"""Programs of sed and awk: whether they run something or write a file."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)")
_TEXT = frozenset("aic")
_LABELS = frozenset("btT:")
_FILES = frozenset("rRwW")
_PLAIN = frozenset("=dDgGhHnNpPxzF")
_NUMBERED = frozenset("qQlLv")
_AWK_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|(?P<before>(?:^|[~(,{};!&|\n])\s*)/(?:[^/\\\n]|\\.)*/', re.MULTILINE)
_AWK_RUNS = re.compile(r"system\s*\(|getline\s*<|\||@\s*(load|include)|@\s*\w+\s*\(")
_AWK_STATEMENT = re.compile(r"[^;}\n]+")


class FilterError(Exception):
    """The program is none that we can read."""


def effects_of_awk(program: str) -> set[str]:
    """Of "run" and "write": what the program can do beside printing."""
    bare = _AWK_LITERAL.sub(lambda found: (found["before"] or "") + '""', program).replace("||", " ")
    effects = set()
    # A quote or a slash that is left may be that of a pattern which we took for something else.
    is_unclear = bare.replace('""', "").count('"') or ("/" in bare and re.search(r"(?<!\|)\|(?!\|)", program))
    if _AWK_RUNS.search(bare) or is_unclear:
        effects.add("run")
    if any(">" in each[0].partition("print")[2] for each in _AWK_STATEMENT.finditer(bare)):
        effects.add("write")
    return effects


def effects_of_sed(program: str) -> set[str]:
    """The same for sed; FilterError for what no sed that we know would take."""
    return _SedReader(program).read()


class _SedReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.effects: set[str] = set()

    def read(self) -> set[str]:
        while True:
            self._skip(" \t\n;")
            if self.position >= len(self.text):
                return self.effects
            self._addresses()
            self._command()

    def _addresses(self) -> None:
        while True:
            if match := _ADDRESS.match(self.text, self.position):
                self.position = match.end()
            elif self._here == "/" or (self._here == "\\" and len(self.text) > self.position + 1):
                if self._here == "\\":
                    self.position += 1
                self._delimited(1)
                self._skip("IM")
            else:
                break
            self._skip(" \t")
            if self._here != ",":
                break
            self.position += 1
        self._skip(" \t!")

    def _command(self) -> None:
        command = self._here
        self.position += 1
        if command in ("{", "}") or (command and command in _PLAIN):
            return
        if command == "#" or (command and command in _TEXT):
            self._line()
        elif command == "s":
            self._delimited(2)
            self._flags()
        elif command == "y":
            self._delimited(2)
        elif command and command in _LABELS:
            self.position = min(self._find(";"), self._find("\n"))
        elif command and command in _FILES:
            name = self._line().strip()
            if command in "wW" and name not in ("/dev/stdout", "/dev/stderr"):
                self.effects.add("write")
        elif command == "e":
            self._line()
            self.effects.add("run")
        elif command and command in _NUMBERED:
            self._skip(" \t0123456789.")
        else:
            raise FilterError(f"{command!r} is no command of sed")

    def _flags(self) -> None:
        while self._here and self._here in "gpiImMe0123456789":
            if self._here == "e":
                self.effects.add("run")
            self.position += 1
        if self._here == "w":
            if self._line()[1:].strip() not in ("/dev/stdout", "/dev/stderr"):
                self.effects.add("write")
        elif self._here not in ("", ";", "\n", "}", " ", "\t", "#"):
            raise FilterError(f"{self._here!r} is no flag of s")

    def _delimited(self, parts: int) -> None:
        """`/…/` or `/…/…/` with any delimiter, which also ends it inside brackets, as in some seds."""
        delimiter = self._here
        if delimiter in ("", "\n", "\\"):
            raise FilterError("a pattern without a delimiter")
        self.position += 1
        for _ in range(parts):
            while self._here != delimiter:
                if not self._here:
                    raise FilterError("a pattern is not closed")
                self.position += 2 if self._here == "\\" else 1
            self.position += 1

    def _line(self) -> str:
        """The rest of the line; one that ends in a backslash goes on."""
        start = self.position
        while True:
            end = self._find("\n")
            self.position = min(end + 1, len(self.text))
            if end >= len(self.text) or self.text[end - 1] != "\\":
                return self.text[start:end]

    def _find(self, what: str) -> int:
        found = self.text.find(what, self.position)
        return len(self.text) if found < 0 else found

    def _skip(self, characters: str) -> None:
        while self._here and self._here in characters:
            self.position += 1

    @property
    def _here(self) -> str:
        return self.text[self.position : self.position + 1]
