"""Jupyter notebooks: a cell is a page. Markdown cells are Markdown, code cells are code with what they printed."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from dari.knowledge.document import Block, ParsedDocument
from dari.knowledge.parse.language import detect_language
from dari.knowledge.parse.limits import ParseFailed
from dari.knowledge.parse.lines import has_words
from dari.knowledge.parse.markdown import markdown_blocks
from dari.knowledge.parse.versions import PARSER_VERSIONS
from dari.struct_types import ready

MAX_OUTPUT_CHARS = 2_000
"""Of all that a cell printed: results are of use, logs of a training run are not."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_Text = str | list[str]


class _Output(Struct):
    output_type: str = ""
    text: _Text = ""
    data: dict[str, object] = {}
    ename: str = ""
    evalue: str = ""


class _Cell(Struct):
    cell_type: str = ""
    source: _Text = ""
    outputs: list[_Output] = []


class _Language(Struct, frozen=True):
    name: str = ""


class _Metadata(Struct, frozen=True):
    language_info: _Language = _Language()
    title: str = ""


class _Notebook(Struct):
    cells: list[_Cell]
    metadata: _Metadata = _Metadata()


def parse_notebook(data: bytes) -> ParsedDocument:
    try:
        notebook = msgspec.json.decode(data, type=ready(_Notebook))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ParseFailed("malformed", f"a notebook must be nbformat 4 JSON: {str(error)[:200]}") from None
    blocks: list[Block] = []
    headings: list[tuple[int, str]] = []
    for number, cell in enumerate(notebook.cells, 1):
        source = _join(cell.source)
        if cell.cell_type == "markdown":
            found = markdown_blocks(source.replace("\r\n", "\n").split("\n"), 0, headings)
            blocks += (msgspec.structs.replace(block, page=number) for block in found)
        elif cell.cell_type in ("code", "raw"):
            path = tuple(name for _, name in headings)
            blocks += _code(cell, source.strip("\n"), number, path)
    title = notebook.metadata.title or next((block.heading_path[-1] for block in blocks if block.kind == "heading"), "")
    prose = "\n".join(block.text for block in blocks if block.kind != "code")
    return ParsedDocument(
        "notebook",
        PARSER_VERSIONS["notebook"],
        tuple(blocks),
        title,
        detect_language(prose),
        code_lang=notebook.metadata.language_info.name[:32],
    )


def _code(cell: _Cell, source: str, number: int, path: tuple[str, ...]) -> list[Block]:
    blocks = [Block("code", source, 1, source.count("\n") + 1, number, path)] if has_words(source) else []
    printed = "\n".join(text for output in cell.outputs if (text := _printed(output)))
    if has_words(printed):
        if len(printed) > MAX_OUTPUT_CHARS:
            printed = f"{printed[: MAX_OUTPUT_CHARS - 1]}…"
        blocks.append(Block("paragraph", printed, page=number, heading_path=path))
    return blocks


def _printed(output: _Output) -> str:
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"[:MAX_OUTPUT_CHARS]
    plain = output.data.get("text/plain", "")
    text = _join(output.text) or (_join(plain) if isinstance(plain, (str, list)) else "")
    return _COLOUR.sub("", text[: 2 * MAX_OUTPUT_CHARS]).strip()


def _join(text: _Text | list[object]) -> str:
    return text if isinstance(text, str) else "".join(part for part in text if isinstance(part, str))
