"""Text typed with an input method: composed here; only committed text is sent."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import InvalidInput
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.engine.keys import Key
from dari.terminal.input_methods.japanese import Script
from dari.terminal.input_methods.plan import Language, Mode, type_with_ime
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.pane import Pane
from dari.terminal.typed_input import from_keys, from_text

ECHO_S = 2.0
MAX_ECHO_S = 60.0


class InputMethodResult(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`preedits`: what was being composed after each key, which was never sent; only when it was asked for."""

    success: bool
    pane_id: str
    committed: str
    writes: int
    key_count: int
    is_echoed: bool
    preedits: list[str] = []


class InputMethodApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer

    @expose("crux:ime/type", "control", ends_with_caller=True)
    @approvable
    async def type_with_ime(
        self,
        text: str,
        language: Language = "korean",
        pane_id: str = "",
        mode: Mode = "auto",
        script: Script = "hiragana",
        enter: bool = False,
        preedit: bool = False,
        timeout_s: float = ECHO_S,
    ) -> InputMethodResult:
        """Type keys (`gksrmf`) or text (`한글`) as a person with that input method does.

        What is being composed never reaches the program; each commit is one write. Returns when the terminal shows
        what was committed, or after the time with `is_echoed` false: a program that asks for a password shows nothing.
        """
        if not 0 <= timeout_s <= MAX_ECHO_S:
            raise InvalidInput(
                f"timeout_s must be between 0 and {MAX_ECHO_S:g}, got {timeout_s:g}",
                "an echo comes at once or not at all",
            )
        plan = await asyncio.to_thread(type_with_ime, text, language, mode, script=script, shows_preedit=preedit)
        pane = self._all.find(pane_id)
        writes: list[str | Key] = [*plan.writes, Key("enter")] if enter else list(plan.writes)
        inputs = [from_text(write) if isinstance(write, str) else from_keys([write], pane.engine) for write in writes]
        admitted = self._all.input_guard(pane).admit(inputs, approved_message())
        awaited = _awaited(list(plan.writes))
        before = _count(pane, awaited)
        await admitted.send(len(plan.writes))
        is_echoed = bool(awaited) and await _echoed(pane, awaited, before, timeout_s)
        await admitted.send()
        return InputMethodResult(
            success=True,
            pane_id=pane.id,
            committed=plan.committed,
            writes=len(writes),
            key_count=plan.key_count,
            is_echoed=is_echoed,
            preedits=list(plan.preedits),
        )


def _awaited(writes: list[str | Key]) -> str:
    """The last text that stays where it was typed: what comes before a key or a line end may be gone by then."""
    while writes and (isinstance(writes[-1], Key) or not writes[-1].strip()):
        if isinstance(writes[-1], Key) and writes[-1] != Key("enter"):
            return ""
        writes.pop()
    text = ""
    for write in reversed(writes):
        if isinstance(write, Key) or "\r" in write:
            text = write.rpartition("\r")[2] + text if isinstance(write, str) else text
            break
        text = write + text
    return text.strip()


def _count(pane: Pane, text: str) -> int:
    return _shown(pane).count(text) if text else 0


def _shown(pane: Pane) -> str:
    """The screen and what just scrolled off it, without line ends, which a long line gets where it wraps."""
    engine = pane.engine
    return engine.text(-min(engine.history, engine.rows), engine.rows, unwrap=True).replace("\n", "")


async def _echoed(pane: Pane, text: str, before: int, timeout_s: float) -> bool:
    """Follows the output as it comes."""
    news = asyncio.Event()
    stop = pane.events.subscribe(lambda event: news.set())
    try:
        async with asyncio.timeout(timeout_s):
            while _count(pane, text) <= before:
                if not pane.is_alive or pane.is_asking_secret:
                    return False
                news.clear()
                await news.wait()
    except TimeoutError:
        return False
    finally:
        stop()
    return True
