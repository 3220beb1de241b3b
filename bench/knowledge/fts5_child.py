"""SQLite FTS5 in the fastest form that still ranks: contentless, without positions (without columns, bm25 is 0)."""

import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence

from bench.knowledge.child import TOP, Numbers, Query, serve
from bench.knowledge.corpus import CorpusFiles


class Fts5:
    def __init__(self, files: CorpusFiles, queries: Sequence[Query]) -> None:
        self._files = files
        self._queries = [" OR ".join(f'"{term}"' for term in str(one["terms"]).split()) for one in queries]
        self._database = sqlite3.connect(files.folder / "fts5.sqlite", isolation_level=None)

    def build(self) -> dict[str, float]:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA cache_size = -200000")
        self._database.execute(
            "CREATE VIRTUAL TABLE t USING fts5("
            "terms, content='', detail=column, tokenize=\"unicode61 tokenchars '=._-+#'\")"
        )
        self._database.execute("BEGIN")
        with self._files.terms.open() as lines:
            self._database.executemany("INSERT INTO t(rowid, terms) VALUES (?, ?)", enumerate(lines, 1))
        self._database.execute("COMMIT")
        self._database.execute("INSERT INTO t(t) VALUES ('optimize')")
        return {}

    def searches(self) -> Mapping[str, Callable[[int], Numbers]]:
        return {"lexical": self._search}

    def _search(self, number: int) -> Numbers:
        rows = self._database.execute(
            "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (self._queries[number], TOP)
        )
        return [row[0] for row in rows]


if __name__ == "__main__":
    sys.exit(serve(Fts5))
