"""Counting a run and describing its failures within a budget."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import jsonschema_rs

from dari.codetools.testing.event_pipe import MAX_EVENT_BYTES, EventPipe
from dari.codetools.testing.report import FailedTest, RunLog
from dari.codetools.testing.service import LastFailed
from dari.codetools.tools.toolkit import make_tools
from tests.support.codetools import code_tools
from tests.support.tested_projects import own_environ, write


def test_every_failure_has_its_message_and_tracebacks_share_the_budget() -> None:
    log = RunLog()
    for number in range(30):
        log.finish(f"t.py::{number}", "failed", 0, FailedTest(f"t.py::{number}", "bad", "t.py", 3, "line\n" * 1000))
    report = log.report(max_failures=10, max_tokens=2000)
    assert (report.failed, len(report.failures), report.not_described) == (30, 10, 20)
    assert sum(len(one.traceback) for one in report.failures) < 8000
    assert all(one.traceback and one.message == "bad" for one in report.failures)
    bare = log.report(max_failures=10, max_tokens=100)
    assert all(not one.traceback for one in bare.failures)


def test_a_traceback_does_not_repeat_message_and_place() -> None:
    log = RunLog()
    log.fail(FailedTest("a", "bad", "t.py", 3, "bad\nt.py:3"))
    log.fail(FailedTest("b", "bad", "t.py", 3, "bad\nt.py:9: in f\nt.py:3"))
    assert [one.traceback for one in log.failures.values()] == ["", "t.py:9: in f\nt.py:3"]


def test_what_was_collected_and_not_finished_was_not_run() -> None:
    log = RunLog()
    log.add_total(5)
    log.finish("a", "passed", 0.7)
    log.finish("b", "skipped")
    log.start("c")
    log.stopped = "timed_out"
    report = log.report(max_failures=1, max_tokens=100)
    assert (report.collected, report.not_run, report.running) == (5, 3, ["c"])
    assert [(one.id, one.ms) for one in report.slowest] == [("a", 700)]


def test_a_failed_test_stays_recorded_until_it_passes(tmp_path: Path) -> None:
    store = LastFailed(tmp_path / "store")
    store.update(tmp_path, "pytest", ["a.py::x", "a.py::y", "b.py"], [])
    store.update(tmp_path, "pytest", [], ["a.py::x", "c.py::z"])
    assert store.read(tmp_path, "pytest") == {"a.py::y", "b.py"}
    assert store.read(tmp_path, "go") == frozenset()
    store.update(tmp_path, "pytest", [], ["a.py::y", "b.py::one"])
    assert store.read(tmp_path, "pytest") == frozenset()
    assert os.listdir(tmp_path / "store") == []


def test_a_recorded_file_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    store = LastFailed(tmp_path / "store")
    store.update(tmp_path, "pytest", ["a.py::x"], [])
    (file,) = (tmp_path / "store").iterdir()
    file.write_bytes(b"[1, 2")
    assert store.read(tmp_path, "pytest") == frozenset()


async def test_events_come_whole_and_what_is_none_is_left_out() -> None:
    seen: list[object] = []
    with EventPipe(lambda event: seen.append(event["n"])) as pipe:
        folder = pipe.folder

        def write() -> None:
            with open(pipe.path, "wb") as file:
                for data in (
                    b'{"n": 1}\nThread 0x1:\n',
                    b'{"x": ' + b"1" * MAX_EVENT_BYTES + b"2}\n",
                    b'{"n"',
                    b": 2}\n{]\n{}\n",
                ):
                    file.write(data)
                    file.flush()

        async with asyncio.timeout(20):
            await asyncio.to_thread(write)
        pipe.drain()
        assert pipe.stack == "Thread 0x1:\n"
    assert seen == [1, 2]
    assert not folder.exists()


async def test_a_result_fits_the_schema_that_the_tool_announces(tmp_path: Path) -> None:
    code = "def test_a(): pass\n\ndef test_b():\n    print('x')\n    assert 0\n"
    write(tmp_path, {"test_x.py": code})
    async with code_tools(tmp_path, environ=own_environ()) as tools:
        (schema,) = (one.output_schema for one in make_tools(tools.session) if one.name == "crewx_tools_test")
        report = await tools.call("test", targets=["test_x.py"], env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert schema is not None
    jsonschema_rs.Draft202012Validator(schema).validate(report)
    assert (report["passed"], report["failed"]) == (1, 1)
