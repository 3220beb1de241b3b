"""Word, PowerPoint and Excel files: headings and paragraphs, slides, sheets."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dari.knowledge.document import Block, BlockKind, ParsedDocument
from dari.knowledge.parse.language import detect_language
from dari.knowledge.parse.limits import ParseFailed, ParseLimits
from dari.knowledge.parse.lines import has_words
from dari.knowledge.parse.versions import PARSER_VERSIONS

if TYPE_CHECKING:
    from docx.document import Document
    from docx.oxml.xmlchemy import BaseOxmlElement
    from docx.table import _Cell
    from pptx.presentation import Presentation
    from pptx.shapes.base import BaseShape
    from pptx.slide import Slide

MAX_MEMBERS = 20_000
MAX_CELLS = 1_000_000
MAX_EMPTY_ROWS = 1_000
SHEET_BLOCK_CHARS = 1_400
_MAX_GROUP_DEPTH = 8
_MAX_TABLE_DEPTH = 8
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _TABLE, _CONTROL = f"{_WORD}p", f"{_WORD}tbl", f"{_WORD}sdt"
# Around paragraphs and tables: tracked insertions, and what old versions and other programs mark up.
_AROUND = frozenset(f"{_WORD}{name}" for name in ("ins", "moveTo", "customXml", "sdtContent"))
# Formats, and what is not read on the page: deletions, and the second form of a drawing.
_UNREAD = frozenset(
    (
        *(f"{_WORD}{name}" for name in ("pPr", "rPr", "sdtPr", "del", "moveFrom")),
        "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
    )
)
_BREAKS = {f"{_WORD}tab": "\t", f"{_WORD}br": "\n", f"{_WORD}cr": "\n", f"{_WORD}noBreakHyphen": "-", _PARAGRAPH: "\n"}
_CORE_PROPERTIES = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
_HEADING = re.compile(r"(?:heading|제목|überschrift|titre)\s*(\d)", re.IGNORECASE)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def parse_office(data: bytes, extension: str, limits: ParseLimits) -> ParsedDocument:
    """In a Word file a line is a paragraph, or a row of a table; a slide or a sheet is a page."""
    _check_archive(data, limits)
    warnings: list[str] = []
    try:
        if extension.startswith("doc"):
            title, blocks = _word(data)
        elif extension.startswith("ppt"):
            title, blocks = _slides(data)
        else:
            title, blocks = _sheets(data, warnings)
    except (KeyError, ValueError, zipfile.BadZipFile, AttributeError, SyntaxError) as error:
        raise ParseFailed("malformed", f"not a sound .{extension} file: {str(error)[:200]}") from None
    return ParsedDocument(
        "office",
        PARSER_VERSIONS["office"],
        tuple(blocks),
        " ".join(title.split())[:300],
        detect_language("\n".join(block.text for block in blocks[:60])),
        warnings=tuple(warnings),
    )


def _check_archive(data: bytes, limits: ParseLimits) -> None:
    """Sizes as the archive declares them: no member is unpacked beyond what it declares."""
    if data.startswith(_OLE):
        raise ParseFailed("encrypted", "an office file must be readable without a password", "remove the password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError) as error:
        raise ParseFailed("malformed", f"an office file must be a ZIP archive: {str(error)[:120]}") from None
    unpacked = sum(member.file_size for member in members)
    if unpacked > limits.max_unpacked_bytes or len(members) > MAX_MEMBERS:
        raise ParseFailed(
            "output_exceeded",
            f"an office file must unpack to at most {limits.max_unpacked_bytes} bytes, "
            f"got {unpacked} in {len(members)} members",
            "it may be a ZIP bomb",
        )


class _Outline:
    """Headings that are open, and blocks with the path they make."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []
        self.blocks: list[Block] = []

    def heading(self, level: int, text: str, line: int = 0, page: int = 0) -> None:
        self._open = [*(one for one in self._open if one[0] < level), (level, " ".join(text.split()))]
        self.add("heading", text, line, line, page)

    def add(self, kind: BlockKind, text: str, first: int = 0, last: int = 0, page: int = 0) -> None:
        if has_words(text):
            self.blocks.append(Block(kind, text, first, last, page, tuple(name for _, name in self._open)))


def _word(data: bytes) -> tuple[str, list[Block]]:
    import docx
    from docx.table import Table
    from docx.text.paragraph import Paragraph

    document: Document = docx.Document(io.BytesIO(data))
    outline, line = _Outline(), 0
    for element in _inner_elements(document.element.body):
        line += 1
        if element.tag == _PARAGRAPH:
            text = _text_of(element).strip()
            named = Paragraph(element, document).style
            style = (named.name if named is not None else "") or ""
            if found := _HEADING.match(style):
                outline.heading(int(found[1]), text, line)
            elif style == "Title":
                outline.heading(1, text, line)
            else:
                outline.add("list" if style.startswith("List") else "paragraph", text, line, line)
        else:
            rows = list(_rows(_cells_of(row.cells) for row in Table(element, document).rows))
            outline.add("table", "\n".join(rows), line, line + max(0, len(rows) - 1))
            line += max(0, len(rows) - 1)
    first = next((block.text for block in outline.blocks if block.kind == "heading"), "")
    return _stated_title(document) or first, outline.blocks


