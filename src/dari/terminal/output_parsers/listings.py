"""Listings of system commands: `ls -l`, `du`, `wc`, `ps`, `df`, `docker ps` and `docker images` (podman, nerdctl)."""

from __future__ import annotations

import re
import shlex

from dari.terminal.output_parsers.result import OutputText, Parsed, ranges, share
from dari.terminal.output_parsers.tables import header_cells, slice_rows, stands_at

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
    if len(words) < count or not all(word.isdecimal() for word in words[:count]):  # `²` is a digit, and no number
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
