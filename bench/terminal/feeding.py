"""The other end of a feeder's socket: tells the program in a pane what to print."""

import json
import shlex
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.errors import BenchError

PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Feeder:
    line: IO[str]

    def cat(self, file: Path, times: int = 1) -> float:
        """Seconds from the start of `cat` until the terminal had parsed all of it."""
        self.tell({"file": str(file), "times": times})
        return float(self.answer()["s"])

    def tell(self, words: dict[str, object]) -> None:
        self.line.write(json.dumps(words) + "\n")
        self.line.flush()

    def print_later(self, text: str, delay_s: float) -> None:
        self.tell({"text": text, "delay_s": delay_s})

    def printed_at(self) -> float:
        """When the text was printed, on the clock that all processes share."""
        return float(self.answer()["at"])

    def answer(self) -> dict[str, float]:
        line = self.line.readline()
        if not line:
            raise BenchError("the program in the pane ended", "look at bench/terminal/feeder.py in a terminal")
        answer: dict[str, float] = json.loads(line)
        return answer


@contextmanager
def feeder(folder: Path, name: str, start: Callable[[str], object]) -> Iterator[Feeder]:
    """`start` is given the command line that a pane shall run. It ends when this does."""
    path = folder / f"{name}.feeder"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(PATIENCE_S)
        start(shlex.join([sys.executable, "-ISs", str(Path(__file__).with_name("feeder.py")), str(path)]))
        try:
            accepted, _ = listening.accept()
        except TimeoutError as error:
            raise BenchError(f"the feeder of {name} did not start within {PATIENCE_S:g} s") from error
    accepted.settimeout(PATIENCE_S)
    with accepted, accepted.makefile("rw") as line:
        yield Feeder(line)
