"""Who types into a pane: agents by default; a person who has taken it over, until they hand it back.

What an agent sends to a pane that a person has is refused. A person who took a pane over and types nothing for ten
minutes has handed it back: a browser may be closed, and agents should not wait for it for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from dari.daemon.caller_scopes import client_of_call, current_caller
from dari.daemon.person import user_name
from dari.errors import Conflict
from dari.text.sanitize import escape_hidden

HOLD_S = 600.0
MAX_TYPISTS = 4
_PLACES = {"app": "console", "cli": "terminal"}


class Typist(Struct, frozen=True):
    """`place` is what the agent calls itself beside the name of its token, or where the person sits: the console, a
    terminal."""

    kind: Literal["agent", "person"]
    name: str
    place: str = ""


def typist_of_call(is_person: Callable[[], bool]) -> Typist:
    """Who makes the present call. `is_person` is asked for callers that could be either: the token of the console is a
    file too, and whatever runs as this user can read it, so its holder must be a hub that no agent started."""
    caller = current_caller()
    if caller is None or caller.principal == "mcp" or not is_person():
        return name_agent(client_of_call() or ("" if caller is None else caller.acts_for))
    return Typist("person", user_name(), _PLACES.get(caller.principal, caller.principal))


@lru_cache(maxsize=64)
def name_agent(who: str) -> Typist:
    """`mcp@token:Name` by the name of its token, which is proved, and by its own name without one."""
    holder, _, name = who.partition(":")  # first: an `@` behind it is the client's own word
    token = holder.partition("@")[2]
    shown, beside = (escape_hidden(each, one_line=True) for each in (token or name, name if token else ""))
    return Typist("agent", shown or "agent", beside)


class InputControl:
    """Of one pane. `on_change` is called when it is taken over or handed back."""

    def __init__(self, pane_id: str, is_person: Callable[[], bool], on_change: Callable[[], None]) -> None:
        self._pane_id = pane_id
        self._is_person = is_person
        self._on_change = on_change
        self._holder: Typist | None = None
        self._until = 0.0
        self.times_taken = 0
        """Tells a page which of two things is the older: what it was answered when it took over, or what it sees."""
        self.last: Typist | None = None
        """Who typed last."""
        self._line: list[Typist] = []

    @property
    def holder(self) -> Typist | None:
        """The person who has the pane now."""
        if self._holder is not None and time.monotonic() >= self._until:
            self._holder = None
        return self._holder

    @property
    def ends_in_s(self) -> float:
        """Until the pane is handed back by itself."""
        return max(0.0, self._until - time.monotonic()) if self.holder is not None else 0.0

    def take(self) -> Typist:
        """For the person who calls."""
        taker = self.caller()
        if taker.kind != "person":
            raise Conflict("an agent cannot take a pane over", "type into it with crux_send_keys or crux_send_text")
        self._holder, self._until = taker, time.monotonic() + HOLD_S
        self.times_taken += 1
        self._on_change()
        return taker

    def hand_back(self) -> None:
        """For the person who calls: an agent waits."""
        self.check()
        if self._holder is not None:
            self._holder = None
            self._on_change()

    def caller(self) -> Typist:
        return typist_of_call(self._is_person)

    def check(self) -> Typist:
        """Who calls; Conflict for an agent while a person has the pane."""
        caller, holder = self.caller(), self.holder
        if holder is not None and caller.kind != "person":
            raise Conflict(
                f"{holder.name} has taken pane {self._pane_id} over and types in it",
                "wait until it is handed back (reading it works meanwhile), or open a pane: crux_create_pane",
            )
        return caller

    def admit(self) -> None:
        """Call before anything is typed; remembers by whom."""
        typist = self.check()
        self.last = typist
        if not self._line or self._line[-1] != typist:
            if typist in self._line:
                self._line.remove(typist)
            self._line = [*self._line[1 - MAX_TYPISTS :], typist]
        if typist.kind == "person" and self._holder is not None:
            self._until = time.monotonic() + HOLD_S

    def take_line(self) -> tuple[Typist, ...]:
        """Those who typed since the last line was entered, the last one at the end."""
        typists, self._line = tuple(self._line), []
        return typists or (() if self.last is None else (self.last,))
