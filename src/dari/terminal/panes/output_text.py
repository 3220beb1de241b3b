"""Raw output of programs as text: as it was printed where it only prints, as it looks where it moves the cursor."""

from __future__ import annotations

import re

from dari.terminal.engine.engine import make_engine

_STRING = rb"(?:[^\x07\x18\x1a\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\|\x18|\x1a|\Z)"
# Sequences that put nothing on the screen and move nothing: OSC, DCS, APC, PM, SOS; SGR; cursor shape and visibility,
# paste, focus, mouse, key and synchronisation modes; questions. A sequence cut by the end of the data goes too.
_SILENT = re.compile(
    rb"\x1b\]" + _STRING
    + rb"|\x1b[PX^_]" + _STRING
    + rb"|\x1b\[[0-9;:]*m"
    + rb"|\x1b\[\?(?:1|5|12|25|100[0-7]|1015|1016|2004|2026|2027|2031|2048)[hl]"
    + rb"|\x1b\[[<>=][0-9;:]*[a-zA-Z]"
    + rb"|\x1b\[[0-9;?$]*(?:[cntu]|\ q)"
    + rb"|\x1b[=>]"
    + rb"|\x1b\([AB]"
    + rb"|\x1b(?:\[[0-9;:?<=>$ ]*)?\Z"
)  # fmt: skip
# Control characters that print nothing.
_MUTE = bytes({*range(0x20), 0x7F} - {*b"\t\n\r\x1b\x08\x0b\x0c\x0e\x0f"})
# What is left when something moves the cursor: ESC, backspace, vertical tab, form feed, shifts, a lone return.
_MOVES = b"\x1b\x08\x0b\x0c\x0e\x0f\r"
MAX_ROWS = 200_000


def to_text(data: bytes, cols: int, rows: int) -> str:
    """Without line ends at its end. Tabs stay tabs and long lines whole, unless the output drew on the screen."""
    if not data:
        return ""
    if b"\x1b" in data:
        data = _SILENT.sub(b"", data)
    plain = _joined(data)
    if not any(byte in plain for byte in _MOVES):
        return plain.decode(errors="replace").rstrip("\n")
    screen = make_engine(cols, rows, min(MAX_ROWS, data.count(b"\n") + len(data) // cols + rows))
    try:
        screen.feed(data)
        return screen.text(-screen.history, rows, unwrap=True).rstrip("\n ")
    finally:
        screen.close()


def _joined(data: bytes) -> bytes:
    """Without mute characters, line ends as one character. No regular expressions: this is done to megabytes."""
    plain = data.translate(None, _MUTE).replace(b"\r\n", b"\n")
    if b"\r\n" not in plain:
        return plain
    *lines, last = plain.split(b"\n")  # in one pass, however many returns stand before a line end
    return b"\n".join([*(line.rstrip(b"\r") for line in lines), last])


MAX_FORWARD = 500
# The first digits tell enough; `int` refuses more than 4300 of them. Possessive: a sequence that is none is read once.
_FORWARD = re.compile(r"\x1b\[0*+([0-9]{0,4}+)[0-9]*+C")
_PLACED = re.compile(r"\x1b\[[0-9;]*[ABEFGHfd`]|\x1b[78DEM]|\x1b\[[su]")
_OTHER = re.compile(r"\x1b\[[0-9;:?<=>$ !\"']*[@-~]|\x1b[ -/]*[0-~]")


def to_stream(data: bytes) -> str:
    """Output as the text that went by, for matching: what moves the cursor away becomes a line end."""
    if b"\x1b" not in data and b"\b" not in data:
        return _joined(data).decode(errors="replace").replace("\r", "\n")
    text = _joined(_SILENT.sub(b"", data)).decode(errors="replace")
    text = _FORWARD.sub(lambda found: " " * min(int(found[1] or 1), MAX_FORWARD), text)
    text = _OTHER.sub("", _PLACED.sub("\n", text))
    return text.replace("\r", "\n").replace("\b", "")
