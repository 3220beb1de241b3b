"""Kebab's tools: the four of design 004, and six more with KEBAB_TOOLS=all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from dari.core.context import Context
from dari.core.scopes import CONTROL
from dari.core.tool import Tool, tool, tools_of
from dari.errors import InvalidInput
from dari.knowledge.api import KnowledgeApi
from dari.knowledge.document import SearchMode
from dari.knowledge.search.request import MAX_BULK_QUERIES, MAX_K
from dari.knowledge.tools.caller import ask_in_rounds
from dari.knowledge.tools.wire_result import to_wire_tool
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
    from dari.knowledge.tools.ingest_guard import IngestGuard

Which = Literal["default", "all"]
_ASK_LIMIT_S = 600.0
_INGEST_LIMIT_S = 600.0
K = Annotated[int, Meta(ge=1, le=MAX_K)]


class KnowledgeTools:
    """The read-only tools of design 004, in its words."""

    def __init__(self, api: KnowledgeApi, prefix: str = "") -> None:
        self.prefix = prefix
        self._api = api

    @tool(output="as_is")
    async def search(self, query: str, mode: SearchMode = "hybrid", k: K = 10) -> SearchResponseV1:
        """Lexical / vector / hybrid retrieval over indexed corpus."""
        return await self._api.search(query, mode, k)

    @tool(output="as_is", timeout_s=_ASK_LIMIT_S, open_world=True)
    async def ask(self, query: str, context: Context, session_id: str | None = None) -> AnswerV1:
        """Grounded RAG answer with citations. Returns answer.v1 with grounded=false when KB lacks context."""
        if isinstance(self._api, KnowledgeApi):
            return await self._api.answer(query, session_id, context)
        return await ask_in_rounds(self._api, query, session_id, context)

    @tool(output="as_is")
    async def schema(self) -> SchemaV1:
        """Introspection — wire schemas, capabilities, model versions, index stats."""
        return await self._api.schema()

    @tool(output="as_is")
    async def doctor(self) -> DoctorV1:
        """Health check — config / data dir / Ollama reachability."""
        return await self._api.doctor()


class FurtherTools:
    """What KEBAB_TOOLS=all adds: many queries at once, text word for word, lists, and ingest."""

    def __init__(self, api: KnowledgeApi, guard: IngestGuard, prefix: str = "") -> None:
        self.prefix = prefix
        self._api = api
        self._guard = guard

    @tool(output="as_is")
    async def bulk_search(
        self,
        queries: Annotated[list[str], Meta(min_length=1, max_length=MAX_BULK_QUERIES)],
        mode: SearchMode = "hybrid",
        k: K = 10,
    ) -> BulkSearchResponseV1:
        """Run up to 100 searches at once; returns bulk_search_response.v1 with a response or an error for each."""
        return await self._api.bulk_search(queries, mode, k)

    @tool(output="as_is")
    async def fetch(
        self,
        chunk_id: Annotated[str | None, Meta(description="A chunk, with `context` chunks before and after it")] = None,
        doc_id: Annotated[str | None, Meta(description="A document's id or path: all of it, or some lines")] = None,
        line_start: Annotated[int | None, Meta(description="First line of a span, from 1")] = None,
        line_end: int | None = None,
        context: Annotated[int, Meta(ge=0, le=20)] = 0,
        max_tokens: Annotated[int, Meta(ge=1)] | None = None,
    ) -> FetchResultV1:
        """Text of a chunk, of a document or of a span of lines, word for word; returns fetch_result.v1."""
        if (chunk_id is None) == (doc_id is None):
            raise InvalidInput("either chunk_id or doc_id must be given", "a search has both for each hit")
        return await self._api.fetch(chunk_id, doc_id, line_start, line_end, context, max_tokens)

    @tool(output="as_is")
    async def list_docs(
        self,
        path_glob: str | None = None,
        tag: str | None = None,
        cursor: str | None = None,
        limit: Annotated[int, Meta(ge=1, le=500)] = 100,
    ) -> DocListV1:
        """List indexed documents by path; returns doc_list.v1, with next_cursor where there are more."""
        return await self._api.list_docs(path_glob, tag, cursor, limit)

    @tool(output="as_is")
    async def inspect_chunk(self, chunk_id: str) -> ChunkInspectionV1:
        """A chunk as it is stored: text, place, tokens, versions; returns chunk_inspection.v1."""
        return await self._api.inspect_chunk(chunk_id)

    @tool(output="as_is", scope=CONTROL, timeout_s=_INGEST_LIMIT_S)
    async def ingest_file(
        self, path: Annotated[str, Meta(description="Absolute path of a file")], context: Context
    ) -> IngestReportV1:
        """Index one file; outside of the configured folders a person has to approve it. Returns ingest_report.v1."""
        return await self._api.ingest_file(await self._guard.check_file(path, context))

    @tool(output="as_is", scope=CONTROL, timeout_s=_INGEST_LIMIT_S)
    async def ingest_stdin(
        self, text: str, title: str, context: Context, source_uri: str | None = None
    ) -> IngestReportV1:
        """Index a text that is Markdown; a person has to approve it. Returns ingest_report.v1."""
        await self._guard.check_text(text, title, source_uri, context)
        return await self._api.ingest_text(text, title, source_uri)


def make_tools(
    api: KnowledgeApi, guard: Callable[[], IngestGuard], which: Which = "default", prefix: str = ""
) -> Iterable[Tool]:
    """The tools of one server, named with its prefix."""
    made = tools_of(KnowledgeTools(api, prefix))
    if which == "all":
        made += tools_of(FurtherTools(api, guard(), prefix))
    return [to_wire_tool(one) for one in made]
