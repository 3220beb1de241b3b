"""The knowledge base for async callers: each method of the service in a thread, under the name that kebabd serves.

`kebab mcp` uses it in its own process, the hub through kebabd (`dari.daemon.stub`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from dari.core.scopes import CONTROL, READ
from dari.daemon.stub import expose
from dari.knowledge.ask.sampling import AskStep, SamplingReply
from dari.knowledge.document import SearchMode
from dari.knowledge.store.records import DocumentFilter
from dari.knowledge.wire.objects import (
    AnswerV1,
    BulkSearchResponseV1,
    ChunkInspectionV1,
    DocListV1,
    FetchResultV1,
    SearchResponseV1,
)
from dari.knowledge.wire.reports import DoctorV1, IngestReportV1, SchemaV1

if TYPE_CHECKING:
    from dari.core.context import Context
    from dari.knowledge.service import KnowledgeService

MAX_THREADS = 8
MAX_ASKS = 8
"""Questions have threads of their own: one waits for a language model for minutes, and no search waits behind it."""
T = TypeVar("T")


class KnowledgeApi:
    """`open_service` is called by each method: it returns the service that is open, or opens it, or raises why not."""

    def __init__(self, open_service: Callable[[], KnowledgeService]) -> None:
        self._open = open_service
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="kebab")
        self._asks = ThreadPoolExecutor(MAX_ASKS, thread_name_prefix="kebab-ask")

    def close(self) -> None:
        for threads in (self._threads, self._asks):
            threads.shutdown(wait=False, cancel_futures=True)

    @expose("kebab.search", READ)
    async def search(self, query: str, mode: SearchMode = "hybrid", k: int = 10) -> SearchResponseV1:
        return await self._run(lambda service: service.search(query, mode=mode, k=k))

    @expose("kebab.bulk_search", READ, is_slow=True)
    async def bulk_search(self, queries: list[str], mode: SearchMode = "hybrid", k: int = 10) -> BulkSearchResponseV1:
        return await self._run(lambda service: service.bulk_search(queries, mode=mode, k=k))

    @expose("kebab.ask", READ, is_slow=True)
    async def ask(
        self, query: str, session_id: str | None = None, replies: dict[str, SamplingReply] | None = None
    ) -> AskStep:
        """One round of an answer, for a caller in another process: `replies` is what its client's model has said so
        far. Without it that model is not asked."""
        from dari.knowledge.ask.asker import AskRequest
        from dari.knowledge.ask.sampling import ReplayedSampler, SamplingNeeded

        request = AskRequest(question=query, session_id=session_id or "")
        sampler = None if replies is None else ReplayedSampler(replies)
        try:
            return AskStep(await self._run(lambda service: service.ask(request, sampler), self._asks))
        except SamplingNeeded as needed:
            return AskStep(sample=needed.request)

    async def answer(self, query: str, session_id: str | None, context: Context) -> AnswerV1:
        """An answer; the caller hears of progress, and its model is asked where none is configured."""
        from dari.knowledge.ask.asker import AskRequest
        from dari.knowledge.tools.caller import CallerModel

        request = AskRequest(question=query, session_id=session_id or "")
        caller = CallerModel(context, asyncio.get_running_loop())
        return await self._run(lambda service: service.ask(request, caller.sampler(), caller.events()), self._asks)

    @expose("kebab.schema", READ)
    async def schema(self) -> SchemaV1:
        return await self._run(lambda service: service.schema())

    @expose("kebab.doctor", READ)
    async def doctor(self) -> DoctorV1:
        from dari.knowledge.health import run_doctor

        return await self._call(lambda: run_doctor(self._open))

    @expose("kebab.fetch", READ)
    async def fetch(
        self,
        chunk_id: str | None = None,
        doc_id: str | None = None,
        line_start: int | None = None,
        line_end: int | None = None,
        context: int = 0,
        max_tokens: int | None = None,
    ) -> FetchResultV1:
        return await self._run(
            lambda service: service.fetch(
                chunk_id=chunk_id,
                doc_id=doc_id,
                line_start=line_start,
                line_end=line_end,
                context=context,
                max_tokens=max_tokens,
            )
        )

    @expose("kebab.list_docs", READ)
    async def list_docs(
        self, path_glob: str | None = None, tag: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> DocListV1:
        where = DocumentFilter(path_glob=path_glob or "", tags=(tag,) if tag else ())
        return await self._run(lambda service: service.list_docs(where=where, cursor=cursor, limit=limit))

    @expose("kebab.inspect_chunk", READ)
    async def inspect_chunk(self, chunk_id: str) -> ChunkInspectionV1:
        return await self._run(lambda service: service.inspect_chunk(chunk_id))

    @expose("kebab.ingest_file", CONTROL, is_slow=True)
    async def ingest_file(self, path: str) -> IngestReportV1:
        return await self._run(lambda service: service.ingest_file(path))

    @expose("kebab.ingest_stdin", CONTROL, is_slow=True)
    async def ingest_text(self, text: str, title: str, source_uri: str | None = None) -> IngestReportV1:
        return await self._run(lambda service: service.ingest_text(text, title=title, source_uri=source_uri))

    @expose("kebab.is_inside_roots", READ)
    async def is_inside_roots(self, path: str) -> bool:
        """Whether a file lies in a folder that the configuration names."""
        return await self._run(lambda service: service.is_inside_roots(path))

    async def _run(self, work: Callable[[KnowledgeService], T], threads: ThreadPoolExecutor | None = None) -> T:
        return await self._call(lambda: work(self._open()), threads)

    async def _call(self, work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads or self._threads, work)
