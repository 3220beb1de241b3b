"""No Python file above 600 lines; names those above 400, whose authors owe an explanation."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "bench", "tools")
LONG, TOO_LONG = 400, 600


def main() -> int:
    files = [ROOT / "dev", *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))]
    sizes = sorted(((len(path.read_bytes().splitlines()), path) for path in files), reverse=True)
    for lines, path in sizes:
        if lines > LONG:
            verdict = f"over the limit of {TOO_LONG}; split it" if lines > TOO_LONG else f"above {LONG}"
            print(f"{path.relative_to(ROOT)}: {lines} lines, {verdict}")
    return int(sizes[0][0] > TOO_LONG)


if __name__ == "__main__":
    sys.exit(main())
