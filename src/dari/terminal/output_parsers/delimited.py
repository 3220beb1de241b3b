"""CSV and TSV: records of fields between commas, tabs or semicolons, quoted fields with line breaks among them."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter

from dari.terminal.output_parsers.result import OutputText, Parsed, ranges

_MAX_ROWS = 100_000
_MAX_FIELD_CHARS = 131_072
_FIRST_LINES = 20
"""Delimiters are counted here; every record of a file has the same."""
_FILES = re.compile(r"\.(?:csv|tsv|tab)\b")
_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


def read_delimited(text: OutputText) -> Parsed | None:
    """A table whose first record names the columns. Records of another width are kept and noted, if they are few."""
    raw = text.raw.lstrip("\ufeff\n")
    skipped = text.raw.count("\n") - raw.count("\n")
    best: Parsed | None = None
    for delimiter in _DELIMITERS:
        if delimiter in raw:
            found = _read(raw, delimiter, text.is_wanted or bool(_FILES.search(text.command)), skipped)
            if found and (best is None or found.confidence > best.confidence):
                best = found
    return best


def _read(raw: str, delimiter: str, is_named: bool, skipped: int) -> Parsed | None:
    records: list[list[str]] = []
    used: list[int] = []
    reader = csv.reader(io.StringIO(raw), delimiter=delimiter, strict=True)
    start = 0
    try:
        for record in reader:
            if record:
                records.append(record)
                used += range(start, reader.line_num)
            start = reader.line_num
            if len(records) > _MAX_ROWS:
                break
            if len(records) == _FIRST_LINES and not is_named and _width_of(records)[1] < 0.9:
                return None
    except csv.Error:
        return None
    width, fitting = _width_of(records)
    if width < 2 or len(records) < 2 or fitting < 0.8:
        return None
    headers, rows = records[0], records[1:]
    if len(headers) != width:
        return None
    trust = _trust(headers, rows, delimiter, fitting)
    if is_named:
        trust = max(trust, 0.9)
    notes = [f"fields stand between {_DELIMITERS[delimiter]}"] if delimiter != "," else []
    odd = [index for index, row in enumerate(rows) if len(row) != width]
    if odd:
        notes.append(f"{len(odd)} of {len(rows)} rows have not {width} fields, the first is row {odd[0] + 1}")
    if len(records) > _MAX_ROWS:
        notes.append(f"only the first {_MAX_ROWS} rows were read")
    return Parsed(
        type="table",
        confidence=trust,
        headers=[header.strip() for header in headers],
        rows=rows[:_MAX_ROWS],
        notes=notes,
        lines=ranges(index + skipped for index in used),
    )


def _width_of(records: list[list[str]]) -> tuple[int, float]:
    """The width that most records have, and how many of them have it, 0 to 1."""
    if not records:
        return 0, 0.0
    width, count = Counter(map(len, records)).most_common(1)[0]
    return width, count / len(records)


def _trust(headers: list[str], rows: list[list[str]], delimiter: str, fitting: float) -> float:
    """Prose has commas as well: a header is short, unlike the others, and no comma in it is followed by a blank."""
    cells = [cell for row in [headers, *rows[:200]] for cell in row]
    blank_first = sum(cell[:1] == " " for cell in cells) / len(cells)
    names = [header.strip() for header in headers]
    is_header = len(set(names)) == len(names) and all(0 < len(name) <= 60 and not name[0].isdigit() for name in names)
    trust = 0.45 + 0.1 * min(len(headers) - 1, 3) + 0.05 * min(len(rows), 4)
    trust -= 0.5 * blank_first + (0.0 if is_header else 0.25) + (1 - fitting)
    if delimiter == "|" or any(re.search(r"[{}<>]|https?:", name) for name in names):
        trust -= 0.3
    return max(0.05, min(trust, 0.93))
