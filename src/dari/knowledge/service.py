"""The knowledge base as one object: opened once per process, hot for every call after the first.

    ServiceCache → KnowledgeService → OpenBase (store, lexical index, vectors, model, searcher)

Commands, `kebab mcp` and kebabd use nothing below this. Reads are safe in several threads and never write; a writer in
another process is followed. What writes takes the one writer lock and has its own module (`dari.knowledge.ingest`).
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from dari.errors import DariError, InvalidInput
from dari.knowledge.asked_for import asked_for_in
from dari.knowledge.backend import Backend, Signature, inode, open_backend
from dari.knowledge.config import LlmSettings, Settings, load_settings
from dari.knowledge.document import SearchMode
from dari.knowledge.errors import ModelNotInstalled, NotIndexed, ReadonlyMode, classify
from dari.knowledge.paths import config_file
from dari.knowledge.render import Renderer
from dari.knowledge.store.records import EVERY_DOCUMENT, DocumentFilter
from dari.knowledge.wire.objects import (
    AnswerV1,
    BulkSearchItemV1,
    BulkSearchResponseV1,
    ChunkInspectionV1,
    DocInspectionV1,
    DocListV1,
    FetchResultV1,
    SearchResponseV1,
)

if TYPE_CHECKING:
    from dari.knowledge.ask.asker import AskEvents, AskRequest
    from dari.knowledge.ask.chat import Sampler
    from dari.knowledge.index.index import Lexical, VectorRows
    from dari.knowledge.models.model import EmbeddingModel
    from dari.knowledge.passages import Passages
    from dari.knowledge.search.searcher import Searcher
    from dari.knowledge.store.store import Store
    from dari.knowledge.wire.reports import IngestReportV1, OcrFailuresV1, OcrStatsV1, SchemaV1

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger("dari.kebab")
MAX_OPEN_SERVICES = 8
AGENT_WAIT_S = 30.0
"""How long an agent's ingest waits for another writer."""
_READING = threading.Lock()
"""msgspec builds what it knows of a type at its first use, and two threads that do so at once crash the process."""


class OpenBase:
    """What is open of one data folder; replaced as a whole when the folder is another one, or has another model."""

    def __init__(
        self,
        store: Store,
        lexical: Lexical,
        vectors: VectorRows | None,
        model: EmbeddingModel | None,
        searcher: Searcher,
        signature: Signature,
        english: EmbeddingModel | None = None,
        model_failure: DariError | None = None,
    ) -> None:
        self.store = store
        self.lexical = lexical
        self.vectors = vectors
        self.model = model
        self.searcher = searcher
        self.signature = signature
        self.english = english
        self.model_failure = model_failure
        """Why there is no model though one is chosen."""


def _counted(method: Callable[Concatenate[KnowledgeService, P], T]) -> Callable[Concatenate[KnowledgeService, P], T]:
    """A call during which the service stays open."""

    @wraps(method)
    def call(self: KnowledgeService, /, *positional: P.args, **named: P.kwargs) -> T:
        with self._in_use():
            return method(self, *positional, **named)

    return call


