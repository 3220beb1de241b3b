"""Test runs that crash, hang, print for ever or leave processes behind: what comes back, and that nothing stays."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dari.codetools.testing import launch
from tests.support.codetools import code_tools
from tests.support.tested_projects import listing, own_environ, run, write
from tests.support.waiting import until

QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
GOOD = "def test_before(): pass\n\n"


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_hang_ends_at_the_time_limit_and_says_where_it_was(tmp_path: Path) -> None:
    code = GOOD + "import threading\n\ndef test_hangs():\n    threading.Event().wait()\n"
    report = run(write(tmp_path, {"test_x.py": code}), timeoutMs=15_000)
    assert (report["stopped"], report["passed"], report["notRun"]) == ("timed_out", 1, 1)
    assert report["running"] == ["test_x.py::test_hangs"]
    (failure,) = report["failures"]
    assert (failure["path"], failure["line"]) == ("test_x.py", 6)
    assert "time limit of" in failure["message"]


def test_a_conftest_that_hangs_is_named_with_its_line(tmp_path: Path) -> None:
    files = {"conftest.py": "import threading\n\nthreading.Event().wait()\n", "test_x.py": GOOD}
    report = run(write(tmp_path, files), timeoutMs=15_000)
    (failure,) = report["failures"]
    assert (report["stopped"], failure["path"], failure["line"]) == ("timed_out", "conftest.py", 3)


def test_a_thread_that_stays_does_not_hold_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "EXIT_GRACE_S", 0.2)
    code = "import threading\n\ndef test_thread():\n    threading.Thread(target=threading.Event().wait).start()\n"
    report = run(write(tmp_path, {"test_x.py": code}))
    assert (report["passed"], report.get("stopped")) == (1, None)
    assert "kept the test process alive" in " ".join(report["notes"])


def test_a_process_that_has_just_ended_is_not_taken_for_one_that_hangs() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        activity = launch._Activity(lambda: [child.pid])
        until_busy = iter(activity.is_busy, False)
        assert next(until_busy) is True
        assert child.stdin is not None
        child.stdin.close()
        child.wait()
        assert [activity.is_busy(), activity.is_busy()] == [True, False]


def test_a_process_that_works_after_its_last_test_is_not_taken_for_one_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "EXIT_GRACE_S", 0.2)
    code = "import atexit\n\natexit.register(lambda: sum(range(150_000_000)))\n\n\ndef test_x(): ...\n"
    report = run(write(tmp_path, {"test_x.py": code}))
    assert (report["passed"], report.get("notes")) == (1, None)


def test_a_segfault_names_the_test_and_leaves_no_core_file(tmp_path: Path) -> None:
    code = GOOD + "import ctypes\n\ndef test_crash():\n    ctypes.string_at(0)\n"
    before = listing(write(tmp_path, {"test_x.py": code}))
    report = run(tmp_path)
    (failure,) = report["failures"]
    assert (report["stopped"], report["passed"], failure["id"]) == ("crashed", 1, "test_x.py::test_crash")
    assert "SIGSEGV" in failure["message"]
    assert (failure["path"], failure["line"]) == ("test_x.py", 6)
    assert listing(tmp_path) == before


def test_an_exit_inside_a_test_is_a_crash_of_that_test(tmp_path: Path) -> None:
    report = run(write(tmp_path, {"test_x.py": GOOD + "import os\n\ndef test_exit():\n    os._exit(0)\n"}))
    (failure,) = report["failures"]
    assert (report["stopped"], failure["id"]) == ("crashed", "test_x.py::test_exit")
    assert "exit code 0" in failure["message"]


def test_a_conftest_that_exits_is_a_crash(tmp_path: Path) -> None:
    report = run(write(tmp_path, {"conftest.py": "import os; os._exit(7)\n", "test_x.py": GOOD}))
    assert report["stopped"] == "crashed"
    assert "exit code 7" in report["failures"][0]["message"]


def test_a_test_that_kills_its_parent_does_not_kill_the_server(tmp_path: Path) -> None:
    kill = "    os.kill(os.getppid(), signal.SIGKILL)\n    signal.pause()\n"
    code = f"{GOOD}import os, signal\n\ndef test_kill():\n{kill}"
    report = run(write(tmp_path, {"test_x.py": code}))
    assert (report["stopped"], report["passed"]) == ("crashed", 1)


def test_a_daemon_that_forked_twice_is_gone_after_the_run(tmp_path: Path) -> None:
    code = """
        import os, pathlib, sys, time

        def test_daemon(tmp_path):
            note = pathlib.Path(__file__).with_name("pid")
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.environ.clear()
                    note.write_text(str(os.getpid()))
                    time.sleep(600)
                os._exit(0)
            os.wait()
            while not note.exists() or not note.read_text():
                time.sleep(0.01)
        """
    report = run(write(tmp_path, {"test_x.py": code}))
    assert report["passed"] == 1
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_cancelling_ends_the_whole_tree(tmp_path: Path) -> None:
    code = """
        import pathlib, subprocess, sys, threading

        def test_server():
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            pathlib.Path(__file__).with_name("pid").write_text(str(child.pid))
            threading.Event().wait()
        """
    write(tmp_path, {"test_x.py": code})
    pid = tmp_path / "pid"
    async with code_tools(tmp_path, environ=own_environ()) as tools:
        running = asyncio.ensure_future(tools.call("test", env=QUICK))
        await until(lambda: pid.exists() and pid.read_text() != "")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not is_alive(int(pid.read_text()))


def test_output_without_end_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MAX_CAPTURED_BYTES", 1 << 20)
    monkeypatch.setattr(launch, "MAX_OUTPUT_BYTES", 1 << 20)
    code = GOOD + "def test_prints():\n    while True:\n        print('y' * 1000)\n"
    write(tmp_path, {"test_x.py": code})
    report = run(tmp_path)
    assert (report["stopped"], report["running"]) == ("output_limit", ["test_x.py::test_prints"])
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -s\n")
    report = run(tmp_path)
    assert (report["stopped"], report["running"]) == ("output_limit", ["test_x.py::test_prints"])


def test_hidden_characters_in_output_and_messages_are_taken_out(tmp_path: Path) -> None:
    code = "def test_x():\n    print('\\x1b[31mred\\x1b[0m \\u202e')\n    assert 0, '\\x1b]0;title\\x07 bad'\n"
    (failure,) = run(write(tmp_path, {"test_x.py": code}))["failures"]
    assert failure["output"].startswith("red")
    assert "\x1b" not in str(failure) and "\u202e" not in str(failure)


def test_a_fork_that_goes_on_with_the_run_is_not_counted_twice(tmp_path: Path) -> None:
    code = "import os\n\ndef test_fork():\n    os.fork()\n\ndef test_after():\n    pass\n"
    report = run(write(tmp_path, {"test_x.py": code}))
    assert (report["passed"], report["collected"]) == (2, 2)


def test_events_that_a_test_forges_do_no_harm(tmp_path: Path) -> None:
    code = """
        import os

        def test_forge():
            for fd in range(3, 64):
                try:
                    if "dari-tests" in os.readlink(f"/proc/self/fd/{fd}"):
                        os.write(fd, b'{"event": "end"}\\n{"event": "capture", "pid": "x"}\\nnonsense\\n{]\\n[1]\\n')
                except OSError:
                    pass
        """
    report = run(write(tmp_path, {"test_x.py": code}))
    assert report["passed"] == 1


def test_the_temporary_folder_of_a_run_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "tmp"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    assert run(write(tmp_path / "project", {"test_x.py": GOOD}))["passed"] == 1
    assert os.listdir(own) == []


def test_reports_that_addopts_ask_for_are_not_written(tmp_path: Path) -> None:
    settings = "[pytest]\naddopts = --junitxml=junit.xml --log-file=a.log\nlog_file = b.log\n"
    code = "import logging\n\ndef test_logs(): logging.warning('x')\n"
    report = run(write(tmp_path, {"pytest.ini": settings, "test_x.py": code}), env=QUICK)
    assert report["passed"] == 1
    assert listing(tmp_path) == ["pytest.ini", "test_x.py"]
