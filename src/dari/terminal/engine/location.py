"""OSC 7: the directory that a shell says it is in."""

from __future__ import annotations

import socket
from functools import cache
from urllib.parse import unquote


def path_of(told: str) -> str:
    """The path of a `file://host/path`; empty when it is about another machine or is no path."""
    for scheme in ("file://", "kitty-shell-cwd://"):
        if told.startswith(scheme):
            host, slash, path = told[len(scheme) :].partition("/")
            if not slash or host.lower() not in _own_names():
                return ""
            return unquote("/" + path) if scheme == "file://" else "/" + path
    return told if told.startswith("/") else ""


@cache
def _own_names() -> frozenset[str]:
    name = socket.gethostname().lower()
    return frozenset(("", "localhost", name, name.partition(".")[0]))
