"""A set's corpus in a store and indexes of its own, made by the same parser, chunker and model as any folder.

Indexes stay below `<data>/runs/indexes`, by the hash of the corpus and the versions of what made them, so that a second
run over the same set only searches. The last few are kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from dari.errors import Conflict, InvalidInput
from dari.knowledge.backend import Backend, FolderBackend, open_backend
from dari.knowledge.chunk import ChunkPolicy, chunk_document
from dari.knowledge.config import KebabConfig, Settings
from dari.knowledge.embed import EmbedProgress, EmbedReport, embed_pending, model_for_search
from dari.knowledge.errors import NotIndexed
from dari.knowledge.eval.dataset import CorpusDocument, EvalSet
from dari.knowledge.ids import asset_id, doc_id
from dari.knowledge.index.lexical import INDEX_VERSION
from dari.knowledge.models.catalog import default_name, preferred
from dari.knowledge.models.installed import installed_models, models_dir, read_active
from dari.knowledge.models.model import EmbeddingModel, load_model
from dari.knowledge.models.settings import AUTO
from dari.knowledge.parse.dispatch import parse_bytes
from dari.knowledge.parse.versions import PARSER_VERSIONS
from dari.knowledge.paths import DataPaths
from dari.knowledge.search.searcher import Searcher
from dari.knowledge.store.lock import writer_lock
from dari.knowledge.store.records import DocumentRecord
from dari.knowledge.store.store import Store

if TYPE_CHECKING:
    from dari.knowledge.index.index import Lexical, VectorRows

MAX_KEPT = 3
BATCH_DOCUMENTS = 500
COMPLETE = "complete.json"


class IndexProgress(Struct, frozen=True):
    """How far the index of a set is."""

    documents: int
    embedding: EmbedProgress | None = None


class SetIndex(Struct, frozen=True, kw_only=True):
    """What a run searches. `names` has the corpus-id of each document number."""

    store: Store
    lexical: Lexical
    vectors: VectorRows | None
    model: EmbeddingModel | None
    searcher: Searcher
    names: dict[int, str]
    index_s: float = 0.0
    embedding: EmbedReport | None = None
    hint: str = ""


OnProgress = Callable[[IndexProgress], None]


@contextmanager
def open_index(
    chosen: EvalSet,
    settings: Settings,
    *,
    needs_vectors: bool = True,
    on_progress: OnProgress = lambda _: None,
    cancel: Event | None = None,
    fresh: bool = False,
) -> Iterator[SetIndex]:
    """The index of the set's corpus, made where it is not there yet; of a set without one, the knowledge base."""
    opened = _open_set(chosen, settings, needs_vectors, on_progress, cancel or Event(), fresh)
    with opened if chosen.has_corpus else _open_base(chosen, settings) as index:
        yield index


@contextmanager
def _open_set(
    chosen: EvalSet, settings: Settings, needs_vectors: bool, on_progress: OnProgress, cancel: Event, fresh: bool
) -> Iterator[SetIndex]:
    data = DataPaths(settings.data.runs / "indexes" / _key(chosen, settings.config))
    backend = FolderBackend(data, ann_above_rows=settings.config.search.ann_above_chunks)
    with backend.lock():
        began = time.monotonic()
        if fresh or not (data.data / COMPLETE).is_file():
            _clear(data)
            made = index_set(chosen, backend, settings.config, on_progress, cancel)
            (data.data / COMPLETE).write_bytes(msgspec.json.encode(made))
        os.utime(data.data)
        _prune(data.data.parent, data.data)
        store = backend.make_store()
        try:
            names = msgspec.json.decode((data.data / COMPLETE).read_bytes(), type=dict[int, str])
            _require_judged(chosen, set(names.values()), "corpus-ids of qrels must be those of corpus.jsonl")
            index_s = time.monotonic() - began
            model = _model_for(store, settings) if needs_vectors else None
            report = None
            if model is not None:
                report = embed_pending(
                    store,
                    backend,
                    model,
                    lock=nullcontext,
                    cancel=cancel,
                    on_progress=lambda progress: on_progress(IndexProgress(len(names), progress)),
                )
                if report.cancelled:
                    raise Conflict("the run was cancelled", "run it again: it goes on with what is embedded")
            joined = _joined(store, backend, model, names, settings.config, round(index_s, 3), report)
            yield msgspec.structs.replace(joined, hint=_model_hint(store, settings, model) if needs_vectors else "")
        finally:
            store.close()


@contextmanager
def _open_base(chosen: EvalSet, settings: Settings) -> Iterator[SetIndex]:
    """The person's own documents, as search sees them."""
    with closing(open_backend(msgspec.structs.replace(settings, is_readonly=True))) as backend:
        if not backend.exists():
            message = f"{chosen.folder} has no corpus.jsonl, and nothing is indexed in {backend.place}"
            raise NotIndexed(message, "kebab ingest")
        with closing(backend.open_store()) as store:
            yield _base_index(chosen, settings, backend, store)


def _base_index(chosen: EvalSet, settings: Settings, backend: Backend, store: Store) -> SetIndex:
    wanted = {doc for question in chosen.questions for doc in question.relevant}
    names: dict[int, str] = {}
    after = ""
    while page := store.list_documents(after=after, limit=1000):
        names |= {one.doc_no: one.doc_id if one.doc_id in wanted else one.path for one in page}
        after = page[-1].path
    _require_judged(chosen, set(names.values()), "corpus-ids must be paths or ids of documents: kebab list docs")
    model = model_for_search(store, settings.config.embedding, settings.data.data)
    return _joined(store, backend, model, names, settings.config)


