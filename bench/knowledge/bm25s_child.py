"""bm25s: scores computed while indexing, sparse matrices mapped from disk; no update without building anew."""

import sys
from collections.abc import Callable, Mapping, Sequence

import bm25s

from bench.knowledge.child import TOP, Numbers, Query, serve
from bench.knowledge.corpus import CorpusFiles


class Bm25s:
    def __init__(self, files: CorpusFiles, queries: Sequence[Query]) -> None:
        self._files = files
        self._queries = [[str(one["terms"]).split()] for one in queries]

    def build(self) -> dict[str, float]:
        with self._files.terms.open() as lines:
            terms = [line.split() for line in lines]
        made = bm25s.BM25(k1=1.2, b=0.75)
        made.index(terms, show_progress=False)
        folder = self._files.folder / "bm25s"
        made.save(folder)
        self._index = bm25s.BM25.load(folder, mmap=True)
        return {}

    def searches(self) -> Mapping[str, Callable[[int], Numbers]]:
        return {"lexical": self._search}

    def _search(self, number: int) -> Numbers:
        found, _ = self._index.retrieve(self._queries[number], k=TOP, show_progress=False, n_threads=0)
        return [int(row) + 1 for row in found[0]]


if __name__ == "__main__":
    sys.exit(serve(Bm25s))
