"""A supervisor with real servers: one start for all, restarts, idleness, errors that say why."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dari.bridge.children.channel import ChildSession
from dari.bridge.children.supervision import RestartLimits, ServerState
from dari.bridge.children.supervisor import ServerSupervisor
from dari.errors import TimedOut, Unavailable
from dari.process.child import ChildSpec
from dari.process.children import Children
from tests.support.child_servers import server

pytestmark = pytest.mark.local_mcp

QUICK = RestartLimits(backoff_s=0.01, max_restarts=2)


class Watched:
    """A supervisor whose states can be waited for."""

    def __init__(self, children: Children, spec: ChildSpec, restart: RestartLimits = QUICK, **options: float) -> None:
        self.starts = 0
        self._states: list[ServerState] = []
        self._changed = asyncio.Event()

        async def open_session(init_s: float) -> ChildSession:
            self.starts += 1
            return await ChildSession.open(children, spec, mode="handshake", open_timeout_s=init_s)

        self.supervisor = ServerSupervisor(spec.name, open_session, restart, on_change=self._note, **options)  # type: ignore[arg-type]

    def _note(self, state: ServerState) -> None:
        self._states.append(state)
        self._changed.set()

    async def reached(self, *states: ServerState) -> None:
        """Wait until these have been seen in this order, others in between."""
        while True:
            seen = iter(self._states)
            if all(state in seen for state in states):
                return
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def supervised(spec: ChildSpec, restart: RestartLimits = QUICK, **options: float) -> AsyncIterator[Watched]:
    async with Children() as children:
        watched = Watched(children, spec, restart, **options)
        try:
            yield watched
        finally:
            await watched.supervisor.stop()
            assert not children.running


async def test_all_who_need_it_share_one_start() -> None:
    async with supervised(server()) as watched:

        async def use(n: int) -> str:
            async with watched.supervisor.lease() as session:
                return (await session.client.call_tool(str(n))).text

        assert await asyncio.gather(*map(use, range(50))) == [str(n) for n in range(50)]
        assert (watched.starts, watched.supervisor.state) == (1, ServerState.READY)


async def test_a_caller_who_gives_up_does_not_take_the_start_away() -> None:
    async with supervised(server()) as watched:
        first, second = (asyncio.create_task(watched.supervisor.ensure()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second is watched.supervisor.session
        assert watched.starts == 1


async def test_a_server_that_dies_is_started_again_by_itself() -> None:
    async with supervised(server()) as watched:
        session = await watched.supervisor.ensure()
        os.kill(session.child.pid, signal.SIGKILL)
        await watched.reached(ServerState.READY, ServerState.BACKOFF, ServerState.STARTING, ServerState.READY)
        again = watched.supervisor.session
        assert again is not None and again.child.pid != session.child.pid
        assert watched.supervisor.snapshot().restarts == 1


async def test_a_server_that_crashes_at_every_start_ends_in_a_crash_loop_that_says_why(tmp_path: Path) -> None:
    async with supervised(server(before="raise SystemExit('no database')")) as watched:
        for _ in range(3):
            with pytest.raises(Unavailable) as caught:
                await watched.supervisor.ensure()
            assert "exit status 1" in caught.value.message and "no database" in caught.value.hint
        assert watched.supervisor.state is ServerState.CRASH_LOOP
        with pytest.raises(Unavailable, match=r"crash-loop.* 300 s") as caught:
            await watched.supervisor.ensure()
        assert "no database" in caught.value.hint
        assert watched.starts == 3
        watched.supervisor.reset()
        with pytest.raises(Unavailable, match="exit status 1"):
            await watched.supervisor.ensure()


async def test_who_asks_during_a_long_pause_is_told_why_at_once() -> None:
    async with supervised(server(), RestartLimits(backoff_s=600, max_backoff_s=600, jitter=0)) as watched:
        session = await watched.supervisor.ensure()
        os.kill(session.child.pid, signal.SIGKILL)
        await watched.reached(ServerState.READY, ServerState.BACKOFF)
        with pytest.raises(Unavailable, match="backoff") as caught:
            await watched.supervisor.ensure()
        assert "SIGKILL" in caught.value.hint
        assert watched.starts == 1


async def test_a_program_that_is_not_there_is_told_as_such() -> None:
    async with supervised(ChildSpec("gone", ("no-such-program-anywhere",))) as watched:
        with pytest.raises(Unavailable, match="'no-such-program-anywhere'"):
            await watched.supervisor.ensure()


async def test_a_server_that_hangs_is_given_up_after_its_init_timeout() -> None:
    spec = server(before="sys.stderr.write('waiting for the moon\\n'); sys.stderr.flush(); time.sleep(600)")
    async with supervised(spec, init_s=0.5) as watched:
        with pytest.raises(TimedOut) as caught:
            await watched.supervisor.ensure()
        assert "waiting for the moon" in caught.value.hint


async def test_idleness_ends_it_but_never_during_a_call() -> None:
    async with supervised(server("time.sleep(0.3); text(message, name)"), idle_exit_s=0.05) as watched:
        await watched.supervisor.ensure()  # its rest begins, and ends with the lease
        async with watched.supervisor.lease() as session:
            assert (await session.client.call_tool("slow")).text == "slow"
        await watched.reached(ServerState.READY, ServerState.IDLE)
        await session.child.gone()
        async with watched.supervisor.lease() as again:
            assert (await again.client.call_tool("again")).text == "again"
        assert watched.starts == 2


async def test_a_stop_during_an_idle_exit_waits_for_its_end() -> None:
    async with supervised(server(), idle_exit_s=0.05) as watched:
        await watched.supervisor.ensure()
        await watched.reached(ServerState.READY, ServerState.IDLE)
        await watched.supervisor.stop()  # nothing runs when this returns: checked on the way out
        assert watched.supervisor.state is ServerState.STOPPED


async def test_who_needs_it_while_it_is_ended_gets_it_started_anew_after_the_end() -> None:
    async with supervised(server()) as watched:
        first = await watched.supervisor.ensure()
        ending = asyncio.create_task(watched.supervisor.end())
        await asyncio.sleep(0)
        assert not ending.done()
        second = await watched.supervisor.ensure()
        assert ending.done() and not first.is_open and second.is_open
        assert (watched.starts, watched.supervisor.state) == (2, ServerState.READY)


async def test_an_end_without_a_fault_is_no_failure() -> None:
    async with supervised(server("text(message, name); os._exit(0)")) as watched:
        async with watched.supervisor.lease() as session:
            await session.client.call_tool("bye")
        await watched.reached(ServerState.READY, ServerState.IDLE)
        assert watched.supervisor.snapshot().failures == 0


async def test_never_means_that_a_person_has_to_start_it_again() -> None:
    async with supervised(server(), RestartLimits(policy="never")) as watched:
        session = await watched.supervisor.ensure()
        os.kill(session.child.pid, signal.SIGKILL)
        await watched.reached(ServerState.READY, ServerState.STOPPED)
        with pytest.raises(Unavailable, match="stopped") as caught:
            await watched.supervisor.ensure()
        assert "SIGKILL" in caught.value.hint
        watched.supervisor.reset()
        await watched.supervisor.ensure()


async def test_a_quarantine_ends_it_and_names_its_reason() -> None:
    async with supervised(server()) as watched:
        session = await watched.supervisor.ensure()
        await watched.supervisor.quarantine("its tools changed")
        assert session.child.has_ended
        with pytest.raises(Unavailable):
            await watched.supervisor.ensure()


async def test_a_stop_in_the_middle_of_a_start_leaves_nothing() -> None:
    async with supervised(server(before="time.sleep(600)")) as watched:
        starting = asyncio.create_task(watched.supervisor.ensure())
        await watched.reached(ServerState.STARTING)
        await watched.supervisor.stop()
        with pytest.raises(Unavailable):
            await starting
