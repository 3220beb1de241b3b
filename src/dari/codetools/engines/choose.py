"""Which engine a file goes to, by its language and by what its project asks for and has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from dari.codetools.engines.catalog import ENGINES, Language
from dari.codetools.engines.configured import ProjectConfig
from dari.codetools.engines.locate import EngineProgram, find_engine
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace


class EngineChoice(Struct, frozen=True):
    """An engine by its name in the catalog, and the folder that it runs in: that of its configuration."""

    name: str
    folder: Path
    engine: EngineProgram | None
    """None where it is not installed."""
    is_configured: bool

    @property
    def key(self) -> tuple[str, Path, tuple[str, ...]]:
        """The same for files that one process can take."""
        return self.name, self.folder, self.engine.command if self.engine else ()


class EngineChooser:
    """One per call. Answers are remembered per folder: a tree has many more files than folders."""

    def __init__(self, session: CodeSession, workspace: Workspace, *, is_project: bool = True) -> None:
        self.config = ProjectConfig(workspace)
        self.is_project = is_project
        self._session = session
        self._workspace = workspace
        self._found: dict[tuple[str, Path], EngineProgram | None] = {}
        self._formatters: dict[tuple[str, Path], tuple[EngineChoice, ...]] = {}
        self._linters: dict[tuple[str, Path], tuple[EngineChoice, ...]] = {}
        self._type_checkers: dict[tuple[str, Path], tuple[EngineChoice, ...]] = {}

    def formatters(self, language: Language, folder: Path) -> tuple[EngineChoice, ...]:
        """One formatter, after isort where the project asks for it."""
        key = (language.name, folder)
        if key not in self._formatters:
            self._formatters[key] = self._choose_formatters(language, folder)
        return self._formatters[key]

    def linters(self, language: Language, folder: Path) -> tuple[EngineChoice, ...]:
        """All that the project asks for; the first of the language where it asks for none."""
        key = (language.name, folder)
        if key not in self._linters:
            asked = [name for name in language.lint if self._asking_folder(name, folder)]
            names = asked or self._silent(
                [name for name in language.lint if not ENGINES[name].needs_configuration], folder
            )
            self._linters[key] = tuple(self.choose(name, folder) for name in names)
        return self._linters[key]

    def type_checkers(self, language: Language, folder: Path) -> tuple[EngineChoice, ...]:
        """All that the project asks for, and no other: types without the project's settings say little."""
        key = (language.name, folder)
        if key not in self._type_checkers:
            asked = [name for name in language.types if self._asking_folder(name, folder)]
            self._type_checkers[key] = tuple(self.choose(name, folder) for name in asked)
        return self._type_checkers[key]

    def choose(self, name: str, folder: Path) -> EngineChoice:
        asking = self._asking_folder(name, folder)
        engine = self.find(name, folder)
        place = asking or self.config.folders(folder)[-1]
        if engine is not None and engine.origin == "project" and asking is None:
            place = _project_of(engine, self.config.folders(folder)) or place
        return EngineChoice(name, place, engine, asking is not None)

    def find(self, name: str, folder: Path) -> EngineProgram | None:
        key = (name, folder)
        if key not in self._found:
            info = ENGINES[name]
            self._found[key] = find_engine(
                info.program or name, self._workspace, folder, self._session.environ, origins=info.origins
            )
        return self._found[key]

    def _choose_formatters(self, language: Language, folder: Path) -> tuple[EngineChoice, ...]:
        if not self.is_project:
            return (self.choose(language.format[0], folder),)
        near = [(len(found.parts), name) for name in language.format if (found := self._asking_folder(name, folder))]
        if near:
            nearest = max(depth for depth, _ in near)
            names = [name for depth, name in near if depth == nearest]
            name = names[0]
            if names == ["ruff", "black"] and not self._formats_with_ruff(folder):
                name = "black"  # the usual pair before `ruff format`: ruff for rules, black for layout
        else:
            name = self._silent(language.format, folder)[0]
        chosen = (self.choose(name, folder),)
        if language.name == "python" and self._asking_folder("isort", folder):
            return (self.choose("isort", folder), *chosen)
        return chosen

    def _silent(self, names: Sequence[str], folder: Path) -> list[str]:
        """The project asks for none: the one that it has installed, else the first that there is."""
        found = {name: engine for name in names if (engine := self.find(name, folder)) is not None}
        own = [name for name, engine in found.items() if engine.origin == "project"]
        return (own or [*found] or [*names])[:1]

    def _asking_folder(self, name: str, folder: Path) -> Path | None:
        return self.config.folder_of(name, folder) if self.is_project else None

    def _formats_with_ruff(self, folder: Path) -> bool:
        place = self.config.folder_of("ruff", folder) or folder
        return self.config.has_section(place / "pyproject.toml", "tool.ruff.format") or any(
            self.config.has_section(place / name, "format") for name in ("ruff.toml", ".ruff.toml")
        )


def _project_of(engine: EngineProgram, folders: Sequence[Path]) -> Path | None:
    """The folder whose node_modules or virtual environment has it."""
    return next((folder for folder in folders if str(folder / "x")[:-1] in engine.command[0]), None)
