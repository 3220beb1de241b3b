"""Which engines a project asks for, by the configuration files between a file and the root of the workspace."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from dari.codetools.engines.catalog import ENGINES
from dari.codetools.engines.locate import project_folders
from dari.codetools.workspace import Workspace
from dari.paths import read_regular

_MAX_BYTES = 1 << 20


class ProjectConfig:
    """One per call: what was read is remembered, a file that is changed meanwhile is not looked at again."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._above: dict[Path, list[Path]] = {}
        self._asked: dict[tuple[str, Path], bool] = {}
        self._parsed: dict[Path, Any] = {}

    def folder_of(self, engine: str, folder: Path) -> Path | None:
        """The nearest folder, from `folder` up, that asks for the engine."""
        return next((above for above in self.folders(folder) if self._asks_for(engine, above)), None)

    def folders(self, folder: Path) -> list[Path]:
        if folder not in self._above:
            self._above[folder] = project_folders(self._workspace, folder)
        return self._above[folder]

    def has_section(self, file: Path, section: str) -> bool:
        """Whether a TOML, JSON or INI file has a table, a key or a heading of this name."""
        if file not in self._parsed:
            self._parsed[file] = _parse(file)
        found = self._parsed[file]
        for name in section.split("."):
            if not isinstance(found, dict) or name not in found:
                return False
            found = found[name]
        return True

    def value_of(self, file: Path, section: str) -> object:
        """What stands there; None where there is nothing."""
        if not self.has_section(file, section):
            return None
        found: Any = self._parsed[file]
        for name in section.split("."):
            found = found[name]
        return found

    def _asks_for(self, engine: str, folder: Path) -> bool:
        key = (engine, folder)
        if key not in self._asked:
            info = ENGINES[engine]
            self._asked[key] = any((folder / name).is_file() for name in info.files) or any(
                self.has_section(folder / name, section) for name, section in info.sections
            )
        return self._asked[key]


def _parse(file: Path) -> Any:
    """Nothing for a file that is not there or not well formed: the engine that reads it says what is wrong."""
    try:
        text = read_regular(file, _MAX_BYTES).decode()
        if file.suffix == ".toml":
            return tomllib.loads(text)
        if file.suffix == ".json":
            return msgspec.json.decode(text)
        return dict.fromkeys(re.findall(r"^\[([^\]\n]+)\]", text, re.MULTILINE), True)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None
