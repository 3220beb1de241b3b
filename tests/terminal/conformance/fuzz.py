"""`./dev conformance terminal fuzz`: rounds of odd bytes, sizes and snapshots in a child process that is watched.

A library in C ends the whole process when it is wrong. The child writes down which round it is in; when it dies,
hangs or breaks a promise, the round is made again from its seed, shortened as far as it still fails, and saved.
"""

from __future__ import annotations

import argparse
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dari.terminal.engine.engine import Engine, make_engine, restore_engine
from dari.terminal.engine.keys import parse_key
from tests.terminal.conformance.mutations import Act, Round, make_round

ROOT = Path(__file__).resolve().parents[3]
HISTORY_ROWS = 100
NEAR_ROWS = 20
HANG_S = 30.0
SHORTENING_S = 60.0
_PLACE = struct.Struct("<qqq")  # round, rounds done, bytes taken in
_KEYS = [parse_key(word) for word in ("a", "C-c", "Up", "M-x", "F5", "S-Tab", "한")]


class Broken(AssertionError):
    """A promise of the engine that a round broke without a crash."""


def play(round_: Round, prefer: str = "ghostty") -> None:
    """One engine's life; Broken when it says something that cannot be."""
    engine: Engine = make_engine(round_.cols, round_.rows, HISTORY_ROWS, prefer=prefer)  # type: ignore[arg-type]
    mark = engine.mark()
    for act in round_.acts:
        match act.deed:
            case "feed":
                engine.feed(act.data)
            case "resize":
                engine.resize(act.cols, act.rows)
            case "restore":
                engine = _restored(engine)
                mark = engine.mark()
            case "read":
                engine.text(-10, 5, form="vt")
                engine.text(0, 5, form="html", unwrap=True)
                engine.text(-engine.history, engine.rows, unwrap=True)
                engine.place(mark)
                engine.grid()
                engine.compress()
            case "send":
                for key in _KEYS:
                    engine.encode_key(key)
                engine.encode_mouse("press", "left", 3, 1)
                engine.encode_paste("text\n")
    _check(engine)
    engine.close()


def _restored(engine: Engine) -> Engine:
    again = restore_engine(engine.snapshot())
    before, after = engine.text(0, engine.rows), again.text(0, again.rows)
    # The fallback draws its screen again, which brings back what programs draw and not every debris of a fuzz.
    if before != after and engine.name == "ghostty":
        raise Broken(f"a snapshot of {before!r} brings back {after!r}")
    if (engine.cols, engine.rows) != (again.cols, again.rows):
        raise Broken(f"a snapshot of {engine.cols}×{engine.rows} brings back {again.cols}×{again.rows}")
    engine.close()
    return again


def _check(engine: Engine) -> None:
    cols, rows, cursor = engine.cols, engine.rows, engine.cursor
    if not (0 <= cursor.col < cols and 0 <= cursor.row < rows):
        raise Broken(f"the cursor is at {cursor.col},{cursor.row} of {cols}×{rows}")
    lines = engine.text(0, rows).count("\n") + 1
    if lines != rows:
        raise Broken(f"the text of {rows} rows has {lines} lines")
    above = min(engine.history, NEAR_ROWS)
    grid = engine.grid(-above)
    if len(grid) != above + rows or {len(row) for row in grid} != {cols}:
        raise Broken(f"the grid of {above} + {rows} rows of {cols} has {len(grid)} rows of {len(grid[0])}")


# The child


def _run_rounds(seed: int, first: int, most: int, until_s: float, journal: Path, prefer: str) -> None:
    done = size = 0
    with journal.open("r+b", buffering=0) as place:
        for number in range(first, first + most):
            if time.monotonic() >= until_s:
                break
            place.seek(0)
            place.write(_PLACE.pack(number, done, size))
            made = make_round(round_seed(seed, number))
            play(made, prefer)
            done, size = done + 1, size + made.size
        place.seek(0)
        place.write(_PLACE.pack(-1, done, size))


def round_seed(seed: int, number: int) -> int:
    return seed * 1_000_003 + number


