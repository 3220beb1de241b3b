"""Which folders an ingest is about: the configured ones, and those that were once named with `--root`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.files.inside import opened_file
from dari.knowledge.config import DEFAULT_SOURCE, Settings, Source
from dari.knowledge.errors import InvalidArgument
from dari.knowledge.ingest.claims import claims, local_roots, set_local_roots
from dari.knowledge.paths import EXTERNAL
from dari.knowledge.store.store import Store

_KEY = "sources"  # in the store of a data folder: {id: root} of folders that no configuration names


def all_sources(settings: Settings, store: Store) -> tuple[Source, ...]:
    """Configured first. A folder that a configuration names now is not listed twice."""
    configured = settings.sources
    roots = {os.path.realpath(source.root) for source in configured}
    ids = {source.id for source in configured}
    named = (
        Source(id=name, root=Path(root))
        for name, root in remembered(settings, store).items()
        if name not in ids and os.path.realpath(root) not in roots
    )
    return (*configured, *named)


def remembered(settings: Settings, store: Store) -> dict[str, str]:
    """Never from a database: who can write there must not choose the folders that are read here."""
    if settings.config.store.url:
        return local_roots(settings)
    return msgspec.json.decode(store.kv(_KEY, "{}"), type=dict[str, str])


def source_of_root(settings: Settings, store: Store, root: Path) -> tuple[Source, str]:
    """The source that holds the folder, and the folder's path below its root; a new one is remembered."""
    real = os.path.realpath(root)
    if not os.path.isdir(real):
        raise InvalidArgument(f"--root must be a folder, got {root}", "check the path")
    known = all_sources(settings, store)
    for source in known:
        base = os.path.realpath(source.root)
        if real == base:
            return source, ""
        if real.startswith(base.rstrip("/") + "/"):
            return source, os.path.relpath(real, base)
    taken = {source.id for source in known} | store.source_ids() | claims(store).keys() | {DEFAULT_SOURCE, EXTERNAL}
    name = _free_name(os.path.basename(real), taken)
    roots = remembered(settings, store) | {name: real}
    if settings.config.store.url:
        set_local_roots(settings, roots)
    else:
        with store.write() as transaction:
            transaction.set_kv(_KEY, msgspec.json.encode(roots).decode())
    return Source(id=name, root=Path(real)), ""


def nested_roots(source: Source, sources: tuple[Source, ...]) -> tuple[str, ...]:
    """Real roots of other sources inside this one: their files belong to them."""
    base = os.path.realpath(source.root).rstrip("/") + "/"
    roots = (os.path.realpath(other.root) for other in sources if other.id != source.id)
    return tuple(root for root in roots if root.startswith(base))


class FoundSource(Struct, frozen=True):
    """A file of a configured folder, with its path below it."""

    source: Source
    relative: str


def source_of(real: str, sources: Iterable[Source]) -> FoundSource | None:
    """The configured folder that holds this path, which has no links; None: none does, so a person decides."""
    for source in sources:
        root = os.path.realpath(source.root)
        if real.startswith(root.rstrip("/") + "/"):
            return FoundSource(source, os.path.relpath(real, root))
    return None


def locate(path: Path, sources: Iterable[Source]) -> FoundSource | None:
    """The same for any path; raises OSError when it cannot be opened. What is read later goes through `read_inside`,
    which follows no link."""
    with opened_file(path) as (_, real):
        return source_of(real, sources)


def _free_name(folder: str, taken: set[str]) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")[:30] or "folder"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    return name
