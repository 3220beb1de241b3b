"""The audit log: chained, private, in files of a day, and asked."""

from __future__ import annotations

import json
import stat
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest

from dari.core.audit.files import Head, log_files
from dari.core.audit.query import query
from dari.core.audit.redact import NOT_SHOWN
from dari.core.audit.verify import verify
from dari.text.redact import MARK
from tests.core.audit.days import DAY, Days, Opened, lines


def test_each_record_carries_the_hash_of_the_line_before_it(opened: Opened) -> None:
    log = opened()
    log.call("fs", "read", "ok", who="claude", ms=1.25, result_bytes=20, arguments=b'{"path":"/a"}')
    log.call("fs", "write", "denied", error="ann denied it")
    log.close()
    raw = log_files(log.directory)[0].path.read_bytes().splitlines()
    records = [json.loads(line) for line in raw]
    assert records[0]["prev"] == "0" * 64
    assert [each["prev"] for each in records[1:]] == [sha256(line).hexdigest() for line in raw[:-1]]
    assert [each["n"] for each in records] == [1, 2, 3, 4]
    assert records[1] | {"at": "", "prev": ""} == {
        "n": 2,
        "at": "",
        "server": "fs",
        "tool": "read",
        "outcome": "ok",
        "who": "claude",
        "ms": 1.25,
        "result_bytes": 20,
        "arguments": {"path": "/a"},
        "prev": "",
    }
    report = verify(log.directory)
    assert report.is_whole and report.records == 4 and report.head == Head(4, sha256(raw[-1]).hexdigest())


def test_every_file_is_private(opened: Opened) -> None:
    log = opened()
    log.flush()
    log.close()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in log.directory.iterdir()}
    assert len(modes) == 3 and set(modes.values()) == {0o600}
    assert stat.S_IMODE(log.directory.stat().st_mode) == 0o700


def test_arguments_are_redacted_before_they_are_written_and_cut_when_long(opened: Opened) -> None:
    log = opened()
    log.call("db", "login", "ok", arguments=b'{"password":"hunter2"}')
    log.call("db", "login", "error", error="password=hunter2 is wrong", detail={"sent": [{"password": "hunter2"}]})
    log.note("decision", who="ann", reason="it says password=hunter2")
    log.call("db", "put", "ok", arguments=json.dumps({"blob": "x" * 100_000}).encode())
    log.close()
    text = log_files(log.directory)[0].path.read_text()
    assert "hunter2" not in text and f'{{"password":"{MARK}"}}' in text
    assert len(text) < 5000 and "(100012 bytes)" in text


@pytest.mark.parametrize("arguments", [b'{\n  "pretty": 1\r\n}', b"this is no JSON\n{", b'{"a":1}{"n":7}'])
def test_no_arguments_can_break_a_line(opened: Opened, arguments: bytes) -> None:
    log = opened()
    log.call("s", "t", "ok", arguments=arguments)
    log.close()
    report = verify(log.directory)
    assert report.is_whole and report.records == 3


