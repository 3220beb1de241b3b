"""Screenshots of a full screen: ours, cold and incremental, beside cairosvg's rendering of the same grid.

Ours includes reading the grid from the engine; the peer's time is that of `svg2png` alone, the SVG is written before.
Both processes are warm: fonts are open, and each round paints a screen whose rows were not seen before.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.results import Measurement, Target
from bench.terminal import svg
from bench.terminal.contenders import CAIROSVG, CAIROSVG_HOME, FULL, OURS, Contender
from bench.terminal.data import COLS, ROWS
from bench.terminal.plan import Plan
from dari.terminal.engine.engine import Engine, make_engine
from dari.terminal.screenshot.canvas import Metrics
from dari.terminal.screenshot.painter import Painter, Picture

SCREENS = 5
"""For each round: a screen takes as long as a call, a round is many of them."""


def screenshot(plan: Plan) -> Iterator[Measurement[Contender]]:
    """Full pictures against cairosvg, pictures after one changed row against full ones, for three kinds of screen."""
    with subprocess.Popen(
        [str(CAIROSVG_HOME.python), str(Path(__file__).with_name("cairosvg_child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        for kind, write in KINDS.items():
            yield from _measure_kind(kind, write, plan.rounds * SCREENS, child, plan.scratch.path)


def _measure_kind(
    kind: str,
    write: Callable[[int], str],
    rounds: int,
    child: subprocess.Popen[str],
    folder: Path,
) -> list[Measurement[Contender]]:
    full = Measurement[Contender](f"screenshot, {kind}, full", "ms", (OURS, CAIROSVG), (Target(CAIROSVG, "≤", 0.5),))
    partly = Measurement[Contender](
        f"screenshot, {kind}, one row changed", "ms", (OURS, FULL), (Target(FULL, "≤", 0.25),)
    )
    engine, painter, metrics = make_engine(COLS, ROWS), Painter(), Metrics()
    for number in range(rounds + 2):
        engine.feed(("\x1b[H\x1b[2J" + write(number)).encode())
        took, picture = _timed(engine, painter)
        engine.feed(f"\x1b[{ROWS // 2};3Htyped {number}".encode())
        drawn = painter.work.rows_drawn
        again, _ = _timed(engine, painter)
        if painter.work.rows_drawn - drawn > 2:
            raise BenchError("rows that had not changed were drawn again", "see Painter.work")
        path = folder / "screen.svg"
        path.write_text(svg.write(engine.grid(), metrics.width, metrics.height))
        theirs = _ask(child, path)
        if theirs["size"] != [picture.width, picture.height]:
            raise BenchError(f"cairosvg drew {theirs['size']}, we {picture.width}×{picture.height}")
        if number < 2:  # fonts are opened, caches of the machine filled
            continue
        full.add(OURS, took)
        full.add(CAIROSVG, theirs["ms"])
        partly.add(OURS, again)
        partly.add(FULL, took)
    engine.close()
    return [full, partly]


def _timed(engine: Engine, painter: Painter) -> tuple[float, Picture]:
    begin = time.perf_counter()
    picture = painter.paint(engine.grid(), engine.cursor)
    return (time.perf_counter() - begin) * 1000, picture


def _ask(child: subprocess.Popen[str], path: Path) -> dict[str, Any]:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(f"{path}\n")
    child.stdin.flush()
    line = child.stdout.readline()
    if not line:
        raise BenchError("cairosvg ended", "install libcairo2 (apt-get install libcairo2)")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _code(number: int) -> str:
    """Highlighted code, every row full of words and colours."""
    rows = []
    for row in range(ROWS - 1):
        words = [
            f"\x1b[3{(row + at) % 7 + 1}m{word}{number * 41 + row * 7 + at}\x1b[0m"
            for at, word in enumerate(
                ("def ", "value = ", "(self, ", "return ", '"text', "[1m]", "# note ", "{key: ", "}")
            )
        ]
        rows.append(f"\x1b[90m{row:4d}\x1b[0m " + " ".join(words))
    return "\r\n".join(rows)


def _log(number: int) -> str:
    return "\r\n".join(
        f"2026-11-16T05:{row:02d}:{number % 60:02d} INFO worker[{number * 40 + row}] request GET /items/{row * 37} "
        f"took {row * 13 % 97} ms, cache {'hit' if row % 3 else 'miss'}"
        for row in range(ROWS - 1)
    )


def _cjk(number: int) -> str:
    """A framed table of Korean, Japanese and Chinese with emoji and bars."""
    rows = ["┌" + "─" * (COLS - 2) + "┐"]
    for row in range(ROWS - 3):
        bar = f"\x1b[42m{' ' * (row % 20)}\x1b[0m▉▊▋▌"
        text = f" {number * 40 + row:5d} 한국어 터미널 화면 日本語の端末 中文终端 😀 🚀 ✅ {bar} 측정값 {row * 31} 개"
        rows.append(f"│{text}\x1b[{COLS}G│")
    return "\r\n".join([*rows, "└" + "─" * (COLS - 2) + "┘"])


KINDS: dict[str, Callable[[int], str]] = {"code": _code, "log": _log, "CJK and boxes": _cjk}
