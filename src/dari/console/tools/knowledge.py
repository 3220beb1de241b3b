"""`dari_knowledge_*`: the folders of the knowledge base, and reading them in, for a person."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from dari.core.context import Context
from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.errors import Failed, InvalidInput
from dari.process.child import ChildSpec
from dari.process.run import run_program
from dari.struct_types import ready

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

INGEST_LIMIT_S = 6 * 3600.0
MAX_OUTPUT_BYTES = 1 << 30
MAX_LINE_BYTES = 4 << 20
# `kebab ingest` is a program of its own: it parses files of others, and hours of it must not slow the hub. Progress is
# on its stderr, and the report is in the last line there.
_COMMAND = ("/bin/sh", "-c", 'exec "$0" "$@" 2>&1 >/dev/null', sys.executable, "-P", "-m", "dari.cli.kebab.fast_client")
_INHERITED = ("HOME", "PATH", "LANG", "DARI_HOME")


class KnowledgeFolder(Struct, frozen=True):
    id: str
    path: str
    is_there: bool


class KnowledgeFolders(Struct, frozen=True):
    """What the configuration says; folders that an ingest was given by hand are remembered in the store."""

    config_path: str
    is_configured: bool
    data_dir: str
    model: str
    folders: list[KnowledgeFolder]


class IngestSummary(Struct, frozen=True):
    """What came of it."""

    scanned: int = 0
    new: int = 0
    updated: int = 0
    removed: int = 0
    renamed: int = 0
    unchanged: int = 0
    skipped: int = 0
    errors: int = 0
    duration_ms: int = 0
    aborted: bool = False


class _Line(Struct, frozen=True):
    """A line of progress, or the error that the command ended with."""

    kind: str = ""
    doc_path: str = ""
    done: int = 0
    total: int = 0
    report: IngestSummary | None = None
    message: str = ""
    hint: str = ""


class KnowledgeFolderTools:
    """Tools named `dari_knowledge_<method>`."""

    prefix = "dari_knowledge"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends

    @tool(scope=ADMIN, read_only=True)
    async def folders(self) -> KnowledgeFolders:
        """Return the folders that the knowledge base is made of, and its configuration file."""
        return await asyncio.to_thread(_read_folders)

    @tool(scope=ADMIN, idempotent=False)
    async def init(
        self, folder: Annotated[str, Meta(description="Absolute path of the folder to index", min_length=1)]
    ) -> KnowledgeFolders:
        """Write the configuration of a knowledge base of this folder; returns what it says now."""
        await asyncio.to_thread(_init, _existing_folder(folder))
        return await asyncio.to_thread(_read_folders)

    @tool(scope=ADMIN, timeout_s=INGEST_LIMIT_S)
    async def ingest(
        self,
        context: Context,
        folder: Annotated[str, Meta(description="Absolute path of one folder; left out: all that are configured")] = "",
        force: Annotated[bool, Meta(description="Parse every file again, changed or not")] = False,
    ) -> IngestSummary:
        """Index what is new or changed in the folders, with progress; returns how many files of each kind."""
        words = ["--json", "ingest", "--summary-only"]
        words += ["--force-reingest"] if force else []
        words += ["--", str(_existing_folder(folder))] if folder else []
        names = (*_INHERITED, *(name for name in os.environ if name.startswith(("KEBAB_", "XDG_"))))
        spec = ChildSpec("kebab ingest", (*_COMMAND, *words), inherit_env=names, cwd=Path("/"))
        lines = _ProgressLines(context)
        run = await run_program(
            self._backends.children,
            spec,
            timeout_s=INGEST_LIMIT_S,
            max_output_bytes=MAX_OUTPUT_BYTES,
            on_output=lines.feed,
        )
        if lines.report is None:
            message = lines.error.message if lines.error else f"kebab ingest ended with exit status {run.returncode}"
            raise Failed(message, (lines.error.hint if lines.error else "") or "`kebab doctor` checks the installation")
        return lines.report


class _ProgressLines:
    """Lines of `kebab ingest --json`, as they come."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rest = b""
        self.report: IngestSummary | None = None
        self.error: _Line | None = None

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[:MAX_LINE_BYTES]
        for line in lines:
            try:
                self._take(msgspec.json.decode(line, type=ready(_Line)))
            except msgspec.MsgspecError:
                continue  # a warning of a library

    def _take(self, line: _Line) -> None:
        if line.report is not None:
            self.report = line.report
        elif line.message:
            self.error = line
        elif line.kind:
            self._context.report(line.done, line.total or None, line.doc_path or line.kind)


def _existing_folder(given: str) -> Path:
    path = Path(os.path.expanduser(given))
    if not path.is_absolute() or not path.is_dir():
        raise InvalidInput(
            f"folder must be the absolute path of a folder that exists, got {given!r}", "such as /home/me/notes"
        )
    return path.resolve()


def _read_folders() -> KnowledgeFolders:
    from dari.knowledge.config import load_settings

    settings = load_settings()
    return KnowledgeFolders(
        config_path=str(settings.config_file),
        is_configured=settings.has_file,
        data_dir=str(settings.data.data),
        model=settings.config.embedding.model,
        folders=[KnowledgeFolder(one.id, str(one.root), one.root.is_dir()) for one in settings.sources],
    )


def _init(folder: Path) -> None:
    from dari.knowledge.config_file import init_config
    from dari.knowledge.paths import config_file

    init_config(config_file(None, os.environ), root=str(folder))
