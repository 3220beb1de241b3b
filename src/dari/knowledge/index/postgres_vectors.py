"""Vectors of one model in PostgreSQL: full precision in a table, found by pgvector's HNSW over their halves, and scored
exactly again.

A table of few rows is scanned whole; `build_ann` makes the index when they are many. A vector goes with its chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dari.errors import Conflict, InvalidInput
from dari.knowledge.store.postgres import EF_SEARCH, vectors_table
from dari.knowledge.store.records import utc_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from dari.knowledge.index.vectors import Vectors
    from dari.knowledge.store.postgres import Database

ANN_ABOVE_ROWS = 5000
"""Up to so many rows a whole scan is as fast."""
MAX_ANN_DIM = 4000
"""pgvector's HNSW takes no longer halfvec; longer vectors are scanned whole, whatever their number."""
_MAX_EXACT_ALLOWED = 20_000  # a filter of at most so many chunks is scored chunk by chunk
_BUILD_MEMORY = "512MB"


class PostgresVectors:
    """`VectorRows` over the table of one model."""

    def __init__(
        self, database: Database, model_key: str, dim: int, writable: bool = False, ann_above_rows: int = ANN_ABOVE_ROWS
    ) -> None:
        self._database = database
        self.model_key = model_key
        self.dim = dim
        self._writable = writable
        self._ann_above_rows = ann_above_rows
        self.refresh(0)

    # --- reading

    @property
    def row_count(self) -> int:
        return self._count

    @property
    def chunk_count(self) -> int:
        return self._count

    @property
    def has_changed(self) -> bool:
        return self._read_state() != self._state

    def refresh(self, committed_rows: int) -> None:
        """Take the count of what is committed; rows are always read as they are."""
        self._state = self._read_state()
        self._table = vectors_table(self._database.schema, self._state[0])
        sql = "SELECT to_regclass(?) IS NOT NULL, to_regclass(?) IS NOT NULL"
        is_there, self._has_ann = self._database.rows(sql, self._table, f"{self._table}_hnsw")[0]
        self._count: int = self._database.rows(f"SELECT count(*) FROM {self._table}")[0][0] if is_there else 0

    def _read_state(self) -> tuple[int, str]:
        found = self._database.rows(
            "SELECT model_no, updated_at FROM vector_models WHERE model_key = ?", self.model_key
        )
        return (found[0][0], found[0][1]) if found else (0, "")

    def search(self, vector: Vectors, k: int, allowed: Collection[int] | None = None) -> list[tuple[int, float]]:
        if k <= 0 or not self._count or (allowed is not None and not allowed):
            return []
        query = self._shown(vector)
        can_be_near = self._has_ann and k <= EF_SEARCH // 2
        if allowed is None:
            return self._near(query)[:k] if can_be_near else self._exact(query, k)
        if can_be_near and len(allowed) > _MAX_EXACT_ALLOWED:
            kept = [hit for hit in self._near(query) if hit[0] in allowed]
            if len(kept) >= k:
                return kept[:k]
        return self._exact(query, k, allowed)

    def scores(self, vector: Vectors, chunk_nos: Sequence[int]) -> dict[int, float]:
        if not chunk_nos or not self._count:
            return {}
        return dict(self._exact(self._shown(vector), len(chunk_nos), chunk_nos))

    def vectors_of(self, chunk_nos: Sequence[int]) -> dict[int, Vectors]:
        import numpy as np

        if not chunk_nos or not self._count:
            return {}
        sql = f"SELECT chunk_no, vector::real[] FROM {self._table} WHERE chunk_no = ANY(?)"
        return {number: np.array(row, np.float32) for number, row in self._database.rows(sql, list(chunk_nos))}

    def _near(self, query: str) -> list[tuple[int, float]]:
        """What the approximate index finds, by exact score."""
        sql = (
            f"SELECT chunk_no, -(vector <#> ?::vector) FROM (SELECT chunk_no, vector FROM {self._table}"
            f" ORDER BY vector::halfvec({self.dim}) <#> ?::vector::halfvec({self.dim}) LIMIT {EF_SEARCH}) near"
            " ORDER BY 2 DESC, 1"
        )
        return self._database.rows(sql, query, query)

    def _exact(self, query: str, k: int, allowed: Collection[int] | None = None) -> list[tuple[int, float]]:
        within = "" if allowed is None else "WHERE chunk_no = ANY(?)"
        values = [query] if allowed is None else [query, list(allowed)]
        sql = f"SELECT chunk_no, -(vector <#> ?::vector) FROM {self._table} {within} ORDER BY 2 DESC, 1 LIMIT {k}"
        return self._database.rows(sql, *values)

    def _shown(self, vector: Vectors) -> str:
        values = vector.reshape(-1).tolist()
        if len(values) != self.dim:
            raise InvalidInput(f"vectors of {self.model_key} have {self.dim} dimensions, got {len(values)}")
        return "[" + ",".join([f"{value:.9g}" for value in values]) + "]"

    # --- writing

    def append(self, chunk_nos: Sequence[int], vectors: Vectors) -> int:
        """Chunks that were deleted meanwhile are left out, one that has a vector gets the new one."""
        self._require_writable()
        if vectors.shape != (len(chunk_nos), self.dim):
            raise InvalidInput(
                f"{len(chunk_nos)} chunks need vectors of shape {(len(chunk_nos), self.dim)}, got {vectors.shape}"
            )
        with self._database.changing_documents() as connection:
            connection.execute(
                "INSERT INTO vector_models (model_key, dim, committed_rows, updated_at) VALUES (?, ?, 0, ?)"
                " ON CONFLICT (model_key) DO NOTHING",
                (self.model_key, self.dim, utc_text()),
            )
            sql = "SELECT model_no FROM vector_models WHERE model_key = ?"
            number = connection.execute(sql, (self.model_key,)).fetchone()[0]
            table = vectors_table(self._database.schema, number)
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {table} (chunk_no BIGINT PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,"
                f" vector vector({self.dim}) NOT NULL)"
            )
            connection.execute(
                f"INSERT INTO {table} SELECT c.chunk_no, x.vector::vector FROM unnest(?::bigint[], ?::text[])"
                " AS x (chunk_no, vector) JOIN chunks c USING (chunk_no)"
                " ON CONFLICT (chunk_no) DO UPDATE SET vector = excluded.vector",
                (list(chunk_nos), [self._shown(row) for row in vectors]),
            )
            count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return count

    def retain(self, chunk_nos: Collection[int]) -> int:
        """Nothing to do: the database removes a vector with its chunk."""
        self._require_writable()
        return 0

    def build_ann(self, is_cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Make the approximate index where the rows are many; true when it was made. Later rows enter it at once."""
        self._require_writable()
        self.refresh(0)
        is_wanted = self._count > self._ann_above_rows and self.dim <= MAX_ANN_DIM and not is_cancelled()
        if self._has_ann or not is_wanted:
            return False
        from psycopg import errors

        build = (
            f"CREATE INDEX vectors_{self._state[0]}_hnsw ON {self._table}"
            f" USING hnsw ((vector::halfvec({self.dim})) halfvec_ip_ops)"
        )
        with self._database.changing_documents() as connection:
            connection.execute(f"SET LOCAL maintenance_work_mem = '{_BUILD_MEMORY}'")
            # Workers share all of that memory at once, and a container has 64 MB to share (Docker's default).
            if not connection.attempt(build, errors.DiskFull, errors.OutOfMemory):
                connection.execute("SET LOCAL max_parallel_maintenance_workers = 0")
                connection.execute(build)
            connection.execute(f"ANALYZE {self._table}")
            connection.execute(
                "UPDATE vector_models SET updated_at = ? WHERE model_key = ?", (utc_text(), self.model_key)
            )
        self.refresh(0)
        return True

    def compact(self) -> int:
        """The server reuses the room of deleted rows."""
        return self._count

    def _require_writable(self) -> None:
        if not self._writable:
            raise Conflict(f"the vectors of {self.model_key} were opened for reading", "open them with writable=True")
