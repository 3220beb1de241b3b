"""Work in a thread behind a progress line."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from dari.cli.kebab.context import KebabContext
from dari.cli.kebab.main import COMMANDS, parser_of
from dari.cli.kebab.progress import ProgressBar, run_cancellable
from dari.knowledge.service import ServiceCache
from tests.support.kebab_command import RememberedConsole

END_S = 10.0


async def test_ctrl_c_ends_the_work_and_waits_for_it(tmp_path: Path) -> None:
    with ServiceCache() as services:
        entry = next(entry for entry in COMMANDS if entry.name == "models")
        arguments = parser_of(entry, "kebab").parse_args(["list"])
        context = KebabContext(RememberedConsole(), services, "kebab", arguments, {}, tmp_path)
        started, ended = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def work(cancel: threading.Event) -> None:
            loop.call_soon_threadsafe(started.set)
            if cancel.wait(END_S):
                ended.set()

        running = asyncio.create_task(run_cancellable(work, context, ProgressBar(context)))
        await asyncio.wait_for(started.wait(), END_S)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert ended.is_set()
