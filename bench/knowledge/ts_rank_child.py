"""PostgreSQL by itself: tsvector with GIN ranked by ts_rank_cd, and pgvector's HNSW, 100 candidates each, fused here.

The terms are those of our analyser, so that both compare the same; a hit comes with its text.
"""

import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import psycopg

from bench.knowledge.child import TOP, Numbers, Query, serve
from bench.knowledge.corpus import DIM, CorpusFiles

_CANDIDATES = 100
_LEXICAL = (
    "SELECT number FROM peer.t, to_tsquery('simple', %s) q WHERE terms @@ q ORDER BY ts_rank_cd(terms, q) DESC LIMIT %s"
)
_VECTOR = "SELECT number FROM peer.t ORDER BY vector <=> %s::vector LIMIT %s"


class TsRank:
    def __init__(self, files: CorpusFiles, queries: Sequence[Query]) -> None:
        self._files = files
        self._queries = [" | ".join(f"'{term}'" for term in str(one["terms"]).split()) for one in queries]
        rows = np.fromfile(files.query_vectors, np.float32).reshape(-1, DIM)
        self._vectors = [str(row.tolist()) for row in rows]
        self._database = psycopg.connect((files.folder / "postgres.url").read_text(), autocommit=True)

    def build(self) -> dict[str, float]:
        run = self._database.execute
        run("CREATE SCHEMA peer")
        run(f"CREATE TABLE peer.t (number BIGINT PRIMARY KEY, text TEXT, terms TSVECTOR, vector vector({DIM}))")
        run("CREATE TABLE peer.raw (number BIGINT, text TEXT, terms TEXT, vector TEXT)")
        rows = np.memmap(self._files.vectors, np.float32, "r").reshape(-1, DIM)
        with (
            self._files.texts.open() as texts,
            self._files.terms.open() as terms,
            self._database.cursor().copy("COPY peer.raw FROM STDIN") as copy,
        ):
            for number, (text, line, row) in enumerate(zip(texts, terms, rows, strict=True), 1):
                copy.write_row((number, text, line, str(row.tolist())))
        run("INSERT INTO peer.t SELECT number, text, to_tsvector('simple', terms), vector::vector FROM peer.raw")
        run("DROP TABLE peer.raw")
        run("SET maintenance_work_mem = '512MB'")
        run("CREATE INDEX ON peer.t USING gin (terms)")
        run("CREATE INDEX ON peer.t USING hnsw (vector vector_cosine_ops)")
        run("VACUUM ANALYZE peer.t")
        run(f"SET hnsw.ef_search = {_CANDIDATES}")
        run("SET jit = off")
        return {}

    def searches(self) -> Mapping[str, Callable[[int], Numbers]]:
        return {
            "engine": lambda number: self._numbers(_LEXICAL, self._queries[number], TOP),
            "vector": lambda number: self._numbers(_VECTOR, self._vectors[number], TOP),
            "hybrid": self._hybrid,
        }

    def _hybrid(self, number: int) -> Numbers:
        words = self._numbers(_LEXICAL, self._queries[number], _CANDIDATES)
        near = self._numbers(_VECTOR, self._vectors[number], _CANDIDATES)
        scores: dict[int, float] = {}
        for ranked in (words, near):
            for rank, one in enumerate(ranked, 1):
                scores[one] = scores.get(one, 0.0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda one: -scores[one])[:TOP]
        self._database.execute("SELECT number, text FROM peer.t WHERE number = ANY(%s)", (best,)).fetchall()
        return best

    def _numbers(self, sql: str, query: str, limit: int) -> Numbers:
        return [row[0] for row in self._database.execute(sql, (query, limit)).fetchall()]


if __name__ == "__main__":
    sys.exit(serve(TsRank))
