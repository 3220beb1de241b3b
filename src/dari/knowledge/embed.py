"""Vectors for chunks that have none: at the end of an ingest, or in the background while search goes on.

A batch is embedded without any lock, then appended to the model's file and committed in the store under the writer
lock, so that an ingest waits for one short write at most. A kill between the two leaves rows that the store does not
count; the next writer cuts them off. The newest chunks come first, and before them those that searches found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.knowledge.asked_for import AskedFor
from dari.knowledge.backend import Backend
from dari.knowledge.errors import StoreLocked
from dari.knowledge.models.installed import installed_models, models_dir
from dari.knowledge.models.manifest import model_key
from dari.knowledge.models.model import EmbeddingModel, load_model, open_model
from dari.knowledge.models.settings import AUTO, EmbeddingSettings
from dari.knowledge.store.store import Store

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from dari.knowledge.index.index import VectorRows

    Vectors = NDArray[float32]

BATCH_S = 2.0
"""How long a batch should take: what a kill loses, and how late a cancel is."""
MIN_BATCH = 16
MAX_BATCH = 1024
MAX_BATCH_CHARS = 1_000_000
LOCK_WAIT_S = 1.0
COMPLETE_SHARE = 0.9
"""Search goes over to another model when this share of the chunks has its vectors."""
MIN_DEAD_ROWS = 10_000


class EmbedProgress(Struct, frozen=True, kw_only=True):
    """How far the vectors of a model are."""

    model_key: str
    embedded: int  # by this run
    pending: int
    texts_per_s: float


class EmbedReport(Struct, frozen=True, kw_only=True):
    """What a run did. `reused` chunks had the text of another one that had a vector."""

    model_key: str
    embedded: int
    reused: int
    pending: int
    duration_s: float
    texts_per_s: float
    cancelled: bool = False


class _Passage(Struct, frozen=True):
    chunk_no: int
    text: str
    same_as: int = 0


def embed_pending(
    store: Store,
    backend: Backend,
    model: EmbeddingModel,
    *,
    on_progress: Callable[[EmbedProgress], None] = lambda _: None,
    cancel: Event | None = None,
    asked_for: AskedFor | None = None,
    lock: Callable[[], AbstractContextManager[None]] | None = None,
    limit: int = 0,
) -> EmbedReport:
    """Embed until every chunk has a vector of `model`, or `limit` chunks got one, or `cancel` is set.

    `lock` takes the writer lock for one commit; a caller that holds it already gives `contextlib.nullcontext`.
    """
    return _Run(store, backend, model, on_progress, cancel or Event(), asked_for or AskedFor(), lock, limit).run()


def model_for_search(store: Store, settings: EmbeddingSettings, data_dir: Path) -> EmbeddingModel | None:
    """The active model, or, while its vectors are being made, the installed one whose vectors are further."""
    active = load_model(settings, data_dir)
    if active is None:
        return None
    state = store.vector_state(active.key)
    done = state.embedded_chunks if state else 0
    total = done + state.pending_chunks if state else store.stats().chunk_count
    if done >= COMPLETE_SHARE * total or settings.model != AUTO or settings.provider != "local":
        return active
    best, found = done, active
    known = set(store.vector_models())
    for other in installed_models(models_dir(settings, data_dir)):
        key = model_key(other.name, other.manifest.hash)
        if key in known and key != active.key:
            there = store.vector_state(key)
            if there is not None and there.embedded_chunks > best:
                best, found = there.embedded_chunks, open_model(other, settings)
    return found


def passage_text(title: str, heading_path: Sequence[str], text: str) -> str:
    """What is embedded of a chunk: its text under its document's title and its headings."""
    start = text[:400]
    above = [line for line in dict.fromkeys((title, *heading_path)) if line and line not in start]
    return "\n".join([*above, text])


