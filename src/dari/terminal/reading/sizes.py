"""`du` and `wc`: a number or some, and a path that may hold blanks."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Parsed, Text, ranges, share

# A terminal shows a tab as blanks up to the next column of eight.
_DU = re.compile(r"(\d+(?:[.,]\d+)?(?:[KMGTPE]i?B?|B)?) +(?:(\d{4}-\d\d-\d\d(?: [\d:.]+(?: [+-]\d{4})?)?) +)?(\S.*)")
_TAB = 8
_WC = re.compile(r" *(\d+)((?: +\d+)*)(?: (\S.*))?")
_COMPLAINT = re.compile(r"(?:\S*/)?(?:g?du|g?wc): ")
_WC_COLUMNS = {"l": "lines", "w": "words", "m": "chars", "c": "bytes", "L": "max_line_length"}
_WC_LONG = {"--lines": "l", "--words": "w", "--chars": "m", "--bytes": "c", "--max-line-length": "L"}
_DU_UNITS = (
    (r"(?:^|\s)(?:-\w*h\w*|--human-readable|--si)\b", "the largest unit that fits"),
    (r"(?:^|\s)(?:-\w*b\w*|--bytes)\b", "bytes"),
    (r"(?:^|\s)-\w*m\w*\b", "MiB"),
    (r"(?:^|\s)-\w*k\w*\b|--block-size[= ]1?K", "KiB"),
)


def read_du(text: Text) -> Parsed | None:
    """`size` as printed and `path`; the unit follows from the command."""
    rows: list[list[str]] = []
    dates: list[str] = []
    used, complaints = set[int](), set[int]()
    for index, line in enumerate(text.lines):
        if (match := _DU.fullmatch(line)) and match.start(3) % _TAB == 0:
            rows.append([match[1], match[3]])
            dates.append(match[2] or "")
            used.add(index)
        elif _COMPLAINT.match(line):
            complaints.add(index)
    if not rows:
        return None
    headers = ["size", "path"]
    if any(dates):
        headers = ["size", "modified", "path"]
        rows = [[row[0], date, row[1]] for row, date in zip(rows, dates, strict=True)]
    is_path = sum("/" in row[-1] or row[-1] in (".", "total") for row in rows) / len(rows)
    trust = (0.42 + 0.38 * is_path) * share(used | complaints, text.lines)
    unit = next((unit for pattern, unit in _DU_UNITS if re.search(pattern, text.command)), "")
    if not unit and re.search(r"\bdu\b", text.command):
        unit = "KiB, unless DU_BLOCK_SIZE or POSIXLY_CORRECT says otherwise"
    notes = [f"sizes are in {unit}"] if unit else []
    notes += _about(complaints)
    return Parsed(type="table", confidence=trust, headers=headers, rows=rows, notes=notes, lines=ranges(used))


def read_wc(text: Text) -> Parsed | None:
    """One row a file, the `total` among them; columns are named by the options, in the order that wc prints."""
    names = _wc_columns(text.command)
    is_wc = re.search(r"\bwc\b", text.command) is not None
    rows: list[list[str]] = []
    used, complaints = set[int](), set[int]()
    for index, line in enumerate(text.lines):
        if _COMPLAINT.match(line):
            complaints.add(index)
        elif row := _wc_row(line, len(names)):
            rows.append(row)
            used.add(index)
        elif line:
            return None
    if not rows:
        return None
    if all(not row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
        headers = names
    else:
        headers = [*names, "file"]
    # Numbers and names are printed by much else; what tells wc is a total that adds up, or its name.
    trust = 0.85 if is_wc else 0.75 if len(names) == 3 and _adds_up(rows) else 0.2
    return Parsed(
        type="table", confidence=trust, headers=headers, rows=rows, notes=_about(complaints), lines=ranges(used)
    )


def _wc_row(line: str, count: int) -> list[str] | None:
    match = _WC.fullmatch(line)
    if match is None:
        return None
    words = line.split(None, count)
    if len(words) < count or not all(word.isdigit() for word in words[:count]):
        return None
    return [*words[:count], words[count] if len(words) > count else ""]


def _wc_columns(command: str) -> list[str]:
    match = re.search(r"\bwc\b([^|;&]*)", command)
    letters: set[str] = set()
    for word in match[1].split() if match else ():
        if re.fullmatch(r"-[lwmcL]+", word):
            letters |= set(word[1:])
        elif word in _WC_LONG:
            letters.add(_WC_LONG[word])
    return [name for letter, name in _WC_COLUMNS.items() if letter in (letters or "lwc")]


def _adds_up(rows: list[list[str]]) -> bool:
    if len(rows) < 3 or rows[-1][-1] != "total":
        return False
    return all(int(rows[-1][i]) == sum(int(row[i]) for row in rows[:-1]) for i in range(len(rows[0]) - 1))


def _about(complaints: set[int]) -> list[str]:
    return [f"{len(complaints)} paths could not be read"] if complaints else []
