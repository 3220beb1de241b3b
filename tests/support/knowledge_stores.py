"""The stores that tests of the `Store` protocol run against. PostgreSQL joins where its server can run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dari.knowledge.store.sqlite import make_store
from dari.knowledge.store.store import Store


@contextmanager
def sqlite(folder: Path) -> Iterator[Callable[[], Store]]:
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


STORES = {"sqlite": sqlite}
