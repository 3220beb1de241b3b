"""Callers that misbehave: half-closed, gone, deaf, many, or speaking nonsense."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dari.daemon.server import MAX_LINES_AHEAD, DaemonLimits
from tests.support.daemons import Demo, code, demo_daemon, session, until_idle, wire
from tests.support.leftovers import open_descriptors

HOLD = {"jsonrpc": "2.0", "id": 1, "method": "demo.hold"}
WATCH = {"jsonrpc": "2.0", "id": 1, "method": "demo.watch"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "system.ping"}


@pytest.mark.parametrize("call", [HOLD, WATCH])
async def test_a_caller_that_closed_its_writing_side_still_gets_its_replies(
    call: dict[str, object], run_dir: Path
) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo), session(run_dir) as connection:
        connection.send(call, PING)
        connection.writer.write_eof()
        await demo.entered.wait()
        async with session(run_dir) as later:
            await later.ask(PING)  # by now the daemon has seen the end of the first connection
        demo.release.set()
        assert (await connection.receive())["result"] == {"held": True}
        assert (await connection.receive())["result"] == {"pong": True}
        assert await connection.ended()


async def test_a_last_line_without_its_newline_is_answered(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        connection.writer.write(b'{"jsonrpc":"2.0","id":9,"method":"system.ping"}')
        connection.writer.write_eof()
        assert (await connection.receive())["id"] == 9
        assert await connection.ended()


async def test_a_call_runs_to_its_end_when_its_caller_leaves(run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo):
        async with session(run_dir) as leaver:
            leaver.send(HOLD)
            await demo.entered.wait()
        async with session(run_dir) as other:
            assert "result" in await other.ask(PING)
        demo.release.set()
        await demo.left.wait()
    assert not demo.was_cancelled


@pytest.mark.parametrize("ahead", [0, 3])
async def test_a_call_that_waits_for_its_caller_ends_when_the_caller_hangs_up(ahead: int, run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo):
        async with session(run_dir) as leaver:
            leaver.send(WATCH, *[PING] * ahead)
            await demo.entered.wait()
        await demo.left.wait()
    assert demo.was_cancelled


@pytest.mark.parametrize("reason", ["it closed its writing side before", "it sent too many lines ahead"])
async def test_a_call_that_waits_for_its_caller_ends_also_when_nothing_is_read_any_more(
    reason: str, run_dir: Path
) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo):
        async with session(run_dir) as leaver:
            leaver.send(WATCH, *[PING] * (0 if "writing" in reason else MAX_LINES_AHEAD + 1))
            if "writing" in reason:
                leaver.writer.write_eof()
            await demo.entered.wait()
            async with session(run_dir) as later:
                await later.ask(PING)  # by now the daemon has read what it reads of the first connection
        await demo.left.wait()
    assert demo.was_cancelled


async def test_lines_that_come_during_a_watched_call_are_answered_after_it(run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo), session(run_dir) as connection:
        connection.send(WATCH)
        await demo.entered.wait()
        connection.send(*({**PING, "id": n} for n in range(200)))
        async with session(run_dir) as other:
            await other.ask(PING)
        demo.release.set()
        assert [(await connection.receive())["id"] for _ in range(201)] == [1, *range(200)]


async def test_what_is_read_ahead_has_a_bound_in_bytes(run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo, limits=DaemonLimits(max_line_bytes=1000)), session(run_dir) as connection:
        connection.send(WATCH)
        await demo.entered.wait()
        connection.send(*[b"x" * 900] * 20)
        async with session(run_dir) as other:
            await other.ask(PING)
        demo.release.set()
        replies = [await connection.receive() for _ in range(21)]
    assert [code(reply) for reply in replies[1:]] == [2] * 20


async def test_a_line_too_long_during_a_watched_call_is_refused_after_it(run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo, limits=DaemonLimits(max_line_bytes=1000)), session(run_dir) as connection:
        connection.send(WATCH, b"x" * 1500)
        await demo.entered.wait()
        demo.release.set()
        assert (await connection.receive())["result"] == {"held": True}
        assert code(await connection.receive()) == 2
        assert await connection.ended()


async def test_a_caller_that_never_reads_is_dropped(run_dir: Path) -> None:
    demo = Demo(result="x" * 2_000_000)
    async with demo_daemon(run_dir, demo, limits=DaemonLimits(write_timeout_s=0.05)), session(run_dir) as deaf:
        deaf.reader._transport.pause_reading()  # type: ignore[attr-defined]
        deaf.send(*[{"jsonrpc": "2.0", "id": 1, "method": "demo.give"}] * 4)
        await until_idle()


async def test_two_hundred_connections_leave_no_descriptor_and_no_task(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        await last_visit(run_dir)
        descriptors, tasks = open_descriptors(), asyncio.all_tasks()
        for batch in range(4):
            await asyncio.gather(*(one_visit(run_dir, batch * 50 + n) for n in range(50)))
        await last_visit(run_dir)
        assert open_descriptors() <= descriptors and asyncio.all_tasks() <= tasks


async def last_visit(run_dir: Path) -> None:
    """A daemon accepts in order: when this one is done with, all before it are."""
    async with session(run_dir):
        pass
    await until_idle()


async def one_visit(run_dir: Path, number: int) -> None:
    """Leave in one of five ways."""
    async with wire(run_dir) as connection:
        if number % 5 == 0:
            return
        if number % 5 == 1:
            connection.send(b"garbage")
            return
        await connection.shake_hands(run_dir)
        if number % 5 == 2:
            connection.send(PING)
        elif number % 5 == 3:
            connection.writer.write_eof()
        else:
            await connection.ask(PING)
