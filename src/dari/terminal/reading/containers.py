"""`docker ps`, `docker images` and their like in podman and nerdctl: columns begin where their names begin."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Parsed, Text, ranges, share
from dari.terminal.reading.tables import header_cells, slice_rows, stands_at

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


def read_containers(text: Text) -> Parsed | None:
    """Rows as `docker ps` names them; ports or names may be empty."""
    return _read(text, _CONTAINERS, _CONTAINER_NAMES, {"CONTAINER ID", "STATUS", "PORTS"})


def read_images(text: Text) -> Parsed | None:
    return _read(text, _IMAGES, _IMAGE_NAMES, {"REPOSITORY", "IMAGE ID", "DISK USAGE"})


def _read(text: Text, opening: re.Pattern[str], known: frozenset[str], telling: set[str]) -> Parsed | None:
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
