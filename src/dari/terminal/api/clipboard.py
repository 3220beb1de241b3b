"""The clipboard of all panes: what programs copied (OSC 52) and tools put there, with where it came from and when."""

from __future__ import annotations

import itertools
import re
import shlex
import time
from collections import Counter, deque
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, InvalidInput, NotFound
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.engine.keys import parse_keys
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged
from dari.terminal.panes import events
from dari.terminal.panes.pane import Pane
from dari.terminal.typed_input import from_keys, from_paste

Kind = Literal["text", "lines", "json", "url", "files", "html", "rtf", "image", "binary"]
Form = Literal["auto", "plain", "json", "compact", "shell", "url", "markdown"]
FORMS: tuple[Form, ...] = ("auto", "plain", "json", "compact", "shell", "url", "markdown")

_MIMES: dict[Kind, str] = {
    "text": "text/plain",
    "lines": "text/plain",
    "json": "application/json",
    "url": "text/uri-list",
    "files": "text/uri-list",
    "html": "text/html",
    "rtf": "application/rtf",
    "binary": "application/octet-stream",
}
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_URL = re.compile(r"(?:https?|ftp|ssh|git|ws|wss)://[^\s<>\"'`\\]+|mailto:[^\s<>\"'`\\]+")
_FILE = re.compile(r"(?:file://)?/[^\0]*")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class ClipInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`text` is empty for binary data, `from_pane` for data that did not come from a pane."""

    id: str
    kind: str
    mime_type: str
    size_bytes: int
    copied_unix: float
    origin: Literal["osc52", "tool", "selection"]
    from_pane: str = ""
    from_pane_name: str = ""
    text: str = ""
    truncated: bool = False


class ClipList(Struct, frozen=True):
    """Newest first."""

    entries: list[ClipInfo]
    total: int


class PasteResult(Struct, frozen=True, kw_only=True):
    success: bool
    pane_id: str
    kind: str
    form: str
    text: str
    """What was sent."""
    is_bracketed: bool
    is_safe: bool
    notes: list[str] = []


def detect_kind(data: bytes) -> tuple[Kind, str]:
    """The kind of thing these bytes are, and their MIME type."""
    for magic, mime in _IMAGES:
        if data.startswith(magic):
            return "image", mime
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image", "image/webp"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "binary", _MIMES["binary"]
    kind = _text_kind(text)
    return kind, _MIMES[kind]


def _text_kind(text: str) -> Kind:
    stripped = text.strip()
    if stripped.startswith("{\\rtf"):
        return "rtf"
    if re.match(r"(?i)<!doctype html|<html[\s>]", stripped):
        return "html"
    if stripped[:1] in ("{", "[") and _is_json(stripped):
        return "json"
    if _URL.fullmatch(stripped):
        return "url"
    lines = stripped.splitlines()
    if lines and all(_FILE.fullmatch(line) for line in lines) and stripped != "/":
        return "files"
    return "lines" if len(lines) > 1 else "text"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def is_safe(text: str) -> bool:
    """Whether a program that does not know pastes takes the text for nothing but text: no line end, no control."""
    return "\n" not in text and "\r" not in text and _CONTROLS.search(text) is None


@dataclass(frozen=True, slots=True)
class PasteTarget:
    """Where it is pasted: at a shell's prompt (and which), or into a program."""

    shell: str = ""
    takes_pastes: bool = False


@dataclass(frozen=True, slots=True)
class PasteText:
    text: str
    form: Form
    notes: tuple[str, ...] = ()


def format_clip(text: str, kind: Kind, form: Form, target: PasteTarget) -> PasteText:
    """The text in a form; `auto` is the one that suits the kind and the place."""
    chosen = _suited(text, kind, target) if form == "auto" else form
    if chosen == "json":
        return PasteText(_formatted(text, 2), chosen)
    if chosen == "compact":
        return PasteText(_formatted(text, 0), chosen)
    if chosen == "shell":
        return _for_shell(text, kind, target)
    if chosen == "url":
        return PasteText(text.strip(), chosen)
    if chosen == "markdown":
        return PasteText(_link(text.strip()) if kind == "url" else f"```\n{text.strip()}\n```", chosen)
    return PasteText(text, "plain")


def _suited(text: str, kind: Kind, target: PasteTarget) -> Form:
    if target.shell:
        return "shell" if kind in ("json", "url", "files") else "plain"
    if kind == "json":
        return "json" if target.takes_pastes or "\n" in text else "compact"
    return "url" if kind == "url" else "plain"


def _formatted(text: str, indent: int) -> str:
    """Members and numbers stay as they were written; other text is returned unchanged."""
    try:
        return msgspec.json.format(text.strip(), indent=indent if indent else -1)
    except (msgspec.DecodeError, RecursionError):
        return text


def _for_shell(text: str, kind: Kind, target: PasteTarget) -> PasteText:
    quote = quote_fish if target.shell == "fish" else shlex.quote
    if kind == "json":
        return PasteText(quote(_formatted(text, 0)), "shell", ("JSON as one quoted word",))
    if kind == "files":
        names = [unquote(urlsplit(line).path) if line.startswith("file:") else line for line in text.split("\n")]
        words = [quote(name.strip()) for name in names if name.strip()]
        return PasteText(" ".join(words), "shell", (f"{len(words)} file names, each a quoted word",))
    return PasteText(quote(text.strip()), "shell", ("one quoted word",))


