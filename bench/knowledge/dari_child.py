"""Ours: the store, the lexical index and the vectors as an ingest leaves them, and the searcher over them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from bench.knowledge.child import TOP, Numbers, Query, serve
from bench.knowledge.corpus import DIM, CorpusFiles, passages_of
from dari.knowledge.backend import Backend, FolderBackend
from dari.knowledge.config import DEFAULT_ANN_ABOVE_CHUNKS
from dari.knowledge.document import Chunk, Location, SearchMode
from dari.knowledge.index.vectors import VectorIndex
from dari.knowledge.paths import DataPaths
from dari.knowledge.search.query import parse_query, weigh
from dari.knowledge.search.request import SearchRequest
from dari.knowledge.search.searcher import Searcher
from dari.knowledge.store.records import DocumentRecord

if TYPE_CHECKING:
    from dari.knowledge.index.vectors import Vectors

_DOCUMENT_PASSAGES = 10
_TRANSACTION_DOCUMENTS = 64
_VECTOR_BATCH = 20_000


class MadeUpModel:
    """Knows the vector of each query: what a model costs is measured elsewhere, and the same for everyone."""

    key, name, dim, lexical_weight, max_tokens = "made-up-1", "made-up", DIM, 0.8, 512

    def __init__(self, vectors: Mapping[str, Vectors]) -> None:
        self._vectors = vectors

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError("the vectors of the passages are in a file")

    def embed_query(self, text: str) -> Vectors:
        return self._vectors[text]


class Kebab:
    def __init__(self, files: CorpusFiles, queries: Sequence[Query], backend: Backend | None = None) -> None:
        self._files = files
        self._texts = [str(one["text"]) for one in queries]
        self._query_vectors = np.fromfile(files.query_vectors, np.float32).reshape(-1, DIM)
        if backend is None:
            home = DataPaths(files.folder / "kebab")
            home.data.mkdir()
            backend = FolderBackend(home)
        self._store = backend.make_store()
        self._lexical = backend.open_lexical(writable=True)
        self._vectors = backend.open_vectors(MadeUpModel.key, DIM, 0, writable=True)
        self._exact = self._vectors

    def build(self) -> dict[str, float]:
        cpu_s = self._build_text()
        built_vectors = time.perf_counter()
        self._build_vectors()
        terms = [weigh(parse_query(text), self._lexical).weights for text in self._texts]
        self._terms = terms
        bytes_read = self._files.texts.stat().st_size
        return {
            "cpu_us_per_passage": cpu_s / self._files.passages * 1e6,
            "mb_per_cpu_s": bytes_read / cpu_s / 1e6,
            "vectors_s": time.perf_counter() - built_vectors,
        }

    def _build_text(self) -> float:
        """CPU seconds of all threads: into the store and into the lexical index."""
        began = time.process_time()
        passages = passages_of(self._files)
        numbers = iter(range(self._files.passages))
        while documents := list(islice(self._documents(passages, numbers), _TRANSACTION_DOCUMENTS)):
            with self._store.write() as transaction:
                rows = [row for one in documents for row in transaction.put_document(*one).added]
            for row in rows:
                self._lexical.add(row.chunk_no, row.doc_no, row.text, row.title_text)
        self._lexical.commit(self._store.revision())
        self._lexical.close()
        return time.process_time() - began

    def _documents(
        self, passages: Iterator[str], numbers: Iterator[int]
    ) -> Iterator[tuple[DocumentRecord, list[Chunk]]]:
        while texts := list(islice(passages, _DOCUMENT_PASSAGES)):
            number = next(numbers)
            record = DocumentRecord(
                doc_id=f"{number:032x}", path=f"notes/{number}.md", asset_id=f"{number:032x}", media="markdown"
            )
            chunks = [
                Chunk(
                    f"{number:016x}{place:016x}",
                    place,
                    text,
                    (),
                    Location("line", place + 1, place + 1),
                    len(text) // 3,
                )
                for place, text in enumerate(texts)
            ]
            yield record, chunks

    def _build_vectors(self) -> None:
        rows = np.memmap(self._files.vectors, np.float32, "r").reshape(-1, DIM)
        for first in range(0, len(rows), _VECTOR_BATCH):
            part = rows[first : first + _VECTOR_BATCH]
            numbers = range(first + 1, first + 1 + len(part))
            count = self._vectors.append(numbers, part)
            with self._store.write() as transaction:
                transaction.put_vectors(MadeUpModel.key, DIM, numbers, count)
        self._vectors.refresh(len(rows))
        self._vectors.build_ann()
        if len(rows) > DEFAULT_ANN_ABOVE_CHUNKS and isinstance(self._vectors, VectorIndex):
            folder = self._files.folder / "kebab" / "vectors"
            self._exact = VectorIndex.open(folder, DIM, MadeUpModel.key, len(rows), ann_above_rows=len(rows))

    def searches(self) -> Mapping[str, Callable[[int], Numbers]]:
        model = MadeUpModel(dict(zip(self._texts, self._query_vectors, strict=True)))
        searcher = Searcher(self._store, self._lexical, self._vectors, model)
        exact = Searcher(self._store, self._lexical, self._exact, model)
        return {
            "engine": lambda number: _numbers(self._lexical.search(self._terms[number], TOP)),
            "lexical": self._call(searcher, "lexical"),
            "vector": lambda number: _numbers(self._vectors.search(self._query_vectors[number], TOP)),
            "exact vector": lambda number: _numbers(self._exact.search(self._query_vectors[number], TOP)),
            "hybrid": self._call(searcher, "hybrid"),
            "exact hybrid": self._call(exact, "hybrid"),
        }

    def _call(self, searcher: Searcher, mode: SearchMode) -> Callable[[int], Numbers]:
        def search(number: int) -> Numbers:
            result = searcher.search(SearchRequest(query=self._texts[number], k=TOP, mode=mode))
            return [hit.chunk.chunk_no for hit in result.hits]

        return search


def _numbers(hits: Sequence[tuple[int, float]]) -> Numbers:
    return [number for number, _ in hits]


if __name__ == "__main__":
    sys.exit(serve(Kebab))
