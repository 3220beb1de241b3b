"""Pasted text as bytes: nothing in it can act as a key, and it cannot leave the brackets around it."""

from __future__ import annotations

import re

_BEGIN, _END = b"\x1b[200~", b"\x1b[201~"
# C0 and C1 but for tab, line feed and carriage return: a paste is text, never ESC, ^C or ^D.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def encode_paste(text: str, is_bracketed: bool) -> bytes:
    """Line ends become Return, as terminals send them; brackets only where the program asked for them."""
    safe = _CONTROLS.sub("", text)
    lines = safe.replace("\r\n", "\r").replace("\n", "\r")
    data = lines.encode(errors="replace")
    return _BEGIN + data + _END if is_bracketed else data
