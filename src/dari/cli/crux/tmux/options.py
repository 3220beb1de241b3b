"""`set-option` and `show-options`: kept and shown again; of tmux's own options few mean something to our panes."""

from __future__ import annotations

from dari.cli.crux.tmux.main import Quiet, Run, Shim
from dari.errors import InvalidInput
from dari.terminal.tmux.commands import Call
from dari.terminal.tmux.formats import expand

USUAL = {
    "base-index": "0",
    "pane-base-index": "0",
    "default-terminal": "xterm-256color",
    "escape-time": "0",
    "focus-events": "on",
    "history-limit": "10000",
    "main-pane-height": "24",
    "main-pane-width": "80",
    "mouse": "on",
    "prefix": "C-b",
    "remain-on-exit": "off",
    "status": "on",
}


def set_option(shim: Shim, call: Call) -> None:
    owner = _owner(shim, call)
    name = call.words[0]
    if call.has("u"):
        shim.call("crux:script/note", owner=owner, name=name)
        return
    text = call.words[1] if len(call.words) > 1 else ""
    if call.has("F"):
        text = expand(text, shim.state.scope(shim.find(call.get("t"))))
    before = shim.state.notes(owner).get(name)
    if call.has("o") and before is not None:
        if call.has("q"):
            return
        raise InvalidInput(f"already set: {name}")
    shim.call("crux:script/note", owner=owner, name=name, text=(before or "") + text if call.has("a") else text)


def show_options(shim: Shim, call: Call) -> None:
    owner = _owner(shim, call)
    if not call.words:
        for name, text in sorted(shim.state.notes(owner).items()):
            shim.print(text if call.has("v") else f"{name} {_quoted(text)}")
        return
    name = call.words[0]
    found = shim.state.notes(owner).get(name)
    if found is None and (call.has("A") or call.has("g")):
        found = shim.state.option(name, shim.find(call.get("t"))) or USUAL.get(name)
    if found is not None:
        shim.print(found if call.has("v") else f"{name} {_quoted(found)}")
    elif not name.startswith("@") and name not in USUAL and not call.has("q"):
        raise InvalidInput(f"invalid option: {name}")
    elif name.startswith("@") and not call.has("q"):
        raise Quiet if call.has("v") else InvalidInput(f"invalid option: {name}")


def accept(shim: Shim, call: Call) -> None:
    """Keys, hooks and the like of a client: there is nothing here for them to act on."""


def _owner(shim: Shim, call: Call) -> str:
    if call.has("g") or call.has("s"):
        return "global"
    if call.has("p"):
        return shim.find(call.get("t")).pane.id
    if call.has("w") or call.name in ("set-window-option", "show-window-options"):
        return shim.find(call.get("t"), "window").window.id
    return shim.find(call.get("t"), "session" if (call.get("t") or "")[:1] not in ("@", "%") else "pane").session.id


def _quoted(text: str) -> str:
    if text and not set(text) & set(" \t\"'#;${}~\\"):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


COMMANDS: dict[str, Run] = {
    "bind-key": accept,
    "refresh-client": accept,
    "set-environment": accept,
    "set-hook": accept,
    "set-option": set_option,
    "set-window-option": set_option,
    "show-options": show_options,
    "show-window-options": show_options,
    "source-file": accept,
    "unbind-key": accept,
}
