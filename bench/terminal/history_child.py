"""A process with one screen: prints by how many MB its RSS grew while 10,000 rows went into the history."""

import os
import sys
from pathlib import Path

from bench.bridge.usage import rss_mb
from bench.terminal.data import COLS, ROWS, on_the_wire
from dari.terminal.engine.engine import make_engine

HISTORY_ROWS = 10_000
CHUNK = 65_536


def main() -> None:
    data = on_the_wire(Path(sys.argv[1]).read_bytes())
    make_engine(COLS, ROWS, 10).feed(data[:CHUNK])  # the library is loaded, its code has been run
    engine = make_engine(COLS, ROWS, HISTORY_ROWS)
    before = rss_mb(os.getpid())
    for at in range(0, len(data), CHUNK):
        engine.feed(data[at : at + CHUNK])
    grown = rss_mb(os.getpid()) - before
    if engine.history < HISTORY_ROWS:
        raise SystemExit(f"{engine.history} rows are in the history, not {HISTORY_ROWS}")
    print(grown)


if __name__ == "__main__":
    main()
