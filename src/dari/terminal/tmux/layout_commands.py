"""`select-pane`, `resize-pane`, `select-layout`, `swap-pane`, and where windows are."""

from __future__ import annotations

import re

from dari.errors import InvalidInput, NotFound
from dari.terminal.tmux import formats
from dari.terminal.tmux.command_line import TmuxCall, read_number
from dari.terminal.tmux.formats import expand
from dari.terminal.tmux.requests import parse_size, split_request
from dari.terminal.tmux.shim import Run, Shim
from dari.terminal.tmux.spawn_commands import session_name, show_window
from dari.terminal.tmux.targets import ResolvedTarget

SIDES = {"L": "left", "R": "right", "U": "up", "D": "down"}
_FAR = 10**6
MAX_ADJUSTMENT = 2**31 - 1
LAYOUTS = ("even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled")


def select_pane(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    side = next((word for flag, word in SIDES.items() if call.has(flag)), None)
    if call.has("l"):
        _focus_last(shim, place)
    elif (title := call.get("T")) is not None:
        title = expand(title, shim.state.scope(place))
        shim.call("crux:script/note", owner=place.pane.id, name="pane_title", text=title)
        shim.call("crux:pane/rename", pane_id=place.pane.id, name=title[:64])
    elif (style := call.get("P")) is not None:
        shim.call("crux:script/note", owner=place.pane.id, name="window-style", text=style)
    elif side is not None:
        shim.call("crux:pane/focus-side", pane_id=place.pane.id, side=side)
    elif not any(call.has(flag) for flag in "degmM"):
        shim.call("crux:pane/focus", pane_id=place.pane.id)


def last_pane(shim: Shim, call: TmuxCall) -> None:
    _focus_last(shim, shim.find(call.get("t"), "window"))


def _focus_last(shim: Shim, place: ResolvedTarget) -> None:
    if len(place.window.recent) < 2:
        raise NotFound("no last pane")
    shim.call("crux:pane/focus", pane_id=place.window.recent[1])


def resize_pane(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    if call.has("Z"):
        is_zoomed = shim.state.variables(place)["window_zoomed_flag"] == "1"
        pane_id = place.window.active.id if is_zoomed else place.pane.id
        shim.call("crux:pane/zoom", pane_id=pane_id, is_zoomed=not is_zoomed)
        return
    adjustment = read_number(call.words[0], "adjustment", 1, MAX_ADJUSTMENT) if call.words else 1
    sizes = {}
    variables = shim.state.variables(place)
    for flag, way, whole in (("x", "cols", "width"), ("y", "rows", "height")):
        if (text := call.get(flag)) is not None:
            sizes[way] = parse_size(text, int(variables[f"window_{whole}"]))
    panes = len(place.window.panes)
    if sizes and panes > 1:
        shim.call("crux:pane/fit", pane_id=place.pane.id, **sizes)
    for flag, side in SIDES.items():
        if call.has(flag) and panes > 1:
            shim.call("crux:pane/push", pane_id=place.pane.id, side=side, cells=adjustment)


def select_layout(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    owner = place.window.id
    before = shim.state.notes(owner).get("layout", "")
    if call.has("n") or call.has("p"):
        step = 1 if call.has("n") else -1
        at = LAYOUTS.index(before) + step if before in LAYOUTS else 0 if step == 1 else -1
        chosen = LAYOUTS[at % len(LAYOUTS)]
    else:
        chosen = call.words[0] if call.words else before
    if not chosen:
        return
    found = [name for name in LAYOUTS if name.startswith(chosen)]
    if len(found) == 1 or chosen in LAYOUTS:
        name = chosen if chosen in LAYOUTS else found[0]
        shim.call("crux:pane/arrange", preset=name, pane_id=place.pane.id, main_size=_main_size(shim, place, name))
        shim.call("crux:script/note", owner=owner, name="layout", text=name)
        return
    try:
        shim.call("crux:window/set-layout", layout=chosen, pane_id=place.pane.id)
    except InvalidInput:
        raise InvalidInput(f"invalid layout: {chosen}") from None


def _main_size(shim: Shim, place: ResolvedTarget, layout: str) -> str:
    option = {"main-vertical": "main-pane-width", "main-horizontal": "main-pane-height"}.get(layout)
    return (shim.state.option(option, place) or "") if option else ""


def swap_pane(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"))
    panes = place.window.panes
    at = panes.index(place.pane)
    if call.has("U") or call.has("D"):
        other = panes[(at + (1 if call.has("D") else -1)) % len(panes)]
    else:
        other = shim.find(call.get("s")).pane
        if other not in panes:
            raise InvalidInput("swap-pane: crux tmux swaps panes of one window only", "crux tmux --help")
    if other.id != place.pane.id:
        shim.call("crux:pane/swap", pane_id=other.id, other_id=place.pane.id)


def break_pane(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("s"))
    aim = shim.find((call.get("t") or "").partition(":")[0] + ":", "session") if call.get("t") else place
    if len(place.window.panes) == 1 and aim.session is place.session:
        if (name := call.get("n")) is not None:
            shim.call("crux:window/rename", id=f"t{place.window.id[1:]}", name=name)
    else:
        name = call.get("n") or ""
        target = aim.session.current.active.id
        is_shown = not call.has("d")
        shim.call("crux:pane/move", pane_id=place.pane.id, target=target, where="tab", focus=is_shown, title=name)
    if call.has("P"):
        shim.print_format(call.get("F") or formats.BREAK_PANE, shim.find(place.pane.id))


def join_pane(shim: Shim, call: TmuxCall) -> None:
    place, aim = shim.find(call.get("s")), shim.find(call.get("t"))
    if place.pane.id == aim.pane.id:
        raise InvalidInput("source and target panes must be different")
    variables = shim.state.variables(aim)
    whole = "window" if call.has("f") else "pane"
    wanted = split_request(call, int(variables[f"{whole}_width"]), int(variables[f"{whole}_height"]))
    shim.call(
        "crux:pane/move",
        pane_id=place.pane.id,
        target=aim.pane.id,
        direction=wanted.orientation,
        size=wanted.size,
        is_before=wanted.is_before,
        is_full=wanted.is_full,
        focus=wanted.is_focused,
    )


def next_layout(shim: Shim, call: TmuxCall) -> None:
    select_layout(shim, TmuxCall(call.name, {**call.flags, "n": ("",)}, ()))


def previous_layout(shim: Shim, call: TmuxCall) -> None:
    select_layout(shim, TmuxCall(call.name, {**call.flags, "p": ("",)}, ()))


def select_window(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"), "window")
    windows = place.session.windows
    step = 1 if call.has("n") else -1 if call.has("p") else 0
    show_window(shim, windows[(windows.index(place.window) + step) % len(windows)].id)


def next_window(shim: Shim, call: TmuxCall) -> None:
    _step(shim, call, 1)


def previous_window(shim: Shim, call: TmuxCall) -> None:
    _step(shim, call, -1)


def _step(shim: Shim, call: TmuxCall, step: int) -> None:
    session = shim.find(call.get("t"), "session").session
    if len(session.windows) < 2:
        raise NotFound(f"no {'next' if step == 1 else 'previous'} window")
    at = session.windows.index(session.current)
    show_window(shim, session.windows[(at + step) % len(session.windows)].id)


def move_window(shim: Shim, call: TmuxCall) -> None:
    """Within its session: the windows of ours have no gaps between their numbers, so `-r` has nothing to do."""
    if call.has("r"):
        return
    place = shim.find(call.get("s"), "window")
    target = call.get("t") or ""
    number = target.rpartition(":")[2]
    if ":" in target and target.partition(":")[0]:
        session = shim.find(f"{target.partition(':')[0]}:", "session").session
        if session is not place.session:
            raise InvalidInput("move-window: crux tmux moves windows within one session only", "crux tmux --help")
    if re.fullmatch("[0-9]{1,9}", number):
        index = int(number)
    else:
        index = shim.find(target, "window").window.index + (1 if call.has("a") else 0) if number else _FAR
    _move(shim, place.window.id, index)


def swap_window(shim: Shim, call: TmuxCall) -> None:
    place, other = shim.find(call.get("s"), "window"), shim.find(call.get("t"), "window")
    if place.session is not other.session:
        raise InvalidInput("swap-window: crux tmux swaps windows of one session only", "crux tmux --help")
    first, second = sorted((place.window, other.window), key=lambda window: window.index)
    if first is not second:
        _move(shim, second.id, first.index)
        _move(shim, first.id, second.index)


def _move(shim: Shim, window_id: str, index: int) -> None:
    shim.call("crux:window/move-tab", tab_id=f"t{window_id[1:]}", index=index)


def rename_window(shim: Shim, call: TmuxCall) -> None:
    window = shim.find(call.get("t"), "window").window
    shim.call("crux:window/rename", id=f"t{window.id[1:]}", name=call.words[0])


def rename_session(shim: Shim, call: TmuxCall) -> None:
    session = shim.find(call.get("t"), "session").session
    shim.call("crux:window/rename", id=f"w{session.id[1:]}", name=session_name(call.words[0]))


def resize_window(shim: Shim, call: TmuxCall) -> None:
    place = shim.find(call.get("t"), "window")
    variables = shim.state.variables(place)
    cols = parse_size(call.get("x") or variables["window_width"], 0)
    rows = parse_size(call.get("y") or variables["window_height"], 0)
    shim.call("crux:window/resize", window_id=f"w{place.session.id[1:]}", cols=cols, rows=rows)


COMMANDS: dict[str, Run] = {
    "break-pane": break_pane,
    "join-pane": join_pane,
    "last-pane": last_pane,
    "move-pane": join_pane,
    "move-window": move_window,
    "next-layout": next_layout,
    "next-window": next_window,
    "previous-layout": previous_layout,
    "previous-window": previous_window,
    "rename-session": rename_session,
    "rename-window": rename_window,
    "resize-pane": resize_pane,
    "resize-window": resize_window,
    "select-layout": select_layout,
    "select-pane": select_pane,
    "select-window": select_window,
    "swap-pane": swap_pane,
    "swap-window": swap_window,
}
