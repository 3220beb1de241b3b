"""BM25 in PostgreSQL: posting segments, as rows of (term, segment, slots, weights).

A chunk gets a new slot each time that it is added; a slot without a row in `lexical_slots` is dead, and its postings
are passed over. A commit writes one segment; segments of a size are merged, which drops dead slots. A weight is what a
term adds to BM25 before its idf: tf·(k1+1) / (tf + k1·(1-b+b·length/mean)). The mean is that of the segment's time; a
merge brings the weights to the mean of its own. The server sums the scores, so that only the best hits travel.

For quoted phrases `lexical_words` has the words of a chunk, one term a word, with spaces around each.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from dari.errors import Conflict, Unavailable
from dari.knowledge.index.analyzer import ANALYZER_VERSION, index_term_of, index_terms, phrase_terms, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dari.knowledge.store.postgres import Database, PostgresConnection

INDEX_VERSION = f"postings-1-{ANALYZER_VERSION}"
K1 = 1.2
B = 0.75
FLUSH_CHUNKS = 4096
"""Chunks that wait in memory; more of them become a segment before the commit."""
MERGE_SEGMENTS = 8
"""So many segments of a size (in powers of this number) become one."""
_OVERFETCH = 32  # slots beyond those asked for, since some may be dead
_ANALYZE_CHUNKS = 1000  # a segment of this size changes what the planner should know
_TABLES = "lexical_postings, lexical_segments, lexical_words, lexical_slots"
_SEARCH = """
SELECT s.chunk_no, h.score FROM (
    SELECT p.slot, sum(p.score) AS score FROM (
        SELECT unnest(t.slots) AS slot, unnest(t.weights) * q.weight AS score
        FROM unnest(?::text[], ?::real[]) AS q (term, weight) JOIN lexical_postings t ON t.term = q.term
    ) p {within} GROUP BY p.slot ORDER BY 2 DESC, 1 LIMIT {limit}
) h LEFT JOIN lexical_slots s ON s.slot = h.slot ORDER BY h.score DESC, s.chunk_no
"""
_MERGE = """
INSERT INTO lexical_postings (term, segment, df, slots, weights)
SELECT term, ?, count(*), array_agg(slot), array_agg({kk} * r * k_old / (r * k_old + k_new)) FROM (
    SELECT p.term, p.slot, (p.weight / ({kk} - p.weight))::double precision AS r,
        {k1} * ({a} + {b} * s.length / g.mean_length) AS k_old, {k1} * ({a} + {b} * s.length / ?) AS k_new
    FROM (SELECT term, segment, unnest(slots) AS slot, unnest(weights) AS weight FROM lexical_postings
          WHERE segment = ANY(?)) p
    JOIN lexical_slots s ON s.slot = p.slot JOIN lexical_segments g ON g.segment = p.segment
) live GROUP BY term
""".format(kk=K1 + 1, k1=K1, a=1 - B, b=B)


class PostgresLexical:
    """`Lexical` over the tables of a store."""

    def __init__(self, database: Database, writable: bool = False) -> None:
        self._database = database
        self._writable = writable
        self.was_reset = False
        self._added: dict[int, tuple[Counter[str], str]] = {}
        self._deleted: set[int] = set()
        self._is_cleared = False
        if writable:
            self.was_reset = self._prepare()
        self.reload()

    @property
    def place(self) -> str:
        return self._database.place

    # --- reading

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def chunk_count(self) -> int:
        return self._chunk_count

    @property
    def has_changed(self) -> bool:
        found = self._database.rows("SELECT writes FROM lexical_state")
        return not found or found[0][0] != self._writes

    def reload(self) -> None:
        """Take the counts of what was committed last; postings are always read as they are."""
        found = self._database.rows("SELECT version, revision, writes, chunk_count FROM lexical_state")
        if not found or found[0][0] != INDEX_VERSION:
            raise Unavailable(
                f"no lexical index of version {INDEX_VERSION} is in {self.place}", "run kebab ingest, which makes it"
            )
        self._revision, self._writes, self._chunk_count = (int(number) for number in found[0][1:])

    def search(
        self,
        terms: Mapping[str, float] | Sequence[str],
        k: int,
        allowed: Collection[int] | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> list[tuple[int, float]]:
        weights = dict(terms) if isinstance(terms, dict) else dict.fromkeys(terms, 1.0)
        if k <= 0 or (allowed is not None and not allowed):
            return []
        if any(phrases):
            found = frozenset(self.chunks_with_phrases(phrases, self._chunk_count or 1))
            allowed = found if allowed is None else found & frozenset(allowed)
            if not allowed:
                return []
        idf = self.idf(weights)
        scored = {term: weight * idf[term] for term, weight in weights.items() if idf[term] > 0}
        if not scored:
            return sorted((number, 0.0) for number in allowed or ())[:k] if any(phrases) else []
        within, values = "", [list(scored), list(scored.values())]
        if allowed is not None:
            within = "WHERE p.slot = ANY(ARRAY(SELECT slot FROM lexical_slots WHERE chunk_no = ANY(?)))"
            values.append(list(allowed))
        limit = k + _OVERFETCH
        while True:
            hits = self._database.rows(_SEARCH.format(within=within, limit=limit), *values)
            live = [(number, float(score)) for number, score in hits if number is not None]
            if len(live) >= k or len(hits) < limit:
                return live[:k]
            limit *= 8  # too many of the best slots are dead

    def chunks_with_phrases(self, phrases: Sequence[Sequence[str]], limit: int) -> list[int]:
        conditions, values = [], []
        for words in phrases:
            if words:
                conditions.append("w.words LIKE ?")
                values.append(f"% {_like(' '.join(words))} %")
        if not conditions:
            return []
        terms = {term for words in phrases for word in words if (term := index_term_of(word)) is not None}
        known = self._known(terms)
        if len(known) < len(terms):
            return []
        if known:
            conditions.append("w.slot = ANY(ARRAY(SELECT unnest(slots) FROM lexical_postings WHERE term = ?))")
            values.append(min(known, key=known.__getitem__))
        sql = "SELECT s.chunk_no FROM lexical_words w JOIN lexical_slots s USING (slot)"
        sql += f" WHERE {' AND '.join(conditions)} ORDER BY 1 LIMIT ?"
        return [row[0] for row in self._database.rows(sql, *values, limit)]

    def idf(self, terms: Iterable[str]) -> dict[str, float]:
        wanted = list(terms)
        known = self._known(wanted)
        return {term: self._idf(known[term]) if term in known else 0.0 for term in wanted}

    @property
    def highest_idf(self) -> float:
        return self._idf(1)

    def terms_with_prefix(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        sql = (
            "SELECT term, sum(df)::bigint FROM lexical_postings WHERE term >= ? AND term < ? GROUP BY term"
            " ORDER BY 2 DESC, 1 LIMIT ?"
        )
        return [(term, count) for term, count in self._database.rows(sql, prefix, f"{prefix}\U0010ffff", limit)]

    def _idf(self, count: int) -> float:
        total = max(self._chunk_count, count, 1)
        return math.log(1 + (total - count + 0.5) / (count + 0.5))

    def _known(self, terms: Collection[str]) -> dict[str, int]:
        """In how many slots each term is, dead ones included until a merge; terms that no slot has are left out."""
        if not terms:
            return {}
        sql = "SELECT term, sum(df)::bigint FROM lexical_postings WHERE term = ANY(?) GROUP BY term"
        return dict(self._database.rows(sql, list(terms)))

    # --- writing

    def add(self, chunk_no: int, doc_no: int, text: str, title_text: str = "") -> None:
        self._require_writable()
        words, title_words = words_of(text), words_of(title_text)
        title_terms = dict.fromkeys(index_terms(title_words).split())
        counts = Counter(index_terms(words).split())
        counts.update(list(title_terms))
        # A phrase does not run from the text into the title.
        self._added[chunk_no] = (counts, f" {phrase_terms(words)} \n {phrase_terms(title_words)} ")
        if len(self._added) >= FLUSH_CHUNKS:
            self._write(None)

    def delete(self, chunk_no: int) -> None:
        self._require_writable()
        self._added.pop(chunk_no, None)
        self._deleted.add(chunk_no)

    def clear(self) -> None:
        self._require_writable()
        self._added.clear()
        self._deleted.clear()
        self._is_cleared = True

    def commit(self, revision: int) -> None:
        """Make everything since the last commit findable, as the store's `revision`."""
        self._require_writable()
        self._write(revision)
        self.reload()

    def rollback(self) -> None:
        """Forget everything since the last commit that was not written yet."""
        self._added.clear()
        self._deleted.clear()
        self._is_cleared = False

    def close(self) -> None:
        self.rollback()

    def _write(self, revision: int | None) -> None:
        """One transaction: the waiting changes as a segment, merges, and the state. Without a revision what is written
        is found too, and the next writer, who finds the old revision, writes it again."""
        with self._database.changing_documents() as connection:
            if self._is_cleared:
                connection.execute(f"TRUNCATE {_TABLES}")
            gone = [*self._deleted, *self._added]
            if gone:
                connection.execute("DELETE FROM lexical_slots WHERE chunk_no = ANY(?)", (gone,))
            if self._added:
                self._write_segment(connection)
            self._merge(connection)
            if len(self._added) >= _ANALYZE_CHUNKS:
                connection.execute("ANALYZE lexical_postings, lexical_slots")
            connection.execute(
                "UPDATE lexical_state SET writes = writes + 1, revision = coalesce(?::bigint, revision),"
                " (chunk_count, mean_length) = (SELECT count(*), coalesce(avg(length), 1) FROM lexical_slots)",
                (revision,),
            )
        self.rollback()

    def _write_segment(self, connection: PostgresConnection) -> None:
        lengths = {number: counts.total() for number, (counts, _) in self._added.items()}
        sql = "SELECT count(*), coalesce(sum(length), 0)::bigint FROM lexical_slots"
        count, total = connection.execute(sql).fetchone()
        mean = max((total + sum(lengths.values())) / (count + len(lengths)), 1.0)
        segment, first = connection.execute(
            "UPDATE lexical_state SET next_segment = next_segment + 1, next_slot = next_slot + ?"
            f" RETURNING next_segment - 1, next_slot - {len(self._added)}",
            (len(self._added),),
        ).fetchone()
        connection.execute("INSERT INTO lexical_segments VALUES (?, ?, ?)", (segment, len(self._added), mean))
        slots: dict[str, list[str]] = {}
        weights: dict[str, list[str]] = {}
        shown = _Weights(mean)
        with connection.raw.cursor() as cursor:
            with cursor.copy("COPY lexical_slots FROM STDIN") as copy:
                for slot, number in enumerate(self._added, first):
                    copy.write_row((slot, number, segment, lengths[number]))
            with cursor.copy("COPY lexical_words FROM STDIN") as copy:
                for slot, (_, words) in enumerate(self._added.values(), first):
                    copy.write_row((slot, words))
            for slot, (number, (counts, _)) in enumerate(self._added.items(), first):
                name, length = str(slot), lengths[number]
                for term, frequency in counts.items():
                    if term in slots:
                        slots[term].append(name)
                        weights[term].append(shown[frequency, length])
                    else:
                        slots[term], weights[term] = [name], [shown[frequency, length]]
            with cursor.copy("COPY lexical_postings FROM STDIN") as copy:
                for term, names in slots.items():
                    line = f"{segment}\t{len(names)}\t{{{','.join(names)}}}\t{{{','.join(weights[term])}}}\n"
                    copy.write(f"{_copied(term)}\t{line}")

    def _merge(self, connection: PostgresConnection) -> None:
        """Segments of a size become one, and one whose slots are mostly dead is written anew."""
        while chosen := self._to_merge(connection):
            count, mean = connection.execute(
                "SELECT count(*), (SELECT coalesce(avg(length), 1) FROM lexical_slots)::double precision"
                " FROM lexical_slots WHERE segment = ANY(?)",
                (chosen,),
            ).fetchone()
            segment = connection.execute(
                "UPDATE lexical_state SET next_segment = next_segment + 1 RETURNING next_segment - 1"
            ).fetchone()[0]
            if count:
                connection.execute(_MERGE, (segment, mean, chosen))
                connection.execute("INSERT INTO lexical_segments VALUES (?, ?, ?)", (segment, count, mean))
                connection.execute("UPDATE lexical_slots SET segment = ? WHERE segment = ANY(?)", (segment, chosen))
            connection.execute("DELETE FROM lexical_postings WHERE segment = ANY(?)", (chosen,))
            connection.execute("DELETE FROM lexical_segments WHERE segment = ANY(?)", (chosen,))

    def _to_merge(self, connection: PostgresConnection) -> list[int]:
        sql = (
            "SELECT g.segment, g.slot_count, (SELECT count(*) FROM lexical_slots s WHERE s.segment = g.segment)"
            " FROM lexical_segments g ORDER BY 1"
        )
        tiers: dict[int, list[int]] = {}
        for segment, slot_count, live in connection.execute(sql).fetchall():
            if 2 * live < slot_count:
                return [segment]
            tiers.setdefault(int(math.log(max(live, 1), MERGE_SEGMENTS)), []).append(segment)
        return next((chosen for _, chosen in sorted(tiers.items()) if len(chosen) >= MERGE_SEGMENTS), [])

    def _prepare(self) -> bool:
        """The state's row; true when an index of another version had to go."""
        with self._database.changing_documents() as connection:
            row = connection.execute("SELECT version FROM lexical_state").fetchone()
            if row is not None and row[0] == INDEX_VERSION:
                return False
            connection.execute(
                "TRUNCATE lexical_state, lexical_postings, lexical_segments, lexical_words, lexical_slots"
            )
            connection.execute("INSERT INTO lexical_state VALUES (?, 0, 0, 0, 1, 1, 1)", (INDEX_VERSION,))
            return row is not None

    def _require_writable(self) -> None:
        if not self._writable:
            raise Conflict(f"the lexical index in {self.place} was opened for reading", "open it with writable=True")


class _Weights(dict[tuple[int, int], str]):
    """What a term of this frequency adds in a chunk of this length, as PostgreSQL reads it."""

    def __init__(self, mean: float) -> None:
        super().__init__()
        self._mean = mean

    def __missing__(self, key: tuple[int, int]) -> str:
        frequency, length = key
        weight = (K1 + 1) * frequency / (frequency + K1 * (1 - B + B * length / self._mean))
        self[key] = shown = f"{min(weight, K1 + 0.999):.7g}"  # below K1 + 1, so that a merge can read it back
        return shown


def _like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _copied(text: str) -> str:
    """As COPY wants it; no term has a tab or a line's end."""
    return text.replace("\\", "\\\\")
