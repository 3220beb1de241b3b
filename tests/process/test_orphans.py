"""Nothing survives: every household is gone after a stop, after a crash, and after the daemon was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dari.errors import Unavailable
from dari.process import reaper
from dari.process.child import Child, ChildSpec, StopTimeouts
from dari.process.children import Children
from dari.process.reaper_main import brand_of, state_of
from dari.process.tag import children_of, find_adopted_zombies
from tests.support.processes import HOUSEHOLDS, IMPATIENT, household, left_of, wait_for_end, wait_for_line
from tests.support.wire import ROOT

DAEMON = [sys.executable, "-m", "tests.support.processes"]


async def ready(children: Children, name: str) -> Child:
    child = await children.start(household(name))
    os.write(child.stdin.fileno(), b"begin\n")
    assert await asyncio.to_thread(wait_for_line, child.stdout.fileno()) == b"ready\n"
    assert len(left_of(child.tag.as_dict())) == HOUSEHOLDS[name][1]
    return child


@pytest.mark.parametrize("name", HOUSEHOLDS)
async def test_a_stop_leaves_nothing(name: str) -> None:
    async with Children() as children:
        child = await ready(children, name)
        await child.stop()
        assert left_of(child.tag.as_dict()) == []
        assert find_adopted_zombies(child.tag.as_dict()) == []
        assert not children.running


@pytest.mark.parametrize("name", HOUSEHOLDS)
async def test_the_end_of_the_owner_leaves_nothing(name: str) -> None:
    async with Children() as children:
        child = await ready(children, name)
        guardians = children.reaper_pids
    assert left_of(child.tag.as_dict()) == []
    assert len(guardians) == 2 and {state_of(one) for one in guardians} == {""}


@pytest.mark.parametrize("name", HOUSEHOLDS)
async def test_a_child_that_is_killed_takes_its_family_along(name: str) -> None:
    async with Children() as children:
        child = await ready(children, name)
        os.kill(child.pid, signal.SIGKILL)
        await child.gone()
        assert child.returncode == -signal.SIGKILL
        assert left_of(child.tag.as_dict()) == []


@contextmanager
def killed_daemon(name: str, *options: str) -> Iterator[tuple[list[int], dict[str, int], int]]:
    """A daemon with one household, its guardians, marks and pid; it is SIGKILLed at the end of the block, and they
    have ended after it."""
    daemon = subprocess.Popen([*DAEMON, name, *options], stdout=subprocess.PIPE, cwd=ROOT)
    assert daemon.stdout is not None
    with daemon.stdout:
        try:
            pids, token, brand = wait_for_line(daemon.stdout.fileno()).decode().split()
            guardians, marks = [int(pid) for pid in pids.split(",")], {token: int(brand)}
            assert len(left_of(marks)) == HOUSEHOLDS[name][1]
            yield guardians, marks, daemon.pid
        finally:
            daemon.kill()
            daemon.wait()
    for pid in guardians:
        wait_for_end(pid)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("name", HOUSEHOLDS)
def test_a_daemon_that_is_sigkilled_leaves_nothing(name: str, loop: str) -> None:
    with killed_daemon(name, *(["--uvloop"] if loop == "uvloop" else [])) as (_, marks, _):
        pass
    assert left_of(marks) == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_daemon_that_is_sigkilled_together_with_one_guardian_leaves_nothing(which: int) -> None:
    with killed_daemon("a setsid grandchild") as (guardians, marks, daemon):
        os.kill(guardians[which], signal.SIGKILL)
        os.kill(daemon, signal.SIGKILL)
    assert left_of(marks) == []


def test_guardians_that_are_killed_one_after_the_other_are_replaced_while_the_daemon_lives() -> None:
    with killed_daemon("a grandchild that lost its parent") as (guardians, marks, daemon):
        for _ in range(2):
            for pid in list(guardians):
                os.kill(pid, signal.SIGKILL)
                wait_for_end(pid)
                guardians.remove(pid)
                guardians += new_guardians(daemon, guardians)
        assert len(guardians) == 2
    assert left_of(marks) == []


def test_guardians_that_are_killed_at_once_are_replaced_while_the_daemon_lives() -> None:
    with killed_daemon("one process") as (guardians, marks, daemon):
        for pid in guardians:
            os.kill(pid, signal.SIGKILL)
        for pid in list(guardians):
            wait_for_end(pid)
            guardians.remove(pid)
        while len(guardians) < 2:
            guardians += new_guardians(daemon, guardians)
    assert left_of(marks) == []


def new_guardians(daemon: int, known: list[int]) -> list[int]:
    """Wait for guardians that are not known yet, and for what they are told."""
    while True:
        found = [pid for pid in children_of(daemon) if is_guardian(pid) and pid not in known]
        if found:
            return found
        time.sleep(0.01)


def is_guardian(pid: int) -> bool:
    try:
        return b"reaper_main.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def test_children_are_ended_when_no_guardian_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Children() as children:
        child = await ready(children, "a setsid grandchild")
        monkeypatch.setattr(reaper.sys, "executable", "/nonexistent/python")
        for pid in children.reaper_pids:
            os.kill(pid, signal.SIGKILL)
        await child.gone()
        assert left_of(child.tag.as_dict()) == []
        with pytest.raises(Unavailable, match="reaper"):
            await children.start(household("one process"))


async def test_a_guardian_that_stands_still_is_replaced_before_the_next_child() -> None:
    async with Children() as children:
        first = await ready(children, "a setsid grandchild")
        stopped = children.reaper_pids
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        while set(children.reaper_pids) & set(stopped):  # their pipes fill up
            children._reapers._say("x" * 4096)
        second = await ready(children, "one process")
        assert len(children.reaper_pids) == 2
        children._reapers.close()
        assert left_of({**first.tag.as_dict(), **second.tag.as_dict()}) == []
        await asyncio.gather(first.gone(), second.gone())


async def test_the_marks_of_those_that_started_us_stay_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_CHILD", "outer")
    async with Children() as children:
        child = await ready(children, "one process")
        environment = Path(f"/proc/{child.pid}/environ").read_bytes().split(b"\0")
        assert f"DARI_CHILD=outer:{child.tag.token}".encode() in environment
        assert left_of({"outer": 0}) == [child.pid]


async def test_the_brand_reaches_grandchildren_and_a_stranger_has_none() -> None:
    async with Children() as children:
        child = await ready(children, "a grandchild with an empty environment")
        assert {brand_of(pid) for pid in left_of(child.tag.as_dict())} == {b"%d" % child.tag.brand}
        assert brand_of(os.getpid()) != b"%d" % child.tag.brand


async def test_a_grandchild_that_holds_stdout_does_not_delay_the_end() -> None:
    async with Children() as children:
        child = await children.start(ChildSpec("holder", ("sh", "-c", "setsid sleep 600 & exit 3")))
        assert await child.ended(5)
        assert child.returncode == 3
        await child.gone()
        assert left_of(child.tag.as_dict()) == []


async def test_a_stubborn_child_is_asked_first_and_killed_five_seconds_after_sigterm_by_default() -> None:
    assert StopTimeouts().after_term_s == 5.0
    async with Children() as children:
        child = await ready(children, "ignores EOF and SIGTERM")
        await child.stop()
        assert child.returncode == -signal.SIGKILL


async def test_eof_alone_ends_a_polite_child() -> None:
    async with Children() as children:
        spec = ChildSpec("polite", ("cat",), patience=StopTimeouts(after_eof_s=15, after_term_s=0))
        child = await children.start(spec)
        await child.stop()
        assert child.returncode == 0


async def test_sigterm_reaches_the_whole_group() -> None:
    # The first process ignores SIGTERM and waits; what it started does not, and tells.
    asked = "import signal, sys; signal.signal(15, lambda *_: sys.exit('asked')); print('ready', flush=True)"
    script = (
        "import signal, subprocess, sys; signal.signal(15, signal.SIG_IGN);"
        f"subprocess.run([sys.executable, '-c', {asked + '; signal.pause()'!r}]); sys.exit(7)"
    )
    async with Children() as children:
        spec = ChildSpec("group", (sys.executable, "-c", script), patience=StopTimeouts(after_eof_s=0, after_term_s=15))
        child = await children.start(spec)
        await asyncio.to_thread(wait_for_line, child.stdout.fileno())
        await child.stop()
        assert (await child.last_words(), child.returncode) == ("asked", 7)


async def test_a_stop_that_is_cancelled_still_ends_everything() -> None:
    async with Children() as children:
        child = await children.start(
            ChildSpec("slow", HOUSEHOLDS["ignores EOF and SIGTERM"][0], patience=StopTimeouts(after_eof_s=60))
        )
        await asyncio.to_thread(wait_for_line, child.stdout.fileno())
        stopping = asyncio.create_task(child.stop())
        await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        await child.gone()
        assert left_of(child.tag.as_dict()) == []


async def test_a_hundred_children_leave_no_descriptor_behind() -> None:
    async with Children() as children:
        await (await children.start(ChildSpec("warm", ("true",), patience=IMPATIENT))).stop()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            started = [await children.start(ChildSpec("short", ("cat",))) for _ in range(10)]
            await asyncio.gather(*(child.stop() for child in started))
        assert len(os.listdir("/proc/self/fd")) <= before
