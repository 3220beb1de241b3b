"""The clipboard of all panes: what programs copied (OSC 52) and tools put there, with where it came from and when."""

from __future__ import annotations

import itertools
import time
from collections import deque
from dataclasses import dataclass
from typing import Literal

from dari.daemon.stub import expose
from dari.errors import Conflict, InvalidInput, NotFound
from dari.terminal.desks.clips import FORMS, Form, Kind, Target, is_safe, kind_of, shape
from dari.terminal.desks.special_answers import ClipInfo, ClipList, Pasted
from dari.terminal.engine.keys import parse_keys
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged
from dari.terminal.panes import events
from dari.terminal.panes.pane import Pane

MOST_CLIPS = 100
CLIP_BYTES = 1 << 20
KEPT_BYTES = 8 << 20
PREVIEW_CHARS = 2000


Origin = Literal["osc52", "tool", "selection"]


@dataclass(frozen=True, slots=True)
class Clip:
    id: str
    data: bytes
    kind: Kind
    mime_type: str
    copied_unix: float
    origin: Origin
    from_pane: str = ""
    from_pane_name: str = ""

    @property
    def is_text(self) -> bool:
        return self.kind not in ("image", "binary")


class ClipboardDesk:
    """Bounded: the oldest clips go first. Programs write to it; what they ask to read is never answered."""

    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._clips: deque[Clip] = deque()
        self._numbers = itertools.count(1)
        multiplexer.changes.subscribe(self._hear)

    @expose("crux:clipboard/read", "read")
    async def history(
        self, limit: int = 10, kind: str = "", pane_id: str = "", clip_id: str = "", max_chars: int = PREVIEW_CHARS
    ) -> ClipList:
        """Clips, newest first; of one kind, from one pane, or the one with this id."""
        if not 0 < limit <= MOST_CLIPS:
            raise InvalidInput(f"{limit} is no number of clips", f"ask for 1…{MOST_CLIPS}")
        wanted = self._all.find(pane_id).id if pane_id else ""
        found = [self._find(clip_id)] if clip_id else list(reversed(self._clips))
        found = [clip for clip in found if (not kind or clip.kind == kind) and (not wanted or clip.from_pane == wanted)]
        return ClipList([_info(clip, max_chars) for clip in found[:limit]], len(found))

    @expose("crux:clipboard/write", "control")
    async def copy(self, text: str, pane_id: str = "", origin: Literal["tool", "selection"] = "tool") -> ClipInfo:
        """Put a text on the clipboard."""
        pane = self._all.find(pane_id) if pane_id else None
        return _info(self._add(text.encode(errors="replace"), origin, pane), PREVIEW_CHARS)

    @expose("crux:clipboard/paste", "control")
    async def paste(
        self,
        pane_id: str = "",
        clip_id: str = "",
        text: str = "",
        form: Form = "auto",
        enter: bool = False,
        allow_lines: bool = False,
        approved: str = "",
    ) -> Pasted:
        """Paste a clip (the newest), or a text that becomes one, in the form that suits the place.

        Lines go in as one paste where the program knows pastes. Where it does not, each line would be entered: that is
        a Conflict unless `allow_lines`. What a shell would run is judged by the policy as if it was typed.
        """
        if form not in FORMS:
            raise InvalidInput(f"{form!r} is no form", "one of " + ", ".join(FORMS))
        pane = self._all.find(pane_id)
        if text and clip_id:
            raise InvalidInput("both a text and a clip were given", "give one of them")
        clip = self._made(text.encode(errors="replace"), "tool", None) if text else None
        clip = clip or (self._find(clip_id) if clip_id else self._newest())
        if not clip.is_text:
            raise InvalidInput(f"clip {clip.id} is {clip.mime_type}, no text", "paste another one, or a file's name")
        is_bracketed = pane.engine.modes.bracketed_paste
        target = Target((pane.kind or "") if pane.is_at_prompt else "", is_bracketed)
        shaped = shape(clip.data.decode(), clip.kind, form, target)
        safe = is_safe(shaped.text)
        if not safe and not is_bracketed and not allow_lines:
            raise Conflict(
                f"clip {clip.id} has {len(shaped.text.splitlines())} lines and the program in pane {pane.id} knows no "
                "pastes: each line would be entered",
                "use form 'shell' or 'compact' for one line, or allow_lines=true",
            )
        self._all.input_guard(pane).enter(shaped.text + "\n" if enter else shaped.text, approved)
        await pane.send_text(shaped.text, paste=True)
        if enter:
            await pane.send_keys(parse_keys("Enter"))
        if text:
            self._keep(clip)
        return Pasted(
            success=True,
            pane_id=pane.id,
            kind=clip.kind,
            form=shaped.form,
            text=shaped.text,
            is_bracketed=is_bracketed,
            is_safe=safe,
            notes=list(shaped.notes),
        )

    def _hear(self, change: Change) -> None:
        if isinstance(change, PaneChanged) and isinstance(change.event, events.Clipped) and change.event.data:
            self._add(change.event.data, "osc52", self._all.panes.get(change.pane_id))

    def _add(self, data: bytes, origin: Origin, pane: Pane | None) -> Clip:
        clip = self._made(data, origin, pane)
        self._keep(clip)
        return clip

    def _made(self, data: bytes, origin: Origin, pane: Pane | None) -> Clip:
        if not data:
            raise InvalidInput("there is nothing to copy", "give a text, or select one first")
        if len(data) > CLIP_BYTES:
            raise InvalidInput(f"{len(data)} bytes are too many for a clip", f"copy at most {CLIP_BYTES}")
        kind, mime = kind_of(data)
        return Clip(
            f"clip-{next(self._numbers)}",
            data,
            kind,
            mime,
            time.time(),
            origin,
            pane.id if pane is not None else "",
            pane.name if pane is not None else "",
        )

    def _keep(self, clip: Clip) -> None:
        self._clips.append(clip)
        while len(self._clips) > MOST_CLIPS or sum(len(each.data) for each in self._clips) > KEPT_BYTES:
            self._clips.popleft()

    def _newest(self) -> Clip:
        if not self._clips:
            raise NotFound("the clipboard is empty", "copy something with crux_clipboard_copy")
        return self._clips[-1]

    def _find(self, clip_id: str) -> Clip:
        for clip in self._clips:
            if clip.id == clip_id:
                return clip
        raise NotFound(f"there is no clip {clip_id!r}", "crux_clipboard_context lists them")


def _info(clip: Clip, max_chars: int) -> ClipInfo:
    text = clip.data.decode() if clip.is_text else ""
    return ClipInfo(
        id=clip.id,
        kind=clip.kind,
        mime_type=clip.mime_type,
        size_bytes=len(clip.data),
        copied_unix=clip.copied_unix,
        origin=clip.origin,
        from_pane=clip.from_pane,
        from_pane_name=clip.from_pane_name,
        text=text[:max_chars],
        truncated=len(text) > max_chars,
    )
