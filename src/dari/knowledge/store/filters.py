"""Which documents a filter names, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dari.knowledge.document import TrustLevel
    from dari.knowledge.store.records import DocumentFilter

TRUST_LEVELS: tuple[TrustLevel, ...] = ("generated", "secondary", "primary")
"""From the least to the most."""


def trusted_levels(least: TrustLevel) -> tuple[TrustLevel, ...]:
    return TRUST_LEVELS[TRUST_LEVELS.index(least) :]


def conditions(where: DocumentFilter, match_glob: Callable[[str], tuple[str, str]]) -> tuple[str, list[str]]:
    """A condition over `documents d`, with its values. `match_glob` gives the condition and the value for a glob."""
    parts: list[str] = []
    values: list[str] = []
    lists = {
        "d.lang": where.langs,
        "d.media": where.media,
        "d.doc_id": where.doc_ids,
        "d.repo": where.repos,
        "d.code_lang": where.code_langs,
        "d.source_type": where.source_types,
        "d.source_id": where.source_ids,
        "d.trust_level": trusted_levels(where.trust_min) if where.trust_min else (),
    }
    for column, wanted in lists.items():
        if wanted:
            parts.append(f"{column} IN ({','.join('?' * len(wanted))})")
            values += wanted
    for tag in where.tags:
        parts.append("EXISTS (SELECT 1 FROM document_tags t WHERE t.tag = ? AND t.doc_no = d.doc_no)")
        values.append(tag)
    if where.ingested_after:
        parts.append("d.indexed_at > ?")
        values.append(where.ingested_after)
    if where.path_glob:
        condition, value = match_glob(where.path_glob)
        parts.append(condition)
        values.append(value)
    return " AND ".join(parts) or "1 = 1", values