def quote_fish(text: str) -> str:
    """One word of fish: inside single quotes only the backslash and the quote itself are special."""
    if re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _link(url: str) -> str:
    parts = urlsplit(url)
    name = (parts.netloc + parts.path).rstrip("/") or url
    label = re.sub(r"([\[\]\\])", r"\\\1", name)
    return f"[{label}]({url.replace('(', '%28').replace(')', '%29')})"


MAX_CLIPS = 100
MAX_CLIP_BYTES = 1 << 20
MAX_CLIPS_BYTES = 8 << 20
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


class ClipboardApi:
    """Bounded: the oldest clips go first. Programs write to it; what they ask to read is never answered."""

    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._clips: deque[Clip] = deque()
        self._numbers = itertools.count(1)
        multiplexer.changes.subscribe(self._hear, events.ClipboardWritten)

    @expose("crux:clipboard/read", "read")
    async def history(
        self, limit: int = 10, kind: str = "", pane_id: str = "", clip_id: str = "", max_chars: int = PREVIEW_CHARS
    ) -> ClipList:
        """Clips, newest first; of one kind, from one pane, or the one with this id."""
        if not 0 < limit <= MAX_CLIPS:
            raise InvalidInput(f"limit must be between 1 and {MAX_CLIPS}, got {limit}", "ask for fewer clips")
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
    @approvable
    async def paste(
        self,
        pane_id: str = "",
        clip_id: str = "",
        text: str = "",
        form: Form = "auto",
        enter: bool = False,
        allow_lines: bool = False,
    ) -> PasteResult:
        """Paste a clip (the newest), or a text that becomes one, in the form that suits the place.

        Lines go in as one paste where the program knows pastes. Where it does not, each line would be entered: that is
        a Conflict unless `allow_lines`. What a shell would run is judged by the policy as if it was typed.
        """
        if form not in FORMS:
            raise InvalidInput(f"form must be one of {', '.join(FORMS)}, got {form!r}", "choose one of them")
        pane = self._all.find(pane_id)
        if text and clip_id:
            raise InvalidInput("both a text and a clip were given", "give one of them")
        clip = self._made(text.encode(errors="replace"), "tool", None) if text else None
        clip = clip or (self._find(clip_id) if clip_id else self._newest())
        if not clip.is_text:
            raise InvalidInput(f"clip {clip.id} is {clip.mime_type}, not text", "paste another one, or a file's name")
        is_bracketed = pane.engine.modes.bracketed_paste
        target = PasteTarget((pane.kind or "") if pane.is_at_prompt else "", is_bracketed)
        shaped = format_clip(clip.data.decode(), clip.kind, form, target)
        safe = is_safe(shaped.text)
        if not safe and not is_bracketed and not allow_lines:
            raise Conflict(
                f"clip {clip.id} has {len(shaped.text.splitlines())} lines, and the program in pane {pane.id} has no "
                "bracketed paste: each line would be entered",
                "use form 'shell' or 'compact' for one line, or allow_lines=true",
            )
        inputs = [from_paste(shaped.text, pane.engine)]
        if enter:
            inputs.append(from_keys(parse_keys("Enter"), pane.engine))
        await self._all.input_guard(pane).admit(inputs, approved_message()).send()
        if text:
            self._keep(clip)
        return PasteResult(
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
        if isinstance(change, PaneChanged) and isinstance(change.event, events.ClipboardWritten) and change.event.data:
            self._add(change.event.data, "osc52", self._all.panes.get(change.pane_id))

    def _add(self, data: bytes, origin: Origin, pane: Pane | None) -> Clip:
        clip = self._made(data, origin, pane)
        self._keep(clip)
        return clip

    def _made(self, data: bytes, origin: Origin, pane: Pane | None) -> Clip:
        if not data:
            raise InvalidInput("the text to copy is empty", "give a text, or select one first")
        if len(data) > MAX_CLIP_BYTES:
            raise InvalidInput(f"a clip may have at most {MAX_CLIP_BYTES} bytes, got {len(data)}", "copy less at once")
        kind, mime = detect_kind(data)
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
        while len(self._clips) > MAX_CLIPS or sum(len(each.data) for each in self._clips) > MAX_CLIPS_BYTES:
            # The oldest of the source that has most: a program that copies without end pushes out nobody else's.
            older = list(self._clips)[:-1]
            taken = Counter((each.origin, each.from_pane) for each in older)
            if len(self._clips) <= MAX_CLIPS:
                for each in older:
                    taken[each.origin, each.from_pane] += len(each.data)
            source = max(taken, key=taken.__getitem__)
            del self._clips[next(at for at, each in enumerate(older) if (each.origin, each.from_pane) == source)]

    def _newest(self) -> Clip:
        if not self._clips:
            raise NotFound("the clipboard is empty", "copy something with crux_clipboard_copy")
        return self._clips[-1]

    def _find(self, clip_id: str) -> Clip:
        for clip in self._clips:
            if clip.id == clip_id:
                return clip
        raise NotFound(f"no clip has the id {clip_id!r}", "crux_clipboard_context lists them")


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
