"""Runs in the peer's environment: renders the SVG files named on its lines and answers with the milliseconds."""

import json
import sys
import time
from pathlib import Path

import cairosvg


def main() -> None:
    for line in sys.stdin:
        svg = Path(line.strip()).read_bytes()
        begin = time.perf_counter()
        png = cairosvg.svg2png(bytestring=svg)
        took_ms = (time.perf_counter() - begin) * 1000
        size = [int.from_bytes(png[16:20]), int.from_bytes(png[20:24])]
        print(json.dumps({"ms": took_ms, "size": size, "bytes": len(png)}), flush=True)


if __name__ == "__main__":
    main()
