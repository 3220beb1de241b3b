"""esctest2: a Python program that runs inside a terminal, asks it what it shows, and writes what failed into a log.

It is GPL-2 and stays outside: it is started as any program is, in a pane of its own for every class of tests, and
only its log is read. It reads the screen with DECRQCRA, the checksum of a rectangle. Panes do not answer that, so
that a program cannot read what others left on the screen; here the engine is given the answer, and the wish
`CSI 8 ; rows ; cols t` for another size, as xterm with its window operations allowed would have them.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dari.process.spawner import Spawner
from dari.terminal.engine.engine import Engine, make_engine
from dari.terminal.panes.pane import Pane
from tests.terminal.conformance.suites.suite import Case, EngineName, Suite

COLS, ROWS = 80, 25
CLASS_S = 300.0
_ASKS = re.compile(rb"\x1b\[(?:(\d*);(\d*);(\d*);(\d*);(\d*);(\d*)\*y|8;(\d+);(\d+)t)")
_MAY_ASK = re.compile(rb"\x1b(?:\[[\d;]*\*?)?\Z")
_CLASS = re.compile(r"^class (\w+)\(", re.MULTILINE)
_TEST = re.compile(r"^Run test: (\S+)\n(.*?)(?=^Run test: |^\*\*\* \d|\Z)", re.MULTILINE | re.DOTALL)


def find(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("esctest.py") if (path.parent / "escargs.py").is_file() and path.is_file()
    )


def run(programs: list[Path], engine: EngineName) -> Iterator[Case]:
    for program in programs[:1]:
        for name in classes_of(program.parent / "tests"):
            yield from cases_of(asyncio.run(_log_of(program, name, engine)))


def classes_of(folder: Path) -> list[str]:
    found = [name for path in sorted(folder.glob("*.py")) for name in _CLASS.findall(path.read_text())]
    return sorted({name for name in found if name.endswith("Tests")})


def cases_of(log: str) -> Iterator[Case]:
    for found in _TEST.finditer(log):
        name, rest = found[1], found[2].strip()
        if rest.startswith("Passed."):
            yield Case(name, "passed")
        elif rest.startswith(("Fails as expected", "Skipped")):
            yield Case(name, "skipped", rest.splitlines()[0])
        else:
            lines = [line for line in rest.splitlines() if line.strip()]
            yield Case(name, "failed", lines[-1][:200] if lines else "it did not end")


async def _log_of(program: Path, name: str, engine: EngineName) -> str:
    with tempfile.TemporaryDirectory(prefix="dari-esctest-") as folder:
        log = Path(folder) / "log"
        options = ["--expected-terminal", "xterm", "--max-vt-level", "4", "--xterm-checksum", "334"]
        options += ["--no-print-logs", "--logfile", str(log), "--include", rf"^{name}\."]
        async with Spawner() as keepers:
            pane = await Pane.open(
                keepers,
                "1",
                command=[sys.executable, str(program), *options],
                cwd=str(program.parent),
                env={"HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"},
                engine=answering(engine),
            )
            try:
                async with asyncio.timeout(CLASS_S):
                    await pane.exited()
            except TimeoutError:
                pass  # what has been logged counts, the rest did not pass
            finally:
                await pane.close(force=True)
        return log.read_text(errors="replace") if log.is_file() else ""


def answering(engine: EngineName) -> Engine:
    """A screen that tells the checksum of a rectangle and changes its size when asked to."""
    plain = make_engine(COLS, ROWS, 1000, prefer=engine)
    plain.close()
    made: Engine = type(f"Answering{type(plain).__name__}", (_Answers, type(plain)), {})(COLS, ROWS, 1000)
    return made


class _Answers:
    _cut = b""

    def feed(self, data: bytes) -> None:
        screen: Any = super()
        data, self._cut = self._cut + data, b""
        before = 0
        for found in _ASKS.finditer(data):
            screen.feed(data[before : found.end()])
            before = found.end()
            self._answer(found)
        rest = data[before:]
        if tail := _MAY_ASK.search(rest):
            self._cut, rest = tail[0], rest[: tail.start()]
        screen.feed(rest)

    def _answer(self, found: re.Match[bytes]) -> None:
        engine: Any = self
        if found[7] is not None:
            engine.resize(int(found[8]), int(found[7]))
            return
        request, _page, top, left, bottom, right = (int(number or 0) for number in found.groups()[:6])
        rows = engine.grid(max(top, 1) - 1, bottom or engine.rows)
        cells = [cell for row in rows for cell in row.cells[max(left, 1) - 1 : right or engine.cols]]
        total = sum(ord((cell.text or " ")[0]) for cell in cells)
        engine.on_reply(b"\x1bP%d!~%04X\x1b\\" % (request, total & 0xFFFF))


SUITE = Suite("esctest2", find, run)
