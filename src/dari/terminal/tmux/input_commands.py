"""`send-keys` and the buffers that are pasted."""

from __future__ import annotations

import re

from dari.errors import InvalidInput, NotFound
from dari.terminal.engine.keys import Key, spell_keys, type_text
from dari.terminal.tmux.command_line import TmuxCall
from dari.terminal.tmux.requests import keys_of
from dari.terminal.tmux.shim import Run, Shim

BUFFERS = "buffers"


def send_keys(shim: Shim, call: TmuxCall) -> None:
    pane_id = shim.find(call.get("t")).pane.id
    if call.has("X"):
        raise InvalidInput("not in a mode")
    keys: list[Key] = []
    for part in keys_of(call):
        keys += type_text(part) if isinstance(part, str) else [part]
    if keys:
        text, is_literal = spell_keys(keys)
        shim.call("crux:pane/send-keys", pane_id=pane_id, keys=text, literal=is_literal)


def set_buffer(shim: Shim, call: TmuxCall) -> None:
    text = call.words[0] if call.words else ""
    if call.has("a"):
        text = shim.state.notes(BUFFERS).get(buffer_name(shim, call, is_new=True), "") + text
    shim.call("crux:script/note", owner=BUFFERS, name=buffer_name(shim, call, is_new=True), text=text)


def show_buffer(shim: Shim, call: TmuxCall) -> None:
    shim.write(held_buffer(shim, call))


def list_buffers(shim: Shim, call: TmuxCall) -> None:
    for name, text in reversed(list(shim.state.notes(BUFFERS).items())):
        shim.print(f'{name}: {len(text.encode())} bytes: "{text[:200]}"')


def delete_buffer(shim: Shim, call: TmuxCall) -> None:
    held_buffer(shim, call)
    shim.call("crux:script/note", owner=BUFFERS, name=buffer_name(shim, call))


def paste_buffer(shim: Shim, call: TmuxCall) -> None:
    pane_id = shim.find(call.get("t")).pane.id
    text, name = held_buffer(shim, call), buffer_name(shim, call)
    if not call.has("p") and not call.has("r"):
        text = text.replace("\n", call.get("s") or "\r")
    shim.call("crux:pane/send-text", pane_id=pane_id, text=text, paste=call.has("p"))
    if call.has("d"):
        shim.call("crux:script/note", owner=BUFFERS, name=name)


def held_buffer(shim: Shim, call: TmuxCall) -> str:
    name = buffer_name(shim, call)
    text = shim.state.notes(BUFFERS).get(name)
    if text is None:
        raise NotFound(f"no buffer {name}" if call.get("b") else "no buffers")
    return text


def buffer_name(shim: Shim, call: TmuxCall, *, is_new: bool = False) -> str:
    if (given := call.get("b")) is not None:
        return given
    held = list(shim.state.notes(BUFFERS))
    if not is_new:
        return held[-1] if held else ""
    numbers = [int(found[1]) for name in held if (found := re.fullmatch(r"buffer(\d{1,9})", name))]
    return f"buffer{max(numbers, default=-1) + 1}"


COMMANDS: dict[str, Run] = {
    "delete-buffer": delete_buffer,
    "list-buffers": list_buffers,
    "paste-buffer": paste_buffer,
    "send-keys": send_keys,
    "set-buffer": set_buffer,
    "show-buffer": show_buffer,
}
