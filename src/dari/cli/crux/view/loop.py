"""The loop of `crux attach`: keys go to the server as they come, frames come back as something changes."""

from __future__ import annotations

import os
import select
import signal
from base64 import b64encode
from typing import Any

from dari.cli.crux.line import Line, Place
from dari.cli.crux.view.drawing import BEGIN, Drawing
from dari.cli.crux.view.keyboard import Command, Input, Keyboard, Mouse, Typed, split_keys
from dari.cli.crux.view.screen import Ended, Screen
from dari.errors import DariError

KEY_MS = 30
"""How long the rest of an escape sequence may take; then it was the Escape key."""
ASK_S = 20.0
HELP = '% " split  arrows o focus  z zoom  x end  c n p 0-9 tabs  ( ) windows  [ look back  Space layout  d leave'
_ARROWS = ("up", "down", "left", "right")
_LAYOUTS = ("even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled")


class View:
    """Three lines to the server: one waits for frames, one carries keys, one asks what a person waits for.

    A program that does not read its keys holds up the second one only.
    """

    def __init__(self, place: Place, prefix: int, *, has_mouse: bool) -> None:
        self._viewer = os.urandom(8).hex()
        self._frames, self._keys, self._asks = (Line(place, starts=False) for _ in range(3))
        self._keyboard = Keyboard(prefix)
        self._drawing = Drawing(has_mouse=has_mouse)
        self._has_mouse = has_mouse
        self._frame: dict[str, Any] = {}
        self._unanswered = 0
        self._mode = ""
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
            for line in (self._frames, self._keys, self._asks):
                line.close()
        return self._end

    def _converse(self) -> None:
        self._ask_frame(0)
        while not self._end:
            poll = select.poll()
            for descriptor in (0, self._screen.wakeup, self._frames.fileno(), self._keys.fileno()):
                poll.register(descriptor, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(KEY_MS if self._keyboard.is_waiting else None)}
            if not ready:
                self._use(self._keyboard.flush())
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
            self._screen.write(self._drawing.draw(frame, *self._screen.size))
            self._screen.has_keyboard = bool(frame["modes"]["kitty_keyboard"])
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

    def _draw_again(self) -> None:
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
            if isinstance(each, Mouse):
                self._send(
                    "crux:attach/mouse",
                    action=each.action,
                    button=each.button,
                    col=each.col,
                    row=each.row,
                    modifiers=list(each.modifiers),
                )
            elif isinstance(each, Command):
                self._command(each.key)
            elif self._mode == "scroll":
                self._look_back(each)
            elif self._mode == "confirm":
                self._confirm(each)
            else:
                if self._drawing.message:
                    self._tell("")
                self._send("crux:attach/type", data=b64encode(each.data).decode())

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

    def _try(self, method: str, **params: Any) -> None:
        """Ask and wait; what is refused is shown in the status line."""
        if method.startswith("crux:attach/"):
            params["viewer"] = self._viewer
        try:
            self._asks.call(method, **params)
        except DariError as error:
            if error.name == "unavailable":
                raise
            self._tell(error.message)

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
        elif key == "x":
            self._mode = "confirm"
            self._tell(f"end pane {pane} and what runs in it? (y/n)")
        elif key == "c":
            self._try("crux:pane/open", target=pane, where="tab")
        elif key in ("n", "p") or key.isdigit():
            self._show_tab(key)
        elif key in ("(", ")"):
            self._try("crux:attach/window", step=1 if key == ")" else -1)
        elif key in ("[", "page_up"):
            self._mode = "scroll"
            self._tell("looking back: arrows, PageUp, PageDown, g, G; q ends it")
            if key == "page_up":
                self._try("crux:attach/scroll", rows=self._page())
        elif key == " ":
            self._layout = (self._layout + 1) % len(_LAYOUTS)
            self._try("crux:pane/arrange", preset=_LAYOUTS[self._layout], pane_id=pane)
        elif key == "r":
            self._draw_again()
        else:
            self._tell(HELP if key == "?" else f"no command for this key; {HELP}")

    def _focus_next(self, pane: str) -> None:
        panes = [each["id"] for each in self._frame.get("panes", ())]
        if pane in panes:
            self._try("crux:pane/focus", pane_id=panes[(panes.index(pane) + 1) % len(panes)])

    def _show_tab(self, key: str) -> None:
        tabs = [tab["id"] for tab in self._frame.get("tabs", ())]
        at = tabs.index(self._frame["tab"]) if tabs else 0
        wanted = int(key) if key.isdigit() else (at + (1 if key == "n" else -1)) % max(1, len(tabs))
        if wanted < len(tabs):
            self._try("crux:window/show", tab_id=tabs[wanted])
        else:
            self._tell(f"there is no tab {key}")

    def _confirm(self, typed: Typed) -> None:
        self._mode = ""
        self._tell("")
        if typed.data[:1] in (b"y", b"Y"):
            self._try("crux:pane/close", pane_id=self._frame.get("focused", ""), force=True)

    def _look_back(self, typed: Typed) -> None:
        steps = {"up": 1, "k": 1, "down": -1, "j": -1, "page_up": self._page(), "page_down": -self._page()}
        steps |= {"b": self._page(), "g": 10**6, "home": 10**6, "G": -(10**6), "end": -(10**6)}
        for key in split_keys(typed.data):
            if key in ("q", "escape", "\x03", "\r"):
                self._mode = ""
                self._try("crux:attach/scroll", rows=-(10**6))
                self._tell("")
                return
            if key in steps:
                self._try("crux:attach/scroll", rows=steps[key])

    def _page(self) -> int:
        focused = next((pane for pane in self._frame.get("panes", ()) if pane["id"] == self._frame["focused"]), None)
        return max(1, focused["rows"] - 1) if focused else 10
