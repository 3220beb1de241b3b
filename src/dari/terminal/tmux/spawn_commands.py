"""`new-session`, `new-window`, `split-window`, `respawn-pane`, and the commands that end them."""

from __future__ import annotations

import os
from typing import Any

from dari.errors import Conflict, InvalidInput
from dari.terminal.engine.engine import MAX_COLS
from dari.terminal.tmux import formats
from dari.terminal.tmux.command_line import TmuxCall, read_number
from dari.terminal.tmux.requests import parse_environment, split_request
from dari.terminal.tmux.shim import Run, Shim
from dari.terminal.tmux.targets import ResolvedTarget


def new_session(shim: Shim, call: TmuxCall) -> None:
    name = call.get("s")
    if name is not None:
        name = session_name(name)
        if any(session.name == name for session in shim.state.sessions):
            if call.has("A"):
                return
            raise Conflict(f"duplicate session: {name}")
    sizes = {way: _cells(call, flag) for way, flag in (("cols", "x"), ("rows", "y"))}
    pane = _open(shim, call, where="window", title=call.get("n") or "", focus=True, **sizes)
    if name is not None:
        shim.call("crux:window/rename", id=pane["window_id"], name=name)
    _print_new(shim, call, pane, formats.NEW_SESSION)


def session_name(wanted: str) -> str:
    """A name without what separates sessions from windows and panes in a target."""
    return wanted.replace(":", "_").replace(".", "_")


def new_window(shim: Shim, call: TmuxCall) -> None:
    if not shim.state.sessions:
        shim.find(call.get("t"), "session")
    session, index = shim.state.targets().find_index(call.get("t"))
    name = call.get("n") or ""
    if call.has("S") and name and index is None and (same := [each for each in session.windows if each.name == name]):
        if len(same) > 1:
            raise InvalidInput(f"multiple windows named {name}", "name one by its number")
        if not call.has("d"):
            show_window(shim, same[0].id)
        return
    there = next((each for each in session.windows if each.index == index), None)
    is_beside = call.has("a") or call.has("b")
    if is_beside:
        beside = there or session.current
        index, there = beside.index + (0 if call.has("b") else 1), None
    if there is not None and not call.has("k"):
        raise Conflict(f"create window failed: index {there.index} in use", "name another number, or add -k")
    is_shown = not call.has("d") or there is session.current
    pane = _open(shim, call, where="tab", target=session.current.active.id, title=name, focus=is_shown)
    if index is not None:
        shim.call("crux:window/move-tab", tab_id=pane["tab_id"], index=index)
    if there is not None:
        _close(shim, [each.id for each in there.panes])
    _print_new(shim, call, pane, formats.NEW_WINDOW)


def show_window(shim: Shim, window_id: str) -> None:
    shim.call("crux:window/show", tab_id=f"t{window_id[1:]}")


def split_window(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    variables = shim.state.variables(place)
    whole = "window" if call.has("f") else "pane"
    wanted = split_request(call, int(variables[f"{whole}_width"]), int(variables[f"{whole}_height"]))
    pane = _open(
        shim,
        call,
        where="split",
        target=place.pane.id,
        direction=wanted.orientation,
        size=wanted.size,
        is_before=wanted.is_before,
        is_full=wanted.is_full,
        focus=wanted.is_focused,
    )
    _print_new(shim, call, pane, formats.SPLIT_WINDOW)


def respawn_pane(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    variables = shim.state.variables(place)
    if variables["pane_dead"] == "0" and not call.has("k"):
        where = f"{place.session.name}:{place.window.index}.{variables['pane_index']}"
        raise Conflict(f"respawn pane failed: pane {where} still active")
    shim.call(
        "crux:pane/respawn",
        pane_id=place.pane.id,
        argv=_program(shim, call) or None,
        cwd=_folder(shim, call, place),
        env=dict(parse_environment(call)) or None,
        force=call.has("k"),
    )


def kill_pane(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    doomed = [pane for pane in place.window.panes if (pane.id != place.pane.id) == call.has("a")]
    _close(shim, [pane.id for pane in doomed])


def kill_window(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"), "window")
    windows = [each for each in place.session.windows if (each.id != place.window.id) == call.has("a")]
    _close(shim, [pane.id for window in windows for pane in window.panes])


def kill_session(shim: Shim, call: TmuxCall) -> None:
    session = shim.find(call.get("t"), "session").session
    sessions = [each for each in shim.state.sessions if (each.id != session.id) == call.has("a")]
    _close(shim, [pane.id for each in sessions for window in each.windows for pane in window.panes])


def _open(shim: Shim, call: TmuxCall, **placed: Any) -> dict[str, Any]:
    here = shim.find(placed["target"]) if "target" in placed else None
    pane: dict[str, Any] = shim.call(
        "crux:pane/open",
        argv=_program(shim, call) or None,
        cwd=_folder(shim, call, here) or shim.caller.cwd,
        env=dict(parse_environment(call)) or None,
        **placed,
    )
    return pane


def _program(shim: Shim, call: TmuxCall) -> list[str]:
    """One word is a line for a shell, several are a program and its arguments."""
    if len(call.words) != 1:
        return list(call.words)
    return [shim.caller.shell, "-c", call.words[0]]


def _folder(shim: Shim, call: TmuxCall, here: ResolvedTarget | None) -> str | None:
    chosen = call.get("c")
    if chosen is None:
        return None
    if here is not None:
        from dari.terminal.tmux.formats import expand

        chosen = expand(chosen, shim.state.scope(here))
    return os.path.normpath(os.path.join(shim.caller.cwd, os.path.expanduser(chosen)))


def _print_new(shim: Shim, call: TmuxCall, pane: dict[str, Any], usual: str) -> None:
    if call.has("P"):
        shim.print_format(call.get("F") or usual, shim.place_of(pane["id"]))


def _cells(call: TmuxCall, flag: str) -> int | None:
    text = call.get(flag)
    if text is None or text == "-":
        return None
    return read_number(text, "width" if flag == "x" else "height", 1, MAX_COLS)


def _close(shim: Shim, panes: list[str]) -> None:
    for pane_id in panes:
        shim.call("crux:pane/close", pane_id=pane_id, force=True)


COMMANDS: dict[str, Run] = {
    "kill-pane": kill_pane,
    "kill-session": kill_session,
    "kill-window": kill_window,
    "new-session": new_session,
    "new-window": new_window,
    "respawn-pane": respawn_pane,
    "split-window": split_window,
}
