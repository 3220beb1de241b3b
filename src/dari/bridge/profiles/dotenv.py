"""`.env` files: `NAME=value` lines, with `export`, quotes and comments; nothing in them is expanded or run."""

from __future__ import annotations

import re
from pathlib import Path

from dari.bridge.profiles.complaints import FieldProblem

MAX_BYTES = 1024 * 1024
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*?)\s*")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_variables(path: Path, field: str) -> dict[str, str]:
    """The variables of the file; an error names the field, the file and the line, never its text."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        raise FieldProblem((field,), f"{path} cannot be read: {reason}", "make the file, or remove the field") from None
    if len(text) > MAX_BYTES:
        raise FieldProblem((field,), f"{path} is larger than {MAX_BYTES} bytes", "name a file of variables")
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise FieldProblem((field,), f"{path}:{number} is no NAME=value", "correct the line")
        found[match[1]] = _value(match[2])
    return found


def _value(text: str) -> str:
    if double := _DOUBLE.fullmatch(text):
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), double[1])
    if single := _SINGLE.fullmatch(text):
        return single[1]
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()
