"""Which machine a source of a shared store belongs to, and the folders that this machine remembers for it.

The database is shared, so it never names a folder to read: those of `--root` are in a private file of the data folder.
A source belongs to the installation that ingested it first. Only that one changes and deletes its documents.
"""

from __future__ import annotations

import os
import socket

import msgspec
from msgspec import Struct

from dari.errors import Failed
from dari.knowledge.config import DEFAULT_SOURCE, Settings
from dari.knowledge.errors import IngestFatal
from dari.knowledge.store.store import Store
from dari.paths import private_dir, read_regular, write_private
from dari.struct_types import ready

MAX_LOCAL_BYTES = 1024 * 1024
_KEY = "source_claims"  # in the store: {source id: claim}


class Claim(Struct, frozen=True):
    """The installation that a source belongs to; the host is for people."""

    installation: str
    host: str = ""


class _Local(Struct, frozen=True):
    installation: str = ""
    roots: dict[str, dict[str, str]] = {}
    """By store: {source id: root}."""


def local_roots(settings: Settings) -> dict[str, str]:
    """Folders of `--root` that this machine has in the store of the settings, by source id."""
    return _read(settings).roots.get(_place(settings), {})


def set_local_roots(settings: Settings, roots: dict[str, str]) -> None:
    local = _read(settings)
    others = {place: kept for place, kept in local.roots.items() if place != _place(settings)}
    changed = _Local(local.installation, others | ({_place(settings): roots} if roots else {}))
    if changed != local:
        _write(settings, changed)


def claims(store: Store) -> dict[str, Claim]:
    """Which installation has which source. Failed where the row cannot be read: then nobody's documents are changed."""
    try:
        return msgspec.json.decode(store.kv(_KEY, "{}"), type=ready(dict[str, Claim]))
    except msgspec.DecodeError as error:
        raise Failed(
            f"the row {_KEY!r} of the table kv is damaged: {error}",
            "delete it (DELETE FROM kv WHERE key = 'source_claims'): each machine's next ingest claims its sources",
        ) from error


def is_own(settings: Settings, store: Store, source_id: str) -> bool:
    """Whether this machine may delete documents of the source. A data folder has one owner, a database many."""
    if not settings.config.store.url:
        return True
    own, claim = _read(settings).installation, claims(store).get(source_id)
    return bool(own) and claim is not None and claim.installation == own


def claim_source(settings: Settings, store: Store, source_id: str, *, take_over: bool = False) -> None:
    """For the writer: the source is this machine's from now on. IngestFatal where it belongs to another one."""
    if not settings.config.store.url:
        return
    installation = _own_installation(settings)
    known = claims(store)
    claim = known.get(source_id)
    if claim is not None and claim.installation == installation:
        return
    if claim is not None and not take_over:
        own_id = "give this folder an id of its own with [[sources]] in the configuration"
        raise IngestFatal(
            f"the source {source_id!r} of {_place(settings)} belongs to another machine: {claim.host[:80]!r}",
            f"{own_id if source_id == DEFAULT_SOURCE else 'choose another id in [[sources]]'}; or, where that machine"
            " is to lose it, kebab ingest --take-over: documents whose files are not here are then deleted",
        )
    known[source_id] = Claim(installation, socket.gethostname())
    with store.write() as transaction:
        transaction.set_kv(_KEY, msgspec.json.encode(known).decode())


def _own_installation(settings: Settings) -> str:
    local = _read(settings)
    if not local.installation:
        local = _Local(os.urandom(16).hex(), local.roots)
        _write(settings, local)
    return local.installation


def _place(settings: Settings) -> str:
    from dari.knowledge.store.postgres import place_of

    return place_of(settings.config.store.url, settings.config.store.schema)


def _read(settings: Settings) -> _Local:
    path = settings.data.local_sources
    try:
        return msgspec.json.decode(read_regular(path, MAX_LOCAL_BYTES), type=ready(_Local))
    except FileNotFoundError:
        return _Local()
    except msgspec.DecodeError as error:
        raise Failed(
            f"{path} is damaged: {error}", "remove it, then run `kebab ingest --root FOLDER --take-over`"
        ) from error


def _write(settings: Settings, local: _Local) -> None:
    private_dir(settings.data.data)
    write_private(settings.data.local_sources, msgspec.json.encode(local))
