"""What lies on the clipboard: what kind of thing it is, and its forms for the place where it is pasted."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec

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


def kind_of(data: bytes) -> tuple[Kind, str]:
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
class Target:
    """Where it is pasted: at a shell's prompt (and which), or into a program."""

    shell: str = ""
    takes_pastes: bool = False


@dataclass(frozen=True, slots=True)
class Shaped:
    text: str
    form: Form
    notes: tuple[str, ...] = ()


def shape(text: str, kind: Kind, form: Form, target: Target) -> Shaped:
    """The text in a form; `auto` is the one that suits the kind and the place."""
    chosen = _suited(text, kind, target) if form == "auto" else form
    if chosen == "json":
        return Shaped(_formatted(text, 2), chosen)
    if chosen == "compact":
        return Shaped(_formatted(text, 0), chosen)
    if chosen == "shell":
        return _for_shell(text, kind, target)
    if chosen == "url":
        return Shaped(text.strip(), chosen)
    if chosen == "markdown":
        return Shaped(_link(text.strip()) if kind == "url" else f"```\n{text.strip()}\n```", chosen)
    return Shaped(text, "plain")


def _suited(text: str, kind: Kind, target: Target) -> Form:
    if target.shell:
        return "shell" if kind in ("json", "url", "files") else "plain"
    if kind == "json":
        return "json" if target.takes_pastes or "\n" in text else "compact"
    return "url" if kind == "url" else "plain"


def _formatted(text: str, indent: int) -> str:
    """Members and numbers stay as they were written; text that is no JSON stays as it is."""
    try:
        return msgspec.json.format(text.strip(), indent=indent if indent else -1)
    except (msgspec.DecodeError, RecursionError):
        return text


def _for_shell(text: str, kind: Kind, target: Target) -> Shaped:
    quote = quote_fish if target.shell == "fish" else shlex.quote
    if kind == "json":
        return Shaped(quote(_formatted(text, 0)), "shell", ("JSON as one quoted word",))
    if kind == "files":
        names = [unquote(urlsplit(line).path) if line.startswith("file:") else line for line in text.split("\n")]
        words = [quote(name.strip()) for name in names if name.strip()]
        return Shaped(" ".join(words), "shell", (f"{len(words)} file names, each a quoted word",))
    return Shaped(quote(text.strip()), "shell", ("one quoted word",))


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
