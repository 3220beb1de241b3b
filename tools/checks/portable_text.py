"""No file of the repository names a package registry's host or a path of one machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = re.compile(
    rb"(?<![\w.~}-])/(?:root|work)/"  # absolute only: docs/work/ is fine
    rb"|index-url|pypi\.org/simple|registry\.npmjs\.org|files\.pythonhosted\.org"
)
OWN = Path(__file__).relative_to(ROOT)
SKIPPED = {".git", ".venv", ".dev", "node_modules", "__pycache__", "dist", "build"}


def main() -> int:
    found = [line for path in _files() if path != OWN for line in _offences(path)]
    print("\n".join(found))
    return int(bool(found))


def _files() -> list[Path]:
    """What git has or would add; in a copy without git, everything that is not obviously made."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listing.returncode == 0:
        return [Path(name) for name in listing.stdout.decode().split("\0") if name]
    files: list[Path] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.endswith("_cache")]
        files += [Path(folder, name).relative_to(ROOT) for name in names]
    return files


def _offences(path: Path) -> list[str]:
    file = ROOT / path
    if not file.is_file() or b"\0" in (data := file.read_bytes())[:8192]:
        return []
    return [
        f"{path}:{number}: names {match.group().decode()}, which holds for one machine only"
        for number, line in enumerate(data.splitlines(), 1)
        for match in FORBIDDEN.finditer(line)
    ]


if __name__ == "__main__":
    sys.exit(main())
