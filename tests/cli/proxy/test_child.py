"""Which signals a command of `run` gets from us, and which it has already."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from dari.cli.proxy import child
from dari.cli.proxy.child import Signals, run_child

TELLING = """
import os, signal, sys
def tell(number, frame):
    # Not print: a second signal may come while the first one is being written, and a buffered writer refuses that.
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number == signal.SIGTERM:
        sys.exit()
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, tell)
print("ready", flush=True)
while True:
    signal.pause()
"""


async def told(monkeypatch: pytest.MonkeyPatch, *numbers: signal.Signals, is_foreground: bool) -> list[str]:
    """What reaches a command when we get these, and a SIGTERM at last."""
    monkeypatch.setattr(child, "_is_foreground", lambda: is_foreground)
    with Signals() as signals:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", TELLING, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        await process.stdout.readline()
        signals.belong_to(process)
        for number in (*numbers, signal.SIGTERM):
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)
        out, _ = await process.communicate()
    return out.decode().split()


async def test_what_the_terminal_sends_to_all_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1)
    assert sorted(await told(monkeypatch, *sent, is_foreground=True)) == ["SIGTERM", "SIGUSR1"]


async def test_away_from_a_terminal_every_signal_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1)
    names = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1"]
    assert sorted(await told(monkeypatch, *sent, is_foreground=False)) == names


async def test_after_the_command_nothing_interrupts_the_clean_up() -> None:
    with Signals() as signals:
        signals.over()
        for _ in range(3):
            signals._arrived(signal.SIGINT)
        await asyncio.sleep(0)  # where a cancelled task would end
        assert signals.ended_by is None


async def test_a_signal_that_our_caller_ignores_is_ignored_by_the_command_too() -> None:
    program = "import signal, sys; sys.exit(7 if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else 1)"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with Signals() as signals:
            assert await run_child([sys.executable, "-c", program], os.environ, signals) == 7
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)
            assert signals.ended_by is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
