"""`ls -l` and what prints like it; `du` and `wc`."""

from __future__ import annotations

import re
import shlex

from dari.terminal.output_parsers.result import OutputText, Parsed, ranges, share

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


def read_listing(text: OutputText) -> Parsed | None:
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


def read_du(text: OutputText) -> Parsed | None:
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


def read_wc(text: OutputText) -> Parsed | None:
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
