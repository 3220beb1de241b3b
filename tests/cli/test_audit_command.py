"""`dari audit`: what was recorded, asked from a shell, with a daemon that writes or without one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dari.cli.audit import moment
from dari.cli.audit_logs import settle
from dari.cli.main import main
from dari.core.audit.log import BATCH_S, AuditLog
from dari.core.audit.spool import SPOOL_FOLDER, AuditSpool
from tests.support.processes import wait_for_line

DAY = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Log:
    """A log in its usual place, written on days of the test's choice."""

    def __init__(self, folder: Path, at: datetime = DAY) -> None:
        """`at`: when it is opened, which its first record says; the writer may write that at once or later."""
        self.folder = folder
        self.at = at
        self.log = AuditLog(folder, batch_s=0.001, now=lambda: self.at.timestamp())

    def call(self, server: str, tool: str, outcome: str = "ok", **more: Any) -> None:
        self.log.call(server, tool, outcome, **more)  # type: ignore[arg-type]

    def file(self) -> Path:
        return sorted(self.folder.glob("*.jsonl"))[-1]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    written = Log(tmp_path / "bridge/audit")
    yield written
    written.log.close()


@pytest.fixture
def filled(log: Log) -> Log:
    """opened (1), then records 2 to 6 on two days; the daemon still holds the log."""
    log.call("fs", "read", who="mcp:claude", ms=1.25, result_bytes=20, arguments=b'{"path":"/a"}')
    log.call("fs", "write", "denied", who="mcp:claude", error="ann denied it")
    log.log.note("decision", server="fs", tool="write", who="ann", event="approved")
    log.log.flush()
    log.at = DAY + timedelta(days=1)
    log.call("git", "log", who="cli")
    log.call("git", "push", "error", who="cli", error="no \x1b[2Jremote\n")
    assert log.log.flush()
    return log


