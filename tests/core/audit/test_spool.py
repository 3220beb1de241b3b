"""Records of other processes: kept in files until the hub takes them over, each one once."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dari.core.audit.files import log_files
from dari.core.audit.log import AuditLog
from dari.core.audit.query import query
from dari.core.audit.record import AuditRecord
from dari.core.audit.spool import AuditSpool, SpoolTakeover, read_spool, spooled, take_spool
from dari.core.audit.verify import verify
from tests.core.audit.days import Opened
from tests.support import planted_secrets as planted


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[AuditSpool]:
    made = AuditSpool(tmp_path / "spool", batch_s=0.001)
    yield made
    made.close()


def record(spool: AuditSpool, *numbers: int) -> None:
    for number in numbers:
        spool.call("crux", "crux_list_panes", "ok", part="crux", who="mcp:test", arguments=b'{"n":%d}' % number)


def calls(log: AuditLog) -> list[AuditRecord]:
    return query(log.directory, kind="call", limit=100_000)[::-1]


def numbers(log: AuditLog) -> list[int]:
    return [one.shown_arguments["n"] for one in calls(log)]


def test_nothing_is_made_before_the_first_call(tmp_path: Path, spool: AuditSpool) -> None:
    spool.close()
    assert not (tmp_path / "spool").exists()


def test_a_spool_is_private_and_holds_no_secret(spool: AuditSpool) -> None:
    for one in planted.of("json"):
        spool.call("crab", "crab_replay", "error", arguments=json.dumps({one.name: one.secret}).encode())
    spool.call("crab", "crab_replay", "error", error=f"cannot log in with {planted.query()}")
    spool.close()
    (path,) = spooled(spool.directory)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(read_spool(path)) == len(planted.of("json")) + 1
    assert planted.leaks(path.read_text()) == []


def test_the_hub_takes_records_over_as_they_were_and_removes_the_file(spool: AuditSpool, opened: Opened) -> None:
    spool.call(
        *("crux", "crux_execute_command", "denied"),
        part="crux",
        who="mcp:test",
        session="s1",
        ms=1.25,
        result_bytes=7,
        arguments=b'{"command": "ls\\n"}',
        error="no",
        detail={"code": "denied"},
    )
    spool.close()
    log = opened()
    assert SpoolTakeover(spool.directory).take(log) == 1
    (one,) = calls(log)
    assert (one.part, one.server, one.tool, one.outcome) == ("crux", "crux", "crux_execute_command", "denied")
    assert (one.who, one.session, one.ms, one.result_bytes) == ("mcp:test", "s1", 1.25, 7)
    assert (one.shown_arguments, one.error, one.detail) == ({"command": "ls\n"}, "no", {"code": "denied"})
    assert spooled(spool.directory) == []
    assert verify(log.directory).is_whole


def test_none_is_lost_or_doubled_while_the_hub_takes_and_the_process_writes(tmp_path: Path, opened: Opened) -> None:
    spool = AuditSpool(tmp_path / "spool", batch_s=0.0005)
    log = opened()
    takeover = SpoolTakeover(spool.directory)
    is_done = threading.Event()

    def write() -> None:
        for number in range(3000):
            record(spool, number)
            if number % 50 == 0:
                is_done.wait(0.001)
        spool.close()
        is_done.set()

    thread = threading.Thread(target=write)
    thread.start()
    taken = 0
    while not is_done.is_set():
        taken += takeover.take(log)
    thread.join()
    taken += takeover.take(log)
    assert taken == 3000
    assert numbers(log) == list(range(3000))
    assert spooled(spool.directory) == []
    assert len(query(log.directory, kind="spooled", limit=1000)) > 1, "the hub took more than once"


def test_a_batch_that_is_being_written_when_the_hub_comes_is_taken_whole(spool: AuditSpool) -> None:
    record(spool, 1)
    spool.close()
    (path,) = spooled(spool.directory)
    line = path.read_bytes()
    with path.open("ab") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        found: list[Path] = []
        taking = threading.Thread(target=lambda: found.append(take_spool(path)))
        taking.start()
        writing.write(line)
        writing.flush()
        assert not found
    taking.join()
    assert len(read_spool(found[0])) == 2


def test_a_torn_last_line_and_a_stranger_s_line_are_tolerated(spool: AuditSpool, opened: Opened) -> None:
    record(spool, 1, 2)
    spool.close()
    (path,) = spooled(spool.directory)
    path.write_bytes(b"not json\n" + path.read_bytes() + b'{"at":17')
    log = opened()
    assert SpoolTakeover(spool.directory).take(log) == 2
    assert numbers(log) == [1, 2]
    assert verify(log.directory).is_whole


@pytest.mark.parametrize("at", ["1e300", "-1e300", "99999999999"])
def test_an_impossible_time_in_a_spool_neither_ends_the_log_nor_ages_its_files(
    spool: AuditSpool, opened: Opened, at: str
) -> None:
    log = opened(keep_days=30)
    log.call("crux", "crux_list_panes", "ok", arguments=b'{"n":1}')
    assert log.flush()
    record(spool, 2)
    spool.close()
    (path,) = spooled(spool.directory)
    path.write_bytes(b'{"at":%s,"tool":"crux_list_panes","arguments":{"n":3}}\n' % at.encode() + path.read_bytes())
    assert SpoolTakeover(spool.directory).take(log) == 2
    assert numbers(log) == [1, 3, 2]
    assert log_files(log.directory)[-1].day <= datetime.now(UTC).date().isoformat()
    assert verify(log.directory).is_whole


def test_a_hub_that_was_killed_after_writing_leaves_nothing_to_write_twice(spool: AuditSpool, opened: Opened) -> None:
    record(spool, 1, 2)
    spool.close()
    log = opened()
    (path,) = spooled(spool.directory)
    taken = take_spool(path)
    assert log.take_over(read_spool(taken), taken.name)
    assert log.flush()
    # Killed here: the file is still there, and the next hub finds it.
    assert SpoolTakeover(spool.directory).take(log) == 0
    assert numbers(log) == [1, 2]
    assert spooled(spool.directory) == []


def test_a_hub_that_was_killed_before_writing_loses_nothing(spool: AuditSpool, opened: Opened) -> None:
    record(spool, 1, 2)
    spool.close()
    (path,) = spooled(spool.directory)
    take_spool(path)
    log = opened()
    assert SpoolTakeover(spool.directory).take(log) == 2
    assert numbers(log) == [1, 2]


def test_a_full_queue_drops_the_newest_and_a_record_tells_how_many(tmp_path: Path, opened: Opened) -> None:
    spool = AuditSpool(tmp_path / "spool", batch_s=3600, max_queued=3)
    record(spool, *range(10))
    assert spool.lost == 7
    spool.close()
    assert spool.lost == 0
    log = opened()
    SpoolTakeover(spool.directory).take(log)
    assert numbers(log) == [0, 1, 2]
    assert [one.detail for one in query(log.directory, kind="dropped")] == [{"records": 7}]


def test_spools_that_no_hub_takes_stop_growing_and_records_wait_or_are_counted(tmp_path: Path, opened: Opened) -> None:
    def made() -> AuditSpool:
        return AuditSpool(tmp_path / "spool", batch_s=0.001, retry_s=0.001, max_queued=2, max_spool_bytes=100)

    first, second = made(), made()
    record(first, 1)
    first.close()
    record(second, 2, 3)
    assert not second.flush(0.05) and second.problem is not None
    record(second, 4)
    assert second.lost == 1
    log = opened()
    takeover = SpoolTakeover(tmp_path / "spool")
    assert takeover.take(log) == 1
    assert second.flush()
    second.close()
    assert takeover.take(log) == 3
    assert numbers(log) == [1, 2, 3]
    assert [one.detail for one in query(log.directory, kind="dropped")] == [{"records": 1}]


def test_a_large_spool_goes_on_in_another_file(tmp_path: Path, opened: Opened) -> None:
    spool = AuditSpool(tmp_path / "spool", batch_s=0.001, max_file_bytes=1)
    record(spool, 1)
    while len(spooled(spool.directory)) < 1:
        threading.Event().wait(0.001)
    record(spool, 2)
    spool.close()
    assert len(spooled(spool.directory)) == 2
    log = opened()
    assert SpoolTakeover(spool.directory).take(log) == 2


def test_a_symbolic_link_is_left_alone(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "spool").mkdir(mode=0o700)
    (tmp_path / "mine").write_text('{"at":1}\n')
    (tmp_path / "spool" / "1-a.jsonl").symlink_to(tmp_path / "mine")
    log = opened()
    assert SpoolTakeover(tmp_path / "spool").take(log) == 0
    assert (tmp_path / "mine").exists()


_PROCESS = """
import sys, time
from pathlib import Path
from dari.core.audit.spool import AuditSpool
spool = AuditSpool(Path(sys.argv[1]))
number = 0
while True:
    spool.call("crux", "crux_x", "ok", part="crux", arguments=b'{"n":%d}' % number)
    print(number, time.time(), flush=True)
    number += 1
    time.sleep(0.01)
"""


def test_kill_9_loses_nothing_that_is_older_than_a_second(tmp_path: Path, opened: Opened) -> None:
    process = subprocess.Popen([sys.executable, "-c", _PROCESS, str(tmp_path / "spool")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    said = [process.stdout.readline().split() for _ in range(180)]
    os.kill(process.pid, signal.SIGKILL)
    said += [line.split() for line in process.stdout.read().splitlines() if len(line.split()) == 2]
    process.wait()
    process.stdout.close()
    killed_s = float(said[-1][1])
    log = opened()
    SpoolTakeover(tmp_path / "spool").take(log)
    kept = numbers(log)
    assert kept == list(range(len(kept)))
    assert [int(number) for number, at_s in said if float(at_s) < killed_s - 1 and int(number) not in kept] == []
    assert len(kept) > 20
