"""`ps`, `df`, `docker ps` and `docker images` (also of podman and nerdctl): rows of words under a header."""

from __future__ import annotations

import re

from dari.terminal.output_parsers.result import OutputText, Parsed, ranges, share
from dari.terminal.output_parsers.tables import header_cells, slice_rows, stands_at

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


def read_processes(text: OutputText) -> Parsed | None:
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


def read_disks(text: OutputText) -> Parsed | None:
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


_CONTAINERS = re.compile(r"(?:CONTAINER ID|NAMES?|IMAGE|STATUS|COMMAND|PORTS|CREATED)(?:  |$)")
_IMAGES = re.compile(r"(?:REPOSITORY|IMAGE ID|IMAGE|TAG)(?:  |$)")
_CONTAINER_NAMES = frozenset(
    (
        *("CONTAINER ID", "IMAGE", "COMMAND", "CREATED", "CREATED AT", "STATUS", "PORTS", "NAMES", "NAME", "SERVICE"),
        *("SIZE", "STATE", "LABELS", "MOUNTS", "NETWORKS", "LOCAL VOLUMES", "RUNNING FOR"),
    )
)
_IMAGE_NAMES = frozenset(
    (
        *("REPOSITORY", "TAG", "IMAGE", "IMAGE ID", "ID", "CREATED", "CREATED AT", "SIZE", "DIGEST", "PLATFORM"),
        *("BLOB SIZE", "DISK USAGE", "CONTENT SIZE", "EXTRA"),
    )
)


def read_containers(text: OutputText) -> Parsed | None:
    """Rows as `docker ps` names them; ports or names may be empty."""
    return _read(text, _CONTAINERS, _CONTAINER_NAMES, {"CONTAINER ID", "STATUS", "PORTS"})


def read_images(text: OutputText) -> Parsed | None:
    return _read(text, _IMAGES, _IMAGE_NAMES, {"REPOSITORY", "IMAGE ID", "DISK USAGE"})


def _read(text: OutputText, opening: re.Pattern[str], known: frozenset[str], telling: set[str]) -> Parsed | None:
    def is_header(line: str) -> bool:
        names = {name for _, name in header_cells(line)} if opening.match(line) else set()
        return len(names) > 1 and names <= known and bool(names & telling)

    index = next((i for i, line in enumerate(text.lines) if is_header(line)), None)
    if index is None:
        return None
    named = header_cells(text.lines[index])
    starts = [place for place, _ in named]
    end = index + 1
    while end < len(text.lines) and text.lines[end] and stands_at(starts, [text.lines[end]]):
        end += 1
    body = text.lines[index + 1 : end]
    notes = [] if body else ["there is a header and no row"]
    if end < len(text.lines) and text.lines[end]:
        notes.append(f"line {end + 1} does not stand in these columns; was the output wrapped?")
    used = range(index, end)
    trust = 0.75 + 0.23 * share(used, text.lines)
    headers = [name for _, name in named]
    rows = slice_rows(starts, body)
    return Parsed(type="table", confidence=trust, headers=headers, rows=rows, notes=notes, lines=ranges(used))
