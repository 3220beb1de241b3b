"""Tables drawn with lines: box characters, `+---+`, psql and markdown."""

from __future__ import annotations

import re
from itertools import pairwise

from dari.terminal.reading.result import Parsed, ranges
from dari.text.width import cells, cut

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
    return [place for place, cell in enumerate(cells(border)) if cell in _CORNERS]


def _split(line: str, columns: list[int]) -> list[str]:
    """Cells of a row: cut under the corners where a bar stands under each, else at every bar."""
    row = cells(line)
    if columns and all(place < len(row) and row[place] in ("│", "┃", "║", "|") for place in columns):
        bounds = [-1, *columns, len(row)]
        parts = [cut(row, first + 1, last) for first, last in pairwise(bounds)]
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
