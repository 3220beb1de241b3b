"""The format language of tmux 3.3a: `#{pane_id}`, conditions, comparisons, modifiers and loops, on a map of variables.

Commands (`#(…)`) are never run: they give nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dari.terminal.tmux.modifiers import (
    Modifier,
    apply_after,
    apply_found,
    evaluate,
    find_end,
    is_true,
    match,
    split_modifiers,
)

MAX_DEPTH = 100
MAX_EXPANSION_STEPS = 20_000
MAX_EXPANSION_CHARS = 1 << 20

_LETTERS = {
    "D": "pane_id",
    "F": "window_flags",
    "H": "host",
    "I": "window_index",
    "P": "pane_index",
    "S": "session_name",
    "T": "pane_title",
    "W": "window_name",
    "h": "host_short",
}
_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=", "||", "&&", "m")


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables at one place, and what the loops `S:`, `W:` and `P:` go through from there.

    A place inside a loop that names none of its own goes through those of the place around it.
    """

    variables: Mapping[str, str]
    sessions: Sequence[Scope] = ()
    windows: Sequence[Scope] = ()
    panes: Sequence[Scope] = ()
    is_active: bool = False


class _Stop(Exception):
    """The rest of the text cannot be read; tmux shows what it has so far."""


def expand(text: str, scope: Scope, *, has_time: bool = False) -> str:
    """The text with every `#…` replaced; `has_time`: `%H` and the like mean the time first, as in display-message."""
    return _Expansion(scope, has_time).expand(text)


@dataclass(slots=True)
class _Budget:
    """Shared by an expansion and all inside it: a variable may hold a format that names itself twice."""

    steps: int = MAX_EXPANSION_STEPS
    chars: int = MAX_EXPANSION_CHARS

    @property
    def is_spent(self) -> bool:
        return self.steps <= 0 or self.chars <= 0


