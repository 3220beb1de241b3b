"""Runs in pyte's environment: feeds the file named on each line to a fresh screen and answers with the seconds."""

import json
import sys
import time
from pathlib import Path

import pyte

CHUNK = 65_536


def main() -> None:
    for line in sys.stdin:
        told = json.loads(line)
        data = Path(told["file"]).read_bytes()
        size = (told["cols"], told["rows"])
        screen = pyte.HistoryScreen(*size, history=10_000, ratio=0.5) if told["history"] else pyte.Screen(*size)
        stream = pyte.ByteStream(screen)
        began = time.perf_counter()
        for at in range(0, len(data), CHUNK):
            stream.feed(data[at : at + CHUNK])
        took_s = time.perf_counter() - began
        print(json.dumps({"s": took_s, "bytes": len(data)}), flush=True)


if __name__ == "__main__":
    main()
