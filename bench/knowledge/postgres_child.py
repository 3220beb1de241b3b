"""Ours in PostgreSQL: the same searcher over posting segments and HNSW in the server."""

import sys
from collections.abc import Callable, Mapping, Sequence

from bench.knowledge.child import Numbers, Query, serve
from bench.knowledge.corpus import CorpusFiles
from bench.knowledge.dari_child import Kebab
from dari.knowledge.config import StoreSettings
from dari.knowledge.index.postgres_vectors import PostgresVectors
from dari.knowledge.postgres_backend import PostgresBackend


class KebabInPostgres(Kebab):
    def __init__(self, files: CorpusFiles, queries: Sequence[Query]) -> None:
        self._backend = PostgresBackend(StoreSettings(url=(files.folder / "postgres.url").read_text()))
        super().__init__(files, queries, self._backend)

    def searches(self) -> Mapping[str, Callable[[int], Numbers]]:
        vectors = self._vectors
        assert isinstance(vectors, PostgresVectors)
        self._exact = exact = PostgresVectors(self._backend.database, vectors.model_key, vectors.dim)
        exact._has_ann = False
        return super().searches()


if __name__ == "__main__":
    sys.exit(serve(KebabInPostgres))
