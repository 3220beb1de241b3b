"""Moving a file that is not Python: JavaScript and TypeScript imports follow, of other languages the file alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dari.codetools.edits.undo import hash_content
from dari.codetools.engines.select import own_files
from dari.codetools.refactor.jobs import Job, Plan, PlannedFile
from dari.codetools.refactor.sources import (
    SourceFile,
    check_parses,
    language_of,
    planned,
    read_source,
    read_sources,
    structural_engine,
)
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_FAMILY = frozenset({"javascript", "typescript", "tsx"})
_EXTENSIONS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json")
_COMPILED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_LOADERS = frozenset({"require", "import", "require.resolve", "jest.mock", "vi.mock", "jest.requireActual"})


def move(job: Job, workspace: Workspace) -> Plan:
    """`symbol.path` to `to`, a file name or a folder."""
    if job.symbol.line:
        raise InvalidInput("only files are moved in this language", "leave line and col out, or move a Python symbol")
    if not job.to:
        raise InvalidInput("to is missing", "name the new file, or its folder")
    source = read_source(workspace.locate(job.symbol.path), workspace)
    target = workspace.locate(job.to)
    if target.absolute.is_dir() or job.to.endswith("/") or _names_folder(job.to, source.path.names[-1]):
        target = WorkspacePath(target.root, os.path.join(target.relative, source.path.names[-1]))
    if os.path.lexists(target.absolute):
        raise Conflict(f"{workspace.show(target)} exists already", "move it away, or choose another name")
    old, new = str(source.path.absolute), str(target.absolute)
    text, notes = source.text, []
    files: list[PlannedFile] = []
    if source.language in _FAMILY:
        text = _with_specifiers(source, lambda spec: _from_new_place(spec, old, new))
        for other in read_sources(_candidates(job, workspace), workspace, _stem(old)):
            if other.path == source.path:
                continue
            changed = _with_specifiers(
                other, lambda spec, at=other: _to_new_place(spec, str(at.path.absolute), old, new)
            )
            if changed != other.text:
                check_parses(other, changed, workspace.show(other.path))
                files.append(planned(other, changed))
    else:
        notes.append("imports of other files are not changed in this language: build it, and correct them")
    files.append(PlannedFile(os.fsencode(old), hash_content(source.data), None))
    files.append(PlannedFile(os.fsencode(new), hash_content(None), source.encode(text), os.fsencode(old)))
    return Plan(files, notes, structural_engine(), f"move {workspace.show(source.path)} to {workspace.show(target)}")


def _names_folder(to: str, name: str) -> bool:
    """A file keeps some extension: what has none is a folder, which may be new."""
    return bool(os.path.splitext(name)[1]) and not os.path.splitext(to)[1]


def _candidates(job: Job, workspace: Workspace) -> Iterator[WorkspacePath]:
    return own_files(
        workspace,
        job.paths or ["."],
        wants=lambda name: language_of(name) in _FAMILY,
        include_ignored=job.include_ignored,
    )


def _with_specifiers(source: SourceFile, change: object) -> str:
    from ast_grep_py import SgRoot

    assert callable(change)
    text = source.text
    nodes = [node for node in SgRoot(text, source.language).root().find_all(kind="string") if _is_specifier(node)]
    for node in sorted(nodes, key=lambda one: -one.range().start.index):
        start, end = node.range().start.index, node.range().end.index
        specifier = text[start + 1 : end - 1]
        if specifier.startswith(("./", "../")) or specifier in (".", ".."):
            text = text[: start + 1] + change(specifier) + text[end - 1 :]
    return text


def _is_specifier(node: SgNode) -> bool:
    parent = node.parent()
    if parent is None:
        return False
    if parent.kind() in ("import_statement", "export_statement", "import_require_clause"):
        return True
    call = parent.parent()
    function = call.field("function") if call is not None and parent.kind() == "arguments" else None
    return function is not None and function.text() in _LOADERS


def _from_new_place(specifier: str, old: str, new: str) -> str:
    """An import of the file that moves."""
    target = os.path.normpath(os.path.join(os.path.dirname(old), specifier))
    return _relative(target, new) + ("/" if specifier.endswith("/") else "")


def _to_new_place(specifier: str, importer: str, old: str, new: str) -> str:
    """An import of the moved file by another one, in the manner that it was written in."""
    target = os.path.normpath(os.path.join(os.path.dirname(importer), specifier))
    if old not in _resolve(target):
        return specifier
    has_extension = os.path.splitext(specifier)[1] in _EXTENSIONS
    if has_extension:
        written = os.path.splitext(specifier)[1]
        return _relative(os.path.splitext(new)[0] + written, importer)
    stem = new.removesuffix(".d.ts") if new.endswith(".d.ts") else os.path.splitext(new)[0]
    is_index = os.path.basename(stem) == "index" and not specifier.endswith("/index")
    return _relative(os.path.dirname(stem) if is_index else stem, importer)


def _resolve(target: str) -> list[str]:
    stem, extension = os.path.splitext(target)
    found = [target, *(target + one for one in _EXTENSIONS), *(f"{target}/index{one}" for one in _EXTENSIONS)]
    return found + [stem + one for one in _COMPILED.get(extension, ())]


def _relative(target: str, importer: str) -> str:
    path = os.path.relpath(target, os.path.dirname(importer))
    return path if path.startswith("..") else "." if path == "." else f"./{path}"


def _stem(path: str) -> str:
    """What an import of the file has to contain; of an index file, anything."""
    stem = os.path.basename(path).split(".")[0]
    return "" if stem == "index" else stem
