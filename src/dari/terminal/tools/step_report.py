"""Progress of a call that runs steps: one notification when a step begins, one when it has ended, and signs of life."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from dari.core.context import Context
from dari.errors import DariError
from dari.terminal.api.results import StepEvent, StepEvents, StepResult, WorkflowResult
from dari.terminal.tools.presentation import shown

BEAT_S = 5.0
"""A client that gives up on silent calls hears from a long one this often."""
BEAT = 0.001
"""Progress has to grow with each notification, also with those that tell of nothing new."""

Follow = Callable[[int, float], Awaitable[StepEvents]]


class StepReport:
    def __init__(self, context: Context, steps: int) -> None:
        self._context = context
        self._steps = steps
        self._seen = 0
        self._beats = 0
        self._ended: set[int] = set()

    async def during(self, work: Awaitable[WorkflowResult], follow: Follow) -> WorkflowResult:
        """`work`, told of as it goes on; what `follow` did not bring in time is told from the result."""
        if not self._context.wants_progress:
            return await work
        following = asyncio.create_task(self._follow(follow))
        try:
            done = await work
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        for result in done.steps:
            if result.status != "skipped" and result.step not in self._ended:
                await self._tell(result.step, _outcome(result))
        return done

    async def _follow(self, follow: Follow) -> None:
        with suppress(DariError):  # the call itself says what is wrong
            while True:
                events = (await follow(self._seen, BEAT_S)).events
                for event in events:
                    await self._tell(event.step, _outcome(event))
                    if event.status != "started":
                        self._ended.add(event.step)
                if not events:
                    self._beats += 1
                    await self._progress(f"{self._beats * BEAT_S:g} s")

    async def _tell(self, step: int, what: str) -> None:
        self._seen += 1
        await self._progress(f"step {step} of {self._steps}: {what}")

    async def _progress(self, message: str) -> None:
        done = self._seen + self._beats * BEAT
        await self._context.progress(done, 2 * self._steps, shown(message, 200).text)


def _outcome(event: StepEvent | StepResult) -> str:
    where = f"{event.pane} " if event.pane else ""
    if event.status == "started":
        return f"{where}started {event.command}".rstrip()
    why = event.matched or event.reason or ("" if event.exit_code is None else f"exit code {event.exit_code}")
    return f"{where}{event.status}: {why}" if why else f"{where}{event.status}"
