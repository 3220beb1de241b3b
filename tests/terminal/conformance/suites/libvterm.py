"""libvterm, t/*.test: commands in capitals, what must come of them below each, `?` for questions about the screen.

Part of the language is about libvterm's insides (damage, scroll rectangles, its parser alone) or about its input
functions; a named case that asks nothing else is skipped, and one that asks more is judged by the rest. Cases that
push bytes above 0x7F while the file has not switched to UTF-8 are skipped too: ours is always in UTF-8.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dari.terminal.engine.engine import Engine, make_engine
from dari.terminal.engine.grid import Cell
from tests.terminal.conformance.suites.suite import Case, EngineName, Suite

COLS, ROWS = 80, 25
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'')
_ESCAPE = re.compile(r"\\(x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{1,2})|[0-7]{1,3}|c(.)|.)")
_ESCAPES = {"e": "\x1b", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "a": "\x07", "f": "\x0c", "0": "\0"}
_QUESTION = re.compile(r"\?(\w+)\s*([\d, ]*?)\s*=\s*(.*)$")
_ATTRIBUTES = {
    "B": "bold",
    "I": "italic",
    "K": "blink",
    "R": "inverse",
    "S": "strike",
    "C": "invisible",
    "U": "underline",
}
# Other ways in than bytes: what a case expects of them is libvterm's own interface.
_OTHER_WAYS = ("INCHAR", "INKEY", "MOUSE", "ENCIN", "SELECTION", "SETDEFAULTCOL", "PASTE", "FOCUS")
_INSIDES = ("WANTPARSER", "WANTENCODING")


def find(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.test") if path.read_text(errors="replace").startswith("INIT"))


def run(files: list[Path], engine: EngineName) -> Iterator[Case]:
    for path in files:
        yield from Script(path.stem, engine).run(path.read_text(errors="replace"))


def evaluate(expression: str) -> bytes:
    """A Perl string, with `x` for repetition and `.` between strings."""
    made, rest = "", expression.strip()
    while found := _STRING.match(rest):
        piece = _ESCAPE.sub(_unescaped, found[1]) if found[1] is not None else found[2]
        rest = rest[found.end() :].lstrip()
        if times := re.match(r"x\s*(\d+)\s*", rest):
            piece, rest = piece * int(times[1]), rest[times.end() :]
        made += piece
        rest = rest.removeprefix(".").lstrip()
    if rest:
        raise ValueError(f"{expression!r} is no string that is understood here")
    return b"".join(character.encode("latin-1" if ord(character) < 256 else "utf-8") for character in made)


def _unescaped(found: re.Match[str]) -> str:
    whole = found[1]
    if whole[0] == "x":
        return chr(int(found[2] or found[3], 16))
    if whole[0] == "c" and found[4]:
        return chr(ord(found[4].upper()) ^ 64)
    if whole.isdigit():
        return chr(int(whole, 8))
    return _ESCAPES.get(whole, whole)


class Script:
    """One file: an engine lives through it, and every `!name` in it is a case."""

    def __init__(self, name: str, engine: EngineName) -> None:
        self._name = name
        self._prefer = engine
        self._screen: Engine = make_engine(COLS, ROWS, 1000, prefer=engine)
        self._said: list[bytes] = []
        self._screen.on_reply = self._said.append
        self._is_utf8 = False
        self._is_inside = False
        self._place: str | None = None  # where the last command's moves must end
        self._glyphs: dict[tuple[int, int], str] = {}  # what the last command must have written
        self._seen: Counter[str] = Counter()
        self._begin("")

    def _begin(self, title: str) -> None:
        self._title = title
        self._checks = 0
        self._wrong = ""
        self._skipped = "it asks only about libvterm's insides"
        self._is_foreign = False

    def run(self, text: str) -> Iterator[Case]:
        for line in text.splitlines():
            line = line.strip()
            if line == "__END__":
                break
            if not line or line.startswith("#"):
                continue
            if line.startswith("!"):
                yield from self._end()
                self._begin(line[1:].strip())
            else:
                self._do(line)
        yield from self._end()

    def _end(self) -> Iterator[Case]:
        self._settle()
        if not self._title:
            return
        name = f"{self._name}: {self._title}"
        self._seen[name] += 1
        if self._seen[name] > 1:
            name += f" ({self._seen[name]})"
        if self._is_inside or self._is_foreign or not self._checks:
            yield Case(name, "skipped", self._skipped)
        else:
            yield Case(name, "failed" if self._wrong else "passed", self._wrong)

    def _do(self, line: str) -> None:
        if found := re.match(r"\$SEQ\s+(\d+)\s+(\d+):\s*(.*)", line):
            for number in range(int(found[1]), int(found[2]) + 1):
                self._do(found[3].replace("\\#", str(number)))
        elif found := re.match(r"\$REP\s+(\d+):\s*(.*)", line):
            for _ in range(int(found[1])):
                self._do(found[2])
        elif line.startswith("?"):
            self._settle()
            self._ask(line)
        elif line[0].isupper():
            self._settle()
            self._said.clear()
            self._command(line)
        elif line.startswith("movecursor "):
            self._place = line.split()[1]
        elif found := re.match(r"putglyph (\S+) \d (\d+),(\d+)", line):
            self._glyphs[int(found[2]), int(found[3])] = _points(found[1])
        elif line.startswith(("scrollrect", "moverect", "erase")):
            self._glyphs.clear()  # they may be elsewhere by now
        elif line.startswith("output "):
            self._hear(evaluate(line[7:]))

    def _command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "PUSH":
            self._push(evaluate(rest))
        elif word == "RESET":
            self._screen.feed(b"\x1bc")
        elif word == "RESIZE":
            rows, cols = map(int, rest.split(","))
            self._screen.resize(cols, rows)
        elif word == "UTF8":
            self._is_utf8 = rest.strip() == "1"
        elif word in _INSIDES:
            self._is_inside = True
        elif word.startswith(_OTHER_WAYS):
            self._is_foreign = True
            self._skipped = f"it needs {word}"

    def _push(self, data: bytes) -> None:
        if not data.isascii() and not self._is_utf8:
            self._is_foreign = True
            self._skipped = "it speaks Latin-1"
        self._screen.feed(data)

    def _settle(self) -> None:
        """A command's doings have been listed: its characters are there now, and its last move is the cursor's."""
        for (row, col), text in self._glyphs.items():
            cell = self._screen.grid()[row][col]
            self._compare(f"cell {col},{row}", cell.text.strip(" "), text.strip(" "))
        self._glyphs.clear()
        if self._place is not None:
            cursor = self._screen.cursor
            self._compare("the cursor", f"{cursor.row},{cursor.col}", self._place)
            self._place = None

    def _hear(self, expected: bytes) -> None:
        said = b"".join(self._said)
        self._compare("the answer", said[: len(expected)].decode("latin-1"), expected.decode("latin-1"))
        self._said[:] = [said[len(expected) :]]

    def _compare(self, what: str, ours: str, theirs: str) -> None:
        self._checks += 1
        if ours != theirs and not self._wrong:
            self._wrong = f"{what} is {ours!r}, expected {theirs!r}"

    def _ask(self, line: str) -> None:
        found = _QUESTION.match(line)
        if found is None:
            return
        subject, expected = found[1], found[3].strip()
        numbers = [int(number) for number in found[2].replace(" ", "").split(",") if number]
        if subject == "cursor":
            cursor = self._screen.cursor
            self._compare("the cursor", f"{cursor.row},{cursor.col}", expected.replace(" ", ""))
        elif subject == "screen_row":
            self._compare(f"row {numbers[0]}", self._rectangle(numbers[0], 0, numbers[0] + 1, COLS), _points(expected))
        elif subject in ("screen_chars", "screen_text"):
            read = _points if subject == "screen_chars" else _bytes
            self._compare(f"{subject} {numbers}", self._rectangle(*numbers), read(expected))
        elif subject == "screen_cell":
            self._compare_cell(numbers, expected)

    def _rectangle(self, top: int, left: int, bottom: int, right: int) -> str:
        rows = self._screen.grid()
        lines = []
        for number in range(top, min(bottom, len(rows))):
            cells = rows[number].cells[left:right]
            lines.append("".join(cell.text or (" " if cell.width else "") for cell in cells).rstrip(" "))
        return "\n".join(lines).rstrip("\n ")

    def _compare_cell(self, numbers: list[int], expected: str) -> None:
        cell: Cell = self._screen.grid()[numbers[0]][numbers[1]]
        found = re.match(r"\{([^}]*)\}\s+width=(\d)\s+attrs=\{([^}]*)\}", expected)
        if found is None:
            return
        place = f"cell {numbers}"
        self._compare(place, cell.text.strip(" "), _points(found[1]).strip(" "))
        self._compare(f"the width of {place}", str(cell.width), found[2])
        wanted = set(re.findall(r"[BIKRCU]|S(?![_^])", found[3]))  # S_ and S^ are small letters, not struck ones
        ours = {letter for letter, name in _ATTRIBUTES.items() if getattr(cell, name)}
        if cell.text.strip(" "):
            self._compare(f"the style of {place}", "".join(sorted(ours)), "".join(sorted(wanted)))


def _points(expected: str) -> str:
    """A string, or code points in hexadecimal."""
    if expected.startswith('"'):
        return evaluate(expected).decode("latin-1").rstrip("\n ")
    return "".join(chr(int(number, 16)) for number in expected.split(",") if number.strip()).rstrip(" ")


def _bytes(expected: str) -> str:
    if expected.startswith('"'):
        return _points(expected)
    data = bytes(int(number, 16) for number in expected.split(",") if number.strip())
    return data.decode(errors="replace").rstrip("\n ")


SUITE = Suite("libvterm", find, run)
