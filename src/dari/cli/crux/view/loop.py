"""The loop of `crux attach`: keys go to the server as they come, frames come back as something changes."""

from __future__ import annotations

import os
import select
import signal
import time
from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dari.cli.crux.client import CruxClient
from dari.cli.crux.view.chooser import Chooser, StatusPrompt
from dari.cli.crux.view.drawing import BEGIN, Drawing, Ended, Screen
from dari.cli.crux.view.keyboard import Input, Keyboard, MouseReport, PrefixCommand, name_key, split_keys
from dari.errors import DariError
from dari.terminal.paths import CruxPaths

if TYPE_CHECKING:
    from dari.cli.crux.view.palette import ToolPalette

KEY_MS = 30
"""How long the rest of an escape sequence may take; then it was the Escape key."""
ASK_S = 20.0
HELP = (
    '% " split  arrows o focus  Ctrl-arrows size  z zoom  x end  c n p 0-9 tabs  w list  , $ name  [ ] copy  M tools  '
    "d leave"
)
COPY_HELP = "copy mode: arrows, PageUp, g, G move  / ? search, n N again  Space selects, Enter copies  q leaves"
REPEAT_S = 0.5
"""So long after a resize its keys work without the prefix, as in tmux."""
MAX_CLIPBOARD_CHARS = 70_000
"""Terminals take so much of OSC 52."""
PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"
_FAR = 10**6
_ARROWS = ("up", "down", "left", "right")
_RESIZES = {f"{modifier}-{side}": cells for modifier, cells in (("ctrl", 1), ("alt", 5)) for side in _ARROWS}
_DIGITS = tuple("0123456789")
_LAYOUTS = ("even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled")