def _require_judged(chosen: EvalSet, indexed: set[str], hint: str) -> None:
    """A set whose ids do not fit would score zero without a word."""
    wanted = {doc for question in chosen.questions for doc in question.relevant}
    if wanted and wanted.isdisjoint(indexed):
        raise InvalidInput(f"none of the {len(wanted)} judged documents is indexed, such as {min(wanted)!r}", hint)


def _joined(
    store: Store,
    backend: Backend,
    model: EmbeddingModel | None,
    names: dict[int, str],
    config: KebabConfig,
    index_s: float = 0.0,
    embedding: EmbedReport | None = None,
) -> SetIndex:
    lexical, vectors = backend.open_lexical(), None
    if model is not None and (state := store.vector_state(model.key)) is not None:
        vectors = backend.open_vectors(model.key, state.dim, state.committed_rows)
    return SetIndex(
        store=store,
        lexical=lexical,
        vectors=vectors,
        model=model,
        searcher=Searcher(store, lexical, vectors, model, config.search),
        names=names,
        index_s=index_s,
        embedding=embedding,
    )


def _model_for(store: Store, settings: Settings) -> EmbeddingModel | None:
    """As after an ingest: the person's choice, else the installed model for the languages of the corpus."""
    embedding, data_dir = settings.config.embedding, settings.data.data
    active = read_active(data_dir)
    if embedding.provider == "local" and embedding.model == AUTO and (active is None or active.chosen_by != "person"):
        names = [model.name for model in installed_models(models_dir(embedding, data_dir))]
        name = preferred(store.stats().lang_breakdown, names)
        if name is None:
            return None
        embedding = msgspec.structs.replace(embedding, model=name)
    return load_model(embedding, data_dir)


def _model_hint(store: Store, settings: Settings, model: EmbeddingModel | None) -> str:
    """What to install where the documents' languages would have chosen another model."""
    embedding, data_dir = settings.config.embedding, settings.data.data
    if embedding.provider != "local" or embedding.model != AUTO:
        return ""
    best = default_name(store.stats().lang_breakdown)
    if model is None or best not in {found.name for found in installed_models(models_dir(embedding, data_dir))}:
        return f"{best} is the model for documents of these languages: kebab models install {best}"
    return ""


def index_set(
    chosen: EvalSet,
    backend: Backend,
    config: KebabConfig,
    on_progress: OnProgress = lambda _: None,
    cancel: Event | None = None,
) -> dict[int, str]:
    """Put the set's corpus into an empty store, and return the corpus-id of each document number."""
    store = backend.make_store()
    lexical = backend.open_lexical(writable=True)
    names: dict[int, str] = {}
    try:
        batch: list[CorpusDocument] = []
        for document in chosen.corpus():
            batch.append(document)
            if len(batch) == BATCH_DOCUMENTS:
                _put(store, lexical, batch, config, names)
                on_progress(IndexProgress(len(names)))
                batch = []
                if cancel is not None and cancel.is_set():
                    raise Conflict("the run was cancelled", "run it again when you like")
        _put(store, lexical, batch, config, names)
        lexical.commit(store.revision())
    finally:
        lexical.close()
        store.close()
    return names


def _put(
    store: Store,
    lexical: Lexical,
    batch: list[CorpusDocument],
    config: KebabConfig,
    names: dict[int, str],
) -> None:
    chunking = config.chunking
    policy = ChunkPolicy(chunking.target_tokens, chunking.overlap_tokens, chunking.max_tokens)
    if not batch:
        return
    with store.write() as transaction:
        for document in batch:
            # The corpus-id is not a word of the document, so it is not its path either.
            path = f"{len(names):07x}.txt"
            # Some corpora have titles without a text, and here and there a NUL, which only binary files may have.
            text = (document.text if document.text.strip() else document.title).replace("\0", " ")
            data = text.encode("utf-8", "surrogatepass")
            parsed = msgspec.structs.replace(parse_bytes(data or b" ", path), title=document.title)
            asset = asset_id(data)
            identity = doc_id(path, asset, parsed.parser_version)
            record = DocumentRecord(
                doc_id=identity, path=path, asset_id=asset, media=parsed.media, title=parsed.title, lang=parsed.lang
            )
            result = transaction.put_document(record, chunk_document(identity, parsed, policy))
            names[result.doc_no] = document.id
            for row in result.added:
                lexical.add(row.chunk_no, row.doc_no, row.text, row.title_text)


def _key(chosen: EvalSet, config: KebabConfig) -> str:
    one = config.chunking
    parts = (chosen.hash, INDEX_VERSION, PARSER_VERSIONS["text"], one.target_tokens, one.overlap_tokens, one.max_tokens)
    return f"{chosen.name}-{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:12]}"


def _clear(data: DataPaths) -> None:
    for path in data.data.iterdir():
        if path == data.writer_lock:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _prune(folder: Path, current: Path) -> None:
    """Indexes of the sets that were run longest ago go, unless a run holds one."""
    others = [path for path in folder.iterdir() if path != current and path.is_dir()]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[MAX_KEPT - 1 :]:
        try:
            with writer_lock(DataPaths(path).writer_lock):
                shutil.rmtree(path, ignore_errors=True)
        except Conflict:
            continue