def exit_code(*words: str) -> object:
    """Of words that end in the parser."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return ended.value.code


def numbers(text: str) -> list[int]:
    return [json.loads(line)["n"] for line in text.splitlines()]


def test_the_last_records_are_listed_oldest_first_while_the_daemon_writes(
    filled: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4", "5", "6"]
    assert "fs/read  mcp:claude  1.2 ms  20 B" in lines[1] and "ok" in lines[1].split()
    assert "denied" in lines[2] and "ann denied it" in lines[2]
    assert "decision" in lines[3] and "event=approved" in lines[3] and lines[3].endswith("ann")
    assert "no \\x1b[2Jremote\\n" in lines[5] and "\x1b" not in lines[5]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], [6, 5, 4, 3, 2, 1]),
        (["--server", "g*"], [6, 5]),
        (["--tool", "*r*"], [4, 3, 2]),
        (["--who", "mcp:*"], [3, 2]),
        (["--outcome", "denied"], [3]),
        (["--kind", "decision"], [4]),
        (["--since", "2026-11-17T00:00+00:00"], [6, 5]),
        (["--until", "2026-11-17T00:00+00:00"], [4, 3, 2, 1]),
        (["--limit", "2"], [6, 5]),
        (["--server", "fs", "--outcome", "ok"], [2]),
        (["--server", "nothing"], []),
    ],
)
def test_a_query_answers_newest_first_with_what_matches_all(
    words: list[str], found: list[int], filled: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "query", "--json", *words]) == 0
    assert numbers(capsys.readouterr().out) == found


def test_json_is_the_line_as_it_stands_in_the_file(filled: Log, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "tail", "--limit", "1", "--json"]) == 0
    assert capsys.readouterr().out == filled.file().read_text().splitlines(keepends=True)[-1]


def test_show_prints_one_record_with_its_arguments_and_hash(filled: Log, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "show", "2"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["arguments"] == {"path": "/a"} and len(shown["prev"]) == 64
    assert main(["audit", "show", "99"]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_verify_is_0_for_a_whole_log_and_prints_a_head_that_can_be_noted(
    filled: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "verify"]) == 0
    told = capsys.readouterr().out
    assert "6 records in 2 files" in told
    head = next(line.split()[1] for line in told.splitlines() if line.startswith("head"))
    assert main(["audit", "verify", "--known", head]) == 0
    assert main(["audit", "verify", "--known", f"3:{'0' * 64}"]) == 3
    assert "record 3 is not the one that was noted" in capsys.readouterr().out


@pytest.mark.parametrize(("old", "new"), [('"read"', '"raed"'), ("ann denied it", "ann allowed it")])
def test_verify_is_3_and_names_the_first_line_that_does_not_fit(
    old: str, new: str, filled: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    first = sorted(filled.folder.glob("*.jsonl"))[0]
    first.write_text(first.read_text().replace(old, new))
    line = 3 if old == '"read"' else 4
    assert main(["audit", "verify"]) == 3
    told = capsys.readouterr().out
    assert told.startswith("BROKEN") and f"{first}:{line}: record {line} does not carry the hash" in told
    assert main(["audit", "verify", "--json"]) == 3
    as_json = json.loads(capsys.readouterr().out)
    assert as_json["whole"] is False
    assert (as_json["broken"]["file"], as_json["broken"]["line"]) == (first.name, line)


def test_verify_finds_a_missing_end(filled: Log, capsys: pytest.CaptureFixture[str]) -> None:
    lines = filled.file().read_text().splitlines(keepends=True)
    filled.file().write_text("".join(lines[:-1]))
    assert main(["audit", "verify"]) == 3
    assert "records up to 6 were written, the last one here is 5" in capsys.readouterr().out


def test_a_line_that_a_killed_daemon_left_half_written_is_told_apart_from_a_forged_one(
    filled: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    filled.log.close()
    with filled.file().open("a") as file:
        file.write('{"n": 8, "at"')
    assert main(["audit", "verify"]) == 3
    told = capsys.readouterr().out
    assert told.startswith("TORN") and "13 bytes" in told and "7 records are in order" in told


def test_logs_of_commands_beside_the_daemon_are_asked_with_it(
    filled: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = Log(tmp_path / "bridge/audit-beside/1", DAY + timedelta(days=2))
    beside.call("fs", "list", who="cli")
    beside.log.close()
    assert main(["audit", "--server", "fs", "--limit", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["4", "1/2"] and "fs/list" in lines[1]
    assert main(["audit", "show", "1/2"]) == 0
    assert json.loads(capsys.readouterr().out)["tool"] == "list"
    assert main(["audit", "verify"]) == 0
    told = capsys.readouterr().out
    assert str(filled.folder) in told and str(beside.folder) in told
    beside.file().write_text(beside.file().read_text().replace("list", "lost"))
    assert main(["audit", "verify", "--json"]) == 3
    as_json = json.loads(capsys.readouterr().out)
    assert as_json["broken"] is None and as_json["beside"][0]["broken"]["line"] == 3 and as_json["whole"] is False


def test_an_empty_log_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    assert main(["audit"]) == 0
    assert "nothing has been recorded yet" in capsys.readouterr().err
    assert main(["audit", "verify"]) == 0
    assert not (tmp_path / "bridge").exists()


def test_a_copy_elsewhere_can_be_asked(filled: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    shutil.copytree(filled.folder, tmp_path / "copy")
    assert main(["audit", "verify", "--directory", str(tmp_path / "copy")]) == 0


@pytest.mark.parametrize("word", ["tail", "query", "verify"])
def test_a_folder_that_is_not_there_is_no_whole_log(word: str, tmp_path: Path, capsys: Any) -> None:
    assert exit_code("audit", word, "--directory", str(tmp_path / "nosuch")) == 2
    said = capsys.readouterr()
    assert said.out == "" and "nosuch" in said.err and "hint:" in said.err


def test_a_time_that_no_clock_here_can_show_ends_no_listing(filled: Log, capsys: Any) -> None:
    filled.log.close()
    text = filled.file().read_text()
    filled.file().write_text(re.sub(r'"at":"[^"]+"', '"at":"0001-01-01T00:00:00+14:00"', text))
    assert main(["audit"]) == 0
    assert "0001-01-01" in capsys.readouterr().out


def test_a_line_whose_time_has_no_zone_is_no_record(filled: Log, capsys: Any) -> None:
    filled.log.close()
    text = filled.file().read_text()
    filled.file().write_text(re.sub(r'"at":"[^"]+"', '"at":"2026-11-17T12:00:00"', text))
    assert main(["audit", "--since", "2026-11-01"]) == 0
    assert "git/log" not in capsys.readouterr().out
    assert main(["audit", "verify"]) == 3


def test_a_spool_that_cannot_be_read_is_named_and_the_rest_is_shown(
    filled: Log, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "bridge/audit-spool"
    spool.mkdir()
    (spool / "1-a.jsonl").write_bytes(b'{"at":1,"who":"hidden"}\n')
    (spool / "2-b.jsonl").write_bytes(b'{"at":1,"who":"waiting"}\n')
    read_bytes = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "1-a.jsonl":  # root may read every file
            raise PermissionError(13, "Permission denied", str(path))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert main(["audit"]) == 0
    said = capsys.readouterr()
    assert "waiting" in said.out and "git/push" in said.out
    assert "1-a.jsonl" in said.err
    assert main(["audit", "verify"]) == 3
    assert "1-a.jsonl" in capsys.readouterr().out
    assert main(["audit", "verify", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["spools"]["unreadable"] == ["1-a.jsonl"]


def test_verify_says_when_a_missing_end_would_not_show(filled: Log, capsys: Any) -> None:
    filled.log.close()
    (filled.folder / "head.json").unlink()
    assert main(["audit", "verify"]) == 0
    assert "head.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["show"],
        ["verify", "3"],
        ["--outcome", "well"],
        ["--since", "yesterday"],
        ["--limit", "0"],
        ["--known", "abc"],
        ["--known", "²:" + "a" * 64],
        ["--limit", "9" * 5000],
    ],
)
def test_wrong_words_are_refused_with_2(words: list[str], filled: Log, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("audit", *words) == 2
    said = capsys.readouterr().err
    assert "error:" in said and "invalid _" not in said and len(said) < 400


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("audit", "--help") == 0
    assert "dari audit verify --known" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90s", DAY - timedelta(seconds=90)),
        ("1.5h", DAY - timedelta(minutes=90)),
        ("7d", DAY - timedelta(days=7)),
        ("2026-11-01T10:00+00:00", datetime(2026, 11, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_time_may_be_an_age_or_a_date(text: str, meant: datetime) -> None:
    assert moment(text, now=lambda: DAY) == meant


def test_a_date_without_a_zone_is_local() -> None:
    assert moment("2026-11-01") == datetime(2026, 11, 1).astimezone()


def test_follow_goes_on_with_what_is_written_across_days_until_ctrl_c(filled: Log) -> None:
    command = [sys.executable, "-m", "dari", "audit", "--follow", "--json", "--server", "git", "--limit", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ}) as follower:
        try:
            assert follower.stdout is not None
            descriptor = follower.stdout.fileno()
            assert json.loads(wait_for_line(descriptor))["n"] == 6
            filled.call("fs", "read")
            filled.call("git", "pull")
            assert json.loads(wait_for_line(descriptor))["tool"] == "pull"
            filled.at += timedelta(days=1)
            filled.call("git", "fetch")
            assert json.loads(wait_for_line(descriptor))["tool"] == "fetch"
            follower.send_signal(signal.SIGINT)
            assert follower.wait(30) == 130
        finally:
            follower.kill()


def test_a_reader_that_leaves_early_is_no_error(filled: Log) -> None:
    script = f'"{sys.executable}" -m dari audit --follow | head -n 1'
    done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=20, check=False, start_new_session=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1


def test_calls_of_one_part_are_asked_for_and_older_records_are_the_bridge_s(
    filled: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    filled.call("crux", "crux_list_panes", part="crux", who="mcp:claude")
    filled.call("git", "status", part="bridge", who="cli")
    assert filled.log.flush()
    assert main(["audit", "query", "--part", "crux", "--json"]) == 0
    assert numbers(capsys.readouterr().out) == [7]
    assert main(["audit", "query", "--part", "bridge", "--json"]) == 0
    assert numbers(capsys.readouterr().out) == [8, 6, 5, 3, 2]
    assert main(["audit", "--part", "crux"]) == 0
    assert "ok         crux_list_panes  mcp:claude" in capsys.readouterr().out


def test_a_listing_waits_for_what_a_running_hub_has_gathered(log: Log) -> None:
    waits: list[float] = []
    settle(log.folder.parent, waits.append)
    settle(log.folder.parent / "nowhere", waits.append)
    assert len(waits) == 1 and waits[0] > BATCH_S


def test_records_that_wait_for_a_hub_are_shown_without_a_number(
    filled: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool = AuditSpool(tmp_path / "bridge" / SPOOL_FOLDER)
    spool.call("crab", "crab_ping", "ok", part="crab", who="mcp:claude", arguments=b'{"a":1}')
    spool.call("crab", "crab_stop", "denied", part="crab", who="mcp:claude")
    spool.close()
    assert main(["audit", "query", "--part", "crab", "--outcome", "ok"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[0] == "w0" and "crab_ping" in line
    assert main(["audit", "query", "--tool", "crab_ping", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arguments"] == {"a": 1}
    assert main(["audit", "verify"]) == 0


def test_verify_covers_the_records_that_wait_for_a_hub(
    filled: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool = AuditSpool(tmp_path / "bridge" / SPOOL_FOLDER)
    spool.call("crab", "crab_ping", "ok", part="crab")
    spool.call("crab", "crab_stop", "ok", part="crab")
    spool.close()
    (path,) = spool.directory.iterdir()
    assert main(["audit", "verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spools"]["records"] == 2
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(first.replace(b'"at"', b'"when"') + b"\n" + second + b"\n")
    assert main(["audit", "verify", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["whole"] is False and told["broken"] is None
    assert told["spools"]["unreadable"] == [f"{path.name}:1"] and told["spools"]["records"] == 1
    path.write_bytes(first + b"\n" + second)
    assert main(["audit", "verify", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["spools"]["torn"] == [path.name]
