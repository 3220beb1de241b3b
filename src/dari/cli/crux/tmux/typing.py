"""`send-keys` and the buffers that are pasted."""

from __future__ import annotations

import sys

from dari.cli.crux.tmux.main import Run, Shim
from dari.cli.crux.typing import spell
from dari.errors import InvalidInput, NotFound
from dari.terminal.engine.keys import Key, type_text
from dari.terminal.tmux.commands import Call
from dari.terminal.tmux.requests import keys_of

_OWNER = "buffers"


def send_keys(shim: Shim, call: Call) -> None:
    pane_id = shim.find(call.get("t")).pane.id
    if call.has("X"):
        raise InvalidInput("not in a mode")
    keys: list[Key] = []
    for part in keys_of(call):
        keys += type_text(part) if isinstance(part, str) else [part]
    if keys:
        text, is_literal = spell(keys)
        shim.call("crux:pane/send-keys", pane_id=pane_id, keys=text, literal=is_literal)


def set_buffer(shim: Shim, call: Call) -> None:
    text = call.words[0] if call.words else ""
    if call.has("a"):
        text = shim.state.notes(_OWNER).get(_name(shim, call, is_new=True), "") + text
    shim.call("crux:script/note", owner=_OWNER, name=_name(shim, call, is_new=True), text=text)


def load_buffer(shim: Shim, call: Call) -> None:
    path = call.words[0]
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
    except OSError as error:
        raise InvalidInput(f"{error.strerror}: {path}") from None
    shim.call("crux:script/note", owner=_OWNER, name=_name(shim, call, is_new=True), text=text)


def show_buffer(shim: Shim, call: Call) -> None:
    sys.stdout.write(_held(shim, call))


def save_buffer(shim: Shim, call: Call) -> None:
    path, text = call.words[0], _held(shim, call)
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        with open(path, "a" if call.has("a") else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InvalidInput(f"{error.strerror}: {path}") from None


def list_buffers(shim: Shim, call: Call) -> None:
    for name, text in reversed(list(shim.state.notes(_OWNER).items())):
        shim.print(f'{name}: {len(text.encode())} bytes: "{text[:200]}"')


def delete_buffer(shim: Shim, call: Call) -> None:
    _held(shim, call)
    shim.call("crux:script/note", owner=_OWNER, name=_name(shim, call))


def paste_buffer(shim: Shim, call: Call) -> None:
    pane_id = shim.find(call.get("t")).pane.id
    text, name = _held(shim, call), _name(shim, call)
    if not call.has("p") and not call.has("r"):
        text = text.replace("\n", call.get("s") or "\r")
    shim.call("crux:pane/send-text", pane_id=pane_id, text=text, paste=call.has("p"))
    if call.has("d"):
        shim.call("crux:script/note", owner=_OWNER, name=name)


def _held(shim: Shim, call: Call) -> str:
    name = _name(shim, call)
    text = shim.state.notes(_OWNER).get(name)
    if text is None:
        raise NotFound(f"no buffer {name}" if call.get("b") else "no buffers")
    return text


def _name(shim: Shim, call: Call, *, is_new: bool = False) -> str:
    if (given := call.get("b")) is not None:
        return given
    held = list(shim.state.notes(_OWNER))
    if not is_new:
        return held[-1] if held else ""
    return f"buffer{len(held)}"


COMMANDS: dict[str, Run] = {
    "delete-buffer": delete_buffer,
    "list-buffers": list_buffers,
    "load-buffer": load_buffer,
    "paste-buffer": paste_buffer,
    "save-buffer": save_buffer,
    "send-keys": send_keys,
    "set-buffer": set_buffer,
    "show-buffer": show_buffer,
}
