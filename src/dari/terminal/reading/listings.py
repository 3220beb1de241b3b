"""`ls -l` and what prints like it."""

from __future__ import annotations

import re
import shlex

from dari.terminal.reading.result import Parsed, Text, ranges, share

HEADERS = ["kind", "mode", "links", "owner", "group", "size", "modified", "name", "target"]

_KINDS = {
    "-": "file",
    "d": "directory",
    "l": "symlink",
    "c": "character_device",
    "b": "block_device",
    "p": "pipe",
    "s": "socket",
    "D": "door",
}
_MODE = re.compile(r"(?:\s*+\d++ ++){0,2}?([-dlcbpsD?][-rwxsStTlL?]{9}[.+@]?+) ++(\d++|\?) ++")
_TIME = (
    r"(?:\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d(?:\.\d++)?(?: [+-]\d{4})?)?"  # long-iso, full-iso
    r"|\d\d-\d\d \d\d:\d\d|\d{4}-\d\d-\d\d"  # iso
    r"|[^\W\d_]{1,9}\.? {1,2}\d{1,2} {1,2}(?:\d\d:\d\d(?::\d\d(?: \d{4})?)?|\d{4})"  # Nov 16 05:10, Nov 16  2024
    r"|\d{1,2}\.? {1,2}[^\W\d_]{1,9}\.? {1,2}(?:\d\d:\d\d|\d{4})"  # 16. Nov 05:10, 16 nov 2024
    r"|\d{1,2}월 {1,2}\d{1,2}일? {1,2}(?:\d\d:\d\d|\d{4})"  # 11월 16 05:10
    r"|\d{1,2}月 {1,2}\d{1,2}日? {1,2}(?:\d\d:\d\d|\d{4})|\?)"
)
_REST = re.compile(
    r"(?:(?P<first>\S++) ++(?:(?P<second>\S++) ++)??)??"
    r"(?P<size>\d[\d.,]*+[KMGTPEZYkB]?+i?+B?+|\d++, ++\d++|0x[0-9a-f]++|\?|-) ++"
    rf"(?P<time>{_TIME}) (?P<name>.++)$"
)
_TOTAL = re.compile(r"(?:total|insgesamt|합계|合計|总计|총) [\d.,]++[KMGTPEZYkB]?+$")
_DIRECTORY = re.compile(r"(\S.*):$")


def read_listing(text: Text) -> Parsed | None:
    """One row a file. `directory` is a tenth column where several directories are listed."""
    rows: list[list[str]] = []
    places: list[str] = []
    used: set[int] = set()
    directory = ""
    lines = text.lines
    for index, line in enumerate(lines):
        row = _row(line)
        if row:
            rows.append(row)
            places.append(directory)
            used.add(index)
        elif _TOTAL.match(line):
            used.add(index)
        elif match := _DIRECTORY.match(line):
            following = next((after for after in lines[index + 1 : index + 3] if after), "")
            if _TOTAL.match(following) or _MODE.match(following):
                directory = match[1]
                used.add(index)
    if not rows:
        return None
    _unquote(rows)
    headers = HEADERS
    if len(set(places)) > 1:
        headers = [*HEADERS, "directory"]
        rows = [[*row, place] for row, place in zip(rows, places, strict=True)]
    trust = 0.6 + 0.38 * share(used, lines)
    return Parsed(type="table", confidence=trust, headers=headers, rows=rows, lines=ranges(used))


def _row(line: str) -> list[str] | None:
    mode = _MODE.match(line)
    rest = _REST.match(line, mode.end()) if mode else None
    if not mode or not rest:
        return None
    name, target = rest["name"], ""
    kind = _KINDS.get(mode[1][0], "unknown")
    if kind == "symlink" and " -> " in name:
        name, _, target = name.partition(" -> ")
    owner, group = rest["first"] or "", rest["second"] or ""
    return [kind, mode[1], mode[2], owner, group, rest["size"], rest["time"], name, target]


def _unquote(rows: list[list[str]]) -> None:
    """On a terminal GNU ls quotes names for the shell and puts a blank before the others to keep them in line."""
    if not any(row[7][:1] in "'\"" for row in rows) or not all(row[7][:1] in " '\"" for row in rows):
        return
    for row in rows:
        for column in (7, 8):
            if row[column][:1] in ("'", '"'):
                try:
                    words = shlex.split(row[column])
                except ValueError:
                    continue
                if len(words) == 1:
                    row[column] = words[0]
            elif column == 7:
                row[column] = row[column][1:]
