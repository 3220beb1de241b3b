"""The files that a call is about, and which of them its caller named one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from dari.codetools.engines.catalog import Language, language_of
from dari.codetools.workspace import Workspace, WorkspacePath

OTHER_PEOPLES = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", ".nox", "__pypackages__"})
"""Folders of installed packages, which are left alone also where no .gitignore says so."""


class FileSelection(Struct, frozen=True):
    files: Sequence[WorkspacePath]
    named: frozenset[WorkspacePath] = frozenset()
    """A file that is named itself is asked for: no engine for it is an error, where one in a folder is passed over."""


def select_files(
    workspace: Workspace,
    paths: Sequence[str],
    engines: Callable[[Language], Sequence[str]],
    *,
    include_ignored: bool = False,
) -> FileSelection:
    """What files, folders and globs stand for; of folders and globs, files that `engines` has any for."""

    def wants(name: str) -> bool:
        language = language_of(name)
        return language is not None and bool(engines(language))

    files = list(own_files(workspace, paths, wants=wants, include_ignored=include_ignored))
    literal = {workspace.locate(path) for path in paths}
    return FileSelection(files, frozenset(literal.intersection(files)))


def own_files(
    workspace: Workspace,
    paths: Sequence[str],
    *,
    wants: Callable[[str], bool] = lambda name: True,
    include_ignored: bool = False,
) -> Iterator[WorkspacePath]:
    """What names, folders and globs stand for, without installed packages that nobody named."""
    named = {part for path in (str(workspace.base), *paths) for part in path.split("/")}
    others = OTHER_PEOPLES - named
    for file in workspace.files(paths, wants=wants, include_ignored=include_ignored):
        if include_ignored or others.isdisjoint(file.names[:-1]):
            yield file
