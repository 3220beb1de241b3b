"""Ingest many small files and print what it costs: time, files a second, and the memory of the process at its peak.

    python -m bench.knowledge.many_files [FILES] [--folder DIR]

One Markdown file in a hundred is a Python module; a file has 2 or 3 sections, about 600 bytes. The first run reads all,
the second finds nothing new, the third finds one file in a hundred changed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_ENGLISH = "backup canary deploy latency index cache shard replica tenant quota budget review incident pager rollback"
_KOREAN = "배포 장애 색인 검색 문서 백업 정책 인증 비밀번호 보안 네트워크 서버 응답 지연 사용자 관리자"
WORDS = f"{_ENGLISH} {_KOREAN}".split()

PROGRAM = """
import json, resource, sys, time
from dari.knowledge.config import load_settings
from dari.knowledge.ingest.pipeline import ingest
begin = time.monotonic()
report = ingest(load_settings(None, json.loads(sys.argv[1])), has_items=False)
print(json.dumps({
    "seconds": time.monotonic() - begin, "new": report.new, "updated": report.updated, "unchanged": report.unchanged,
    "errors": report.errors, "cpu_s": time.process_time(),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "parser_peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="?", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="kebab-bench-"))
    try:
        rng = random.Random(1)
        paths = [make_file(folder / "notes", number, rng) for number in range(arguments.files)]
        environ = {"DARI_HOME": str(folder / "home"), "KEBAB_WORKSPACE_ROOT": str(folder / "notes")}
        show("first run", run(environ), arguments.files)
        show("nothing new", run(environ), arguments.files)
        for path in rng.sample(paths, max(1, len(paths) // 100)):
            path.write_text(path.read_text() + "\n\nchanged\n")
        show("1 % changed", run(environ), arguments.files)
        sizes = {
            path.name: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) or path.stat().st_size
            for path in (folder / "home/kebab/data").iterdir()
        }
        print("disk, MB:", {name: round(size / 1e6, 1) for name, size in sorted(sizes.items())})
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)


def make_file(root: Path, number: int, rng: random.Random) -> Path:
    folder = root / f"{number % 97:02}" / f"{number % 11:02}"
    folder.mkdir(parents=True, exist_ok=True)
    if number % 100 == 99:
        path = folder / f"module_{number}.py"
        path.write_text("\n\n".join(f"def f{one}(x):\n    return x + {rng.random()}" for one in range(8)) + "\n")
        return path
    path = folder / f"note-{number}.md"
    sections = (
        f"## {rng.choice(WORDS)} {number}.{one}\n\n{' '.join(rng.choices(WORDS, k=25))}."
        for one in range(rng.randint(2, 3))
    )
    path.write_text(f"# Note {number}\n\n" + "\n\n".join(sections) + "\n")
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return path


def run(environ: dict[str, str]) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(environ)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def show(name: str, found: dict[str, float], files: int) -> None:
    print(
        f"{name:12} {found['seconds']:8.1f} s  {files / found['seconds']:8.0f} files/s  cpu {found['cpu_s']:7.1f} s"
        f"  peak {found['peak_mb']:6.0f} MB (a parser {found['parser_peak_mb']:.0f} MB)"
        f"  new {found['new']:.0f} updated {found['updated']:.0f} unchanged {found['unchanged']:.0f}"
        f" errors {found['errors']:.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
