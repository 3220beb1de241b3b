"""`dari_knowledge_*`: what a person does with the knowledge base and an agent may not: name folders, index them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from dari.core.context import Context
from dari.core.scopes import ADMIN
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.daemon.launch import python_command
from dari.errors import Failed, InvalidInput, Unavailable
from dari.knowledge.document import SearchMode
from dari.knowledge.search.request import MAX_K
from dari.knowledge.store.records import DocumentFilter
from dari.knowledge.wire.objects import SearchResponseV1
from dari.knowledge.wire.reports import IngestReportV1
from dari.process.child import ChildSpec
from dari.process.run import run_program

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

INGEST_LIMIT_S = 6 * 3600.0
MAX_OUTPUT_BYTES = 512 * 1024 * 1024
PROGRESS_S = 0.1


class KnowledgeSource(Struct):
    """A folder that is indexed."""

    id: str
    root: str
    is_there: bool


class KnowledgeSources(Struct):
    config: str
    has_config: bool
    sources: list[KnowledgeSource]


class KnowledgeConsoleTools:
    """Tools named `dari_knowledge_<method>`."""

    prefix = "dari_knowledge"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends
        self._ingesting = asyncio.Lock()

    @tool(scope=ADMIN, read_only=True)
    async def sources(self) -> KnowledgeSources:
        """List the folders that the knowledge base is made from, and its configuration file."""
        return await asyncio.to_thread(_read_sources)

    @tool(scope=ADMIN, idempotent=False)
    async def add_source(
        self, folder: Annotated[str, Meta(description="An absolute path, or one with ~")]
    ) -> KnowledgeSources:
        """Name a folder in the configuration; it is indexed by the next ingest."""
        root = Path(folder).expanduser()
        if not root.is_absolute() or not root.is_dir():
            raise InvalidInput(
                f"the folder must exist and its path be absolute, got {folder[:200]!r}", "check the path"
            )
        return await asyncio.to_thread(_add_source, root)

    @tool(scope=ADMIN, timeout_s=INNER_LIMITS_ONLY)
    async def ingest(
        self,
        context: Context,
        folder: Annotated[str, Meta(description="One of the configured folders; empty: all of them")] = "",
        force: Annotated[bool, Meta(description="Parse every file again, changed or not")] = False,
    ) -> IngestReportV1:
        """Bring the index up to what is in the folders, with progress; cancelling keeps what is done."""
        if self._ingesting.locked():
            raise Unavailable("an ingest of this console is running", "wait for it, or cancel it")
        async with self._ingesting:
            return await self._run_ingest(context, folder, force)

    @tool(scope=ADMIN, read_only=True)
    async def search(
        self,
        query: str,
        mode: SearchMode = "hybrid",
        k: Annotated[int, Meta(ge=1, le=MAX_K)] = 20,
        path_glob: Annotated[str, Meta(description="`docs/**`: only documents whose path fits")] = "",
        media: Annotated[str, Meta(description="Only this kind, such as markdown, pdf, code")] = "",
        source: Annotated[str, Meta(description="Only the folder of this id")] = "",
        cursor: str = "",
    ) -> SearchResponseV1:
        """Search in some of the documents, page by page."""
        where = DocumentFilter(
            path_glob=path_glob,
            media=(media,) if media else (),
            source_ids=(source,) if source else (),
        )
        return await self._backends.knowledge(True).search_where(query, where, mode, k, cursor)

    async def _run_ingest(self, context: Context, folder: str, force: bool) -> IngestReportV1:
        lines = _Lines(context)
        command = python_command("dari.console.ingest_process", folder, "force" if force else "")
        spec = ChildSpec("kebab ingest", tuple(command), env=dict(os.environ))
        run = await run_program(
            self._backends.children,
            spec,
            timeout_s=INGEST_LIMIT_S,
            max_output_bytes=MAX_OUTPUT_BYTES,
            on_output=lines.take,
        )
        last = lines.last
        if last.get("schema_version") == "ingest_report.v1":
            return msgspec.convert(last, IngestReportV1)
        if "message" in last:
            raise Failed(last["message"], last.get("hint", ""))
        raise Failed(f"the ingest ended with exit code {run.returncode}", run.stderr[-500:] or "kebab ingest says more")


class _Lines:
    """Reads the lines of the process; passes progress on, ten times a second at most."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rest = b""
        self._told_s = 0.0
        self.last: dict[str, Any] = {}

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.last = msgspec.json.decode(line)
            self._tell(self.last)

    def _tell(self, event: dict[str, Any]) -> None:
        now_s = asyncio.get_running_loop().time()
        if event.get("schema_version") == "ingest_progress.v1" and now_s - self._told_s >= PROGRESS_S:
            self._told_s = now_s
            what = event.get("doc_path") or event.get("kind", "")
            self._context.report(float(event.get("done") or 0), event.get("total"), what)


def _read_sources() -> KnowledgeSources:
    from dari.knowledge.config import load_settings

    settings = load_settings()
    found = [KnowledgeSource(each.id, str(each.root), each.root.is_dir()) for each in settings.sources]
    return KnowledgeSources(str(settings.config_file), settings.has_file, found)


def _add_source(root: Path) -> KnowledgeSources:
    from dari.knowledge.config import load_settings
    from dari.knowledge.config_file import add_source

    settings = load_settings()
    real = root.resolve()
    if not any(each.root.resolve() == real for each in settings.sources):
        add_source(settings.config_file, str(real))
    return _read_sources()
