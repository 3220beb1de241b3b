"""`set-option` and `show-options`: kept and shown again; of tmux's own options few mean something to our panes."""

from __future__ import annotations

from dari.errors import InvalidInput
from dari.terminal.tmux.command_line import TmuxCall
from dari.terminal.tmux.formats import expand
from dari.terminal.tmux.option_table import ARRAYS, TABLE, Level, Option, find_option
from dari.terminal.tmux.shim import Quiet, Run, Shim


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