def _inner_elements(parent: BaseOxmlElement) -> Iterator[Any]:
    """Paragraphs and tables in order, also those in content controls, of which templates are made."""
    for element in parent:
        if element.tag in (_PARAGRAPH, _TABLE):
            yield element
        elif element.tag in _AROUND:
            yield from _inner_elements(element)
        elif element.tag == _CONTROL:
            gallery = element.find(f"{_WORD}sdtPr/{_WORD}docPartObj/{_WORD}docPartGallery")
            if gallery is None or gallery.get(f"{_WORD}val") != "Table of Contents":
                yield from _inner_elements(element)


def _text_of(element: BaseOxmlElement) -> str:
    """What is read in a paragraph. `Paragraph.text` leaves out tracked insertions, content controls and text boxes."""
    texts: list[str] = []
    for node in element:
        if node.tag == f"{_WORD}t":
            texts.append(node.text or "")
        elif node.tag not in _UNREAD:
            texts += (_BREAKS.get(node.tag, ""), _text_of(node))
    return "".join(texts)


def _cells_of(cells: Sequence[_Cell], depth: int = 0) -> list[str]:
    """The texts of a row; a merged cell comes once per column it spans, and is one text."""
    return [_cell_text(cell, depth) for n, cell in enumerate(cells) if n == 0 or cell is not cells[n - 1]]


def _cell_text(cell: _Cell, depth: int) -> str:
    """With what the tables inside it say: forms are made of them."""
    from docx.table import Table

    texts: list[str] = []
    for inner in _inner_elements(cell._tc):
        if inner.tag == _PARAGRAPH:
            texts.append(_text_of(inner))
        elif depth < _MAX_TABLE_DEPTH:
            for row in Table(inner, cell).rows:
                texts += _cells_of(row.cells, depth + 1)
    return " ".join(texts)


def _stated_title(document: Document | Presentation) -> str:
    """The title that the file states. Of a file that states none, as those of Google Docs, both libraries say that it
    is called "Word Document" or "PowerPoint Presentation"."""
    try:
        document.part.package.part_related_by(_CORE_PROPERTIES)
    except KeyError:
        return ""
    return document.core_properties.title or ""


def _rows(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in rows:
        texts = [" ".join(cell.split()) for cell in cells]
        if any(texts):
            yield f"| {' | '.join(texts)} |"


def _slides(data: bytes) -> tuple[str, list[Block]]:
    import pptx

    presentation = pptx.Presentation(io.BytesIO(data))
    outline = _Outline()
    for number, slide in enumerate(presentation.slides, 1):
        title = slide.shapes.title
        name = " ".join(title.text_frame.text.split()) if title is not None else ""
        if name:
            outline.heading(1, name, page=number)
        for shape in slide.shapes:
            if title is None or shape.shape_id != title.shape_id:
                _shape(outline, shape, number, 0)
        outline.add("paragraph", _notes(slide), page=number)
    first = next((block.text for block in outline.blocks if block.kind == "heading"), "")
    return _stated_title(presentation) or first, outline.blocks


def _shape(outline: _Outline, shape: BaseShape, page: int, depth: int) -> None:
    if (members := getattr(shape, "shapes", None)) is not None and depth < _MAX_GROUP_DEPTH:
        for member in members:
            _shape(outline, member, page, depth + 1)
    elif getattr(shape, "has_table", False):
        table = shape.table  # type: ignore[attr-defined]
        rows = _rows([cell.text for cell in row.cells] for row in table.rows)
        outline.add("table", "\n".join(rows), page=page)
    elif shape.has_text_frame:
        texts = [paragraph.text.strip() for paragraph in shape.text_frame.paragraphs]  # type: ignore[attr-defined]
        outline.add("paragraph", "\n".join(text for text in texts if text), page=page)


def _notes(slide: Slide) -> str:
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    return frame.text.strip() if frame is not None else ""


def _sheets(data: bytes, warnings: list[str]) -> tuple[str, list[Block]]:
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    outline, cells_left = _Outline(), MAX_CELLS
    for number, sheet in enumerate(book.worksheets, 1):
        outline.heading(1, sheet.title, page=number)
        sheet.reset_dimensions()  # the file may claim a million rows
        cells_left = _sheet(outline, sheet.iter_rows(values_only=True), number, cells_left)
        if cells_left <= 0:
            warnings.append(f"only the first {MAX_CELLS} cells were read")
            break
    title = book.properties.title or ""
    book.close()
    return title, outline.blocks


def _sheet(outline: _Outline, rows: Iterable[Sequence[object]], page: int, cells_left: int) -> int:
    """Rows in blocks, each below the sheet's first row, which most often has the names of the columns."""
    header, begun, first, last, size, empty = "", list[str](), 0, 0, 0, 0
    for line, values in enumerate(rows, 1):
        cells_left -= max(1, len(values))
        texts = ["" if value is None else " ".join(str(value).split()) for value in values]
        while texts and not texts[-1]:
            texts.pop()
        empty = 0 if texts else empty + 1
        if cells_left <= 0 or empty > MAX_EMPTY_ROWS:
            break
        if not texts:
            continue
        row = f"| {' | '.join(texts)} |"
        if begun and size + len(row) > SHEET_BLOCK_CHARS:
            outline.add("table", "\n".join(begun), first, last, page)
            begun, size = [header], len(header)
            first = line
        if not begun:
            header, first = row[:SHEET_BLOCK_CHARS], line
        begun.append(row)
        size += len(row)
        last = line
    if begun:
        outline.add("table", "\n".join(begun), first, last, page)
    return cells_left
