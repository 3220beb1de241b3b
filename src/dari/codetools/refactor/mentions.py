"""Where a name is written in strings, comments and documents: counted, or renamed where that is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from dari.codetools.engines.select import own_files
from dari.codetools.refactor.sources import SourceFile, language_of, read_sources
from dari.codetools.workspace import Workspace, WorkspacePath

_PROSE = (".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".json", ".html", ".adoc", ".pyi", ".ipynb")
_TEXTS = re.compile(
    r"#[^\n]*"
    r"|\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
)
"""Comments and strings of Python; a hundred times as fast as `tokenize`, and exact enough to count."""
_MAX_SHOWN = 5
_MAX_FILE_CHARS = 1_000_000


def rename_mentions(text: str, old: str, new: str) -> str:
    """The name in comments and strings of Python code, wherever it stands there as a word."""
    word = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    return _TEXTS.sub(lambda found: word.sub(new, found[0]), text)


def count_mentions(
    name: str, workspace: Workspace, include_ignored: bool = False, *, in_python: bool = True
) -> list[str]:
    """One note, or none. `in_python`: also in comments and strings of code."""

    def wants(file: str) -> bool:
        return file.lower().endswith(_PROSE) or (in_python and language_of(file) == "python")

    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    places: list[str] = []
    count = 0
    for source in read_sources(
        own_files(workspace, ["."], wants=wants, include_ignored=include_ignored), workspace, name
    ):
        lines = [line for line, text in _texts(source) if word.search(text)]
        count += len(lines)
        places += [f"{workspace.show(source.path)}:{line}" for line in lines[: _MAX_SHOWN - len(places)]]
    if not count:
        return []
    shown = ", ".join(places) + (" …" if count > len(places) else "")
    where = "strings, comments and documents" if in_python else "documents"
    return [f"{count} mentions of {name!r} in {where} are left ({shown})"]


def find_dotted(
    modules: Iterable[str], name: str, workspace: Workspace, texts: Mapping[WorkspacePath, str]
) -> list[str]:
    """Where `module.name` or `module:name` is written; `texts` are files as they will be."""

    def wants(file: str) -> bool:
        return file.lower().endswith(_PROSE) or language_of(file) == "python"

    owner = "|".join(re.escape(one) for one in modules)
    dotted = re.compile(rf"(?<![\w.])(?:{owner})[.:]{re.escape(name)}(?!\w)")
    found = []
    for source in read_sources(own_files(workspace, ["."], wants=wants), workspace, name):
        text = texts.get(source.path, source.text)
        lines = text.splitlines() if len(text) <= _MAX_FILE_CHARS else []
        found += [f"{workspace.show(source.path)}:{at}" for at, line in enumerate(lines, 1) if dotted.search(line)]
    return found


def _texts(source: SourceFile) -> Iterator[tuple[int, str]]:
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
