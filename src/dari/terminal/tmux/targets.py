"""Targets of tmux: `%3`, `session:window.pane`, `{last}`, `:.+1`, `=name`, `@2`, `$0`, `{up-of}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeVar

from dari.errors import InvalidInput, NotFound
from dari.terminal.layout.cells import Area, Side, find_adjacent

Kind = Literal["session", "window", "pane"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TmuxPane:
    id: str
    area: Area


@dataclass(frozen=True, slots=True)
class TmuxWindow:
    """`recent`: ids of panes by when they were active, the active one first. Panes are in tmux's order."""

    id: str
    index: int
    name: str
    panes: tuple[TmuxPane, ...]
    recent: tuple[str, ...]

    @property
    def active(self) -> TmuxPane:
        return next(pane for pane in self.panes if pane.id == self.recent[0])


@dataclass(frozen=True, slots=True)
class TmuxSession:
    """`recent`: ids of windows by when they were current, the current one first."""

    id: str
    name: str
    windows: tuple[TmuxWindow, ...]
    recent: tuple[str, ...]

    @property
    def current(self) -> TmuxWindow:
        return next(window for window in self.windows if window.id == self.recent[0])


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    session: TmuxSession
    window: TmuxWindow
    pane: TmuxPane


_WINDOW_WORDS = {"{start}": "^", "{last}": "!", "{end}": "$", "{next}": "+", "{previous}": "-"}
_PANE_WORDS = {
    "{last}": "!",
    "{next}": "+",
    "{previous}": "-",
    **{f"{{{word}}}": word for word in ("top", "bottom", "left", "right")},
    **{f"{{{row}-{col}}}": f"{row}-{col}" for row in ("top", "bottom") for col in ("left", "right")},
}
_SIDES: dict[str, Side] = {"{up-of}": "up", "{down-of}": "down", "{left-of}": "left", "{right-of}": "right"}


class Targets:
    """Finds what a target names among the sessions, seen from the window where the command was called.

    What is meant without a target is that window's active pane, also when another pane of it called, as in tmux.
    """

    def __init__(self, sessions: Sequence[TmuxSession], here: ResolvedTarget) -> None:
        self._sessions = sessions
        self._here = ResolvedTarget(here.session, here.window, here.window.active)

    def find(self, text: str | None, kind: Kind = "pane") -> ResolvedTarget:
        """The session, window and pane that are meant; NotFound as tmux says it."""
        if not text:
            return self._here
        if text in ("=", "{mouse}", "~", "{marked}"):
            word = "mouse" if text in ("=", "{mouse}") else "marked"
            raise NotFound(f"no {word} target", "name a pane, for example %0")
        session, window, pane, is_split = _parts(text, kind)
        # `=` asks for the whole name, of a session or a window.
        (session, is_session), (window, is_window) = _exact(session), _exact(window)
        if session:
            found = self._session(session, is_session)
            if found is None:
                raise _missing("session", session)
            return self._in_session(found, window, is_window, pane)
        if window:
            place = self._window(window, is_window, window_only=is_split)
            if place is None:
                raise _missing("window", window)
            return self._in_window(place, pane)
        if pane:
            place = self._pane(pane, pane_only=is_split)
            if place is None:
                raise _missing("pane", pane)
            return place
        return self._here

    def find_index(self, text: str | None) -> tuple[TmuxSession, int | None]:
        """The session and the number that a new window gets, which no window needs to have; None: the next one."""
        session_text, window, pane, is_split = _parts(text, "window") if text else ("", "", "", True)
        if pane:
            raise InvalidInput("can't specify pane here", "name a session, or a session and a number: work:3")
        session: TmuxSession | None = self._here.session
        if session_text:
            name, is_exact = _exact(session_text)
            session = self._session(name, is_exact)
        if session is None:
            raise _missing("session", session_text)
        if not window:
            return session, None
        if step := re.fullmatch("([+-])([0-9]{0,9})", window):
            index = session.current.index + int(step[1] + (step[2] or "1"))
            if index < 0:
                raise _missing("window", window)
            return session, index
        if re.fullmatch("[0-9]{1,9}", window):
            return session, int(window)
        found = self.find(text, "window")
        named = None if is_split or window.startswith("@") else _window_of(session, *_exact(window))
        is_session = not is_split and not window.startswith("@") and named is None
        return found.session, None if is_session else found.window.index

    def _in_session(self, session: TmuxSession, window: str, is_window: bool, pane: str) -> ResolvedTarget:
        found: TmuxWindow | None = session.current
        if window:
            found = _window_of(session, window, is_window)
            if found is None:
                raise _missing("window", window)
        assert found is not None
        return self._in_window(ResolvedTarget(session, found, found.active), pane)

    def _in_window(self, place: ResolvedTarget, pane: str) -> ResolvedTarget:
        if not pane:
            return place
        found = _pane_of(place.window, pane)
        if found is None:
            raise _missing("pane", pane)
        return ResolvedTarget(place.session, place.window, found)

    def _session(self, text: str, is_exact: bool = False) -> TmuxSession | None:
        if text.startswith("$"):
            return next((each for each in self._sessions if each.id == text), None)
        return _by_name(self._sessions, text, is_exact, lambda each: each.name)

    def _window(self, text: str, is_exact: bool = False, *, window_only: bool) -> ResolvedTarget | None:
        if text.startswith("@"):
            ordered = [self._here.session, *(each for each in self._sessions if each.id != self._here.session.id)]
            for session in ordered:
                for window in session.windows:
                    if window.id == text:
                        return ResolvedTarget(session, window, window.active)
            return None
        found = _window_of(self._here.session, text, is_exact)
        if found is not None:
            return ResolvedTarget(self._here.session, found, found.active)
        if not window_only and (named := self._session(text)):
            return ResolvedTarget(named, named.current, named.current.active)
        return None

    def _pane(self, text: str, pane_only: bool) -> ResolvedTarget | None:
        if text.startswith("%"):
            ordered = [self._here.session, *(each for each in self._sessions if each.id != self._here.session.id)]
            for session in ordered:
                for window in session.windows:
                    for pane in window.panes:
                        if pane.id == text:
                            return ResolvedTarget(session, window, pane)
            return None
        found = _pane_of(self._here.window, text)
        if found is not None:
            return ResolvedTarget(self._here.session, self._here.window, found)
        return None if pane_only else self._window(text, window_only=False)


