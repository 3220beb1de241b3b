"""Rename and move in Python, by rope: it knows scopes, imports and, as far as Python lets it, types."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dari.codetools.edits.undo import hash_content
from dari.codetools.engines.select import own_files
from dari.codetools.refactor.annotations import is_annotated
from dari.codetools.refactor.exports import module_names, rename_in_all
from dari.codetools.refactor.import_names import rename_imported, restore_foreign
from dari.codetools.refactor.jobs import Job, Plan, PlannedFile
from dari.codetools.refactor.mentions import count_mentions, rename_mentions
from dari.codetools.refactor.move_module import follow_module, leave_bound_names
from dari.codetools.refactor.move_symbol import move_symbol
from dari.codetools.refactor.python_modules import ModuleMap
from dari.codetools.refactor.python_symbols import Place, definitions, find_place, module_name
from dari.codetools.refactor.scopes import find_collision
from dari.codetools.refactor.sources import SourceFile, check_parses, find_syntax_error, planned, read_sources
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, InvalidInput, NotFound

_MAX_SHOWN = 5


def rename_by_name(job: Job, workspace: Workspace) -> Plan:
    """A name without a file: Python's where Python defines it, otherwise another language's."""
    from dari.codetools.refactor import structural_rename

    try:
        return rename(job, workspace)
    except NotFound:
        pass
    try:
        return structural_rename.rename(job, workspace)
    except NotFound:
        raise NotFound(
            f"no definition of {job.symbol.name!r} in the files of this workspace",
            "crewx_tools_search finds names; give path, line and col for a local one",
        ) from None


def rename(job: Job, workspace: Workspace) -> Plan:
    """Raises InvalidInput where rope cannot tell what the name is."""
    if not job.new_name.isidentifier() or keyword.iskeyword(job.new_name):
        raise InvalidInput(
            f"newName must be a Python identifier, got {job.new_name!r}", "letters, digits and _, and no keyword"
        )
    sources = _python_sources(job, workspace)
    place = find_place(job.symbol, sources, workspace)
    owner = _class_of(place, workspace)
    unsure: list[str] = []

    def decide(occurrence: Any) -> bool:
        if place.offset is None:
            return False  # of a module: `x.name` of an unknown x is not it
        if _is_call_of_overridden(occurrence):
            return True
        if owner and is_annotated(occurrence.resource.read(), occurrence.get_word_range()[0], owner):
            return True
        unsure.append(f"{occurrence.resource.path}:{occurrence.lineno}")
        return job.renames_unsure

    with _open_project(workspace.base, sources) as project, _unreadable_as_unsure():
        from rope.refactor.rename import Rename

        refactoring = Rename(project, _resource(project, place.source, workspace), place.offset)
        old = refactoring.get_old_name()
        wanted = _in_paths(sources, job, workspace)
        changes = refactoring.get_changes(
            job.new_name,
            in_hierarchy=True,
            unsure=decide,
            resources=[
                _resource(project, one, workspace) for one in wanted if one is place.source or _may_use(one, old, place)
            ],
        )
        contents, moves = _collect(changes)
    if place.offset is not None:
        _check_free(job.new_name, old, place, sources, contents, workspace)
    texts = _texts(contents, sources, workspace)
    if place.offset is not None:
        texts = _follow_imports(texts, wanted, place, old, job.new_name, unsure, workspace)
        texts = {source: rename_in_all(text, old, job.new_name) for source, text in texts.items()}
    if job.renames_docs:
        for source in (one for one in wanted if old in one.text):
            before = texts.get(source, source.text)
            if (text := rename_mentions(before, old, job.new_name)) != before:
                check_parses(source, text, workspace.show(source.path))
                texts[source] = text
    for source, text in texts.items():
        _check_meaning(source, text, workspace)
    files = _plan(texts, moves, workspace)
    notes = _notes(unsure, job, old, workspace, [one for one in wanted if _may_use(one, old, place)])
    return Plan(files, notes, _engine(), f"rename {old} to {job.new_name}")


def _follow_imports(
    texts: dict[SourceFile, str],
    sources: Sequence[SourceFile],
    place: Place,
    old: str,
    new: str,
    unsure: list[str],
    workspace: Workspace,
) -> dict[SourceFile, str]:
    """The texts with imports that rope could not resolve; what was unsure on their lines is sure then."""
    target = module_name(place.source.path, workspace)
    names = {one.name for one in definitions(place.source, workspace) if one.offset == place.offset}
    if f"{target}.{old}" not in names:
        return texts  # not of the module itself: a method, an attribute, a local
    found = dict(texts)
    for source in sources:
        before = texts.get(source, source.text)
        module = module_name(source.path, workspace)
        is_package = source.path.relative.endswith("__init__.py")
        text, lines = rename_imported(before, module, is_package, target, old, new)
        if text != before:
            check_parses(source, text, workspace.show(source.path))
            found[source] = text
            name = _relative(source.path, workspace)
            unsure[:] = [one for one in unsure if one not in {f"{name}:{line}" for line in lines}]
    known = {
        module_name(one.path, workspace): text for one, text in ({one: one.text for one in sources} | found).items()
    }

    def has_new(module: str) -> bool:
        # By their ends: imports may begin at another folder than names do here.
        texts = [text for name, text in known.items() if new in text and f".{name}".endswith(f".{module}")]
        return any(new in module_names(text) or re.search(r"\bimport +\*", text) for text in texts)

    for source, text in found.items():
        is_package = source.path.relative.endswith("__init__.py")
        module = module_name(source.path, workspace)
        found[source] = restore_foreign(source.text, text, module, is_package, old, new, has_new)
    return found


def move(job: Job, workspace: Workspace) -> Plan:
    """A function, class or variable into another module, or a module into another folder; imports follow."""
    if not job.to:
        raise InvalidInput("to is missing", "name the module (a .py file) for a symbol, or the folder for a module")
    sources = _python_sources(job, workspace)
    place = find_place(job.symbol, sources, workspace)
    if place.offset is not None:
        return move_symbol(job, workspace, sources, place)
    target = workspace.locate(job.to)
    if not target.absolute.exists():
        raise NotFound(f"the folder {job.to!r} does not exist", "make it, with an __init__.py for a package")
    with _open_project(workspace.base, sources) as project:
        from rope.refactor.move import create_move

        refactoring = create_move(project, _resource(project, place.source, workspace), None)
        destination = project.get_resource(_relative(target, workspace))
        if not destination.is_folder():
            raise InvalidInput(f"to must be a folder for a module, got {job.to!r}", "a module keeps its name")
        resources = [_resource(project, one, workspace) for one in sources]
        modules = ModuleMap([one.path for one in sources], workspace.base)
        old, new = modules.name(place.source.path), refactoring._new_modname(destination)
        leave_bound_names(refactoring, old)
        contents, moves = _collect(refactoring.get_changes(destination, resources=resources))
    moved = [workspace.base / one for one, _ in moves]

    def is_moving(source: SourceFile) -> bool:
        return any(source.path.absolute == one or one in source.path.absolute.parents for one in moved)

    for source in sources:
        name = _relative(source.path, workspace)
        plain = contents.get(name, source.plain)
        contents[name] = follow_module(source, plain, place.source.path, new, modules, is_moving)
    files = _plan(_texts(contents, sources, workspace), moves, workspace)
    notes = count_mentions(old, workspace, job.include_ignored, in_python=True)
    return Plan(files, notes, _engine(), f"move {place.name} to {job.to}")


@contextmanager
def _unreadable_as_unsure() -> Iterator[None]:
    """Of a place that rope 1.14 cannot read (it fails in some `match` statements) it is not sure, instead of ending."""
    from rope.refactor.occurrences import Occurrence

    original = Occurrence.get_pyname

    def get_pyname(occurrence: Any) -> Any:
        try:
            return original(occurrence)
        except Exception:
            return None

    Occurrence.get_pyname = get_pyname
    try:
        yield
    finally:
        Occurrence.get_pyname = original


def _is_call_of_overridden(occurrence: Any) -> bool:
    """`super().name` inside of a method of that name, which is renamed with its hierarchy."""
    text = occurrence.resource.read()
    start, end = occurrence.get_word_range()
    if not re.search(r"\bsuper\([^()]*\)\s*\.\s*$", text[max(0, start - 100) : start]):
        return False
    row = text[text.rfind("\n", 0, start) + 1 : start]
    indent = len(row) - len(row.lstrip())
    for found in reversed(list(re.finditer(r"^([ \t]*)(?:async\s+)?def\s+(\w+)", text[:start], re.MULTILINE))):
        if len(found[1]) < indent:
            return bool(found[2] == text[start:end])
    return False


def _may_use(source: SourceFile, name: str, place: Place) -> bool:
    """Whether rope has to look into the file. It takes long where a module has a common name, such as `replace`."""
    if name not in source.text:
        return False
    if place.offset is not None:
        return True
    parent = place.name.split(".")[-2:-1]
    dotted = rf"|\b{re.escape(parent[0])}\s*\.\s*{re.escape(name)}\b" if parent else ""
    imported = rf"\b(?:from|import)\b[^\n]*\b{re.escape(name)}\b|\bimport\s*\([^)]*\b{re.escape(name)}\b"
    return re.search(imported + dotted, source.text) is not None


def _class_of(place: Place, workspace: Workspace) -> str:
    """The class whose method or attribute is defined there; empty for anything else."""
    found = [one.name for one in definitions(place.source, workspace) if one.offset == place.offset]
    owner = found[0].split(".")[-2] if found and found[0].count(".") > 1 else ""
    return owner if owner[:1].isupper() or owner.startswith("_") else ""


def _engine() -> str:
    return f"rope {version('rope')}"


def _python_sources(job: Job, workspace: Workspace) -> list[SourceFile]:
    def wants(name: str) -> bool:
        return name.endswith(".py")

    paths = own_files(workspace, [".", *job.paths], wants=wants, include_ignored=job.include_ignored)
    found = {one.path: one for one in read_sources(paths, workspace)}
    if job.symbol.path and (path := workspace.locate(job.symbol.path)) not in found and path.absolute.is_file():
        found[path] = next(read_sources([path], workspace))
    if not found:
        raise NotFound("there is no Python file in this workspace", "name root, or paths")
    return list(found.values())


def _in_paths(sources: Sequence[SourceFile], job: Job, workspace: Workspace) -> list[SourceFile]:
    if not job.is_narrowed:
        return list(sources)
    chosen = set(own_files(workspace, job.paths, include_ignored=job.include_ignored))
    return [one for one in sources if one.path in chosen]


@contextmanager
def _open_project(base: Path, sources: Sequence[SourceFile]) -> Iterator[Any]:
    """A project that reads no configuration (`.ropeproject/config.py` is code) and writes nothing."""
    import rope.base.project
    from rope.base import exceptions
    from rope.base.prefs import Prefs

    class NoConfig:
        @staticmethod
        def parse() -> Prefs:
            return Prefs()

    rope.base.project.get_config = lambda root, folder: NoConfig()
    project = rope.base.project.Project(str(base), ropefolder=None, ignore_syntax_errors=True, save_objectdb=False)
    folders = [project.get_resource(name) for name in _source_folders(base, sources)]
    project.pycore._find_source_folders = lambda folder: folders
    try:
        yield project
    except exceptions.ModuleSyntaxError as error:
        raise InvalidInput(f"{error.filename} does not parse: line {error.lineno}", "correct it first") from error
    except exceptions.RopeError as error:
        raise InvalidInput(f"rope cannot do this: {' '.join(str(error).split())}", "check line and col") from error
    finally:
        project.close()


def _source_folders(base: Path, sources: Sequence[SourceFile]) -> list[str]:
    """Where imports begin: above the outermost package of every file. rope would walk all folders to find them."""
    packages = {one.path.absolute.parent for one in sources if one.path.absolute.name == "__init__.py"}
    found = {base, base / "src"}
    for source in sources:
        folder = source.path.absolute.parent
        while folder in packages and folder != base:
            folder = folder.parent
        found.add(folder)
    inside = [one for one in found if one.is_dir() and (one == base or base in one.parents)]
    return ["" if one == base else str(one.relative_to(base)) for one in sorted(inside, key=lambda one: len(one.parts))]


def _relative(path: WorkspacePath, workspace: Workspace) -> str:
    try:
        relative = path.absolute.relative_to(workspace.base)
    except ValueError:
        raise InvalidInput(f"{path.absolute} is outside of {workspace.base}", "name a wider root") from None
    return "" if str(relative) == "." else str(relative)


def _resource(project: Any, source: SourceFile, workspace: Workspace) -> Any:
    return project.get_resource(_relative(source.path, workspace))


def _collect(change: Any) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """New contents by path, and files or folders that move."""
    from rope.base.change import ChangeContents, ChangeSet, MoveResource

    contents: dict[str, str] = {}
    moves: list[tuple[str, str]] = []
    for one in change.changes if isinstance(change, ChangeSet) else [change]:
        if isinstance(one, ChangeSet):
            inner, inner_moves = _collect(one)
            contents |= inner
            moves += inner_moves
        elif isinstance(one, ChangeContents):
            contents[one.resource.path] = one.new_contents
        elif isinstance(one, MoveResource):
            moves.append((one.resource.path, one.new_resource.path))
        else:
            raise InvalidInput(f"rope wants to {str(one)[:80]}", "this is not supported; change it by hand")
    return contents, moves


def _texts(contents: dict[str, str], sources: Sequence[SourceFile], workspace: Workspace) -> dict[SourceFile, str]:
    """With the line ends of each file, checked to parse."""
    found: dict[SourceFile, str] = {}
    for source in sources:
        plain = contents.get(_relative(source.path, workspace))
        if plain is None:
            continue
        text = source.with_plain(plain.removeprefix("\ufeff"))
        if text != source.text:
            check_parses(source, text, workspace.show(source.path))
            found[source] = text
    return found


def _plan(texts: dict[SourceFile, str], moves: Sequence[tuple[str, str]], workspace: Workspace) -> list[PlannedFile]:
    files: dict[WorkspacePath, PlannedFile] = {source.path: planned(source, text) for source, text in texts.items()}
    for old, new in moves:
        start = workspace.locate(str(workspace.base / old))
        for path in workspace.files([str(start.absolute)]):
            below = os.path.relpath(path.absolute, start.absolute)
            to = os.path.join(workspace.base, new, below) if below != "." else os.path.join(workspace.base, new)
            if os.path.lexists(to):
                raise Conflict(
                    f"{os.path.relpath(to, workspace.base)} exists already", "move it away, or choose another name"
                )
            data = workspace.read(path)
            after = files[path].after if path in files else data
            files[path] = PlannedFile(os.fsencode(path.absolute), hash_content(data), None)
            made = WorkspacePath(path.root, os.path.relpath(to, path.root))
            files[made] = PlannedFile(os.fsencode(to), hash_content(None), after, os.fsencode(path.absolute))
    return list(files.values())


def _check_free(
    new: str, old: str, place: Place, sources: Sequence[SourceFile], contents: dict[str, str], workspace: Workspace
) -> None:
    """Conflict where the new name is taken: beside the definition, or in a module that imports it."""
    names = {one.offset: one.name for one in definitions(place.source, workspace)}
    owner = names.get(place.offset or 0, "").rpartition(".")[0]
    if owner and f"{owner}.{new}" in names.values():
        raise Conflict(f"{owner} has a {new!r} already", "choose another newName")
    for source in sources:
        if _relative(source.path, workspace) in contents and {old, new} <= module_names(source.plain):
            raise Conflict(f"{workspace.show(source.path)} has a {new!r} already", "choose another newName")


def _check_meaning(source: SourceFile, text: str, workspace: Workspace) -> None:
    """Conflict where a name of the new text means something else (a local has it, or a builtin), or was left out."""
    found = find_collision(source.text, text)
    if found is None:
        return
    place = f"{workspace.show(source.path)}:{found.line}"
    if found.is_split:
        raise Conflict(f"{place}: {found.name!r} would be renamed in some places only", "change this file by hand")
    raise Conflict(f"{place} would take two different names for one {found.name!r}", "choose another newName")


def _notes(
    unsure: Sequence[str],
    job: Job,
    old: str,
    workspace: Workspace,
    sources: Sequence[SourceFile],
) -> list[str]:
    notes = []
    places = list(dict.fromkeys(unsure))
    if places:
        shown = ", ".join(places[:_MAX_SHOWN]) + (" …" if len(places) > _MAX_SHOWN else "")
        did = "renamed" if job.renames_unsure else "left: unsure true renames them"
        notes.append(f"{len(places)} uses of {old!r} on objects of unknown type were {did} ({shown})")
    notes += count_mentions(old, workspace, job.include_ignored, in_python=not job.renames_docs)
    broken = [workspace.show(one.path) for one in sources if find_syntax_error(one.text, "python")]
    if broken:
        notes.append(f"files that do not parse were not looked into: {', '.join(broken[:_MAX_SHOWN])}")
    return notes
