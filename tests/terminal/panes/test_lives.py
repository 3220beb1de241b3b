"""How programs in panes begin and end, and what is left of them: nothing."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dari.errors import Conflict, InvalidInput, NotFound, Unavailable
from dari.process import spawner
from dari.process.reaper_main import state_of
from dari.process.spawner import Spawner
from dari.process.tag import children_of
from dari.terminal.panes import events
from dari.terminal.panes.events import PaneEvent
from dari.terminal.panes.pane import Pane
from tests.support.leftovers import open_descriptors
from tests.support.panes import pane_in
from tests.support.processes import wait_for_end
from tests.support.waiting import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def terminal() -> Iterator[int]:
    """For programs without a pane."""
    master, terminal = pty.openpty()
    yield terminal
    os.close(terminal)
    os.close(master)


@contextmanager
def session_leader() -> Iterator[int]:
    """Like the shell of a terminal."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process.pid
        process.kill()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
async def test_how_a_program_ended_is_told(command: str, code: int, tmp_path: Path) -> None:
    async with pane_in(tmp_path, command=["sh", "-c", command]) as pane:
        assert await pane.exited() == code
        assert not pane.is_alive
        with pytest.raises(Conflict):
            await pane.write(b"x")


async def test_the_last_words_of_a_program_stay_on_its_screen(tmp_path: Path) -> None:
    async with pane_in(tmp_path, command=["sh", "-c", "seq 5000; echo last words"]) as pane:
        await pane.exited()
        assert pane.engine.text(0, 40).rstrip().endswith("4999\n5000\nlast words")
    assert pane.engine.text(0, 40).rstrip().endswith("last words")


