"""Chunks without a vector that searches found lately, by data folder: searches and the making of vectors are far apart
in one process, and open the folder each for itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

MAX_ASKED_FOR = 1000


class AskedFor:
    """Chunks that searches found lately, the last ones first: they are embedded before the others. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: OrderedDict[int, None] = OrderedDict()

    def note(self, chunk_nos: Iterable[int]) -> None:
        with self._lock:
            for number in chunk_nos:
                self._numbers[number] = None
                self._numbers.move_to_end(number)
            while len(self._numbers) > MAX_ASKED_FOR:
                self._numbers.popitem(last=False)

    def take(self, count: int) -> list[int]:
        with self._lock:
            return [self._numbers.popitem()[0] for _ in range(min(count, len(self._numbers)))]


_LOCK = Lock()
_BY_FOLDER: dict[Path, AskedFor] = {}


def asked_for_in(data_dir: Path) -> AskedFor:
    """The one list of this process for a data folder."""
    with _LOCK:
        return _BY_FOLDER.setdefault(data_dir, AskedFor())
