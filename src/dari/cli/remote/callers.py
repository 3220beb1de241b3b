"""The person at the shell as the caller of a server: progress, questions, approvals, what the server logs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dari.bridge.upstream.caller import Caller
from dari.cli.remote.deadlines import Deadline
from dari.cli.remote.meter import Meter
from dari.cli.remote.payloads import pretty
from dari.cli.remote.tracing import masked
from dari.cli.remote.world import World
from dari.core.approval import Approval, ApprovalEvent
from dari.core.context import LoggingMessage
from dari.errors import Conflict, NotFound

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream

WHO = "cli"


@asynccontextmanager
async def calling(world: World, upstream: Upstream, name: str, deadline: Deadline) -> AsyncIterator[Caller]:
    """A caller for one command. What it asked for ends with it: sessions of its own, and questions."""
    person = _Person(world, upstream, name, deadline)
    stop = world.bridge.approvals.subscribe(person.told)
    try:
        yield person.caller
    finally:
        stop()
        person.close()
        if upstream.profile.isolation == "per-client":
            await upstream.end_session(person.caller.session)


class _Person:
    def __init__(self, world: World, upstream: Upstream, name: str, deadline: Deadline) -> None:
        self._world = world
        self._upstream = upstream
        self._deadline = deadline
        self._meter = Meter(world.terminal, name)
        self._tasks: set[asyncio.Task[None]] = set()
        self._waits = ExitStack()
        # One prompt at a time: two questions on one line get each other's answers.
        self._turn = asyncio.Lock()
        self.caller = Caller(
            who=WHO,
            session=f"cli-{secrets.token_hex(8)}",
            ask=self._ask,
            capabilities={"elicitation": {"form": {}, "url": {}}, "roots": {}},
            on_progress=self._meter.show,
            on_waiting=self._waiting,
            on_log=self._log if world.logs else None,
            log_level="debug" if world.logs else None,
        )

    def told(self, told: ApprovalEvent) -> None:
        """Of every approval; ours are known by the session."""
        if told.question.session != self.caller.session:
            return
        if told.change != "asked":
            if told.change != "waiting":
                self._waits.close()
            return
        self._waits.enter_context(self._deadline.paused())
        if self._can_ask:
            task = asyncio.get_running_loop().create_task(self._approve(told.question))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._meter.clear()
            self._world.warn(
                f"{told.question.name} waits for a person (approval {told.question.id})",
                f"in a terminal: {_remote(self._world)} approvals",
            )

    def close(self) -> None:
        self._waits.close()
        self._meter.clear()
        for task in self._tasks:
            task.cancel()

    @property
    def _can_ask(self) -> bool:
        return self._world.terminal.stdin_is_tty and self._world.terminal.stderr_is_tty

    async def _approve(self, question: Approval) -> None:
        from dari.cli.remote.forms import confirmed

        async with self._turn:
            self._meter.clear()
            self._world.note(f"{question.name} needs your approval. Its arguments:")
            self._world.note(pretty(question.arguments))
            is_yes = await confirmed(self._world, "Run it?")
        approvals = self._world.bridge.approvals
        try:
            if is_yes:
                approvals.approve(question.id, by="the person at the terminal")
            else:
                approvals.deny(question.id, by="the person at the terminal")
        except (Conflict, NotFound) as error:
            self._world.warn(error.message)  # somebody answered elsewhere, or the time is over

    async def _ask(self, method: str, params: Raw) -> Any:
        from dari.cli.remote.forms import answer

        with self._deadline.paused():
            async with self._turn:
                self._meter.clear()
                return await answer(method, params, self._world, self._upstream.id)

    def _waiting(self, question: Approval) -> None:
        self._meter.clear()
        self._world.note(f"{question.name} still waits for a person (approval {question.id})")

    def _log(self, record: LoggingMessage) -> None:
        self._meter.clear()
        source = f"{record.logger}: " if isinstance(record.logger, str) else ""
        data = record.data if isinstance(record.data, str) else pretty(record.data)
        self._world.log(masked(self._upstream, f"{self._upstream.id} [{record.level}] {source}{data}"))


def _remote(world: World) -> str:
    return world.program if world.program.endswith("remote") else f"{world.program} remote"
