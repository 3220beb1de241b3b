"""Tables read by where their columns stand: aligned by blanks, ruled by dashes, or drawn in boxes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dari.terminal.output_parsers.result import OutputText, Parsed, ranges, share
from dari.text.width import slice_cells, split_cells, text_width

_BORDER = re.compile(r"[\s+|:\-=*─━═╌┄│┃║┌┬┐├┼┤└┴┘╭╮╯╰╒╤╕╞╪╡╘╧╛╔╦╗╠╬╣╚╩╝╓╥╖╟╫╢╙╨╜┏┳┓┣╋┫┗┻┛┡╇┩┢╈┪┠╂┨┯┷╷╵╶╴]++")
_LINES = frozenset("-=─━═╌┄")
_CORNERS = frozenset("+|┌┬┐├┼┤└┴┘╭╮╯╰╒╤╕╞╪╡╘╧╛╔╦╗╠╬╣╚╩╝╓╥╖╟╫╢╙╨╜┏┳┓┣╋┫┗┻┛┡╇┩┢╈┪┠╂┨┯┷")
_BARS = re.compile(r"(?<!\\)[│┃║|]")
_ROW = re.compile(r"\s*+[│┃║|]|[^│┃║|]*+[│┃║|]")


def is_border(line: str) -> bool:
    """A line that draws and says nothing."""
    bare = line.strip()
    return len(bare) > 1 and _BORDER.fullmatch(bare) is not None and any(char in _LINES for char in bare)


def read_box(start: int, block: list[str]) -> Parsed | None:
    """The table between the first and the last line that is drawn or has a bar in it."""
    drawn = [i for i, line in enumerate(block) if is_border(line) or _ROW.match(line)]
    borders = [i for i in drawn if is_border(block[i])]
    if not borders or len(drawn) < 3:
        return None
    lines = [(start + i, block[i]) for i in range(drawn[0], drawn[-1] + 1)]
    groups: list[list[list[str]]] = [[]]
    used: list[int] = []
    columns = _corners(block[borders[0]])
    for index, line in lines:
        if is_border(line):
            groups.append([])
            used.append(index)
        elif _ROW.match(line):
            groups[-1].append(_split(line, columns))
            used.append(index)
    groups = [group for group in groups if group]
    if not groups:
        return None
    # A line between all rows (or only single rows between lines) means that a group is one row, wrapped or not.
    is_grid = len(groups) > 2
    headers = _joined(groups[0]) if len(groups) > 1 else []
    body = groups[1:] if len(groups) > 1 else groups
    rows = [_joined(group) for group in body] if is_grid else [row for group in body for row in group]
    width = max(len(row) for row in [headers, *rows])
    if width < 2 or not rows:
        return None
    even = sum(len(row) == width for row in rows) / len(rows)
    rows = [row + [""] * (width - len(row)) for row in rows]
    headers = headers + [""] * (width - len(headers)) if headers else []
    trust = 0.5 + 0.45 * even if even > 0.5 else 0.3
    return Parsed(type="table", confidence=trust, headers=headers, rows=rows, lines=ranges(used))


def _corners(border: str) -> list[int]:
    return [place for place, cell in enumerate(split_cells(border)) if cell in _CORNERS]


def _split(line: str, columns: list[int]) -> list[str]:
    """Cells of a row: cut under the corners where a bar stands under each, else at every bar."""
    row = split_cells(line)
    if columns and all(place < len(row) and row[place] in ("│", "┃", "║", "|") for place in columns):
        bounds = [-1, *columns, len(row)]
        parts = [slice_cells(row, first + 1, last) for first, last in pairwise(bounds)]
    else:
        parts = [part.strip() for part in _BARS.split(line)]
    # Within a frame the first and the last bar open and close the row; without one every bar parts two cells.
    if _BARS.match(line.strip()):
        parts = parts[1:-1] if not parts[-1] else parts[1:]
    return [part.replace("\\|", "|") for part in parts]


def _joined(rows: list[list[str]]) -> list[str]:
    """Lines of one row put together again."""
    width = max(map(len, rows))
    return [" ".join(row[i] for row in rows if i < len(row) and row[i]) for i in range(width)]


_RULE = re.compile(r"[-=─━]{2,}+(?: +[-=─━]++)*|[-=─━](?: +[-=─━]++)+")
_CELL = re.compile(r"\S++(?: \S++)*")
_SENTENCE_END = (".", "!", "?", ":", ",", ";")


def read_table(text: OutputText) -> Parsed | None:
    """The table that covers most of the text."""
    best: Parsed | None = None
    size = 0
    for start, block in text.blocks():
        found = read_box(start, block) or _read_aligned(start, block)
        if found and found.rows and len(found.rows) * len(found.rows[0]) > size:
            best, size = found, len(found.rows) * len(found.rows[0])
    if best is None:
        return None
    used = {line for first, last in best.lines for line in range(first, last + 1)}
    coverage = share(used, text.lines)
    notes = [] if coverage > 0.99 else [f"{sum(map(bool, text.lines)) - len(used)} other lines were left out"]
    trust = best.confidence * (0.7 + 0.3 * coverage)
    return Parsed(
        type="table",
        confidence=trust,
        headers=best.headers,
        rows=best.rows,
        notes=notes,
        lines=ranges(i - 1 for i in used),
    )


def header_cells(line: str) -> list[tuple[int, str]]:
    """The names on a header line that two blanks keep apart, each with the cell where it starts."""
    return [(text_width(line[: match.start()]), match[0]) for match in _CELL.finditer(line)]


def slice_rows(starts: Sequence[int], lines: Sequence[str]) -> list[list[str]]:
    """Rows cut at the given cells; the last column takes the rest of its line."""
    bounds = [*zip(starts, [*starts[1:], None], strict=True)]
    return [[slice_cells(row, start, end) for start, end in bounds] for row in map(split_cells, lines)]


def stands_at(starts: Sequence[int], lines: Sequence[str]) -> bool:
    """Whether every line breaks before each of these cells, as in a table whose columns are aligned left."""
    for row in map(split_cells, lines):
        for start in starts:
            if start and start < len(row) and (row[start - 1].strip() or row[start] == ""):
                return False
    return True


def _read_aligned(start: int, block: list[str]) -> Parsed | None:
    ruled = next((i for i, line in enumerate(block[:6]) if i and _RULE.fullmatch(line.strip())), None)
    if ruled is not None and " " in block[ruled].strip():
        return _read_ruled(start, block, ruled)
    # Lines before the header (a prompt, a title) are dropped while what is left makes a better table.
    for skip in range(min(3, max(len(block) - 1, 1))):
        lines = [line for line in block[skip:] if not is_border(line)]
        if len(lines) < 2:
            break
        indexes = [start + i for i, line in enumerate(block) if i >= skip and not is_border(line)]
        found = _read_under_header(lines) or (_read_bare(lines) if skip == 0 else None)
        if found:
            headers, rows, trust = found
            return Parsed(type="table", confidence=trust, headers=headers, rows=rows, lines=ranges(indexes))
    return None


def _read_ruled(start: int, block: list[str], ruled: int) -> Parsed | None:
    """`pip list`: dashes under the header show where each column begins."""
    rule = block[ruled]
    starts = [text_width(rule[: match.start()]) for match in re.finditer(r"\S++", rule)]
    body = [line for line in block[ruled + 1 :] if not is_border(line)]
    if len(starts) < 2 or not body:
        return None
    headers = slice_rows(starts, [block[ruled - 1]])[0]
    starts[0] = 0
    indexes = [start + ruled - 1, *range(start + ruled, start + len(block))]
    return Parsed(type="table", confidence=0.93, headers=headers, rows=slice_rows(starts, body), lines=ranges(indexes))


def _read_under_header(lines: list[str]) -> tuple[list[str], list[list[str]], float] | None:
    header, body = lines[0], lines[1:]
    if not _is_header(header) or (len(body) < 2 and header.upper() != header):
        return None
    named = header_cells(header)
    starts = [place for place, _ in named]
    trust = 0.8 if header.upper() == header else 0.62
    bounds = _gaps(lines)
    is_left = len(named) >= 2 and starts[0] == 0 and stands_at(starts, body) and _is_spread(starts, body)
    if is_left and not (len(bounds) > len(named) and _is_tight(bounds, lines)):
        return [name for _, name in named], slice_rows(starts, body), trust
    if len(bounds) >= 2 and len(bounds) >= len(named):
        grid = [split_cells(line) for line in lines]
        table = [[slice_cells(row, first, last) for first, last in bounds] for row in grid]
        if _has_numbers(table) or trust == 0.8 or len(lines) > 3:
            trust -= 0.1 * (not _has_numbers(table)) + 0.15 * any("  " in name for name in table[0])
            return table[0], table[1:], trust
    return _read_by_words(header, body, trust)


def _read_by_words(header: str, body: list[str], trust: float) -> tuple[list[str], list[list[str]], float] | None:
    """Rows that a long value pushed out of line still have as many words as the header has."""
    names = [name for _, name in header_cells(header)]
    rows = [[match[0] for match in _CELL.finditer(line)] for line in body]
    if len(names) >= 2 and all(len(row) == len(names) for row in rows):
        return names, rows, trust - 0.1
    names = header.split()
    rows = [line.split(None, len(names) - 1) for line in body]
    if len(names) >= 3 and all(len(row) == len(names) for row in rows) and _has_numbers([names, *rows]):
        return names, rows, trust - 0.2
    return None


def _read_bare(lines: list[str]) -> tuple[list[str], list[list[str]], float] | None:
    """Columns without a header, where enough rows and columns line up to exclude chance."""
    rows = [[match[0] for match in _CELL.finditer(line)] for line in lines]
    width = len(rows[0])
    if len(rows) >= 3 and width >= 3 and all(len(row) == width for row in rows):
        return [], rows, 0.45
    return None


def _is_header(line: str) -> bool:
    """Names, not a sentence and not values: no word is a number, and at least two of them stand apart."""
    words = line.split()
    if len(words) < 2 or line.rstrip().endswith(_SENTENCE_END) or len(words) > 40:
        return False
    if any((word[0].isdigit() and word[-1].isdigit()) or word[-1] in ":," for word in words):
        return False
    if "  " not in line.strip() and line.upper() != line:
        return False
    return any(word[0].isalpha() for word in words)


def _is_spread(starts: Sequence[int], body: list[str]) -> bool:
    """Whether something is written in a second column at all."""
    return any(len(row) > starts[1] and slice_cells(row, starts[1], None) for row in map(split_cells, body))


def _gaps(lines: list[str]) -> list[tuple[int, int | None]]:
    """Columns between the cells that are blank on every line. Each has a name, the first may be without."""
    grid = [split_cells(line) for line in lines]
    width = max(map(len, grid))
    filled = [False] * width
    for row in grid:
        for place, cell in enumerate(row):
            if cell != " ":
                filled[place] = True
    spans: list[tuple[int, int]] = []
    place = 0
    while place < width:
        if filled[place]:
            end = place
            while end < width and filled[end]:
                end += 1
            spans.append((place, end))
            place = end
        place += 1
    header, body = grid[0], grid[1:]
    columns: list[tuple[int, int]] = []
    for first, last in spans:
        has_name = bool(slice_cells(header, first, last))
        has_value = any(slice_cells(row, first, last) for row in body)
        # `Mounted on` and `CONTAINER ID` are one name each; a gap inside values has no name above it.
        is_part = columns and (not has_name or (not has_value and first - columns[-1][1] == 1))
        if is_part:
            columns[-1] = (columns[-1][0], last)
        else:
            columns.append((first, last))
    return [(first, last) for first, last in columns[:-1]] + [(columns[-1][0], None)] if columns else []


def _is_tight(bounds: list[tuple[int, int | None]], lines: list[str]) -> bool:
    """Whether names one blank apart are columns of their own (`RM RO`): numbers or a wide gap stand under them."""
    header, *body = [split_cells(line) for line in lines]
    for (left, end), (right, last) in pairwise(bounds):
        if right < 2 or right > len(header) or header[right - 2] == " ":
            continue
        pairs = [(slice_cells(row, left, end), slice_cells(row, right, last), row) for row in body]
        whole = [pair for pair in pairs if pair[0] and pair[1]]
        if not whole:
            continue
        if all(pair[0].isdigit() for pair in whole) or all(pair[1].isdigit() for pair in whole):
            return True
        if any(row[right - 2 : right] == [" ", " "] for _, _, row in whole):
            return True
    return False


def _has_numbers(table: Sequence[Sequence[str]]) -> bool:
    """A column of numbers under a name that is none tells a table from prose."""
    header, *body = table
    for column, name in enumerate(header):
        values = [row[column] for row in body if column < len(row) and row[column]]
        if values and not name[:1].isdigit() and all(value[0].isdigit() or value[-1].isdigit() for value in values):
            return True
    return False
