"""Source files as text, back to the same bytes, and whether they parse."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import PurePath

from msgspec import Struct

from dari.codetools.edits.undo import hash_content
from dari.codetools.refactor.jobs import PlannedFile
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, DariError, InvalidInput
from dari.syntax.languages import code_language

STRUCTURAL = frozenset(
    (
        *("python", "javascript", "typescript", "tsx", "java", "go", "rust", "c", "cpp", "csharp", "ruby", "php"),
        *("kotlin", "swift", "scala", "css", "json", "yaml", "bash", "lua", "elixir", "haskell", "hcl", "nix"),
        *("solidity", "html"),
    )
)
"""Languages that ast-grep has a grammar for, as both of us call them."""
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


class SourceFile(Struct, frozen=True):
    path: WorkspacePath
    data: bytes
    text: str
    """Without the BOM, with its line ends."""
    encoding: str
    bom: bytes = b""

    @property
    def language(self) -> str:
        return language_of(self.path.relative)

    @property
    def plain(self) -> str:
        r"""With \n alone."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n")

    def encode(self, text: str) -> bytes:
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"{self.path.relative} is written in {self.encoding}, which has no {text[error.start : error.end]!r}",
                "choose a name that it has, or convert the file first",
            ) from None

    def with_plain(self, plain: str) -> str:
        r"""A new text that has \n alone, with the line ends that its lines had here."""
        if "\r" not in self.text:
            return plain
        old, new = self.text.splitlines(keepends=True), plain.splitlines(keepends=True)
        bare = [line.rstrip("\r\n") for line in old]
        ends = [line[len(text) :] for line, text in zip(old, bare, strict=True)]
        common = max(set(ends), key=ends.count)
        by_text = dict(zip(bare, ends, strict=True))
        rows = []
        for at, line in enumerate(new):
            text = line.rstrip("\n")
            same_place = ends[at] if len(old) == len(new) else by_text.get(text, common)
            rows.append(text + (same_place or common if line.endswith("\n") else ""))
        return "".join(rows)


def python_lines(text: str) -> list[str]:
    """Lines as Python counts them, with their ends: a form feed ends none, and a lone \\r does."""
    return re.findall(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+", text)


def structural_engine() -> str:
    return f"ast-grep {version('ast-grep-py')}"


def language_of(name: str) -> str:
    found = code_language(PurePath(name))
    return "html" if not found and name.lower().endswith((".html", ".htm")) else found


def read_source(path: WorkspacePath, workspace: Workspace) -> SourceFile:
    return to_source(path, workspace.read(path))


def to_source(path: WorkspacePath, data: bytes) -> SourceFile:
    """Any bytes: what is in no encoding that we know is read as Latin-1, which gives every byte back."""
    for bom, encoding in _BOMS:
        if data.startswith(bom) and (text := _decode(data[len(bom) :], encoding)) is not None:
            return SourceFile(path, data, text, encoding, bom)
    encoding = _python_encoding(data) if language_of(path.relative) == "python" else "utf-8"
    text = _decode(data, encoding)
    return (
        SourceFile(path, data, data.decode("latin-1"), "latin-1")
        if text is None
        else SourceFile(path, data, text, encoding)
    )


def read_sources(
    paths: Iterable[WorkspacePath], workspace: Workspace, needle: str = "", notes: list[str] | None = None
) -> Iterator[SourceFile]:
    """Those that hold the word, and are small enough to be code."""
    for path in paths:
        try:
            source = read_source(path, workspace)
        except (DariError, OSError) as error:
            if notes is not None:
                notes.append(f"left out: {error}")
            continue
        if needle in source.text and "\0" not in source.text[:8000]:
            yield source


def planned(source: SourceFile, text: str | None) -> PlannedFile:
    after = None if text is None else source.encode(text)
    return PlannedFile(os.fsencode(source.path.absolute), hash_content(source.data), after)


def check_parses(source: SourceFile, text: str, name: str) -> None:
    """Conflict when the file parsed before and the new text does not."""
    line = find_syntax_error(text, source.language)
    if line and not find_syntax_error(source.text, source.language):
        shown = text.splitlines()[line - 1].strip()[:200] if line <= len(text.splitlines()) else ""
        raise Conflict(
            f"{name} would not parse afterwards, at line {line}: {shown}", "nothing was written; correct the arguments"
        )


def find_syntax_error(text: str, language: str) -> int:
    """The line of the first error; 0 where there is none, or no parser."""
    if language == "python":
        return _python_error(text)
    if language not in STRUCTURAL:
        return 0
    from ast_grep_py import SgRoot

    found = SgRoot(text, language).root().find(kind="ERROR")
    return 0 if found is None else found.range().start.line + 1


def _python_error(text: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError as error:
            return error.lineno or 1
        except (ValueError, RecursionError, MemoryError):
            return 1
    return 0


def _decode(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
        return text if text.encode(encoding) == data else None
    except (UnicodeError, LookupError):
        return None


def _python_encoding(data: bytes) -> str:
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError:
        return "utf-8"
