"""`set-option` and `show-options`, and the table of tmux 3.3a's options: scope, default, values.

Options are stored and shown again; few of them change our panes. Defaults are those of our panes where they differ
from tmux's (a history of 10,000 rows, a mouse that works). Formats and styles of a status line that crux draws itself
are empty or `default`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dari.errors import InvalidInput
from dari.terminal.tmux.command_line import TmuxCall, read_number
from dari.terminal.tmux.formats import expand
from dari.terminal.tmux.shim import Quiet, Run, Shim

Level = Literal["server", "session", "window"]

_SERVER = """
backspace C-?|buffer-limit 50|command-alias|copy-command|default-terminal xterm-256color|editor /usr/bin/vi
escape-time 0|exit-empty off|exit-unattached off|extended-keys off|focus-events on|history-file|message-limit 1000
prompt-history-limit 100|set-clipboard external|terminal-overrides|terminal-features|user-keys
"""
_SESSION = """
activity-action other|assume-paste-time 1|base-index 0|bell-action any|default-command|default-shell|default-size 80x24
destroy-unattached off|detach-on-destroy on|display-panes-active-colour red|display-panes-colour blue
display-panes-time 1000|display-time 750|history-limit 10000|key-table root|lock-after-time 0|lock-command
message-command-style default|message-style default|mouse on|prefix C-b|prefix2 None|renumber-windows on
repeat-time 500|set-titles on|set-titles-string #{pane_title}|silence-action other|status on|status-bg default
status-fg default|status-format|status-interval 15|status-justify left|status-keys emacs|status-left
status-left-length 10|status-left-style default|status-position bottom|status-right|status-right-length 40
status-right-style default|status-style default
update-environment DISPLAY KRB5CCNAME SSH_ASKPASS SSH_AUTH_SOCK SSH_AGENT_PID SSH_CONNECTION WINDOWID XAUTHORITY
visual-activity off|visual-bell off|visual-silence off|word-separators
"""
_WINDOW = """
aggressive-resize off|allow-passthrough off|allow-rename off|alternate-screen on|automatic-rename on
automatic-rename-format #{pane_current_command}|clock-mode-colour blue|clock-mode-style 24
copy-mode-current-match-style default|copy-mode-mark-style default|copy-mode-match-style default|cursor-colour none
cursor-style default|fill-character|main-pane-height 24|main-pane-width 80|mode-keys emacs|mode-style default
monitor-activity off|monitor-bell on|monitor-silence 0|other-pane-height 0|other-pane-width 0
pane-active-border-style fg=green|pane-base-index 0|pane-border-format|pane-border-indicators colour
pane-border-lines single|pane-border-status off|pane-border-style default|pane-colours|popup-border-lines single
popup-border-style default|popup-style default|remain-on-exit off|remain-on-exit-format|scroll-on-clear on
synchronize-panes off|window-active-style default|window-size latest|window-status-activity-style default
window-status-bell-style default|window-status-current-format #I:#W#F|window-status-current-style default
window-status-format #I:#W#F|window-status-last-style default|window-status-separator|window-status-style default
window-style default|wrap-search on|xterm-keys on
"""
ARRAYS = frozenset(
    {
        "command-alias",
        "pane-colours",
        "status-format",
        "terminal-features",
        "terminal-overrides",
        "update-environment",
        "user-keys",
    }
)
_SIZES = frozenset(["main-pane-height", "main-pane-width", "other-pane-height", "other-pane-width"])
_TEXTS = frozenset(("default-size", "clock-mode-style", *_SIZES))
_CHOICES = {
    "activity-action": "none any current other",
    "allow-passthrough": "off on all",
    "bell-action": "none any current other",
    "clock-mode-style": "12 24",
    "cursor-style": "default blinking-block block blinking-underline underline blinking-bar bar",
    "detach-on-destroy": "off on no-detached",
    "extended-keys": "off on always",
    "mode-keys": "emacs vi",
    "pane-border-indicators": "off colour arrows both",
    "pane-border-lines": "single double heavy simple number",
    "pane-border-status": "off top bottom",
    "popup-border-lines": "single double heavy simple rounded padded none",
    "remain-on-exit": "off on failed",
    "set-clipboard": "off external on",
    "silence-action": "none any current other",
    "status": "off on 2 3 4 5",
    "status-justify": "left centre right absolute-centre",
    "status-keys": "emacs vi",
    "status-position": "top bottom",
    "visual-activity": "off on both",
    "visual-bell": "off on both",
    "visual-silence": "off on both",
    "window-size": "largest smallest manual latest",
}
MAX_VALUE = 2**31 - 1
_ON, _OFF = ("on", "yes", "1"), ("off", "no", "0")


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    level: Level
    usual: str

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(_CHOICES.get(self.name, "").split())

    @property
    def is_flag(self) -> bool:
        return self.usual in ("on", "off") and not self.choices

    @property
    def is_number(self) -> bool:
        return self.usual.isdigit() and self.name not in _TEXTS

    def check(self, value: str | None, before: str) -> str:
        """The value as it is kept; without one a flag is turned over. InvalidInput says what tmux says."""
        if self.is_flag:
            if value is None:
                return "off" if before == "on" else "on"
            if value.lower() not in _ON + _OFF:
                raise InvalidInput(f"bad value: {value}")
            return "on" if value.lower() in _ON else "off"
        if self.choices:
            if value is None and self.choices[:2] == ("off", "on") and before in ("off", "on"):
                return "off" if before == "on" else "on"
            if value not in self.choices:
                raise InvalidInput("empty value" if value is None else f"unknown value: {value}")
            return value
        if value is None:
            raise InvalidInput("empty value")
        return str(read_number(value, "value is", 0, MAX_VALUE, f": {value}")) if self.is_number else value


def _read(text: str, level: Level) -> dict[str, Option]:
    entries = (entry.partition(" ") for line in text.split("\n") if line for entry in line.split("|"))
    return {name: Option(name, level, usual) for name, _, usual in entries}


TABLE = dict(sorted((_read(_SERVER, "server") | _read(_SESSION, "session") | _read(_WINDOW, "window")).items()))


def find_option(text: str) -> tuple[Option, int | None]:
    """The option that a name, or the beginning of one, means; with the index in brackets of one that is a list."""
    match = re.fullmatch(r"([^\[\]]+)(?:\[([0-9]{1,9})\])?", text)
    name = match[1] if match is not None else text
    found = [TABLE[name]] if name in TABLE else [option for key, option in TABLE.items() if key.startswith(name)]
    if len(found) > 1:
        raise InvalidInput(f"ambiguous option: {name}")
    if match is None or not found:
        raise InvalidInput(f"invalid option: {name}")
    return found[0], int(match[2]) if match[2] else None


def set_option(shim: Shim, call: TmuxCall) -> None:
    try:
        _set(shim, call)
    except InvalidInput:
        if not call.has("q"):
            raise


def _set(shim: Shim, call: TmuxCall) -> None:
    option, name = _named(call.words[0])
    owner = _owner(shim, call, option)
    if call.has("u") or call.has("U"):
        shim.call("crux:script/note", owner=owner, name=name)
        return
    value = call.words[1] if len(call.words) > 1 else None
    if value is not None and call.has("F"):
        value = expand(value, shim.state.scope(shim.find(call.get("t"))))
    before = shim.state.notes(owner).get(name)
    if call.has("o") and before is not None:
        raise InvalidInput(f"already set: {name}")
    if option is not None and option.name not in ARRAYS:
        value = option.check(value, before if before is not None else _whole(shim, option))
    text = value or ""
    shim.call("crux:script/note", owner=owner, name=name, text=(before or "") + text if call.has("a") else text)


def show_options(shim: Shim, call: TmuxCall) -> None:
    if not call.words:
        _show_all(shim, call)
        return
    try:
        option, name = _named(call.words[0])
    except InvalidInput:
        if call.has("q"):
            return
        raise
    owner = _owner(shim, call, option)
    found, is_inherited = shim.state.notes(owner).get(name), False
    if found is None and option is not None and owner == "global":
        found = _usual(shim, option, name)
    elif found is None and call.has("A"):
        is_inherited = True
        found = shim.state.option(name, shim.find(call.get("t")))
        found = _usual(shim, option, name) if found is None and option is not None else found
    if found is not None:
        _print(shim, call, option, name, found, is_inherited=is_inherited)
    elif option is None and not call.has("q"):
        raise InvalidInput(f"invalid option: {name}") if not call.has("v") else Quiet


def _show_all(shim: Shim, call: TmuxCall) -> None:
    level: Level = "server" if call.has("s") else "session"
    if call.has("w") or call.has("p") or call.name == "show-window-options":
        level = "window"
    owner = _owner(shim, call, None)
    own = dict(shim.state.notes(owner))
    known = {name: _whole(shim, option) for name, option in TABLE.items() if option.level == level}
    if owner == "global":
        # Options of one level only, and what users named themselves (`@…`), which tmux keeps by level, too.
        values = known | {name: text for name, text in own.items() if name in known or name.startswith("@")}
    else:
        values = own
    if call.has("A"):
        place = shim.find(call.get("t"))
        inherited = {name: shim.state.option(name, place) or usual for name, usual in known.items() if name not in own}
    else:
        inherited = {}
    for name, text in sorted((values | inherited).items()):
        _print(shim, call, TABLE.get(name), name, text, is_inherited=name in inherited)


def _print(shim: Shim, call: TmuxCall, option: Option | None, name: str, text: str, *, is_inherited: bool) -> None:
    mark = "*" if is_inherited else ""
    if option is not None and option.name in ARRAYS and name == option.name:
        for index, item in enumerate(text.split()):
            shim.print(item if call.has("v") else f"{name}[{index}]{mark} {_quoted(item)}")
        if not text and not call.has("v"):
            shim.print(name + mark)
        return
    shim.print(text if call.has("v") else f"{name}{mark} {_quoted(text)}")


def set_environment(shim: Shim, call: TmuxCall) -> None:
    """Kept and shown again; panes have the environment that the server was started with."""
    value = None if call.has("u") else f"-{call.words[0]}" if call.has("r") else "=".join((*call.words, "")[:2])
    shim.call("crux:script/note", owner=_environment_owner(shim, call), name=call.words[0], text=value)


def show_environment(shim: Shim, call: TmuxCall) -> None:
    kept = shim.state.notes(_environment_owner(shim, call))
    if call.words and call.words[0] not in kept:
        raise InvalidInput(f"unknown variable: {call.words[0]}")
    for name in call.words or sorted(kept):
        shim.print(kept[name])


def _environment_owner(shim: Shim, call: TmuxCall) -> str:
    return "environment" + ("" if call.has("g") else shim.find(call.get("t"), "session").session.id)


def accept(shim: Shim, call: TmuxCall) -> None:
    """Keys, hooks and the like of a client: there is nothing here for them to act on."""


def _named(word: str) -> tuple[Option | None, str]:
    """The option and the name that it is kept by; one of the user's own (`@…`) is in no table."""
    if word.startswith("@"):
        return None, word
    option, index = find_option(word)
    return option, option.name if index is None else f"{option.name}[{index}]"