def test_what_cannot_be_redacted_is_recorded_without_its_text(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(value: object) -> object:
        raise KeyError("a bug")

    monkeypatch.setattr("dari.core.audit.redact.redact_secrets", fail)
    log = opened()
    log.call("s", "t", "error", arguments=b'{"password":"x"}', error="password=x", detail={"password": "x"})
    log.close()
    assert verify(log.directory).is_whole
    assert "password" not in log_files(log.directory)[0].path.read_text()
    assert lines(log.directory)[1]["arguments"] == NOT_SHOWN


def test_text_that_no_file_can_hold_is_recorded_escaped(opened: Opened) -> None:
    log = opened()
    log.call("s", "bad\ud800name", "ok", error="x\ud800", detail={"x": object()})
    log.close()
    assert verify(log.directory).is_whole
    assert lines(log.directory)[1]["tool"] == "bad\\ud800name"


def test_a_day_begins_a_file_and_the_chain_goes_on(opened: Opened) -> None:
    clock = Days()
    log = opened(now=clock)
    for _ in range(3):
        log.call("s", "t", "ok")
        log.flush()
        clock.at += timedelta(days=1)
    clock.at -= timedelta(days=2)  # clocks go back; the log does not
    log.call("s", "t", "ok")
    log.close()
    assert [file.path.name for file in log_files(log.directory)] == [
        "2026-11-16.jsonl",
        "2026-11-17.jsonl",
        "2026-11-18.jsonl",
    ]
    assert verify(log.directory).is_whole


def test_a_file_that_is_too_large_gets_a_successor(opened: Opened) -> None:
    log = opened(now=Days(), max_file_bytes=500)
    for _ in range(10):
        log.call("s", "t", "ok")
        log.flush()
    log.close()
    names = [file.path.name for file in log_files(log.directory)]
    assert names[:2] == ["2026-11-16.jsonl", "2026-11-16.0001.jsonl"] and len(names) > 2
    assert verify(log.directory).is_whole


def test_old_files_are_pruned_and_a_record_vouches_for_them(opened: Opened) -> None:
    clock = Days()
    log = opened(now=clock, keep_days=2)
    for _ in range(5):
        log.call("s", "t", "ok")
        log.flush()
        clock.at += timedelta(days=1)
    log.close()
    assert [file.day for file in log_files(log.directory)] == ["2026-11-19", "2026-11-20", "2026-11-21"]
    report = verify(log.directory)
    assert report.is_whole and report.records == 6
    assert query(log.directory, kind="pruned")


def test_a_crash_in_the_middle_of_pruning_is_no_break(opened: Opened) -> None:
    clock = Days()
    log = opened(now=clock, keep_days=2)
    for _ in range(3):
        log.call("s", "t", "ok")
        log.flush()
        clock.at += timedelta(days=1)
    old = [(file.path, file.path.read_bytes()) for file in log_files(log.directory)]
    clock.at += timedelta(days=2)
    log.close()
    assert len(old) == 3 and not any(path.exists() for path, _ in old)
    for path, content in reversed(old):  # as if the process had ended before it came to this one
        path.write_bytes(content)
        assert verify(log.directory).is_whole
    old[1][0].unlink()
    assert not verify(log.directory).is_whole


def test_files_removed_by_somebody_else_are_missed(opened: Opened) -> None:
    clock = Days()
    log = opened(now=clock, keep_days=None)
    for _ in range(3):
        log.call("s", "t", "ok")
        log.flush()
        clock.at += timedelta(days=1)
    log.close()
    log_files(log.directory)[0].path.unlink()
    broken = verify(log.directory).broken
    assert broken is not None and "no record says why" in broken.why


def test_a_file_removed_while_it_is_written_is_begun_again_and_missed(opened: Opened) -> None:
    log = opened(now=Days())
    log.flush()
    log_files(log.directory)[0].path.unlink()
    log.call("s", "t", "ok")
    log.close()
    assert [each.get("kind", "call") for each in lines(log.directory)] == ["reopened", "call", "closed"]
    assert verify(log.directory).broken is not None


def test_queries_answer_newest_first_by_any_field(opened: Opened) -> None:
    clock = Days()
    log = opened(now=clock)
    for server, tool, outcome in (
        ("fs", "read_file", "ok"),
        ("fs", "write_file", "denied"),
        ("git", "log", "ok"),
        ("fs", "read_dir", "tool_error"),
    ):
        log.call(server, tool, outcome, who="claude", arguments=b'{"a":1}')  # type: ignore[arg-type]
        log.flush()
        clock.at += timedelta(hours=10)
    log.note("decision", server="fs", who="ann", approved="read_file")
    log.close()

    def tools(**asked: Any) -> list[str]:
        return [record.tool for record in query(log.directory, kind="call", **asked)]

    assert tools() == ["read_dir", "log", "write_file", "read_file"]
    assert tools(limit=2) == ["read_dir", "log"]
    assert tools(server="fs", tool="read_*") == ["read_dir", "read_file"]
    assert tools(outcome="denied") == ["write_file"]
    assert tools(since=DAY + timedelta(hours=20)) == ["read_dir", "log"]
    assert tools(until=DAY + timedelta(hours=10)) == ["read_file"]
    assert tools(who="c*") == tools() and tools(who="bob") == []
    assert query(log.directory, kind="decision")[0].detail == {"approved": "read_file"}
    assert query(log.directory, tool="log")[0].shown_arguments == {"a": 1}
    assert query(log.directory / "nowhere") == []
