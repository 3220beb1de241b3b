"""Join what the processes of a `./dev coverage` wrote into one data file of coverage.py: PARTS DATA SOURCE."""

import marshal
import os
import sys
from collections import defaultdict
from pathlib import Path

from coverage import CoverageData

_LINE_BITS = 28
_LINE = (1 << _LINE_BITS) - 1
_START_IS_NEGATIVE, _END_IS_NEGATIVE = 1 << 2 * _LINE_BITS, 1 << 2 * _LINE_BITS + 1


def main(parts: Path, data_file: Path, source: Path) -> int:
    packed: defaultdict[str, set[int]] = defaultdict(set)
    count = 0
    for entry in os.scandir(parts):
        for filename, arcs in marshal.loads(Path(entry).read_bytes()).items():
            packed[filename] |= arcs
        count += 1
    if not count:
        print(f"no process wrote what it measured into {parts}", file=sys.stderr)
        return 1
    data = CoverageData(str(data_file))
    data.add_arcs({filename: [_unpack(arc) for arc in arcs] for filename, arcs in packed.items()})
    data.touch_files([str(file) for file in source.rglob("*.py")])  # a file that nothing imports counts, too
    data.write()
    print(f"joined what {count} processes measured")
    return 0


def _unpack(arc: int) -> tuple[int, int]:
    """Two line numbers as the C tracer packs them."""
    start, end = arc & _LINE, arc >> _LINE_BITS & _LINE
    return -start if arc & _START_IS_NEGATIVE else start, -end if arc & _END_IS_NEGATIVE else end


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