# The watch


@dataclass(frozen=True, slots=True)
class Report:
    rounds: int
    size: int
    failed_at: int | None = None
    how: str = ""


def fuzz(seed: int, *, rounds: int = 1 << 40, seconds: float = 1e9, prefer: str = "ghostty") -> Report:
    """Rounds 0 … of a seed, at most so many and for so long; ends at the first that fails."""
    options = ["--seed", str(seed), "--rounds", str(rounds), "--seconds", str(seconds), "--engine", prefer]
    return watch([sys.executable, "-m", __name__, "--child", *options])


def watch(command: Sequence[str]) -> Report:
    """Run a child that takes the path of its journal as last argument, and say how far it came."""
    with tempfile.NamedTemporaryFile(prefix="dari-fuzz-") as journal:
        journal.write(_PLACE.pack(0, 0, 0))
        journal.flush()
        child = subprocess.Popen(
            [*command, journal.name], cwd=ROOT, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        try:
            code, said = _follow(child, Path(journal.name))
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        number, done, size = _PLACE.unpack(Path(journal.name).read_bytes())
    if code == 0:
        return Report(done, size)
    return Report(done, size, number, _told(code, said))


def _follow(child: subprocess.Popen[str], journal: Path) -> tuple[int | None, str]:
    """The exit code and what was said, or None when one round took longer than any may."""
    last, since = b"", time.monotonic()
    while True:
        try:
            _, said = child.communicate(timeout=1)
            return child.returncode, said
        except subprocess.TimeoutExpired:
            now = journal.read_bytes()
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > HANG_S:
                return None, ""


def _told(code: int | None, said: str) -> str:
    if code is None:
        return f"one round took longer than {HANG_S:.0f} s"
    if code < 0:
        return f"the process died of {signal.Signals(-code).name}"
    return said.strip().splitlines()[-1] if said.strip() else f"the process ended with {code}"


# What a failure leaves behind


def shorten(made: Round, fails: Callable[[Round], bool]) -> Round:
    """The fewest acts, and the fewest bytes in them, that still fail; as far as a minute's trying gets."""
    until = time.monotonic() + SHORTENING_S
    at = len(made.acts) - 1
    while at >= 0 and time.monotonic() < until:
        attempt = Round(made.cols, made.rows, made.acts[:at] + made.acts[at + 1 :])
        if fails(attempt):
            made = attempt
        at -= 1
    for number, act in enumerate(made.acts):
        size = len(act.data) // 2
        while size >= 1 and time.monotonic() < until:
            for start in range(0, len(act.data), size):
                shorter = Act("feed", act.data[:start] + act.data[start + size :])
                attempt = Round(made.cols, made.rows, (*made.acts[:number], shorter, *made.acts[number + 1 :]))
                if act.deed == "feed" and fails(attempt):
                    made, act = attempt, shorter
                    break
                if time.monotonic() >= until:
                    break
            else:
                size //= 2
    return made


def fails_in_child(made: Round, prefer: str = "ghostty") -> bool:
    with tempfile.NamedTemporaryFile(prefix="dari-round-") as file:
        file.write(msgspec.json.encode(made))
        file.flush()
        command = [sys.executable, "-m", __name__, "--replay", file.name, "--engine", prefer]
        try:
            return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=HANG_S).returncode != 0
        except subprocess.TimeoutExpired:
            return True


def save(made: Round, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_bytes(msgspec.json.encode(made))
    return file


def load(file: Path) -> Round:
    return msgspec.json.decode(file.read_bytes(), type=Round)


def main(argv: Sequence[str] | None = None) -> int:
    """The child's side; people call `./dev conformance terminal fuzz`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1 << 40)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--engine", default="ghostty")
    parser.add_argument("journal", type=Path, nargs="?")
    given = parser.parse_args(argv)
    if given.replay:
        play(load(given.replay), given.engine)
        return 0
    until_s = time.monotonic() + given.seconds
    _run_rounds(given.seed, given.first, given.rounds, until_s, given.journal, given.engine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
