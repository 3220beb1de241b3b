"""`ps` in its common forms, and `df`: rows of words under a header whose last column may hold blanks."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Parsed, Text, ranges, share

_PS_NAMES = frozenset(
    (
        *("USER", "UID", "RUSER", "GROUP", "PID", "PPID", "PGID", "SID", "LWP", "NLWP", "C", "%CPU", "%MEM", "VSZ"),
        *(
            "RSS",
            "SZ",
            "ADDR",
            "WCHAN",
            "F",
            "S",
            "STAT",
            "NI",
            "PRI",
            "TTY",
            "TT",
            "START",
            "STIME",
            "STARTED",
            "TIME",
        ),
        *("ELAPSED", "COMMAND", "CMD", "ARGS"),
    )
)
_LONG_DATE = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)$")
_PERCENT = re.compile(r"\d{1,3}%$|-$")
_DISK_HEADERS = ("Filesystem ", "파일 시스템", "Dateisystem ", "ファイルシス")
_WORD = re.compile(r"\S++")


def read_processes(text: Text) -> Parsed | None:
    """`ps aux`, `ps -ef` and selections with `-o` that end in the command."""
    index = next((i for i, line in enumerate(text.lines) if "PID" in line and _is_ps_header(line.split())), None)
    if index is None:
        return None
    names = text.lines[index].split()
    rows: list[list[str]] = []
    used = {index}
    for place in range(index + 1, len(text.lines)):
        row = _process(names, text.lines[place])
        if row:
            rows.append(row)
            used.add(place)
        elif text.lines[place]:
            break
    if not rows:
        return None
    trust = 0.7 + 0.28 * share(used, text.lines)
    return Parsed(type="table", confidence=trust, headers=names, rows=rows, lines=ranges(used))


def _is_ps_header(names: list[str]) -> bool:
    return "PID" in names and names[-1] in ("COMMAND", "CMD", "ARGS") and _PS_NAMES.issuperset(names)


def _process(names: list[str], line: str) -> list[str] | None:
    words = line.split(None, len(names) - 1)
    if len(words) != len(names):
        return None
    if "STARTED" in names and _LONG_DATE.match(words[names.index("STARTED")]):
        words = line.split(None, len(names) + 3)
        at = names.index("STARTED")
        words[at : at + 5] = [" ".join(words[at : at + 5])]
    return words if len(words) == len(names) and words[names.index("PID")].isdigit() else None


def read_disks(text: Text) -> Parsed | None:
    """`df`, with device names that hold blanks or push their row to the next line."""
    lines = text.lines
    index = next((i for i, line in enumerate(lines) if line.startswith(_DISK_HEADERS) and "%" in line), None)
    if index is None:
        return None
    names = _disk_names(lines[index])
    ratio = next((i for i, name in enumerate(names) if "%" in name or name == "Capacity"), 0)
    if not 2 <= ratio < len(names) - 1:
        return None
    rows: list[list[str]] = []
    used = {index}
    place = index + 1
    while place < len(lines):
        row = _disk(lines[place], len(names), ratio)
        height = 1
        if row is None and place + 1 < len(lines) and lines[place + 1].startswith(" "):
            row, height = _disk(f"{lines[place]} {lines[place + 1]}", len(names), ratio), 2
        if row is None:
            break
        rows.append(row)
        used.update(range(place, place + height))
        place += height
    if not rows:
        return None
    trust = 0.7 + 0.28 * share(used, lines)
    return Parsed(type="table", confidence=trust, headers=names, rows=rows, lines=ranges(used))


def _disk_names(header: str) -> list[str]:
    """The last column's name is two words in every language that matters."""
    words = header.replace("파일 시스템", "파일시스템").split()
    return [*words[:-2], " ".join(words[-2:])] if not words[-2].endswith("%") else words


def _disk(line: str, width: int, ratio: int) -> list[str] | None:
    spans = list(_WORD.finditer(line))
    at = next((i for i, word in enumerate(spans) if i >= ratio and _PERCENT.match(word[0])), None)
    if at is None or len(spans) < at + width - ratio:
        return None
    extra = at - ratio
    device = line[spans[0].start() : spans[extra].end()]
    middle = [word[0] for word in spans[extra + 1 : extra + width - 1]]
    return [device, *middle, line[spans[extra + width - 1].start() :].rstrip()]