class _Run:
    """One run over the pending chunks."""

    def __init__(
        self,
        store: Store,
        backend: Backend,
        model: EmbeddingModel,
        on_progress: Callable[[EmbedProgress], None],
        cancel: Event,
        asked_for: AskedFor,
        lock: Callable[[], AbstractContextManager[None]] | None,
        limit: int,
    ) -> None:
        self._store = store
        self._backend = backend
        self._model = model
        self._on_progress = on_progress
        self._cancel = cancel
        self._asked_for = asked_for
        self._lock = lock
        self._limit = limit
        self._embedded = self._reused = 0
        self._texts, self._model_s = 0, 0.0
        self._batch = MIN_BATCH

    def run(self) -> EmbedReport:
        began = time.monotonic()
        if self._store.vector_state(self._model.key) is not None:
            self._commit(self._drop_deleted)
        while not self._cancel.is_set() and (passages := self._next()):
            vectors = self._vectors_for(passages)
            if vectors is None:
                break
            numbers = [passage.chunk_no for passage in passages]
            if not self._commit(partial(self._append, numbers, vectors)):
                break
            self._embedded += len(passages)
            self._on_progress(
                EmbedProgress(
                    model_key=self._model.key,
                    embedded=self._embedded,
                    pending=self._pending(),
                    texts_per_s=self._rate(),
                )
            )
        pending = self._pending()
        if not pending and self._store.vector_state(self._model.key) is not None:
            # Also when nothing was embedded: an index may be missing after a compaction, or since an older release.
            built: list[bool] = []
            self._commit(lambda index: built.append(index.build_ann(self._cancel.is_set)))
            if self._embedded or any(built):
                self._backend.tell_readers()
        return EmbedReport(
            model_key=self._model.key,
            embedded=self._embedded,
            reused=self._reused,
            pending=pending,
            duration_s=round(time.monotonic() - began, 3),
            texts_per_s=self._rate(),
            cancelled=self._cancel.is_set() and pending > 0,
        )

    def _next(self) -> list[_Passage]:
        """A batch: what searches found first, then the newest."""
        store = self._store
        room = min(self._batch, self._limit - self._embedded) if self._limit else self._batch
        if room <= 0:
            return []
        hot = store.chunks(self._asked_for.take(room))
        wanted = {number: (record.text, 0) for number, record in hot.items()}
        if wanted:
            done = set(self._open(writable=False).vectors_of(list(wanted)))
            wanted = {number: value for number, value in wanted.items() if number not in done}
        for chunk in store.pending_chunks(self._model.key, room):
            if len(wanted) >= room:
                break
            wanted[chunk.chunk_no] = (chunk.text, chunk.same_as)
        records = store.chunks([*wanted, *(same for _, same in wanted.values() if same)])
        documents = store.documents({record.doc_no for record in records.values()})
        texts = {
            number: passage_text(documents[record.doc_no].title, record.heading_path, record.text)
            for number, record in records.items()
            if record.doc_no in documents
        }
        found: list[_Passage] = []
        size = 0
        for number, (_, same) in wanted.items():
            if number not in texts:
                continue  # deleted meanwhile
            size += len(texts[number])
            if found and size > MAX_BATCH_CHARS:
                break
            # The same words below another title are another passage.
            found.append(_Passage(number, texts[number], same if texts.get(same) == texts[number] else 0))
        return found

    def _vectors_for(self, passages: list[_Passage]) -> Vectors | None:
        """Rows in the order of the passages; the model sees each text once."""
        import numpy as np

        same = [passage.same_as for passage in passages if passage.same_as]
        known = self._open(writable=False).vectors_of(same) if same else {}
        new = list(dict.fromkeys(passage.text for passage in passages if passage.same_as not in known))
        rows: dict[str, Vectors] = {}
        step = max(MIN_BATCH, self._batch // 4)
        for at in range(0, len(new), step):
            if self._cancel.is_set():
                return None
            began = time.monotonic()
            part = new[at : at + step]
            rows.update(zip(part, self._model.embed_passages(part), strict=True))
            self._texts += len(part)
            self._model_s += time.monotonic() - began
        self._reused += len(passages) - len(new)
        if self._model_s > 0 and self._texts:
            self._batch = min(MAX_BATCH, max(MIN_BATCH, int(BATCH_S * self._texts / self._model_s)))
        stack = [known[one.same_as] if one.same_as in known else rows[one.text] for one in passages]
        return np.stack(stack)

    def _commit(self, change: Callable[[VectorRows], object]) -> bool:
        """Change the model's file under the writer lock; false when cancelled while another process writes."""
        while True:
            try:
                with self._locked():
                    change(self._open(writable=True))
                return True
            except StoreLocked:
                if self._cancel.is_set():
                    return False

    def _locked(self) -> AbstractContextManager[None]:
        return self._lock() if self._lock is not None else self._backend.lock(LOCK_WAIT_S)

    def _append(self, chunk_nos: list[int], rows: Vectors, index: VectorRows) -> None:
        count = index.append(chunk_nos, rows)
        with self._store.write() as transaction:
            transaction.put_vectors(self._model.key, self._model.dim, chunk_nos, count)

    def _drop_deleted(self, index: VectorRows) -> None:
        """Rows of chunks that the store no longer has; the file is written anew when most of it is such rows."""
        index.retain(self._store.embedded_chunks(self._model.key))
        dead = index.row_count - index.chunk_count
        if dead > MIN_DEAD_ROWS and dead > index.chunk_count:
            count = index.compact()
            with self._store.write() as transaction:
                transaction.put_vectors(self._model.key, self._model.dim, [], count)

    def _open(self, *, writable: bool) -> VectorRows:
        state = self._store.vector_state(self._model.key)
        rows = state.committed_rows if state else 0
        return self._backend.open_vectors(self._model.key, self._model.dim, rows, writable)

    def _pending(self) -> int:
        state = self._store.vector_state(self._model.key)
        return state.pending_chunks if state else self._store.stats().chunk_count

    def _rate(self) -> float:
        return round(self._texts / self._model_s, 2) if self._model_s else 0.0
