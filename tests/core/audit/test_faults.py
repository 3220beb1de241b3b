"""The audit log after tampering, torn writes, kill -9 and a full disk."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dari.core.audit.files import log_files
from dari.core.audit.log import MAX_EXCESS_RECORDS, AuditLog
from dari.core.audit.query import query
from dari.core.audit.verify import verify
from dari.errors import Conflict, Unavailable
from tests.core.audit.days import Days, Opened, lines

ROOT = Path(__file__).parents[3]


def written(opened: Opened, calls: int = 20) -> Path:
    log = opened(now=Days())
    for at in range(calls):
        log.call("fs", f"tool{at}", "ok", arguments=b'{"n":%d}' % at)
    log.close()
    return log_files(log.directory)[0].path


def edit(lines: list[bytes]) -> None:
    lines[7] = lines[7].replace(b'"ok"', b'"error"')


def remove(lines: list[bytes]) -> None:
    del lines[7]


def swap(lines: list[bytes]) -> None:
    lines[7], lines[8] = lines[8], lines[7]


def insert(lines: list[bytes]) -> None:
    lines.insert(7, lines[6])


def garble(lines: list[bytes]) -> None:
    lines[7] = b"\0" * len(lines[7])


@pytest.mark.parametrize(("tamper", "line"), [(edit, 9), (remove, 8), (swap, 8), (insert, 8), (garble, 8)])
def test_the_first_broken_link_is_found(opened: Opened, tamper: Callable[[list[bytes]], None], line: int) -> None:
    path = written(opened)
    content = path.read_bytes().splitlines()
    tamper(content)
    path.write_bytes(b"\n".join(content) + b"\n")
    broken = verify(path.parent).broken
    assert broken is not None and (broken.file, broken.line) == (path.name, line)


def test_a_missing_end_is_found_by_the_head(opened: Opened) -> None:
    path = written(opened)
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(content[:-3]))
    broken = verify(path.parent).broken
    assert broken is not None and "records up to 22 were written, the last one here is 19" in broken.why


def cut_end(lines: list[bytes]) -> None:
    del lines[-3:]


def cut_all(lines: list[bytes]) -> None:
    lines.clear()


def edit_last(lines: list[bytes]) -> None:
    lines[-1] = lines[-1].replace(b'"closed"', b'"opened"')


def garble_last(lines: list[bytes]) -> None:
    lines[-1] = b"\0" * len(lines[-1])


@pytest.mark.parametrize("tamper", [cut_end, cut_all, edit_last, garble_last])
def test_the_next_writer_does_not_hide_what_happened_to_the_end(
    opened: Opened, tamper: Callable[[list[bytes]], None]
) -> None:
    path = written(opened)
    content = path.read_bytes().splitlines()
    tamper(content)
    path.write_bytes(b"".join(line + b"\n" for line in content))
    assert not verify(path.parent).is_whole
    log = opened(now=Days())
    log.call("fs", "later", "ok")
    log.close()
    report = verify(path.parent)
    assert report.broken is not None and report.broken.file == path.name
    assert query(path.parent, tool="later")[0].n > 22  # what follows is numbered after what was written


@pytest.mark.parametrize("content", [b"", b'{"n":', b'{"n":-1,"hash":"' + b"0" * 64 + b'"}', b'{"n":3,"hash":"x"}'])
def test_a_damaged_head_is_told_and_a_record_of_the_next_writer_says_so(opened: Opened, content: bytes) -> None:
    path = written(opened)
    (path.parent / "head.json").write_bytes(content)
    broken = verify(path.parent).broken
    assert broken is not None and broken.file == "head.json"
    opened(now=Days()).close()
    assert verify(path.parent).is_whole
    assert "head.json" in str(query(path.parent, kind="repaired")[0].detail)


def test_without_a_head_the_report_says_that_a_missing_end_would_not_show(opened: Opened) -> None:
    path = written(opened)
    assert verify(path.parent).has_head
    (path.parent / "head.json").unlink()
    report = verify(path.parent)
    assert report.is_whole and not report.has_head


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_not_a_file_is_not_a_part_of_the_log(opened: Opened, make: Callable[[Path], None]) -> None:
    path = written(opened)
    make(path.parent / "2026-11-15.jsonl")
    assert verify(path.parent).is_whole
    opened(now=Days()).close()  # the start reads every file


@pytest.mark.parametrize("n", ['"x"', "{}", "null", "1.5"])
def test_a_record_of_pruning_that_names_no_number_vouches_for_nothing(tmp_path: Path, n: str) -> None:
    line = f'{{"n":5,"at":"2026-11-18T05:48:56Z","kind":"pruned","detail":{{"n":{n}}},"prev":"00"}}\n'
    (tmp_path / "2026-11-18.jsonl").write_text(line)
    assert verify(tmp_path).broken is not None


def test_a_log_that_was_forged_as_a_whole_is_found_by_who_noted_the_head(opened: Opened) -> None:
    path = written(opened)
    known = verify(path.parent).head
    for file in path.parent.iterdir():
        file.unlink()
    written(opened, 30)
    assert verify(path.parent).is_whole
    broken = verify(path.parent, known).broken
    assert broken is not None and "not the one that was noted" in broken.why


@given(data=st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_byte_of_a_log_can_be_changed_unnoticed(tmp_path: Path, data: Any) -> None:
    directory = tmp_path / "audit"
    if not directory.exists():
        log = AuditLog(directory, batch_s=0.001)
        for at in range(5):
            log.call("fs", f"tool{at}", "ok")
        log.close()
    path = log_files(directory)[0].path
    original = path.read_bytes()
    at = data.draw(st.integers(0, len(original) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != original[at]))
    path.write_bytes(original[:at] + bytes([byte]) + original[at + 1 :])
    try:
        assert not verify(directory).is_whole
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize("tail", [b'{"n":23,"at":"20', b"\0\0\0\0", b'{"n":23}\n\xff\xfe\n{"'])
def test_a_torn_tail_is_told_moved_away_and_the_chain_goes_on(opened: Opened, tail: bytes) -> None:
    path = written(opened)
    with path.open("ab") as stream:
        stream.write(tail)
    report = verify(path.parent)
    assert not report.is_whole
    log = opened(now=Days())
    log.close()
    report = verify(path.parent)
    assert report.is_whole and report.records == 25
    assert [each.get("kind") for each in lines(path.parent)[-3:]] == ["repaired", "opened", "closed"]
    assert lines(path.parent)[-3]["detail"] == {"bytes": len(tail)}
    assert [kept.read_bytes() for kept in path.parent.glob("*.torn")] == [tail]


def test_only_one_process_writes(opened: Opened) -> None:
    log = opened()
    with pytest.raises(Conflict):
        opened()
    log.close()
    opened()


def test_a_link_in_the_place_of_the_log_is_not_written_through(opened: Opened, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "audit").mkdir(mode=0o700)
    (tmp_path / "audit" / "2026-11-16.jsonl").symlink_to(victim)
    log = opened(now=Days(), retry_s=0.001, grace_s=0)
    assert not log.flush(0.2)
    with pytest.raises(Unavailable):
        log.check()
    assert victim.read_text() == "untouched"


def test_who_waits_for_the_disk_hears_at_once_that_it_takes_nothing(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir(mode=0o700)
    (tmp_path / "audit" / "2026-11-16.jsonl").symlink_to(tmp_path / "victim")
    log = opened(now=Days(), retry_s=600.0)
    for _ in range(3):
        assert not log.flush(600.0)  # longer than a test may take


WRITER = """
import sys, time
from pathlib import Path
from dari.core.audit.log import MAX_EXCESS_RECORDS, AuditLog

