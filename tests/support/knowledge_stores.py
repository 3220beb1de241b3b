"""The stores that tests of the `Store` protocol run against: SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dari.knowledge.store.sqlite import make_store
from dari.knowledge.store.store import Store
from tests.support.postgres_server import fresh_schema


@contextmanager
def sqlite(folder: Path, _: pytest.FixtureRequest) -> Iterator[Callable[[], Store]]:
    """A function that opens the same store again, as another process would."""
    opened: list[Store] = []

    def reopen() -> Store:
        opened.append(make_store(folder / "kebab.sqlite")[0])
        return opened[-1]

    try:
        yield reopen
    finally:
        for store in opened:
            store.close()


@contextmanager
def postgres(_: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], Store]]:
    """The same in a schema of its own."""
    from dari.knowledge.store import postgres as store

    url, schema = request.getfixturevalue("postgres_url"), fresh_schema()
    opened: list[store.Database] = []

    def reopen() -> Store:
        opened.append(store.Database(url, schema))
        return store.make_store(opened[-1])

    try:
        yield reopen
    finally:
        for database in opened:
            database.close()


STORES = {"sqlite": sqlite, "postgres": postgres}
