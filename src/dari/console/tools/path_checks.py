"""Allowed paths of a form, checked before they are saved: is it there, what is it, may a server be given it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.bridge.config.form import ServerForm
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.normalize import check_allowed_path
from dari.paths import own_paths
from dari.sandbox.confinement import resolve_path

PathState = Literal["folder", "file", "missing", "invalid", "reference"]
_FOLDERS = ("Documents", "Projects", "Downloads", "Desktop", "projects", "src", "notes")
MAX_SUGGESTIONS = 6


class PathCheck(Struct, frozen=True):
    """`note` says what a person should know before they allow it."""

    path: str
    state: PathState
    resolved: str = ""
    """Where it leads, when that is elsewhere."""
    is_writable: bool = False
    note: str = ""


def check_path(path: str, around: ClientEnvironment) -> PathCheck:
    text = path.strip()
    if not text or "\0" in text:
        return PathCheck(path, "invalid", note="a path must not be empty")
    if fact := check_allowed_path(text):
        return PathCheck(path, "invalid", note=fact)
    if "${" in text:
        return PathCheck(path, "reference", note="it is filled in when the server starts")
    whole = str(around.home) + text[1:] if text == "~" or text.startswith("~/") else text
    try:
        real = resolve_path(whole)
        is_folder, is_there = real.is_dir(), real.exists()
    except (OSError, ValueError) as error:
        return PathCheck(path, "invalid", note=f"it cannot be looked at: {getattr(error, 'strerror', None) or error}")
    resolved = str(real) if str(real) != os.path.normpath(whole) else ""
    if not is_there:
        return PathCheck(path, "missing", resolved, note="it does not exist; a server that needs it will not start")
    return PathCheck(
        path, "folder" if is_folder else "file", resolved, os.access(real, os.W_OK), _caution(real, around)
    )


def suggest_paths(form: ServerForm, around: ClientEnvironment) -> list[PathCheck]:
    """Folders that the arguments name, the working folder, and the usual ones of a home, as far as they are there."""
    given = {one.path for one in form.allowed_paths or ()}
    named = [arg for arg in form.args if arg.startswith("/") and arg != "/"]
    usual = [str(around.cwd), *(str(around.home / name) for name in _FOLDERS)]
    found = [check_path(path, around) for path in dict.fromkeys((*named, *usual)) if path not in given]
    return [one for one in found if one.state == "folder" and not one.note][:MAX_SUGGESTIONS]


def _caution(real: Path, around: ClientEnvironment) -> str:
    if real == Path("/"):
        return "this is every file of the machine"
    if real == around.home.resolve():
        return "this is your whole home, with keys and passwords in it"
    if any(real.is_relative_to(own) or own.is_relative_to(real) for own in own_paths()):
        return "Dari's own sockets and tokens are in it; they stay closed to the server"
    return ""
