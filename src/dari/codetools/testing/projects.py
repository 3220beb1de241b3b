"""Which framework runs a file or a folder, and in which folder of the workspace it is started."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from dari.codetools.engines.locate import project_folders
from dari.codetools.testing.request import Framework, Target
from dari.codetools.workspace import Workspace
from dari.errors import InvalidInput, NotFound
from dari.paths import read_regular

Language = Literal["python", "node", "go", "rust"]
SUFFIXES: Mapping[str, Language] = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte"), "node"),
    ".go": "go",
    ".rs": "rust",
}
FRAMEWORK_LANGUAGES: Mapping[Framework, Language] = {
    "pytest": "python",
    "unittest": "python",
    "vitest": "node",
    "jest": "node",
    "go": "go",
    "cargo": "rust",
}
MARKERS: Mapping[Language, tuple[str, ...]] = {
    "python": ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "requirements.txt"),
    "node": ("package.json",),
    "go": ("go.mod",),
    "rust": ("Cargo.toml",),
}
_MAX_LOOKED_AT = 20_000
_MAX_DEPTH_OF_OTHERS = 2
_MAX_FOLDERS = 200
_NO_PROJECTS = frozenset({"node_modules", "venv", "vendor", "target", "build", "dist", "fixtures", "testdata"})
_TEST_FILE = re.compile(
    r"test_.*\.py|.*_test\.py|tests\.py|.*\.(?:test|spec)\.[cm]?[jt]sx?|.*_test\.go|.*_test\.rs|tests?\.rs"
)
_MAX_PACKAGE_BYTES = 1 << 20


class ProjectTargets(Struct, frozen=True):
    language: Language
    project: Path
    targets: tuple[Target, ...]
    """Empty: everything of the project."""


def group_targets(workspace: Workspace, targets: Sequence[Target], wanted: Language | None) -> list[ProjectTargets]:
    """The targets by language and project, in the order in which they were named."""
    groups: dict[tuple[Language, Path], list[Target]] = {}
    for target in targets or [Target(workspace.base)]:
        for language, project in _projects_of(workspace, target.path, wanted):
            # A folder above a project stands for all of it.
            is_above = target.path in project.parents
            groups.setdefault((language, project), []).append(Target(project) if is_above else target)
    return [
        ProjectTargets(language, project, () if Target(project) in found else tuple(found))
        for (language, project), found in groups.items()
    ]


def find_others(workspace: Workspace, groups: Sequence[ProjectTargets]) -> list[Path]:
    """Folders below the base with projects in languages that `groups` does not run."""
    known = {group.language for group in groups}
    found: list[Path] = []
    for folder in _folders_below(workspace.base, _MAX_DEPTH_OF_OTHERS):
        if any(language not in known and language != "python" for language in _marked_languages(folder)):
            found.append(folder)
    return found


def find_project(workspace: Workspace, path: Path, language: Language) -> Path:
    """The nearest folder above with the language's project file; the base of the workspace where there is none."""
    folder = path if path.is_dir() else path.parent
    for place in project_folders(workspace, folder):
        if any((place / marker).is_file() for marker in MARKERS[language]):
            return place
    return workspace.base if workspace.base in (folder, *folder.parents) else folder


def node_frameworks(package: Mapping[str, Any], folder: Path) -> list[Framework]:
    """What a package.json and the files beside it say: vitest, jest, or neither."""
    found: list[Framework] = []
    scripts = " ".join(map(str, _mapping(package.get("scripts")).values()))
    needs = {name for key in ("dependencies", "devDependencies") for name in _mapping(package.get(key))}
    names: tuple[Framework, ...] = ("vitest", "jest")
    for name in names:
        is_configured = any(folder.glob(f"{name}.config.*"))
        if is_configured or name in package or name in needs or re.search(rf"\b{name}\b", scripts):
            found.append(name)
    return found


def read_package(folder: Path) -> dict[str, Any]:
    try:
        package = json.loads(read_regular(folder / "package.json", _MAX_PACKAGE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return package if isinstance(package, dict) else {}


def is_test_file(name: str) -> bool:
    """By the names that each framework looks for by itself."""
    return _TEST_FILE.fullmatch(name) is not None


def _projects_of(workspace: Workspace, path: Path, wanted: Language | None) -> list[tuple[Language, Path]]:
    if wanted is not None:
        return [(wanted, find_project(workspace, path, wanted))]
    if not path.is_dir():
        language = SUFFIXES.get(path.suffix)
        if language is None:
            raise InvalidInput(f"{path.name!r} is not a test file of a known framework", "name framework as well")
        return [(language, find_project(workspace, path, language))]
    for place in project_folders(workspace, path):
        if found := list(_marked_languages(place)):
            return [(language, find_project(workspace, path, language)) for language in found]
    return _projects_inside(workspace, path)


def _marked_languages(folder: Path) -> Iterator[Language]:
    for language, markers in MARKERS.items():
        if any((folder / marker).is_file() for marker in markers):
            if language == "node" and not node_frameworks(read_package(folder), folder):
                continue  # a package.json for a formatter makes no JavaScript project
            yield language


def _projects_inside(workspace: Workspace, folder: Path) -> list[tuple[Language, Path]]:
    """No project file above: the projects of the test files below, each with its own."""
    located = workspace.locate(str(folder))
    files = (path.absolute for path in islice(workspace.files([str(folder)], wants=_is_code), _MAX_LOOKED_AT))
    found: dict[tuple[Language, Path], None] = {}
    others: dict[tuple[Language, Path], None] = {}
    for file in files:
        language = SUFFIXES[file.suffix]
        (found if is_test_file(file.name) else others)[language, find_project(workspace, file, language)] = None
    if not found and not others:
        raise NotFound(f"{workspace.show(located)} has no tests of a known framework", "name a folder with tests")
    return list(found or others)


def _folders_below(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in entries[:_MAX_FOLDERS]:
        if not name.startswith(".") and name not in _NO_PROJECTS:
            yield folder / name
            if depth > 1:
                yield from _folders_below(folder / name, depth - 1)


def _is_code(name: str) -> bool:
    return os.path.splitext(name)[1] in SUFFIXES


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
