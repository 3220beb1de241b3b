"""A knowledge base in PostgreSQL with pgvector: documents, BM25 postings, vectors and single files in one schema."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from dari.errors import Unavailable
from dari.installation import install_extra
from dari.knowledge.errors import NotIndexed
from dari.knowledge.index.postgres_lexical import INDEX_VERSION, PostgresLexical
from dari.knowledge.index.postgres_vectors import PostgresVectors
from dari.knowledge.store import postgres_schema
from dari.knowledge.store.postgres import Database, PostgresStore, make_store, open_store
from dari.knowledge.store.records import utc_text
from dari.knowledge.store.sql_write import PUT_KV

if TYPE_CHECKING:
    from dari.knowledge.backend import Signature
    from dari.knowledge.config import StoreSettings

_SIGNATURE = (
    "SELECT key, value FROM \"{0}\".kv WHERE key IN ('store_id', 'vectors_complete')"
    " UNION ALL SELECT 'model', model_no::text FROM \"{0}\".vector_models ORDER BY 1, 2"
)
_SIZES = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname LIKE 'lexical%'), 0)::bigint,"
    " coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname LIKE 'vectors%'), 0)::bigint"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = ?"
)


class PostgresBackend:
    """`Backend` over one schema; `close` ends its connections."""

    def __init__(self, settings: StoreSettings, *, is_readonly: bool = False) -> None:
        if importlib.util.find_spec("psycopg") is None:
            raise Unavailable("[store] url needs psycopg, which is not installed", install_extra("postgres"))
        self.database = Database(settings.url, settings.schema, is_readonly=is_readonly)

    @property
    def place(self) -> str:
        return self.database.place

    @property
    def index_version(self) -> str:
        return INDEX_VERSION

    def close(self) -> None:
        self.database.close()

    def exists(self) -> bool:
        return self.database.rows("SELECT to_regclass(?) IS NOT NULL", f'"{self.database.schema}".kv')[0][0] is True

    def signature(self) -> Signature:
        try:
            return tuple(self.database.rows(_SIGNATURE.format(self.database.schema)))
        except NotIndexed:
            return ()

    def lock(self, wait_s: float = 0.0, give_up: Callable[[], bool] = lambda: False) -> AbstractContextManager[None]:
        return self.database.lock(wait_s, give_up)

    def open_store(self) -> PostgresStore:
        return open_store(self.database)

    def make_store(self) -> PostgresStore:
        return make_store(self.database)

    def open_lexical(self, writable: bool = False) -> PostgresLexical:
        return PostgresLexical(self.database, writable)

    def open_vectors(self, model_key: str, dim: int, committed_rows: int, writable: bool = False) -> PostgresVectors:
        return PostgresVectors(self.database, model_key, dim, writable)

    def tell_readers(self) -> None:
        with self.database.changing() as connection:
            connection.execute(PUT_KV, ("vectors_complete", utc_text()))

    def index_bytes(self) -> tuple[int, int]:
        lexical, vectors = self.database.rows(_SIZES, self.database.schema)[0]
        return lexical, vectors

    def put_asset(self, asset_id: str, data: bytes) -> None:
        with self.database.changing_documents() as connection:
            connection.execute("INSERT INTO assets VALUES (?, ?) ON CONFLICT DO NOTHING", (asset_id, data))

    def read_asset(self, asset_id: str, max_bytes: int) -> bytes | None:
        sql = "SELECT data FROM assets WHERE asset_id = ? AND octet_length(data) <= ?"
        found = self.database.rows(sql, asset_id, max_bytes)
        return bytes(found[0][0]) if found and len(found[0][0]) <= max_bytes else None

    def asset_ids(self) -> set[str]:
        return {row[0] for row in self.database.rows("SELECT asset_id FROM assets")}

    def remove_assets(self, asset_ids: Iterable[str]) -> None:
        with self.database.changing_documents() as connection:
            connection.execute("DELETE FROM assets WHERE asset_id = ANY(?)", (list(asset_ids),))

    def count_documents(self) -> int:
        """Of a store of any version: a reset is for those that cannot be opened, too."""
        try:
            count: int = self.database.rows(f'SELECT count(*) FROM "{self.database.schema}".documents')[0][0]
        except NotIndexed:
            return 0
        return count

    def remove_store(self) -> int:
        """For the holder of the lock: remove every table at once, and return the bytes that they took."""
        with self.database.changing_documents() as connection:
            return postgres_schema.drop_tables(connection, self.database.schema)
