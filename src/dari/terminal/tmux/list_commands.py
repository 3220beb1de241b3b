"""`list-panes`, `list-windows`, `list-sessions`, `display-message`, `has-session`, `capture-pane`."""

from __future__ import annotations

from dari.errors import InvalidInput
from dari.terminal.tmux import formats
from dari.terminal.tmux.command_line import TmuxCall
from dari.terminal.tmux.formats import expand
from dari.terminal.tmux.input_commands import BUFFERS, buffer_name
from dari.terminal.tmux.modifiers import is_true
from dari.terminal.tmux.requests import capture_range
from dari.terminal.tmux.shim import Run, Shim
from dari.terminal.tmux.targets import ResolvedTarget, TmuxSession, TmuxWindow


def list_panes(shim: Shim, call: TmuxCall) -> None:
    if call.has("a"):
        windows = [(session, window) for session in _by_name(shim) for window in session.windows]
        usual = formats.LIST_ALL_PANES
    elif call.has("s"):
        session = shim.find(call.get("t"), "session").session
        windows, usual = [(session, window) for window in session.windows], formats.LIST_PANES_OF_SESSION
    else:
        place = shim.find(call.get("t"), "window")
        windows, usual = [(place.session, place.window)], formats.LIST_PANES
    _print_all(shim, call, usual, [_place(*each, at) for each in windows for at in range(len(each[1].panes))])


def list_windows(shim: Shim, call: TmuxCall) -> None:
    if call.has("a"):
        sessions, usual = _by_name(shim), formats.LIST_ALL_WINDOWS
    else:
        sessions, usual = [shim.find(call.get("t"), "session").session], formats.LIST_WINDOWS
    places = [ResolvedTarget(session, window, window.active) for session in sessions for window in session.windows]
    _print_all(shim, call, usual, places)


def list_sessions(shim: Shim, call: TmuxCall) -> None:
    places = [ResolvedTarget(each, each.current, each.current.active) for each in _by_name(shim)]
    _print_all(shim, call, formats.LIST_SESSIONS, places)


def display_message(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    text = call.words[0] if call.words else call.get("F") or formats.DISPLAY_MESSAGE
    if call.has("a"):
        for name, value in sorted(shim.state.variables(place).items()):
            shim.print(f"{name}={value}")
    elif call.has("p"):
        shim.print_format(text, place, has_time=True)


def has_session(shim: Shim, call: TmuxCall) -> None:
    shim.find(call.get("t"), "session")


def capture_pane(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    pane_id = place.pane.id
    if call.has("a") and shim.state.variables(place)["alternate_on"] != "1":
        if call.has("q"):
            return
        raise InvalidInput("no alternate screen")
    size = shim.read("crux:pane/get-rows", pane_id=pane_id, start=0, end=-1)
    start, end = capture_range(call, size["history"], size["rows"])
    found = shim.read(
        "crux:pane/get-rows", pane_id=pane_id, start=start, end=end, escapes=call.has("e"), unwrap=call.has("J")
    )
    text = found["text"]
    if not call.has("J"):
        # Rows that are empty are rows, too.
        text += "\n" * (end - start - text.count("\n"))
    if call.has("p"):
        shim.print(text)
    else:
        shim.call("crux:script/note", owner=BUFFERS, name=buffer_name(shim, call, is_new=True), text=text + "\n")


def _print_all(shim: Shim, call: TmuxCall, usual: str, places: list[ResolvedTarget]) -> None:
    for place in places:
        chosen = call.get("f")
        if chosen is None or is_true(expand(chosen, shim.state.scope(place))):
            shim.print_format(call.get("F") or usual, place)


def _by_name(shim: Shim) -> list[TmuxSession]:
    return sorted(shim.state.sessions, key=lambda session: session.name)


def _place(session: TmuxSession, window: TmuxWindow, at: int) -> ResolvedTarget:
    return ResolvedTarget(session, window, window.panes[at])


COMMANDS: dict[str, Run] = {
    "capture-pane": capture_pane,
    "display-message": display_message,
    "has-session": has_session,
    "list-panes": list_panes,
    "list-sessions": list_sessions,
    "list-windows": list_windows,
}