@dataclass(slots=True)
class _Expansion:
    scope: Scope
    has_time: bool = False
    depth: int = 0
    budget: _Budget = field(default_factory=_Budget)

    def expand(self, text: str) -> str:
        self.budget.steps -= 1
        if self.depth >= MAX_DEPTH or self.budget.is_spent:
            return ""
        self.depth += 1
        try:
            if self.has_time and "%" in text:
                text = time.strftime(text, time.localtime())
            out: list[str] = []
            try:
                self._expand_into(text, out)
            except _Stop:
                pass
            result = "".join(out)
            self.budget.chars -= len(result)
            return result[:MAX_EXPANSION_CHARS]
        finally:
            self.depth -= 1

    def _expand_into(self, text: str, out: list[str]) -> None:
        at = 0
        while at < len(text):
            if text[at] != "#" or at + 1 >= len(text):
                out.append(text[at])
                at += 1
                continue
            char = text[at + 1]
            if char == "{":
                end = find_end(text, at, "}")
                if end < 0:
                    raise _Stop
                out.append(self._replace(text[at + 2 : end]))
                at = end + 1
            elif char == "(":
                at = _job_end(text, at + 2)
            elif char in "#},":
                run = at
                while run < len(text) and text[run] == "#":
                    run += 1
                if char == "#" and text[run : run + 1] == "[":
                    # Any number of # before a style is for the status line to read.
                    out.append(text[at:run] + "[")
                    at = run + 1
                else:
                    out.append(char)
                    at += 2
            elif char in _LETTERS:
                out.append(self._replace(_LETTERS[char]))
                at += 2
            else:
                out.append("#" + char)
                at += 2

    def _replace(self, key: str) -> str:
        modifiers, rest = split_modifiers(key)
        names = {modifier.name: modifier for modifier in modifiers}
        if "l" in names:
            value = rest
        elif "a" in names:
            code = self.expand(rest)
            value = chr(int(code)) if code.isdecimal() and len(code) < 4 and 32 <= int(code) <= 126 else ""
        elif "S" in names or "W" in names or "P" in names:
            value = self._loop(names, rest)
        elif "N" in names:
            wanted = self.expand(rest)
            is_session = "s" in "".join(names["N"].arguments)
            places = self.scope.sessions if is_session else self.scope.windows
            name = "session_name" if is_session else "window_name"
            value = "1" if any(each.variables.get(name) == wanted for each in places) else "0"
        elif compared := next((modifier for modifier in modifiers if modifier.name in _COMPARISONS), None):
            value = self._compare(compared, rest)
        elif rest.startswith("?"):
            value = self._choose(rest[1:], modifiers)
        elif "e" in names:
            left, right = self._pair(rest, is_expanded=True)
            value = evaluate(names["e"].arguments, left, right)
        elif "#{" in rest:
            value = self.expand(rest)
        else:
            value = self._find(rest, modifiers) or ""
        if "E" in names:
            value = self.expand(value)
        elif "T" in names:
            value = _Expansion(self.scope, True, self.depth, self.budget).expand(value)
        return apply_after(value, modifiers, self.expand)

    def _find(self, name: str, modifiers: Sequence[Modifier]) -> str | None:
        found = self.scope.variables.get(name)
        return None if found is None else apply_found(found, modifiers)

    def _choose(self, text: str, modifiers: Sequence[Modifier]) -> str:
        end = find_end(text, 0, ",")
        if end < 0:
            raise _Stop
        condition = text[:end]
        found = self._find(condition, modifiers)
        if found is None:
            found = self.expand(condition)
            found = "" if found == condition else found
        left, right = self._pair(text[end + 1 :], is_expanded=False)
        return self.expand(left if is_true(found) else right)

    def _compare(self, modifier: Modifier, text: str) -> str:
        left, right = self._pair(text, is_expanded=True)
        outcomes = {
            "||": is_true(left) or is_true(right),
            "&&": is_true(left) and is_true(right),
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
            "<=": left <= right,
            ">=": left >= right,
        }
        is_so = match(modifier.arguments, left, right) if modifier.name == "m" else outcomes[modifier.name]
        return "1" if is_so else "0"

    def _pair(self, text: str, is_expanded: bool) -> tuple[str, str]:
        end = find_end(text, 0, ",")
        if end < 0:
            raise _Stop
        left, right = text[:end], text[end + 1 :]
        return (self.expand(left), self.expand(right)) if is_expanded else (left, right)

    def _loop(self, names: Mapping[str, Modifier], text: str) -> str:
        places = self.scope.sessions if "S" in names else self.scope.windows if "W" in names else self.scope.panes
        end = -1 if "S" in names else find_end(text, 0, ",")
        other, active = (text[:end], text[end + 1 :]) if end >= 0 else (text, text)
        parts = []
        for place in places:
            around = Scope(
                place.variables,
                sessions=place.sessions or self.scope.sessions,
                windows=place.windows or self.scope.windows,
                panes=place.panes or self.scope.panes,
            )
            inner = _Expansion(around, self.has_time, self.depth, self.budget)
            parts.append(inner.expand(active if place.is_active else other))
        return "".join(parts)


def _job_end(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise _Stop


_PANE = (
    "[#{pane_width}x#{pane_height}] [history #{history_size}/#{history_limit}, #{history_bytes} bytes] "
    "#{pane_id}#{?pane_active, (active),}#{?pane_dead, (dead),}"
)
LIST_PANES = "#{pane_index}: " + _PANE
LIST_PANES_OF_SESSION = "#{window_index}.#{pane_index}: " + _PANE
LIST_ALL_PANES = "#{session_name}:#{window_index}.#{pane_index}: " + _PANE
LIST_WINDOWS = (
    "#{window_index}: #{window_name}#{window_raw_flags} (#{window_panes} panes) [#{window_width}x#{window_height}] "
    "[layout #{window_layout}] #{window_id}#{?window_active, (active),}"
)
LIST_ALL_WINDOWS = (
    "#{session_name}:#{window_index}: #{window_name}#{window_raw_flags} (#{window_panes} panes) "
    "[#{window_width}x#{window_height}] "
)
LIST_SESSIONS = (
    "#{session_name}: #{session_windows} windows (created #{t:session_created})"
    "#{?session_grouped, (group ,}#{session_group}#{?session_grouped,),}#{?session_attached, (attached),}"
)
NEW_SESSION = "#{session_name}:"
NEW_WINDOW = "#{session_name}:#{window_index}.#{pane_index}"
SPLIT_WINDOW = NEW_WINDOW
BREAK_PANE = NEW_WINDOW
DISPLAY_MESSAGE = "[#{session_name}] #{window_index}:#{window_name}, current pane #{pane_index} - (%H:%M %d-%b-%y)"
