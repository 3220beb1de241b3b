"""Calls and tokens that ten everyday tasks cost: our tools, other people's servers, a bare shell, in one run.

`./dev bench codetools.value` prints the table; exit 1 when a goal is missed. It counts and does not time: a busy
machine changes nothing. A task that does not reach its end state is an error, whoever does it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from bench.codetools.sides import GIT, SERENA, Tally, open_side
from bench.codetools.tasks import TASKS, Task
from bench.errors import BenchError
from bench.machine import ROOT
from bench.peers import install

PACKAGE = "click==8.5.1"
SIDES = {
    "dari": "Dari",
    "servers": "filesystem + ripgrep + git servers",
    "serena": "serena",
    "shell": "plain shell",
}
PEERS = ("servers", "serena")
MAX_CALLS_RATIO, MAX_TOKENS_RATIO = 1 / 2, 1 / 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.codetools.value", description=__doc__)
    parser.add_argument("--side", choices=[*SIDES], action="append", help="only this one; repeat it for more")
    parser.add_argument("--task", type=int, action="append", help="only this task, from 1; repeat it for more")
    given = parser.parse_args()
    try:
        for peer in (SERENA, GIT):
            install(peer)
        with tempfile.TemporaryDirectory(prefix="dari-value-") as scratch:
            return asyncio.run(_measure(Path(scratch), given.side or [*SIDES], given.task))
    except BenchError as failed:
        print(f"bench: {failed}", file=sys.stderr)
        return 2


async def _measure(scratch: Path, sides: list[str], numbers: list[int] | None) -> int:
    origin = _repository(scratch)
    tallies: dict[str, dict[str, Tally]] = {side: {} for side in sides}
    listed: dict[str, int] = {}
    for number, task in enumerate(TASKS, start=1):
        if numbers and number not in numbers:
            continue
        for side in sides:
            tally, listed[side] = await _do(task, side, origin, scratch / f"{number}-{side}")
            tallies[side][task.name] = tally
            print(
                f"{number:2} {side:8} {tally.calls:3} calls {tally.read_tokens:6} tokens", file=sys.stderr, flush=True
            )
    print(_table(tallies, listed))
    return _verdict(tallies)


async def _do(task: Task, side: str, origin: Path, folder: Path) -> tuple[Tally, int]:
    folder.mkdir()
    repo = folder / "click"
    shutil.copytree(origin, repo)
    task.prepare(repo)
    async with open_side(side, repo, folder) as opened:
        await task.ways[side](opened)
    tally = opened.tally
    if not task.is_done(repo, "\n".join(tally.seen)):
        shown = "\n".join(tally.seen)[-1500:]
        raise BenchError(f"{side} did not reach the end of {task.name!r}:\n{shown}", "mend the way in tasks.py")
    return tally, opened.listed_tokens


def _repository(scratch: Path) -> Path:
    """click's sources with its tests, as a repository of one commit."""
    packages = ROOT / ".dev" / "bench" / "sdists"
    packages.mkdir(parents=True, exist_ok=True)
    if not (found := sorted(packages.glob("click-*.tar.gz"))):
        words = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(packages), PACKAGE]
        base = str(Path(getattr(sys, "_base_executable", sys.executable)))
        subprocess.run([base, "-m", "pip", *words], check=True, stdout=subprocess.DEVNULL)
        found = sorted(packages.glob("click-*.tar.gz"))
    with tarfile.open(found[0]) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11 has it from 3.11.4 on
        archive.extractall(scratch / "unpacked")
    (unpacked,) = (scratch / "unpacked").iterdir()
    shutil.rmtree(unpacked / "docs", ignore_errors=True)
    _find_own_sources(unpacked)
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "-qm", "click"],
    ):
        subprocess.run(["git", *words], cwd=unpacked, env=environment, check=True)
    return unpacked


def _find_own_sources(repo: Path) -> None:
    """Tests import the repository's click and not an installed one, whoever runs them."""
    file = repo / "pyproject.toml"
    text, table = file.read_text(), "[tool.pytest.ini_options]\n"
    if table not in text:
        raise BenchError(f"{file.name} has no {table.strip()}", f"the tasks are written for {PACKAGE}")
    file.write_text(text.replace(table, f'{table}pythonpath = ["src"]\n'))


def _table(tallies: dict[str, dict[str, Tally]], listed: dict[str, int]) -> str:
    sides = [*tallies]
    rows = [
        f"| task | {' | '.join(SIDES[side] for side in sides)} |",
        f"|---|{'--:|' * len(sides)}",
    ]
    for name in tallies[sides[0]]:
        cells = (tallies[side][name] for side in sides)
        rows.append(f"| {name} | {' | '.join(f'{one.calls} · {one.read_tokens}' for one in cells)} |")
    totals = (f"**{_calls(tallies[side])} · {_tokens(tallies[side])}**" for side in sides)
    rows.append(f"| all (calls · tokens read) | {' | '.join(totals)} |")
    written = (str(sum(one.written_bytes for one in tallies[side].values()) // 4) for side in sides)
    rows.append(f"| tokens written | {' | '.join(written)} |")
    rows.append(f"| tokens of tools/list, once a session | {' | '.join(str(listed[side]) for side in sides)} |")
    return "\n".join(rows)


def _calls(tallies: dict[str, Tally]) -> int:
    return sum(one.calls for one in tallies.values())


def _tokens(tallies: dict[str, Tally]) -> int:
    return sum(one.read_tokens for one in tallies.values())


def _verdict(tallies: dict[str, dict[str, Tally]]) -> int:
    """Against the best peer server in each: the goal of issue 12."""
    peers = [side for side in PEERS if side in tallies]
    if "dari" not in tallies or not peers:
        return 0
    calls = _calls(tallies["dari"]) / min(_calls(tallies[side]) for side in peers)
    tokens = _tokens(tallies["dari"]) / min(_tokens(tallies[side]) for side in peers)
    print(f"\ncalls: {calls:.2f}× of the best peer's (goal ≤ {MAX_CALLS_RATIO:.2f}×)")
    print(f"tokens read: {tokens:.2f}× of the best peer's (goal ≤ {MAX_TOKENS_RATIO:.2f}×)")
    return 0 if calls <= MAX_CALLS_RATIO and tokens <= MAX_TOKENS_RATIO else 1


if __name__ == "__main__":
    raise SystemExit(main())
