"""One page of a ranked list: records from the store, ties by chunk id, snippets within the token budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from dari.knowledge.search.request import Hit, PassageSnippet
from dari.knowledge.search.snippets import MIN_SNIPPET_CHARS, Highlighter, Match

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dari.knowledge.document import ScoreKind
    from dari.knowledge.index.index import Lexical
    from dari.knowledge.search.query import WeightedQuery
    from dari.knowledge.search.request import Retrieval, SearchRequest
    from dari.knowledge.store.records import ChunkRecord
    from dari.knowledge.store.store import Store

    Ranked = Sequence[tuple[int, float]]

BYTES_PER_TOKEN = 3


class Page(Struct, frozen=True):
    hits: tuple[Hit, ...]
    next_offset: int
    """The place in the ranked list where the next page begins."""
    truncated: bool


def read_page(
    store: Store,
    ranked: Ranked,
    offset: int,
    request: SearchRequest,
    query: WeightedQuery,
    lexical: Lexical,
    retrieval: Callable[[int, float], Retrieval],
    kind: ScoreKind,
) -> Page:
    """The hits from `offset` on. A chunk that has left the store since it was indexed is passed over."""
    entries = _in_order(store, ranked, offset, offset + request.k)
    documents = store.documents({chunk.doc_no for _, _, chunk in entries if chunk is not None})
    highlighter = Highlighter(_weights_shown(query, lexical))
    hits: list[Hit] = []
    left = None if request.max_tokens is None else request.max_tokens * BYTES_PER_TOKEN
    place = offset
    for number, score, chunk in entries:
        document = documents.get(chunk.doc_no) if chunk else None
        if chunk is None or document is None:
            place += 1
            continue
        match = highlighter.match(chunk.text)
        snippet = highlighter.snippet(match, request.snippet_chars)
        if left is not None:
            size = len(snippet.text.encode())
            if size > left and hits:
                return Page(tuple(hits), place, True)
            if size > left:
                snippet = _shortened(highlighter, match, snippet, left)
            left -= size
        hits.append(
            Hit(
                rank=offset + len(hits) + 1,
                score=score,
                score_kind=kind,
                chunk=chunk,
                document=document,
                retrieval=retrieval(number, score),
                snippet=snippet,
                matched_terms=match.terms,
            )
        )
        place += 1
    return Page(tuple(hits), place, False)


def _in_order(store: Store, ranked: Ranked, first: int, last: int) -> list[tuple[int, float, ChunkRecord | None]]:
    """Entries `first` to `last`, those of equal score by chunk id: a group of ties is read whole."""
    last = min(last, len(ranked))
    if first >= last:
        return []
    low, high = first, last
    while low > 0 and ranked[low - 1][1] == ranked[first][1]:
        low -= 1
    while high < len(ranked) and ranked[high][1] == ranked[last - 1][1]:
        high += 1
    chunks = store.chunks([number for number, _ in ranked[low:high]])
    entries = [(number, score, chunks.get(number)) for number, score in ranked[low:high]]
    entries.sort(key=lambda entry: (-entry[1], entry[2].chunk_id if entry[2] else ""))
    return entries[first - low : last - low]


def _weights_shown(query: WeightedQuery, lexical: Lexical) -> dict[str, float]:
    """Terms to highlight: those of the query, and those that stand for a misspelt one."""
    weights = {term: weight for term, weight in query.stats.idf.items() if weight > 0}
    near = [term for terms in query.stats.corrections.values() for term in terms if term not in weights]
    return weights | lexical.idf(near)


def _shortened(highlighter: Highlighter, match: Match, snippet: PassageSnippet, left: int) -> PassageSnippet:
    """The first hit always comes, as short as the budget has it."""
    chars = max(left * len(snippet.text) // len(snippet.text.encode()), MIN_SNIPPET_CHARS)
    return structs.replace(highlighter.snippet(match, chars), is_whole=False)