def _parts(text: str, kind: Kind) -> tuple[str, str, str, bool]:
    """(session, window, pane, whether a `:` or `.` separates them)."""
    session = window = pane = ""
    is_split = True
    before, colon, after = text.partition(":")
    if colon:
        session = before
        window, _, pane = after.partition(".")
    elif "." in text:
        window, _, pane = text.partition(".")
    else:
        is_split = False
        marked: Kind | None = {"$": "session", "@": "window", "%": "pane"}.get(text[0])  # type: ignore[assignment]
        session, window, pane = (text if (marked or kind) == each else "" for each in ("session", "window", "pane"))
    return session, _WINDOW_WORDS.get(window, window), _PANE_WORDS.get(pane, pane), is_split


def _by_name(found: Sequence[T], text: str, is_exact: bool, name: Callable[[T], str]) -> T | None:
    """By the exact name, else by a start of it, else by a pattern; two that fit are none."""
    exact = [each for each in found if name(each) == text]
    if exact:
        return exact[0] if len(exact) == 1 else None
    if is_exact:
        return None
    some = [each for each in found if name(each).startswith(text)]
    some = some or [each for each in found if fnmatchcase(name(each), text)]
    return some[0] if len(some) == 1 else None


def _window_of(session: TmuxSession, text: str, is_exact: bool = False) -> TmuxWindow | None:
    windows = sorted(session.windows, key=lambda window: window.index)
    if text.startswith("@"):
        return next((window for window in windows if window.id == text), None)
    match = None if is_exact else re.fullmatch("([+-])([0-9]{0,9})", text)
    if match:
        step = int(match[2] or 1)
        at = next(index for index, window in enumerate(windows) if window.id == session.recent[0])
        return windows[(at + (step if match[1] == "+" else -step)) % len(windows)]
    if text == "!" and not is_exact:
        return next((window for window in windows if len(session.recent) > 1 and window.id == session.recent[1]), None)
    if text in ("^", "$") and not is_exact:
        return windows[0 if text == "^" else -1]
    if re.fullmatch("[0-9]{1,9}", text):
        for window in windows:
            if window.index == int(text):
                return window
    return _by_name(windows, text, is_exact, lambda window: window.name)


def _pane_of(window: TmuxWindow, text: str) -> TmuxPane | None:
    panes = window.panes
    if text.startswith("%"):
        return next((pane for pane in panes if pane.id == text), None)
    if text == "!":
        return next((pane for pane in panes if len(window.recent) > 1 and pane.id == window.recent[1]), None)
    cols = max(pane.area.right for pane in panes)
    rows = max(pane.area.bottom for pane in panes)
    if text in _SIDES:
        found = find_adjacent({pane.id: pane.area for pane in panes}, cols, rows, window.active.id, _SIDES[text])
        best = min(found, key=window.recent.index, default=None)
        return next((pane for pane in panes if pane.id == best), None)
    if match := re.fullmatch("([+-])([0-9]{0,9})", text):
        step = int(match[2] or 1)
        at = panes.index(window.active)
        return panes[(at + (step if match[1] == "+" else -step)) % len(panes)]
    if re.fullmatch("[0-9]{1,9}", text):
        return panes[int(text)] if int(text) < len(panes) else None
    if not re.fullmatch(r"(top|bottom)(-left|-right)?|left|right", text):
        return None
    row = 0 if text.startswith("top") else rows - 1 if text.startswith("bottom") else rows // 2
    col = 0 if text.endswith("left") else cols - 1 if text.endswith("right") else cols // 2
    for pane in panes:
        if pane.area.left <= col <= pane.area.right and pane.area.top <= row <= pane.area.bottom:
            return pane
    return None


def _exact(text: str) -> tuple[str, bool]:
    return (text[1:], True) if text.startswith("=") else (text, False)


def _missing(kind: str, text: str) -> NotFound:
    return NotFound(f"can't find {kind}: {text}", "list-panes -a shows all")
