"""Text from a server as a terminal may show it."""

from __future__ import annotations

import re

# Escape sequences (CSI, then OSC/DCS/APC/PM/SOS strings, then two-byte ones) leave no trace.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
# Any other control character, and what turns the direction of text around, becomes visible.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def harmless(text: str) -> str:
    """The same words without anything a terminal would obey; tabs and newlines stay."""
    return _CONTROL.sub("\ufffd", _SEQUENCE.sub("", text.replace("\r\n", "\n")))