def _whole(shim: Shim, option: Option) -> str:
    return shim.caller.shell if option.name == "default-shell" else option.usual


def _usual(shim: Shim, option: Option, name: str) -> str | None:
    """Without being set: all of a list, or one of its items."""
    usual = _whole(shim, option)
    if name == option.name:
        return usual
    items, index = usual.split(), int(name[len(option.name) + 1 : -1])
    return items[index] if index < len(items) else None


def _owner(shim: Shim, call: TmuxCall, option: Option | None) -> str:
    if call.has("g") or call.has("s") or (option is not None and option.level == "server"):
        return "global"
    if call.has("p"):
        return shim.find(call.get("t")).pane.id
    is_of_window = call.has("w") or call.name in ("set-window-option", "show-window-options")
    if is_of_window or (option is not None and option.level == "window"):
        return shim.find(call.get("t"), "window").window.id
    return shim.find(call.get("t"), "session" if (call.get("t") or "")[:1] not in ("@", "%") else "pane").session.id


def _quoted(text: str) -> str:
    if not text:
        return "''"
    if set(text) & set(" \t#';${}%\\"):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'
    return f"'{text}'" if '"' in text else f"\\{text}" if text[0] == "~" else text


COMMANDS: dict[str, Run] = {
    "bind-key": accept,
    "refresh-client": accept,
    "set-environment": set_environment,
    "set-hook": accept,
    "set-option": set_option,
    "set-window-option": set_option,
    "show-environment": show_environment,
    "show-hooks": accept,
    "show-options": show_options,
    "show-window-options": show_options,
    "source-file": accept,
    "unbind-key": accept,
}
