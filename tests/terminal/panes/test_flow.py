"""Much output and much input: everybody gets a turn, nothing grows, nothing is lost."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from dari.errors import Conflict
from dari.process.spawner import Spawner
from dari.terminal.panes import pty as pty_module
from dari.terminal.panes.pane import Pane
from tests.support.panes import pane_in
from tests.support.waiting import until


async def test_panes_that_print_at_full_speed_leave_time_for_others(tmp_path: Path) -> None:
    async with Spawner() as keepers:
        loud = [await Pane.open(keepers, str(n), command=["yes"], cwd=str(tmp_path)) for n in range(6)]
        quiet = await Pane.open(keepers, "quiet", shell="bash", cwd=str(tmp_path), env={"HOME": str(tmp_path)})
        before = [pane.position for pane in loud]
        for number in range(20):
            assert (await quiet.execute(f"echo {number}", 30)).output == str(number)
        await until(lambda: all(pane.position > start for pane, start in zip(loud, before, strict=True)))
        for pane in [*loud, quiet]:
            await pane.close(force=True)


async def test_panes_that_printed_much_at_once_lose_nothing_and_are_heard_again(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as one, pane_in(tmp_path) as two:
        printing = [pane.execute("seq 200000", 60) for pane in (one, two)]
        for result in await asyncio.gather(*printing):
            lines = result.output.split("\n")
            assert (result.exit_code, lines[-1]) == (0, "200000")
        for pane in (one, two):
            assert (await pane.execute("echo heard", 30)).output == "heard"


async def test_a_turn_of_the_loop_is_bounded_however_many_panes_are_loud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    read, turn = pty_module.Pty.read_piece, pty_module.Pump._turn

    def counted(pty: pty_module.Pty, *most_bytes: int, **options: bool) -> bool:
        before = clock()
        has_more = read(pty, *most_bytes, **options)
        turns[-1:] = [turns[-1] + clock() - before]
        return has_more

    def new_turn(pump: pty_module.Pump) -> None:
        turns.append(0)
        turn(pump)

    monkeypatch.setattr(pty_module.Pty, "read_piece", counted)
    monkeypatch.setattr(pty_module.Pump, "_turn", new_turn)
    turns.append(0)
    async with Spawner() as keepers:
        panes = [await Pane.open(keepers, str(n), command=["yes"], cwd=str(tmp_path)) for n in range(8)]
        await until(lambda: len(turns) > 30)
        for pane in panes:
            await pane.close(force=True)
    # One piece may run over the end of a turn; all eight together may not.
    assert sorted(turns)[len(turns) // 2] < 3 * pty_module.TURN_S * 1e9


def clock() -> int:
    """Of this process alone: what else the machine does is not counted."""
    return time.process_time_ns()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_a_paused_pane_makes_its_program_wait(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfor n in range(100000): os.write(1, b'x' * 99 + b'\\n'); open('count', 'w').write(str(n))"
    )
    async with pane_in(tmp_path, command=[sys.executable, "-c", program]) as pane:
        await until(lambda: pane.position > 100_000)
        pane.pause()
        shown = pane.position
        # It waits in its write to the terminal, which is the only thing it can wait for.
        await until(lambda: "tty" in Path(f"/proc/{pane.pid}/wchan").read_text() or state_of(pane.pid) == "S")
        before = (tmp_path / "count").read_text()
        assert pane.position == shown
        pane.resume()
        await until(lambda: (tmp_path / "count").read_text() not in (before, ""))


async def test_a_large_paste_arrives_whole(tmp_path: Path) -> None:
    text = "".join(f"line {n} 한글\n" for n in range(20_000))
    async with pane_in(tmp_path) as pane:
        size = len(text.encode())
        reading = await pane.execute(f"stty raw -echo; echo ready; head -c {size} > got; stty sane", 0.01)
        await pane.wait_for("ready", since=0)
        await pane.write(text.encode())
        assert (await pane.wait_command(reading.command_id, 40)).status == "done"
        assert (tmp_path / "got").read_text() == text


async def test_a_program_that_does_not_read_is_not_fed_for_ever(tmp_path: Path) -> None:
    async with pane_in(tmp_path, command=["sh", "-c", "stty raw -echo; echo ready; sleep 600"]) as pane:
        await pane.wait_for("ready", since=0)
        with pytest.raises(Conflict):
            for _ in range(40):
                pane._put(b"x" * 50_000)


async def test_answers_nobody_reads_do_not_pile_up(tmp_path: Path) -> None:
    program = "stty raw -echo; yes \"$(printf '\\033[6n')\" | head -n 200000; echo; echo asked; sleep 600"
    async with pane_in(tmp_path, command=["sh", "-c", program]) as pane:
        await pane.wait_for("asked", since=0)
        assert pane._pty.queued <= 64 * 1024


async def test_a_pane_whose_output_cannot_be_taken_in_stops_no_other_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All three are loud at once, so that the pump serves them in one turn."""
    async with Spawner() as keepers:
        panes = [await Pane.open(keepers, str(n), command=["yes"], cwd=str(tmp_path)) for n in range(3)]
        await until(lambda: all(pane._pty.is_loud for pane in panes))
        tries = 0

        def fail(data: bytes) -> None:
            nonlocal tries
            tries += 1
            raise ValueError("a fault of ours")

        broken, *others = panes
        broken._pty.on_data = fail
        before = [pane.position for pane in others]
        await until(lambda: tries > 20)
        await until(lambda: all(pane.position > start for pane, start in zip(others, before, strict=True)))
        broken._pty.on_data = broken._show
        shown = broken.position
        await until(lambda: broken.position > shown)
        for pane in panes:
            await pane.close(force=True)
    assert [record.message for record in caplog.records if record.exc_info] == [
        f"output of {broken.tty} could not be taken in"
    ]