log = AuditLog(Path(sys.argv[1]))
at = 0
while True:
    log.call("fs", f"tool{at}", "ok", arguments=b'{"text":"' + b"x" * 500 + b'"}')
    print(at, time.monotonic(), flush=True)
    at += 1
    time.sleep(0.0005)
"""


def test_kill_9_loses_less_than_the_last_second_and_the_chain_holds(tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    before = 0
    for _ in range(2):
        command = [sys.executable, "-c", WRITER, str(directory)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as writer:
            assert writer.stdout is not None
            made = [writer.stdout.readline() for _ in range(1500)]
            os.kill(writer.pid, signal.SIGKILL)
            made += writer.stdout.readlines()
        times = [float(words[1]) for line in made if len(words := line.split()) == 2]
        AuditLog(directory).close()
        report = verify(directory)
        assert report.is_whole
        kept = len(query(directory, kind="call", limit=10**6)) - before
        before += kept
        assert kept > 0 and all(times[-1] - at < 1.0 for at in times[kept:])


FULL_DISK = """
import resource, sys, threading
from pathlib import Path
from dari.core.audit.verify import verify
from dari.core.audit.log import MAX_EXCESS_RECORDS, AuditLog
from dari.errors import Unavailable

directory = Path(sys.argv[1])
log = AuditLog(directory, batch_s=0.001, retry_s=0.005, grace_s=0.0)
log.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
for at in range(100):
    log.call("fs", f"tool{at}", "ok")
assert not log.flush(0.3), "nothing may be told to be on disk"
assert "File too large" in (log.problem or ""), log.problem
try:
    log.check()
except Unavailable as refusal:
    assert "cannot be written" in refusal.message
else:
    raise SystemExit("calls went on without a record")
assert verify(directory).is_whole, "a part of the batch stayed in the file"
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert log.flush(10)
log.check()
log.close()
report = verify(directory)
assert report.is_whole and report.records == 102, report
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs a limit on the size of files")
def test_when_the_disk_takes_no_more_calls_are_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "audit")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr


def test_a_full_queue_refuses_calls_and_what_still_comes_is_recorded_or_counted(opened: Opened, tmp_path: Path) -> None:
    obstacle = tmp_path / "audit" / "2026-11-16.jsonl"
    obstacle.parent.mkdir(mode=0o700)
    obstacle.symlink_to(tmp_path / "nowhere")
    log = opened(now=Days(), max_queued=100, retry_s=0.001, grace_s=1000)
    for _ in range(100):
        log.call("s", "t", "ok")
    with pytest.raises(Unavailable):
        log.check()
    for _ in range(
        MAX_EXCESS_RECORDS + 50
    ):  # calls that were under way when the queue became full, and more of them than can be
        log.call("s", "t", "ok")
    assert log.lost > 0
    obstacle.unlink()
    assert log.flush()
    log.check()
    log.close()
    assert verify(log.directory).is_whole
    (dropped,) = query(log.directory, kind="dropped")
    calls = query(log.directory, kind="call", limit=10**6)
    assert len(calls) + dropped.detail["records"] == 100 + MAX_EXCESS_RECORDS + 50