class KnowledgeService:
    """One configuration, opened. To make one reads nothing but the settings that it is given."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._backend: Backend | None = None
        self._base: OpenBase | None = None
        self._model_folder = ""
        self._opening = threading.Lock()
        self._counting = threading.Lock()
        self._users = 0
        self._is_closing = False

    def close(self) -> None:
        """At once, or when the last call that is under way has ended: what an `ask` has written for minutes is kept."""
        with self._counting:
            self._is_closing = True
            if self._users:
                return
        self._close()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        with self._counting:
            self._users += 1
        try:
            yield
        finally:
            with self._counting:
                self._users -= 1
                is_last = self._is_closing and not self._users
            if is_last:
                self._close()

    def _close(self) -> None:
        base, self._base = self._base, None
        if base is not None:
            base.store.close()
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.close()

    @property
    def backend(self) -> Backend:
        """Made at its first use, so that settings which name no usable store are the error of what uses it."""
        if self._backend is None:
            self._backend = open_backend(self.settings)
        return self._backend

    def base(self) -> OpenBase:
        """The open store with its indexes. NotIndexed before the first ingest."""
        base = self._base
        if base is not None and base.signature == self._signature():
            return base
        with self._opening:
            if self._base is None or self._base.signature != self._signature():
                # The old one is left to who still reads from it: SQLite and tantivy keep removed files until then.
                self._base = self._open()
            return self._base

    def renderer(self) -> Renderer:
        base = self._base
        name = base.model.key if base is not None and base.model is not None else ""
        return Renderer(self.settings.config.search.stale_after_days, self.backend.index_version, name)

    # Search

    @_counted
    def search(
        self,
        query: str,
        *,
        mode: SearchMode | None = None,
        k: int | None = None,
        where: DocumentFilter = EVERY_DOCUMENT,
        max_tokens: int | None = None,
        snippet_chars: int | None = None,
        cursor: str | None = None,
        trace: bool = False,
    ) -> SearchResponseV1:
        """The best passages for a query, as `search_response.v1`."""
        from dari.knowledge.search.request import SearchRequest

        defaults = self.settings.config.search
        request = SearchRequest(
            query=query,
            mode=mode or defaults.default_mode,
            k=defaults.default_k if k is None else k,
            where=where,
            max_tokens=max_tokens,
            snippet_chars=defaults.snippet_chars if snippet_chars is None else snippet_chars,
            cursor=cursor or "",
            trace=trace,
        )
        result = self.base().searcher.search(request)
        if not result.revision:
            raise self._not_indexed()
        if self._base is not None and self._base.model is not None:
            without = [hit.chunk.chunk_no for hit in result.hits if hit.retrieval.vector_score is None]
            asked_for_in(self.settings.data.data).note(without)
        return self.renderer().response(result)

    @_counted
    def bulk_search(self, /, queries: Sequence[str], **options: Any) -> BulkSearchResponseV1:
        """Each query with its own response or error."""
        items = []
        for index, query in enumerate(queries):
            try:
                items.append(BulkSearchItemV1(index=index, query=query, response=self.search(query, **options)))
            except Exception as error:
                items.append(BulkSearchItemV1(index=index, query=query, error=classify(error)))
        failed = sum(1 for item in items if not isinstance(item.response, SearchResponseV1))
        return BulkSearchResponseV1(items=tuple(items), succeeded=len(items) - failed, failed=failed)

    # Ask

    @_counted
    def ask(
        self,
        request: AskRequest,
        sampler: Sampler | None = None,
        events: AskEvents | None = None,
        llm: LlmSettings | None = None,
    ) -> AnswerV1:
        """An answer with citations, or a refusal, as `answer.v1`. `sampler` asks the client's own model."""
        from dari.knowledge.ask.asker import Asker

        base, config = self.base(), self.settings.config
        if request.mode is None:
            request = replace(request, mode=config.search.default_mode)
        cite = self.renderer().citation
        asker = Asker(base.store, base.searcher, base.model, config.ask, llm or config.llm, cite, base.english)
        return asker.answer(request, sampler, events)

    # Documents

    @_counted
    def list_docs(
        self, *, where: DocumentFilter = EVERY_DOCUMENT, cursor: str | None = None, limit: int = 100
    ) -> DocListV1:
        return self._passages().list_docs(where, cursor or "", limit)

    @_counted
    def inspect_doc(self, id_or_path: str) -> DocInspectionV1:
        return self._passages().inspect_doc(id_or_path)

    @_counted
    def inspect_chunk(self, chunk_id: str) -> ChunkInspectionV1:
        return self._passages().inspect_chunk(chunk_id)

    @_counted
    def fetch(
        self,
        *,
        chunk_id: str | None = None,
        doc_id: str | None = None,
        line_start: int | None = None,
        line_end: int | None = None,
        context: int = 0,
        max_tokens: int | None = None,
    ) -> FetchResultV1:
        """A chunk with its neighbours, a document, or a span of its lines."""
        passages = self._passages()
        if chunk_id is not None:
            return passages.fetch_chunk(chunk_id, context, max_tokens)
        if line_start is not None or line_end is not None:
            return passages.fetch_span(doc_id or "", line_start or 1, line_end, max_tokens)
        return passages.fetch_doc(doc_id or "", max_tokens)

    def _passages(self) -> Passages:
        from dari.knowledge.passages import Passages

        return Passages(self.base().store, self.settings, self.renderer(), self.backend.read_asset)

    # Health

    @_counted
    def schema(self) -> SchemaV1:
        from dari.knowledge.health import describe

        return describe(self)

    @_counted
    def ocr_stats(self) -> OcrStatsV1:
        from dari.knowledge.health import ocr_stats

        return ocr_stats(self)

    @_counted
    def ocr_failures(self) -> OcrFailuresV1:
        from dari.knowledge.health import ocr_failures

        return ocr_failures(self)

    # Writing

    def require_writable(self, what: str) -> None:
        if self.settings.is_readonly:
            raise ReadonlyMode(f"{what} writes, and --readonly or KEBAB_READONLY forbids it", "run it without them")

    def ingest_file(self, path: str) -> IngestReportV1:
        """Index one file, as an agent asks for it."""
        from dari.knowledge.indexing import index_file

        self.require_writable("ingest_file")
        return index_file(self.settings, Path(path), is_checked=True, wait_s=AGENT_WAIT_S)

    def ingest_text(self, text: str, *, title: str, source_uri: str | None = None) -> IngestReportV1:
        """Index a text, as an agent asks for it."""
        from dari.knowledge.indexing import index_text

        self.require_writable("ingest_stdin")
        return index_text(self.settings, text.encode(), title, source_uri or "", wait_s=AGENT_WAIT_S)

    def is_inside_roots(self, path: str) -> bool:
        """Whether a file, links followed, lies in a folder that the configuration names, or is that folder."""
        real = os.path.realpath(path)
        roots = (os.path.realpath(source.root) for source in self.settings.sources)
        return any(f"{real}/".startswith(f"{root.rstrip('/')}/") for root in roots)

    # Opening

    def _open(self) -> OpenBase:
        from dari.knowledge.embed import model_for_search
        from dari.knowledge.models.installed import read_active
        from dari.knowledge.models.model import english_beside
        from dari.knowledge.search.searcher import Searcher

        settings, backend = self.settings, self.backend
        active = read_active(settings.data.data)
        self._model_folder = active.path if active is not None else ""
        signature = self._signature()
        if not backend.exists():
            raise self._not_indexed()
        store = backend.open_store()
        try:
            lexical = backend.open_lexical()
            model, failure = None, None
            try:
                model = model_for_search(store, settings.config.embedding, settings.data.data)
            except (InvalidInput, ModelNotInstalled) as error:  # its folder is away: words are found without it
                failure = error
            vectors = None if model is None else self._open_vectors(store, model)
        except BaseException:
            store.close()
            raise
        searcher = Searcher(store, lexical, vectors, model, settings.config.search, failure)
        _log.debug(
            "kebab event=open store=%s revision=%d model=%s config=%s",
            backend.place,
            store.revision(),
            model.key if model is not None else "none",
            settings.config_file,
        )
        english = english_beside(model, settings.config.embedding, settings.data.data)
        return OpenBase(store, lexical, vectors, model, searcher, signature, english, failure)

    def _not_indexed(self) -> NotIndexed:
        where = self.backend.place if self.settings.config.store.url else self.settings.data.data
        next_step = "kebab ingest" if self.settings.sources else "kebab init FOLDER, then kebab ingest"
        return NotIndexed(f"nothing is indexed in {where} yet", next_step)

    def _open_vectors(self, store: Store, model: EmbeddingModel) -> VectorRows | None:
        state = store.vector_state(model.key)
        if state is None:
            return None
        return self.backend.open_vectors(model.key, state.dim, state.committed_rows)

    def _signature(self) -> Signature:
        """Changes when the store was replaced, or another model chosen, or the first vectors of one made."""
        from dari.knowledge.models.installed import models_dir

        data = self.settings.data
        models = models_dir(self.settings.config.embedding, data.data)
        found = (*self.backend.signature(), inode(models, written=True), inode(data.active_model))
        if not (own := self._model_folder):
            return found
        return (*found, inode(Path(own), written=True), inode(Path(own, "manifest.json")))


class ServiceCache:
    """The services of one process, by configuration and environment; a file that changed is read again."""

    def __init__(self) -> None:
        self._services: OrderedDict[tuple[object, ...], KnowledgeService] = OrderedDict()
        self._lock = threading.Lock()

    def __enter__(self) -> ServiceCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, config: str | None, environ: Mapping[str, str], is_readonly: bool) -> KnowledgeService:
        """The service of these settings; opened where it is not yet."""
        key = (config, is_readonly, inode(config_file(config, environ)), _relevant(environ))
        with self._lock:
            service = self._services.get(key)
            if service is not None:
                self._services.move_to_end(key)
                return service
            with _READING:
                service = self._services[key] = KnowledgeService(load_settings(config, environ, is_readonly))
            while len(self._services) > MAX_OPEN_SERVICES:
                self._services.popitem(last=False)[1].close()
            return service

    def close(self) -> None:
        with self._lock:
            while self._services:
                self._services.popitem()[1].close()


def _relevant(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What of an environment decides on settings and places."""
    names = ("HOME", "DARI_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    return tuple(sorted((name, value) for name, value in environ.items() if name in names or name.startswith("KEBAB_")))