async def test_the_shells_exit_ends_the_command_that_asked_for_it(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        result = await pane.execute("echo bye; exit 3", 30)
        assert (result.status, result.exit_code, result.output.splitlines()[0]) == ("done", 3, "bye")
        with pytest.raises(Conflict):
            await pane.execute("echo more")


async def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    async with Spawner() as keepers:
        with pytest.raises(NotFound, match="no-such-program"):
            await Pane.open(keepers, "1", command=["no-such-program", "x"], cwd=str(tmp_path))
        with pytest.raises(InvalidInput, match="nowhere"):
            await Pane.open(keepers, "1", cwd=str(tmp_path / "nowhere"))
        with pytest.raises(NotFound, match="no-such-shell"):
            await Pane.open(keepers, "1", shell="no-such-shell", cwd=str(tmp_path))


async def test_a_pane_has_a_terminal_and_a_session_of_its_own(tmp_path: Path) -> None:
    async with pane_in(tmp_path, cols=77, rows=22) as pane:
        assert (await pane.execute("tty")).output == pane.tty
        assert (await pane.execute("stty size")).output == "22 77"
        assert (await pane.execute("echo $$")).output == str(pane.pid)
        assert os.getsid(pane.pid) == pane.pid
        assert (await pane.execute("cd /usr && pwd")).cwd == "/usr"
        assert pane.cwd() == "/usr"
        process = pane.foreground()
        assert process is not None
        assert (process.name, process.pid) == ("bash", pane.pid)


async def test_the_environment_is_ours_and_not_the_daemons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN_OF_THE_DAEMON", "hidden")
    monkeypatch.setenv("TMUX", "/tmp/other")
    async with pane_in(tmp_path, socket_path="/run/crux.sock", env={"EXTRA": "given"}) as pane:
        shown = (await pane.execute("env")).output
        found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    assert "SECRET_TOKEN_OF_THE_DAEMON" not in found
    assert "TMUX" not in found
    assert "CRUX_NONCE" not in found
    assert {
        name: found[name] for name in ("TERM", "COLORTERM", "TERM_PROGRAM", "CRUX_PANE", "CRUX_SOCKET", "EXTRA")
    } == {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TERM_PROGRAM": "Crux",
        "CRUX_PANE": "1",
        "CRUX_SOCKET": "/run/crux.sock",
        "EXTRA": "given",
    }


async def test_the_users_own_files_are_read_first(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("PS1='mine> '\nPROMPT_COMMAND='true'\nalias hey='echo from the alias'\n")
    async with pane_in(tmp_path) as pane:
        assert (await pane.execute("hey")).output == "from the alias"
        assert (await pane.execute("false")).exit_code == 1
        assert pane.engine.text(0, 1).startswith("mine> hey")
    async with pane_in(tmp_path, is_plain=True) as pane:
        assert (await pane.execute("hey")).exit_code == 127


async def test_a_busy_pane_is_closed_only_by_force(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("sleep 600", 0.1)
        await until(lambda: (found := pane.foreground()) is not None and found.name == "sleep")  # past its exec
        with pytest.raises(Conflict, match="sleep"):
            await pane.close()
        assert pane.is_alive
        await pane.close(force=True)
        assert not pane.is_alive


@linux
async def test_nothing_outlives_its_pane(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("nohup sh -c 'trap \"\" HUP; echo $$ > one; exec sleep 600' >/dev/null 2>&1 &")
        await pane.execute("setsid sh -c 'echo $$ > two; exec sleep 600' &")
        await pane.execute("(setsid sh -c 'echo $$ > three; exec sleep 600' &)")
        files = [tmp_path / name for name in ("one", "two", "three")]
        await until(lambda: all(file.exists() and file.read_text().strip() for file in files))
        pids = [int(file.read_text()) for file in files]
        assert all(map(is_running, pids))
        await pane.close(force=True)
        assert not any(map(is_running, [*pids, pane.pid]))


@linux
@pytest.mark.parametrize("keeper", ["lives", "is killed before", "is killed alone"])
async def test_a_killed_daemon_leaves_no_program_behind(tmp_path: Path, keeper: str) -> None:
    program = f"""
import asyncio, sys
from dari.process.spawner import Spawner
from dari.terminal.panes.pane import Pane
async def main():
    async with Spawner() as keepers:
        pane = await Pane.open(keepers, "1", shell="bash", cwd={str(tmp_path)!r}, env={{"HOME": {str(tmp_path)!r}}})
        await pane.execute("trap '' HUP; nohup sh -c 'echo $$ > one; exec sleep 600' >/dev/null 2>&1 &")
        await pane.execute("setsid sh -c 'echo $$ > two; exec sleep 600' >/dev/null 2>&1 &")
        print(keepers.pid, pane.pid, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""
    daemon = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    try:
        assert daemon.stdout is not None
        pids = [int(word) for word in (await daemon.stdout.readline()).split()]
        files = [tmp_path / "one", tmp_path / "two"]
        await until(lambda: all(file.exists() and file.read_text().strip() for file in files))
        pids += [int(file.read_text()) for file in files]
        assert len(pids) == 4
        assert all(map(is_running, pids))
        if keeper != "lives":
            os.kill(pids[0], signal.SIGKILL)
        if keeper == "is killed alone":
            await until(lambda: not any(map(is_running, pids)))
    finally:
        daemon.kill()
        await daemon.wait()
    await until(lambda: not any(map(is_running, pids)))


def understudies(keeper: int) -> set[int]:
    """Forks of the spawner: they bear its command line."""
    wanted, found = Path(f"/proc/{keeper}/cmdline").read_bytes(), set()
    for pid in children_of(keeper):
        with suppress(OSError):  # it has just been reaped
            if Path(f"/proc/{pid}/cmdline").read_bytes() == wanted:
                found.add(pid)
    return found


@linux
async def test_an_understudy_that_was_killed_is_replaced(tmp_path: Path) -> None:
    async with Spawner() as keepers:
        pane = await Pane.open(keepers, "1", shell="bash", cwd=str(tmp_path), env={"HOME": str(tmp_path)})
        keeper = keepers.pid
        assert keeper is not None
        await pane.execute("setsid sh -c 'echo $$ > one; exec sleep 600' >/dev/null 2>&1 &")
        await until(lambda: (tmp_path / "one").exists() and (tmp_path / "one").read_text().strip())
        detached = int((tmp_path / "one").read_text())
        (understudy,) = understudies(keeper)
        os.kill(understudy, signal.SIGKILL)
        await until(lambda: bool(understudies(keeper) - {understudy}))
        os.kill(keeper, signal.SIGKILL)
        await until(lambda: not any(map(is_running, [detached, pane.pid])))
        await pane.close(force=True)


@linux
async def test_a_pane_whose_keeper_was_killed_a_moment_ago_is_closed(tmp_path: Path) -> None:
    async with Spawner() as keepers:
        pane = await Pane.open(keepers, "1", command=["sleep", "600"], cwd=str(tmp_path))
        assert keepers.pid is not None
        os.kill(keepers.pid, signal.SIGKILL)
        wait_for_end(keepers.pid)  # the loop has not heard of it
        await pane.close(force=True)
        await until(lambda: not is_running(pane.pid))


@linux
async def test_a_killed_keeper_ends_its_panes_and_the_next_one_starts_anew(tmp_path: Path) -> None:
    async with Spawner() as keepers:
        pane = await Pane.open(keepers, "1", shell="bash", cwd=str(tmp_path), env={"HOME": str(tmp_path)})
        assert keepers.pid is not None
        os.kill(keepers.pid, signal.SIGKILL)
        assert await pane.exited() == 129, "as of SIGHUP: its terminal went away"
        await pane.close(force=True)
        await until(lambda: not is_running(pane.pid))
        again = await Pane.open(keepers, "2", shell="bash", cwd=str(tmp_path), env={"HOME": str(tmp_path)})
        assert (await again.execute("echo alive")).output == "alive"
        await again.close(force=True)


@linux
async def test_a_program_of_a_killed_keeper_is_not_looked_for_by_its_number_again(
    terminal: int, tmp_path: Path
) -> None:
    """Its number may be another program's by then, with all that runs in the session of that."""
    async with Spawner() as keepers:
        lost = await keepers.start(["sleep", "600"], env=dict(os.environ), cwd="/", terminal=terminal)
        assert keepers.pid is not None
        os.kill(keepers.pid, signal.SIGKILL)
        await lost.ended.wait()
        again = await Pane.open(keepers, "2", shell="bash", cwd=str(tmp_path), env={"HOME": str(tmp_path)})
        with session_leader() as stranger:
            lost.pid = stranger
            await keepers.end(lost)
            await again.close(force=True)  # by now the keeper has done what it was told
            assert is_running(stranger)


@linux
async def test_a_program_that_starts_when_nobody_waits_for_it_any_more_is_ended(
    terminal: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Spawner() as keepers:
        first = await Pane.open(keepers, "1", command=["sleep", "600"], cwd=str(tmp_path))
        assert keepers.pid is not None
        before = children_of(keepers.pid)
        os.kill(keepers.pid, signal.SIGSTOP)
        monkeypatch.setattr(spawner, "START_S", 0.05)
        with pytest.raises(Unavailable):
            await keepers.start(["sleep", "600"], env=dict(os.environ), cwd="/", terminal=terminal)
        monkeypatch.undo()
        os.kill(keepers.pid, signal.SIGCONT)
        later = await Pane.open(keepers, "2", command=["true"], cwd=str(tmp_path))
        await later.close(force=True)  # by now the keeper has started what it was told before
        await until(lambda: children_of(keepers.pid or 0) == before)
        assert first.is_alive
        await first.close(force=True)


@linux
async def test_a_program_in_a_pane_ignores_and_blocks_no_signal_that_our_starter_did(tmp_path: Path) -> None:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGQUIT, signal.SIGTTOU)}
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        async with pane_in(tmp_path, command=["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]) as pane:
            await pane.exited()
        told = dict(line.split(":") for line in pane.engine.text(0, 5).split("\n") if ":" in line)
        # Bits 31 and 32 are the C library's own.
        assert {name: int(bits, 16) & ~(3 << 31) for name, bits in told.items()} == {"SigBlk": 0, "SigIgn": 0}
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        for number, handler in before.items():
            signal.signal(number, handler)


@linux
async def test_no_other_process_gets_the_number_of_a_pane_that_is_still_there(tmp_path: Path) -> None:
    """The rest of a pane is found by its number: whoever had it then would be ended with the pane."""
    async with Spawner() as keepers:
        pane = await Pane.open(keepers, "1", command=["true"], cwd=str(tmp_path))
        await pane.exited()
        assert state_of(pane.pid) == "Z"
        await pane.close(force=True)
        assert state_of(pane.pid) == ""


@linux
async def test_programs_that_left_their_pane_are_reaped(tmp_path: Path) -> None:
    async with Spawner() as keepers:
        pane = await Pane.open(keepers, "1", shell="bash", cwd=str(tmp_path), env={"HOME": str(tmp_path)})
        await pane.execute("(setsid sh -c 'echo $$ > one; sleep 0.3' &)")
        await until(lambda: (tmp_path / "one").exists() and (tmp_path / "one").read_text().strip())
        detached = int((tmp_path / "one").read_text())
        await until(lambda: state_of(detached) == "")
        await pane.close(force=True)


async def test_panes_leave_no_descriptors_open(tmp_path: Path) -> None:
    async with Spawner() as keepers:
        first = await Pane.open(keepers, "1", command=["true"], cwd=str(tmp_path))
        await first.exited()
        await first.close(force=True)
        before = open_descriptors()
        for _ in range(10):
            pane = await Pane.open(keepers, "1", command=["true"], cwd=str(tmp_path))
            await pane.exited()
            await pane.close(force=True)
        assert open_descriptors() <= before


async def test_events_tell_what_happens(tmp_path: Path) -> None:
    seen: list[PaneEvent] = []
    async with pane_in(tmp_path) as pane:
        pane.events.subscribe(seen.append)
        await pane.execute(r"printf 'x\a\033]2;named\007\033]52;c;aGk=\007'; cd /usr")
        pane.resize(90, 30)
    kinds = [type(event) for event in seen]
    assert events.OutputShown in kinds
    assert events.Bell() in seen
    assert events.TitleChanged("named") in seen
    assert events.CwdChanged("/usr") in seen
    assert events.ClipboardWritten(b"hi") in seen
    assert events.PaneResized(90, 30) in seen
    assert isinstance(seen[-1], events.Exited)
    started = next(event for event in seen if isinstance(event, events.CommandStarted))
    ended = next(event for event in seen if isinstance(event, events.CommandEnded))
    assert (started.command_id, ended.exit_code) == (ended.command_id, 0)


async def test_a_command_that_a_person_typed_is_recorded_too(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("true")
        since = pane.position
        await pane.send_text("echo by hand; false\n")
        await pane.wait_for("by hand", since=since)
        await until(lambda: pane.is_at_prompt)
        record = pane.commands.records[-1]
        assert (record.command, record.exit_code, record.output) == ("echo by hand; false", 1, "by hand")


def test_a_listener_that_names_kinds_of_events_hears_no_others() -> None:
    fanout: events.Fanout[events.PaneEvent] = events.Fanout()
    every, bells = list[events.PaneEvent](), list[events.PaneEvent]()
    fanout.publish(events.Bell())  # to nobody
    fanout.subscribe(every.append)
    stop = fanout.subscribe(bells.append, events.Bell, events.Exited)
    shown: list[events.PaneEvent] = [events.Bell(), events.TitleChanged("x"), events.Exited(0)]
    for event in shown:
        fanout.publish(event)
    stop()
    fanout.publish(events.Bell())
    assert (every, bells) == ([*shown, events.Bell()], [shown[0], shown[2]])


async def test_an_event_stream_drops_the_oldest_when_nobody_reads() -> None:
    fanout: events.Fanout[int] = events.Fanout()
    with fanout.stream(size=3) as stream:
        for number in range(10):
            fanout.publish(number)
        assert [await anext(stream) for _ in range(3)] == [7, 8, 9]
    assert not fanout
