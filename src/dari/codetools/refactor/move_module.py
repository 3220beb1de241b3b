"""What rope 1.14 does wrong when a module moves: names that an import binds, and imports inside of blocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from dari.codetools.refactor.python_modules import ModuleMap
from dari.codetools.refactor.sources import SourceFile, find_syntax_error
from dari.codetools.refactor.text_edits import EditedModule
from dari.codetools.workspace import WorkspacePath
from dari.errors import Conflict


def leave_bound_names(refactoring: Any, old: str) -> None:
    """Let rope change dotted names only: `core` of `from pkg import core` or `import pkg.core as core` stays `core`.

    It would write `import pkg.sub.core as pkg.sub.core`, and read what does not parse as an empty file.
    """
    tools = refactoring.tools
    create_finder, new_pymodule = tools._create_finder, tools.new_pymodule
    is_in_package = "." in old

    class Finder:
        def __init__(self, imports: bool) -> None:
            self._finder = create_finder(imports)

        def find_occurrences(self, *args: Any, **named: Any) -> Iterator[Any]:
            for one in self._finder.find_occurrences(*args, **named):
                start = one.get_word_range()[0]
                text = one.tools.source_code
                is_alias = re.search(r"\bas[ \t\\\n]+$", text[max(0, start - 100) : start]) is not None
                is_bare = one.get_primary_range()[0] == start
                if not is_alias and not (is_bare and is_in_package):
                    yield one

    def new_checked_pymodule(pymodule: Any, source: str | None) -> Any:
        if source is not None and find_syntax_error(source, "python"):
            raise Conflict(
                f"{pymodule.get_resource().path} would not parse afterwards",
                "nothing was written; change its imports of the module by hand first",
            )
        return new_pymodule(pymodule, source)

    tools._create_finder = Finder
    tools.new_pymodule = new_checked_pymodule
    if is_in_package:
        refactoring._change_import_statements = lambda *_: False
        tools.remove_old_imports = lambda pymodule: pymodule.source_code


def follow_module(
    source: SourceFile,
    plain: str,
    moved: WorkspacePath,
    new: str,
    modules: ModuleMap,
    is_moving: Callable[[SourceFile], bool],
) -> str:
    """The text with `from parent import module` from the new parent, and, if it moves itself, no way back by dots."""
    old = modules.name(moved)
    name = old.rpartition(".")[2]
    if (name not in plain and not is_moving(source)) or find_syntax_error(plain, "python"):
        return plain
    module = EditedModule(msgspec.structs.replace(source, text=plain))
    new_parent = new.rpartition(".")[0]
    has_old = False
    for node in ast.walk(module.tree):
        for one in node.names if isinstance(node, ast.Import) else ():  # inside of functions rope leaves these
            if f"{one.name}.".startswith(f"{old}."):
                module.replace(module.start(one), module.start(one) + len(old), new)
                has_old = has_old or one.asname is None
        if not isinstance(node, ast.ImportFrom):
            continue
        written = modules.module_of(source.path, node)
        is_parent = modules.find(f"{written}.{name}" if written else "") == moved
        aliases = [one for one in node.names if one.name == name] if is_parent else []
        if aliases and new_parent:
            if len(aliases) < len(node.names) and is_moving(source) and node.level:
                module.change_module(node, written)
            module.take_from(node, aliases, new_parent)
        elif aliases:
            line = f"import {', '.join(module.segment(one) for one in aliases)}"
            if len(aliases) == len(node.names):
                module.replace(module.start(node), module.end(node), line)
            else:
                module.remove_items(node.names, [node.names.index(one) for one in aliases])
                module.add_after(node, line)
        elif node.level and is_moving(source) and written and not f"{written}.".startswith(f"{old}."):
            module.change_module(node, written)
    for node in ast.walk(module.tree) if has_old else ():
        if isinstance(node, ast.Attribute) and ast.unparse(node) == old:
            module.replace(module.start(node), module.end(node), new)
    return module.result()
