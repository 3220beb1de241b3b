"""xterm.js, fixtures/escape_sequence_files: bytes in `.in`, the rows that xterm showed for them in `.text`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dari.terminal.engine.engine import make_engine
from tests.terminal.conformance.suites.suite import Case, EngineName, Suite, first_difference, rows_of

COLS, ROWS = 80, 25
# The project itself leaves these out: its own terminal and xterm differ on purpose, or the recording is not whole.
LEFT_OUT = {"t0055-EL", "t0084-CBT", "t0101-NLM", "t0103-reverse_wrap", "t0504-vim"}


def find(folder: Path) -> list[Path]:
    return sorted(
        path
        for place in (folder, *folder.rglob("escape_sequence_files"))
        if place.name == "escape_sequence_files"
        for path in place.glob("*.in")
        if path.with_suffix(".text").is_file() and path.stem not in LEFT_OUT
    )


def run(files: list[Path], engine: EngineName) -> Iterator[Case]:
    for path in files:
        screen = make_engine(COLS, ROWS, 1000, prefer=engine)
        # The files went through a terminal's line discipline, which adds the return.
        screen.feed(path.read_bytes().replace(b"\n", b"\r\n"))
        ours = rows_of(screen.text(0, ROWS))
        theirs = rows_of(path.with_suffix(".text").read_bytes().decode(errors="replace"))
        wrong = first_difference(ours, theirs)
        yield Case(path.stem, "failed" if wrong else "passed", wrong)


SUITE = Suite("xterm.js", find, run)
