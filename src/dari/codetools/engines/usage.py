"""Which engines did the work of a call, with their versions, and which of them were missing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from dari.codetools.engines.catalog import ENGINES
from dari.codetools.engines.choose import EngineChoice
from dari.codetools.engines.rewrite import FileError
from dari.codetools.engines.versions import version_of
from dari.codetools.session import CodeSession


class EngineUse(Struct, frozen=True, omit_defaults=True):
    name: str
    version: str = ""
    files: int = 0


class EngineUses:
    """Versions are asked for while the engines work."""

    def __init__(self, session: CodeSession) -> None:
        self._session = session
        self._files: dict[tuple[str, tuple[str, ...]], int] = {}
        self._choices: dict[tuple[str, tuple[str, ...]], EngineChoice] = {}

    def count(self, choice: EngineChoice, files: int) -> None:
        assert choice.engine is not None
        key = (choice.name, choice.engine.command)
        self._files[key] = self._files.get(key, 0) + files
        self._choices.setdefault(key, choice)

    async def list(self) -> list[EngineUse]:
        versions = await asyncio.gather(*map(self._version, self._choices.values()))
        return [
            EngineUse(name, version, files)
            for ((name, _), files), version in zip(self._files.items(), versions, strict=True)
        ]

    async def _version(self, choice: EngineChoice) -> str:
        return "" if choice.engine is None else await version_of(self._session, choice.engine, choice.folder)


def missing_engine(choice: EngineChoice, files: Sequence[str]) -> FileError:
    """One entry for all files of an engine that is not there."""
    many = "this file was" if len(files) == 1 else f"{len(files)} files were"
    why = "the project asks for it" if choice.is_configured else "no other is set up"
    install = ENGINES[choice.name].install
    message = f"{choice.name} is not installed ({why}): {many} left as is. Install it: {install}"
    return FileError(files[0], message, optional=not choice.is_configured)


def join_errors(errors: Sequence[FileError]) -> list[FileError]:
    """One entry for what an engine said alike about many files: its configuration is broken, not they."""
    same: dict[str, list[FileError]] = {}
    for error in errors:
        if not error.line:
            same.setdefault(error.message, []).append(error)
    joined = [
        some[0] if len(some) == 1 else replace(some[0], message=f"{some[0].message} ({len(some)} files)")
        for some in same.values()
    ]
    return [*joined, *(error for error in errors if error.line)]
