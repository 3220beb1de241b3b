"""Where a name is written in strings, comments and documents: counted, since a rename leaves them alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dari.codetools.refactor.sources import Source, language_of, read_sources
from dari.codetools.workspace import Workspace

_PROSE = (".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".json", ".html", ".adoc", ".pyi", ".ipynb")
_TEXTS = re.compile(
    r"#[^\n]*"
    r"|\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
)
"""Comments and strings of Python; a hundred times as fast as `tokenize`, and exact enough to count."""
_MAX_SHOWN = 5
_MAX_FILE_CHARS = 1_000_000


def count_mentions(name: str, workspace: Workspace, include_ignored: bool = False) -> list[str]:
    """One note, or none."""

    def wants(file: str) -> bool:
        return file.lower().endswith(_PROSE) or language_of(file) == "python"

    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    places: list[str] = []
    count = 0
    for source in read_sources(workspace.files(["."], wants=wants, include_ignored=include_ignored), workspace, name):
        lines = [line for line, text in _texts(source) if word.search(text)]
        count += len(lines)
        places += [f"{workspace.show(source.path)}:{line}" for line in lines[: _MAX_SHOWN - len(places)]]
    if not count:
        return []
    shown = ", ".join(places) + (" …" if count > len(places) else "")
    return [f"{count} mentions of {name!r} in strings, comments and documents are left ({shown})"]


def _texts(source: Source) -> Iterator[tuple[int, str]]:
    if len(source.text) > _MAX_FILE_CHARS:
        return
    if source.language != "python" or source.path.relative.endswith(".pyi"):
        yield from enumerate(source.text.splitlines(), 1)
        return
    line = done = 0
    for found in _TEXTS.finditer(source.text):
        line += source.text.count("\n", done, found.start())
        done = found.start()
        yield from enumerate(found[0].split("\n"), line + 1)
