"""The server as tmux would describe it: our windows are its sessions, our tabs its windows, panes are panes.

w1 → $1     t1 → @1     pane 1 → %1
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from dari.terminal.layout.cells import Area
from dari.terminal.tmux.formats import Scope
from dari.terminal.tmux.targets import ResolvedTarget, Targets, TmuxPane, TmuxSession, TmuxWindow

VERSION = "3.3a"


class TmuxState:
    """One answer of `crux:window/list`."""

    def __init__(
        self, overview: Mapping[str, Any], notes: Mapping[str, Mapping[str, str]] | None = None, here: str = ""
    ) -> None:
        self._overview = overview
        self._notes = notes or {}
        self._panes = {pane["info"]["id"]: pane for pane in overview["panes"]}
        self._tabs = {tab["id"]: tab for window in overview["windows"] for tab in window["tabs"]}
        self._windows = {window["id"]: window for window in overview["windows"]}
        self.sessions = tuple(self._session(window) for window in overview["windows"])
        self._here = here.removeprefix("%")

    @property
    def here(self) -> ResolvedTarget:
        """Where the command was called, or what has the focus."""
        wanted = self._here if self._here in self._panes else self._overview["focused"]
        for session in self.sessions:
            for window in session.windows:
                for pane in window.panes:
                    if pane.id == f"%{wanted}":
                        return ResolvedTarget(session, window, pane)
        raise LookupError("no sessions")

    def targets(self) -> Targets:
        return Targets(self.sessions, self.here)

    def notes(self, owner: str) -> Mapping[str, str]:
        """What was kept for a pane, a window, a session, or for all (`global`)."""
        return self._notes.get(owner, {})

    def option(self, name: str, place: ResolvedTarget) -> str | None:
        """An option where it was set, from the pane up to the whole server."""
        for owner in (place.pane.id, place.window.id, place.session.id, "global"):
            if (found := self.notes(owner).get(name)) is not None:
                return found
        return None

    def scope(self, place: ResolvedTarget) -> Scope:
        """The variables of a pane, and what the loops of a format go through."""
        return Scope(
            self.variables(place),
            sessions=[
                Scope(
                    self.variables(ResolvedTarget(each, each.current, each.current.active)),
                    is_active=each is place.session,
                )
                for each in self.sessions
            ],
            windows=[
                Scope(
                    self.variables(ResolvedTarget(place.session, each, each.active)),
                    is_active=each is place.session.current,
                )
                for each in place.session.windows
            ],
            panes=[
                Scope(
                    self.variables(ResolvedTarget(place.session, place.window, each)),
                    is_active=each is place.window.active,
                )
                for each in place.window.panes
            ],
        )

    def variables(self, place: ResolvedTarget) -> dict[str, str]:
        merged: dict[str, str] = {}
        for owner in ("global", place.session.id, place.window.id, place.pane.id):
            merged |= {name: text for name, text in self.notes(owner).items() if name.startswith("@")}
        return merged | self._of_server() | self._of_session(place) | self._of_window(place) | self._of_pane(place)

    def command_of(self, pane_id: str) -> str:
        """The program that has the terminal of a pane."""
        pane = self._panes[pane_id.removeprefix("%")]
        name: str = pane["info"]["process"] or os.path.basename(pane["words"][0])
        return name

    def _session(self, window: Mapping[str, Any]) -> TmuxSession:
        tabs = tuple(self._window(index, tab) for index, tab in enumerate(window["tabs"]))
        active = _number("@", window["active"])
        recent = (active, *(tab.id for tab in tabs if tab.id != active))
        return TmuxSession(_number("$", window["id"]), window["name"], tabs, recent)

    def _window(self, index: int, tab: Mapping[str, Any]) -> TmuxWindow:
        panes = tuple(TmuxPane(f"%{pane_id}", self._area(pane_id)) for pane_id in tab["panes"])
        name = tab["name"] if tab["name"] != tab["id"] else self.command_of(tab["recent"][0])
        return TmuxWindow(_number("@", tab["id"]), index, name, panes, tuple(f"%{each}" for each in tab["recent"]))

    def _area(self, pane_id: str) -> Area:
        info = self._panes[pane_id]["info"]
        return Area(info["left"], info["top"], info["cols"], info["rows"])

    def _of_server(self) -> dict[str, str]:
        host = socket.gethostname()
        return {
            "host": host,
            "host_short": host.partition(".")[0],
            "pid": str(self._overview["pid"]),
            "socket_path": self._overview["socket"],
            "start_time": str(int(self._overview["started_unix"])),
            "version": VERSION,
            "server_sessions": str(len(self.sessions)),
        }

    def _of_session(self, place: ResolvedTarget) -> dict[str, str]:
        session = place.session
        return {
            "session_id": session.id,
            "session_name": session.name,
            "session_windows": str(len(session.windows)),
            "session_attached": str(self._windows[f"w{session.id[1:]}"]["viewers"]),
            "session_created": str(int(self._overview["started_unix"])),
            "session_activity": str(int(self._overview["started_unix"])),
            "session_grouped": "0",
            "session_path": self._panes[session.current.active.id[1:]]["info"]["cwd"],
        }

    def _of_window(self, place: ResolvedTarget) -> dict[str, str]:
        window = place.window
        tab = self._tabs[f"t{window.id[1:]}"]
        is_current = place.session.recent[0] == window.id
        flags = ("*" if is_current else "") + ("Z" if tab["is_zoomed"] else "")
        whole = self._windows[f"w{place.session.id[1:]}"]
        return {
            "window_id": window.id,
            "window_index": str(window.index),
            "window_name": window.name,
            "window_width": str(whole["cols"]),
            "window_height": str(whole["rows"]),
            "window_panes": str(len(window.panes)),
            "window_layout": tab["layout"],
            "window_visible_layout": tab["visible_layout"],
            "window_active": _flag(is_current),
            "window_flags": flags,
            "window_raw_flags": flags,
            "window_zoomed_flag": _flag(tab["is_zoomed"]),
            "window_start_flag": _flag(window is place.session.windows[0]),
            "window_end_flag": _flag(window is place.session.windows[-1]),
            "window_last_flag": "0",
            "window_linked": "0",
            "window_bell_flag": "0",
            "window_activity_flag": "0",
            "window_silence_flag": "0",
        }

    def _of_pane(self, place: ResolvedTarget) -> dict[str, str]:
        pane = self._panes[place.pane.id[1:]]
        info = pane["info"]
        whole = self._windows[f"w{place.session.id[1:]}"]
        right, bottom = info["left"] + info["cols"] - 1, info["top"] + info["rows"] - 1
        title = self.notes(place.pane.id).get("pane_title") or info["title"] or socket.gethostname()
        ended = {} if info["is_alive"] else {"pane_dead_status": str(info["exit_code"])}
        return ended | {
            "pane_id": place.pane.id,
            "pane_index": str(place.window.panes.index(place.pane)),
            "pane_active": _flag(place.pane.id == place.window.recent[0]),
            "pane_last": _flag(place.pane.id in place.window.recent[1:2]),
            "pane_title": title,
            "pane_current_path": info["cwd"],
            "pane_path": info["cwd"],
            "pane_current_command": self.command_of(info["id"]),
            "pane_start_command": "" if info["shell"] else " ".join(pane["words"]),
            "pane_pid": str(info["pid"]),
            "pane_tty": info["tty"],
            "pane_width": str(info["cols"]),
            "pane_height": str(info["rows"]),
            "pane_left": str(info["left"]),
            "pane_top": str(info["top"]),
            "pane_right": str(right),
            "pane_bottom": str(bottom),
            "pane_at_left": _flag(info["left"] == 0),
            "pane_at_top": _flag(info["top"] == 0),
            "pane_at_right": _flag(right == whole["cols"] - 1),
            "pane_at_bottom": _flag(bottom == whole["rows"] - 1),
            "pane_dead": _flag(not info["is_alive"]),
            "pane_in_mode": "0",
            "pane_input_off": "0",
            "pane_marked": "0",
            "pane_marked_set": "0",
            "pane_pipe": "0",
            "pane_synchronized": "0",
            "cursor_x": str(pane["cursor_col"]),
            "cursor_y": str(pane["cursor_row"]),
            "alternate_on": _flag(pane["is_full_screen"]),
            "history_size": str(pane["history"]),
            "history_limit": str(pane["history_limit"]),
            "history_bytes": str(pane["history"] * info["cols"]),
        }


def _number(sign: str, own_id: str) -> str:
    return sign + own_id[1:]


def _flag(is_set: bool) -> str:
    return "1" if is_set else "0"
