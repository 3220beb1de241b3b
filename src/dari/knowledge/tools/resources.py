"""`kebab://doc/{id}` and `kebab://chunk/{id}`: passages as resources of the hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dari.core.context import Context
from dari.core.registry import Registry
from dari.core.resource import ResourceTemplate

if TYPE_CHECKING:
    from dari.knowledge.api import KnowledgeApi

DOCUMENT, CHUNK = "kebab://doc/{id}", "kebab://chunk/{id}"
MAX_TOKENS = 50_000


def add_templates(registry: Registry, api: Callable[[], KnowledgeApi]) -> None:
    """The two templates; the api is asked for when somebody reads, not before."""

    async def read_document(context: Context, values: dict[str, str]) -> str:
        found = await api().fetch(doc_id=values["id"], max_tokens=MAX_TOKENS)
        return found.text if isinstance(found.text, str) else ""

    async def read_chunk(context: Context, values: dict[str, str]) -> str:
        found = await api().inspect_chunk(values["id"])
        return found.text

    registry.add_template(
        ResourceTemplate(DOCUMENT, "document", read_document, "An indexed document, by its doc_id", "text/plain")
    )
    registry.add_template(
        ResourceTemplate(CHUNK, "chunk", read_chunk, "A passage that a search found, by its chunk_id", "text/plain")
    )