class AttachView:
    """Three lines to the server: one waits for frames, one carries keys, one asks what a person waits for.

    A program that does not read its keys holds up the second one only.
    """

    def __init__(self, place: CruxPaths, prefix: int, *, has_mouse: bool) -> None:
        self._viewer = os.urandom(8).hex()
        self._frames, self._keys, self._asks = (CruxClient(place, starts=False) for _ in range(3))
        self._keyboard = Keyboard(prefix)
        self._drawing = Drawing(has_mouse=has_mouse)
        self._has_mouse = has_mouse
        self._frame: dict[str, Any] = {}
        self._unanswered = 0
        self._is_confirming = False
        self._is_own_paste = False
        self._prompt: StatusPrompt | None = None
        self._chooser: Chooser | None = None
        self._palette: ToolPalette | None = None
        self._copied = ""
        self._repeats_until = 0.0
        self._layout = -1
        self._end = ""

    def run(self, window: str, pane: str) -> str:
        """Until the person leaves or nothing is left; says which."""
        self._where = {"window_id": window} if window else {"pane_id": pane}
        try:
            with Screen(has_mouse=self._has_mouse) as screen:
                self._screen = screen
                self._converse()
        except Ended as ended:
            self._end = f"ended by {ended}"
        except OSError as error:  # the terminal is gone
            self._end = f"ended: {error.strerror}"
        finally:
            for client in (self._frames, self._keys, self._asks):
                client.close()
            if self._palette is not None:
                self._palette.close()
        return self._end

    def _converse(self) -> None:
        self._ask_frame(0)
        while not self._end:
            poll = select.poll()
            for descriptor in (0, self._screen.wakeup, self._frames.fileno(), self._keys.fileno()):
                poll.register(descriptor, select.POLLIN)
            if self._palette is not None:
                poll.register(self._palette.fileno(), select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(KEY_MS if self._keyboard.is_waiting else None)}
            if not ready:
                self._use(self._keyboard.flush())
            if self._palette is not None and self._palette.fileno() in ready:
                self._use_palette(self._palette.read)
            if self._screen.wakeup in ready:
                self._wake(self._screen.woken())
            if 0 in ready:
                data = self._screen.read()
                if not data:
                    self._end = "the terminal was closed"
                    return
                self._use(self._keyboard.feed(data))
            if self._keys.fileno() in ready:
                self._take_answers()
            if self._frames.fileno() in ready and not self._end:
                self._show(self._frames.answer("crux:attach/frame"))
        self._try("crux:attach/leave")

    # Frames

    def _ask_frame(self, known: int) -> None:
        cols, rows = self._screen.size
        depth = "true" if os.environ.get("COLORTERM", "") in ("truecolor", "24bit") else "256"
        params = {"viewer": self._viewer, "cols": cols, "rows": max(1, rows - 1), "known": known, "depth": depth}
        self._frames.ask("crux:attach/frame", **params, **self._where, timeout_s=ASK_S)

    def _show(self, frame: dict[str, Any]) -> None:
        if frame["is_over"]:
            self._end = "exited"
            return
        if frame["panes"]:  # else nothing happened for a while
            self._frame = frame
            self._where = {"window_id": frame["window_id"]}
            if self._chooser is None:
                drawn = self._drawing.draw(frame, *self._screen.size)
                self._screen.has_keyboard = self._drawing.has_keyboard
                self._screen.write(drawn)
                self._draw_palette()
        self._ask_frame(frame["version"])

    def _tell(self, message: str) -> None:
        self._drawing.message = message
        self._screen.write(BEGIN + self._drawing.finish(*self._screen.size))

    def _wake(self, numbers: bytes) -> None:
        if signal.SIGCONT in numbers:
            self._screen.take()
            self._draw_again()
        elif signal.SIGWINCH in numbers:
            cols, rows = self._screen.size
            # Before the first frame nobody knows us; the next question carries the size.
            if self._frame:
                self._try("crux:attach/resize", cols=cols, rows=max(1, rows - 1))
            if self._chooser is not None:
                self._screen.write(self._chooser.draw(cols, rows))

    def _draw_again(self) -> None:
        self._screen.write(self._drawing.undo_modes())  # the next frame may be of another program
        self._drawing = Drawing(has_mouse=self._has_mouse)
        try:
            self._asks.call("crux:attach/redraw", viewer=self._viewer)
        except DariError as error:
            if error.name != "not_found":  # we were away for long: the next frame is a first one
                raise

    # Input

    def _use(self, found: list[Input]) -> None:
        for each in found:
            if self._end:
                return
            if isinstance(each, MouseReport) and self._chooser is None and self._palette is None:
                self._send(
                    "crux:attach/mouse",
                    action=each.action,
                    button=each.button,
                    col=each.col,
                    row=each.row,
                    modifiers=list(each.modifiers),
                )
            elif isinstance(each, PrefixCommand):
                self._chooser = self._prompt = None
                self._close_palette()
                self._command(each.key)
            elif isinstance(each, MouseReport):
                continue
            else:
                self._use_typed(each.data)

    def _use_typed(self, data: bytes) -> None:
        """Keys to what they are for: one after the other while something of ours is open, the rest to the program."""
        if self._has_keys or self._is_own_paste or time.monotonic() < self._repeats_until:
            keys = split_keys(data)
            while keys and (self._has_keys or self._is_own_paste):
                self._use_own(keys.pop(0))
            while keys and time.monotonic() < self._repeats_until and name_key(keys[0]) in _RESIZES:
                self._resize(name_key(keys.pop(0)))
            data = b"".join(keys)
        if data:
            self._repeats_until = 0.0
            if self._drawing.message:
                self._tell("")
            self._send("crux:attach/type", data=b64encode(data).decode())

    def _use_own(self, key: bytes) -> None:
        """A paste that begins here is ours to its end, whatever closes meanwhile; a line end in it is no Enter."""
        if key in (PASTE_BEGIN, PASTE_END):
            self._is_own_paste = key == PASTE_BEGIN
        if self._has_keys:
            is_line_end = self._is_own_paste and key in (b"\r", b"\n")
            self._use_key(" " if is_line_end else name_key(key))

    @property
    def _has_keys(self) -> bool:
        """Whether what is typed is for us, not for the program."""
        is_open = self._is_confirming or bool(self._prompt or self._chooser or self._palette)
        return is_open or bool(self._frame.get("is_copying"))

    def _use_key(self, key: str) -> None:
        if self._palette is not None:
            palette = self._palette
            self._use_palette(lambda: palette.feed(key))
        elif self._chooser is not None:
            self._choose(self._chooser, key)
        elif self._prompt is not None:
            self._edit(self._prompt, key)
        elif self._is_confirming:
            self._confirm(key)
        else:
            self._use_copy_mode(key)

    def _send(self, method: str, **params: Any) -> None:
        """Without waiting: the answer is taken when it comes."""
        self._keys.ask(method, viewer=self._viewer, **params)
        self._unanswered += 1

    def _take_answers(self) -> None:
        while self._unanswered:
            try:
                self._keys.answer("crux:attach/type")
            except DariError as error:
                if error.name == "unavailable":
                    raise
                self._tell(error.message)
            self._unanswered -= 1
            if not self._keys.has_answer:
                return
        # Readable without a question: it hung up.
        self._keys.answer("crux:attach/type")

    def _try(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask and wait; what is refused is shown in the status line, and nothing is the answer."""
        if method.startswith("crux:attach/"):
            params["viewer"] = self._viewer
        try:
            return dict(self._asks.call(method, **params))
        except DariError as error:
            if error.name == "unavailable":
                raise
            self._tell(error.message)
            return {}

    def _command(self, key: str) -> None:
        pane = self._frame.get("focused", "")
        if self._drawing.message:
            self._tell("")
        if key == "d":
            self._end = f"left window {self._frame.get('window', '')}; its programs go on"
        elif key in ("%", '"'):
            direction = "horizontal" if key == "%" else "vertical"
            self._try("crux:pane/open", target=pane, direction=direction)
        elif key in _ARROWS:
            self._try("crux:pane/focus-side", pane_id=pane, side=key)
        elif key == "z":
            self._try("crux:pane/zoom", pane_id=pane)
        elif key == "o":
            self._focus_next(pane)
        elif key in _RESIZES:
            self._resize(key)
        elif key == "x":
            self._is_confirming = True
            self._tell(f"end pane {pane} and what runs in it? (y/n)")
        elif key == "c":
            self._try("crux:pane/open", target=pane, where="tab")
        elif key in ("n", "p", *_DIGITS):
            self._show_tab(key)
        elif key in ("(", ")"):
            self._try("crux:attach/window", step=1 if key == ")" else -1)
        elif key in ("w", "s"):
            self._open_chooser()
        elif key in (",", "$"):
            self._ask_name(of_window=key == "$")
        elif key in ("[", "page_up"):
            self._copy("enter")
            self._tell(COPY_HELP)
            if key == "page_up":
                self._copy("scroll", rows=-self._page())
        elif key == "]":
            self._paste()
        elif key == " ":
            self._layout = (self._layout + 1) % len(_LAYOUTS)
            self._try("crux:pane/arrange", preset=_LAYOUTS[self._layout], pane_id=pane)
        elif key == "r":
            self._draw_again()
        elif key == "M":
            self._open_palette()
        else:
            self._tell(HELP if key == "?" else f"no command for this key; {HELP}")

    def _focus_next(self, pane: str) -> None:
        panes = [each["id"] for each in self._frame.get("panes", ())]
        if pane in panes:
            self._try("crux:pane/focus", pane_id=panes[(panes.index(pane) + 1) % len(panes)])

    def _show_tab(self, key: str) -> None:
        tabs = [tab["id"] for tab in self._frame.get("tabs", ())]
        at = tabs.index(self._frame["tab"]) if tabs else 0
        wanted = int(key) if key in _DIGITS else (at + (1 if key == "n" else -1)) % max(1, len(tabs))
        if wanted < len(tabs):
            self._try("crux:window/show", tab_id=tabs[wanted])
        else:
            self._tell(f"no tab has the number {key}")

    def _confirm(self, key: str) -> None:
        self._is_confirming = False
        self._tell("")
        if key in ("y", "Y"):
            self._try("crux:pane/close", pane_id=self._frame.get("focused", ""), force=True)

    # Size

    def _resize(self, key: str) -> None:
        side = key.partition("-")[2]
        self._try("crux:pane/push", pane_id=self._frame.get("focused", ""), side=side, cells=_RESIZES[key])
        self._repeats_until = time.monotonic() + REPEAT_S

    # Names

    def _ask_name(self, *, of_window: bool) -> None:
        frame = self._frame
        shown = frame.get("tab", "")
        tab = next((each["name"] for each in frame.get("tabs", ()) if each["id"] == shown), "")
        found, name = (frame.get("window_id", ""), frame.get("window", "")) if of_window else (shown, tab)

        def rename(text: str) -> None:
            self._try("crux:window/rename", id=found, name=text)

        self._open_prompt(StatusPrompt(f"name of the {'window' if of_window else 'tab'}: ", rename, name))

    def _open_prompt(self, prompt: StatusPrompt) -> None:
        self._prompt = prompt
        self._tell(prompt.line)

    def _edit(self, prompt: StatusPrompt, key: str) -> None:
        prompt.feed(key)
        if prompt.is_open:
            self._tell(prompt.line)
        elif self._prompt is prompt:
            self._prompt = None
            if self._drawing.message == prompt.line:
                self._tell("")

    # The list of windows

    def _open_chooser(self) -> None:
        overview = self._try("crux:window/list")
        if overview.get("windows"):
            self._chooser = Chooser(overview, self._frame.get("focused", ""))
            self._screen.write(self._chooser.draw(*self._screen.size))

    def _choose(self, chooser: Chooser, key: str) -> None:
        chooser.feed(key)
        if chooser.is_open:
            self._screen.write(chooser.draw(*self._screen.size))
            return
        self._chooser = None
        if (chosen := chooser.chosen) is not None:
            self._try("crux:attach/window", window_id=chosen.window)
            if chosen.tab:
                self._try("crux:window/show", tab_id=chosen.tab)
            if chosen.pane:
                self._try("crux:pane/focus", pane_id=chosen.pane)
        self._draw_again()

    # The tool palette, over the panes, which go on being drawn below it

    def _open_palette(self) -> None:
        from dari.cli.crux.view.hub_tools import HubTools
        from dari.cli.crux.view.palette import ToolPalette

        self._tell("connecting to the hub …")
        try:
            self._palette = ToolPalette(HubTools(), self._type_result)
        except DariError as error:
            self._tell(f"{error.message}; {error.hint}")
            return
        self._tell("")
        self._draw_palette()

    def _use_palette(self, work: Callable[[], None]) -> None:
        try:
            work()
        except DariError as error:
            self._close_palette()
            self._tell(f"{error.message}; {error.hint}")
            return
        if self._palette is not None and not self._palette.is_open:
            self._close_palette()
        self._draw_palette()

    def _draw_palette(self) -> None:
        if self._palette is not None:
            self._screen.write(self._palette.draw(*self._screen.size))

    def _close_palette(self) -> None:
        if self._palette is not None:
            self._palette.close()
            self._palette = None
            self._draw_again()

    # Copy mode

    def _use_copy_mode(self, key: str) -> None:
        page = self._page()
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "g": -_FAR, "G": _FAR}
        scrolls = {"page_up": -page, "b": -page, "page_down": page, "f": page, "\x15": -page // 2, "\x04": page // 2}
        actions = {"0": "row-start", "home": "row-start", "$": "row-end", "end": "row-end", "escape": "clear"}
        actions |= {" ": "select", "v": "select", "\0": "select", "q": "leave", "\x03": "leave"}
        actions |= {"\r": "copy", "y": "copy"}
        if key in moves:
            self._copy("move", rows=moves[key])
        elif key in scrolls:
            self._copy("scroll", rows=scrolls[key])
        elif key in ("left", "h", "right", "l"):
            self._copy("move", cols=-1 if key in ("left", "h") else 1)
        elif key in ("/", "?", "\x13", "\x12"):
            self._ask_search(is_upwards=key in ("?", "\x12"))
        elif key in ("n", "N"):
            self._copy("search-again", is_upwards=key == "N")
        elif key in actions:
            self._copy(actions[key])

    def _copy(self, action: str, **params: Any) -> None:
        copied = self._try("crux:attach/copy-mode", action=action, **params)
        if not copied:
            return
        self._frame["is_copying"] = copied["is_on"]  # also before the next frame shows it
        if not copied["is_on"]:
            self._tell("")
        if not copied["is_found"]:
            self._tell("nothing found")
        if copied["text"]:
            self._copied = copied["text"]
            encoded = b64encode(self._copied[:MAX_CLIPBOARD_CHARS].encode()).decode()
            self._screen.write(f"\x1b]52;c;{encoded}\x07")
            self._tell(f"copied {len(self._copied)} characters; prefix ] types them")

    def _ask_search(self, *, is_upwards: bool) -> None:
        def search(text: str) -> None:
            self._copy("search", text=text, is_upwards=is_upwards)

        self._open_prompt(StatusPrompt("search up: " if is_upwards else "search down: ", search))

    def _paste(self) -> None:
        if self._copied:
            self._type_text(self._copied)
        else:
            self._tell("nothing was copied yet; prefix [ begins it")

    def _type_result(self, text: str) -> None:
        """A server's text: a program that knows no pastes would take its line ends for Enter."""
        is_paste = self._frame.get("modes", {}).get("bracketed_paste")
        self._type_text(text.strip("\n") if is_paste else " ".join(text.split("\n")).strip())

    def _type_text(self, text: str) -> None:
        data = text.replace("\n", "\r").encode()
        if self._frame.get("modes", {}).get("bracketed_paste"):
            data = b"\x1b[200~" + data.replace(b"\x1b", b"") + b"\x1b[201~"
        self._send("crux:attach/type", data=b64encode(data).decode())

    def _page(self) -> int:
        focused = next((pane for pane in self._frame.get("panes", ()) if pane["id"] == self._frame["focused"]), None)
        return max(1, focused["rows"] - 1) if focused else 10
