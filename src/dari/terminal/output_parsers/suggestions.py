"""Commands to run next: facts from the output are quoted for the shell, and files that do not exist are left out."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from dari.terminal.output_parsers.intent_rules import IntentRules, compiled
from dari.terminal.output_parsers.result import Document

_WENT = re.compile(
    r"(?:^|[;&|(]\s*)cd\s+(\"[^\"]+\"|'[^']+'|[^\s;&|]+)|\s(?:-C|--directory|--prefix|--manifest-path)[ =]([^\s;&|]+)"
)
_ENTERED = re.compile(r"Entering directory [`'‘]([^'’]+)['’]")
_MAX_FOLDERS = 8
_MAX_LOOKUPS = 200


class FileFinder:
    """Looks in the folder of the pane, and in those that the command or the output says it went to."""

    def __init__(self, cwd: str, command: str = "", output: str = "") -> None:
        self._cwd = cwd
        self._lookups = 0
        went = [next(filter(None, match)).strip("\"'") for match in _WENT.findall(command)]
        went = [folder if not folder.endswith(".toml") else os.path.dirname(folder) for folder in went]
        folders = dict.fromkeys(["", *went, *_ENTERED.findall(output[:100_000])])
        self._folders = list(folders)[:_MAX_FOLDERS]

    def find(self, value: str) -> str:
        """The value as it is called from the pane's folder, `::test` and the like kept; "" when it is not there."""
        path, colons, rest = value.partition("::")
        for folder in self._folders:
            place = os.path.join(folder, path)
            if self._exists(place):
                return place + colons + rest
        return ""

    def nearest_folder(self, path: str) -> str:
        """The folder that a missing path would be in, or the next one above that exists; "" when that is the pane's."""
        for parent in Path(path).parents:
            if str(parent) != "." and self._exists(str(parent)):
                return str(parent)
        return ""

    def _exists(self, path: str) -> bool:
        self._lookups += 1
        if self._lookups > _MAX_LOOKUPS or "\0" in path or len(path) > 4096:
            return False
        try:
            return os.path.lexists(os.path.join(self._cwd, path))
        except (OSError, ValueError):
            return False


_PLACE = re.compile(r"\{(\*?)(\w+)\}")
_FILE_PART = re.compile(r"[^\s:]+\.\w+(?:::|$)")
_MAX_VALUES = 5
_MAX_ACTIONS = 4


PATHS = frozenset(("path", "files", "conflicting_files", "changed_files", "untracked_files", "failed_tests"))
"""Facts that name files, also with a part of them: `tests/test_a.py::test_b`."""


def suggest(
    intent: IntentRules, command: str, context: dict[str, Document], files: FileFinder | None = None
) -> list[str]:
    """At most four commands, the most useful first. One that lacks a fact, or gets a strange one, is left out.

    With `files`, one that names a file is left out unless the file is there, and names it as the pane would.
    """
    actions: list[str] = []
    there = {**context, **_existing(context, files)}
    for entry in intent.suggest:
        if entry.when and not compiled(entry.when).search(command):
            continue
        if not all(compiled(want).search(str(context.get(name, ""))) for name, want in entry.given.items()):
            continue
        action = fill(entry.run, {**(context if entry.is_missing else there), "command": command})
        if action and action not in actions:
            actions.append(action)
    return actions[:_MAX_ACTIONS]


def _existing(context: dict[str, Document], files: FileFinder | None) -> dict[str, Document]:
    """The facts that name files, with those alone that are there; and where a missing one would be."""
    found: dict[str, Document] = {}
    for name in PATHS & context.keys() if files else ():
        values = _values(context[name])
        places = [place for value in values if files and (place := files.find(value))]
        is_test_name = name == "failed_tests" and not any(_FILE_PART.match(value) for value in values)
        found[name] = context[name] if is_test_name else places
    path = context.get("path")
    if isinstance(path, str) and path:
        found["name"] = os.path.basename(path.rstrip("/"))
        found["parent"] = files.nearest_folder(path) if files else os.path.dirname(path)
    return found


def fill(template: str, context: dict[str, Document]) -> str | None:
    """The template with its facts as shell words; None where a fact is missing or could be taken for an option."""
    parts: list[str] = []
    position = 0
    for match in _PLACE.finditer(template):
        values = [value for value in _values(context.get(match[2])) if is_safe(value)]
        if not values:
            return None
        values = values[:_MAX_VALUES] if match[1] else values[:1]
        parts += [template[position : match.start()], " ".join(map(shlex.quote, values))]
        position = match.end()
    return "".join(parts) + template[position:]


def is_safe(value: str) -> bool:
    """A word that no program takes for an option and no terminal for a control sequence."""
    return 0 < len(value) <= 300 and not value.startswith("-") and value.isprintable()


def _values(value: Document) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return [] if value is None or value == "" else [str(value)]
