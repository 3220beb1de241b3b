"""`dari --version` may import only what `version_imports.txt` lists, so that every command starts fast.

Private modules of the standard library (`_locale`, …) need no line: the public ones that load them do.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ALLOWED = Path(__file__).with_name("version_imports.txt")
# What the installed script does, without the packaging's own imports.
PROGRAM = "import sys; sys.argv = ['dari', '--version']; from dari.cli.main import main; sys.exit(main())"
LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)


def main() -> int:
    code, imported, output = _imports(PROGRAM)
    if code != 0:
        print(f"`dari --version` ended with exit code {code}:\n{output}")
        return 1
    _, at_start, _ = _imports("import sys")
    allowed = {line.split("#")[0].strip() for line in ALLOWED.read_text().splitlines()}
    surplus: Counter[str] = Counter()
    for name, cost in imported.items():
        if name not in at_start and not _is_free(name, allowed):
            surplus[name if name.startswith("dari.") else name.split(".")[0]] += cost
    for name, cost in surplus.most_common():
        print(f"{name}: {cost / 1000:.1f} ms; imported by `dari --version`, not in {ALLOWED.name}")
    if surplus:
        print("hint: import it inside the function that needs it")
    return int(bool(surplus))


def _imports(program: str) -> tuple[int, dict[str, int], str]:
    """Exit code, the own cost of each import in µs, and what was printed besides."""
    command = [sys.executable, "-X", "importtime", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    costs = {name: int(cost) for cost, name in LINE.findall(done.stderr)}
    said = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    return done.returncode, costs, "\n".join(said)


def _is_free(name: str, allowed: set[str]) -> bool:
    top = name.split(".")[0]
    return name in allowed or (top in sys.stdlib_module_names and (top.startswith("_") or top in allowed))


if __name__ == "__main__":
    sys.exit(main())
