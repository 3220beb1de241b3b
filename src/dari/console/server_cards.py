"""The servers as the page lists them: what stands in the files, joined with what runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.bridge.config.catalog import CatalogEntry
from dari.bridge.config.form import shown_arguments
from dari.bridge.config.loader import YAML_SUFFIXES
from dari.bridge.config.profile import Profile, StdioSettings
from dari.bridge.upstream.resolved import pin_name
from dari.bridge.upstream.upstream import Upstream
from dari.errors import NotFound

if TYPE_CHECKING:
    from dari.bridge.service import Bridge
    from dari.bridge.view import ServerView

MAX_ERROR_CHARS = 600
MAX_ADDRESS_CHARS = 300
_NOT_RUNNING = ("configured", "known", "stopped")


class ServerCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`state`: disabled, broken, untrusted, idle, queued, starting, ready, backoff, crash-loop or failed."""

    name: str
    state: str
    transport: str = ""
    address: str = ""
    """The command line or the URL, without anything secret."""
    enabled: bool = True
    description: str = ""
    tools: int | None = None
    """None: it was never listed."""
    last_error: str = ""
    hint: str = ""
    file: str = ""
    line: int = 0
    layer: str = ""
    program: str = ""
    is_writable: bool = True
    """Whether Dari may write its file."""
    is_default: bool = False
    held: int = 0
    """Items that changed and wait for a person."""
    restarts: int = 0
    calls: int = 0
    pid: int | None = None
    doing: str = ""
    server_name: str = ""
    server_version: str = ""
    protocol: str = ""
    retry_unix: int = 0
    notes: tuple[str, ...] = ()


def list_cards(bridge: Bridge, view: ServerView) -> list[ServerCard]:
    """In the order of the files. Nothing is started."""
    catalog = view.catalog()
    held = Counter(one.server for one in bridge.pins.held() if not one.rejected_by)
    running = _by_name(bridge.pool)
    return [
        _card(one, _chosen(one, running.get(one.id, ())), held[pin_name(one.id, one)], one.id == catalog.default_id)
        for one in catalog.listed
    ]


def find_listed(view: ServerView, name: str) -> CatalogEntry:
    """A server that stands in a file; NotFound with a guess at what was meant."""
    found = view.catalog().find(name)
    if found.source.layer == "built-in":
        raise NotFound(f"'{name}' is built in and stands in no file", "its tools are on the page Tools")
    return found


def find_card(bridge: Bridge, view: ServerView, name: str) -> ServerCard:
    find_listed(view, name)
    return next(card for card in list_cards(bridge, view) if card.name == name)


def find_running(bridge: Bridge, listed: CatalogEntry) -> Upstream | None:
    """The server as it was last used, without making it."""
    return _chosen(listed, bridge.pool.named(listed.id))


@lru_cache(maxsize=4096)
def _command_line(words: tuple[str, ...]) -> str:
    return " ".join([words[0], *shown_arguments(words[1:])])[:MAX_ADDRESS_CHARS]


def _address(profile: Profile | None) -> str:
    if profile is None or not isinstance(profile.connection, StdioSettings):
        return "" if profile is None else profile.address
    return _command_line((profile.connection.command, *profile.connection.args))


def _by_name(upstreams: Iterable[Upstream]) -> dict[str, list[Upstream]]:
    found: dict[str, list[Upstream]] = {}
    for one in upstreams:
        found.setdefault(one.id, []).append(one)
    return found


def _chosen(listed: CatalogEntry, candidates: Iterable[Upstream]) -> Upstream | None:
    """A name may stand for one server per folder and environment: the one of this file, an active one first."""
    same = [one for one in candidates if one.profile.source.file == listed.source.file]
    return next((one for one in same if one.is_active), same[-1] if same else None)


def _card(listed: CatalogEntry, upstream: Upstream | None, held: int, is_default: bool) -> ServerCard:
    profile, source = listed.profile, listed.source
    status = None if upstream is None else upstream.status(held)
    state = listed.state if status is None or listed.state != "ready" else status.state
    if state in ("ready", *_NOT_RUNNING) and (status is None or status.state in _NOT_RUNNING):
        state = "failed" if upstream is not None and upstream.has_failed and not upstream.is_active else "idle"
    if listed.state != "ready":
        state = listed.state
    elif state == "backoff" and listed.kind != "stdio":
        state = "failed"  # an address is tried again with the next call, not by a clock
    error = listed.message or (status.last_error if status is not None else "")
    retry_in_s = None if status is None else status.retry_in_s
    return ServerCard(
        name=listed.id,
        state=state,
        transport=profile.kind if profile is not None else "",
        address=_address(profile),
        enabled=profile is None or profile.is_enabled,
        description="" if profile is None else profile.description,
        tools=None if status is None else status.tools,
        last_error=error[:MAX_ERROR_CHARS],
        hint=listed.hint,
        file=source.file,
        line=source.line,
        layer=source.layer,
        program=source.program,
        is_writable=not source.program and not source.file.lower().endswith(YAML_SUFFIXES),
        is_default=is_default,
        held=held,
        restarts=0 if status is None else status.restarts,
        calls=0 if status is None else status.calls,
        pid=None if status is None else status.pid,
        doing="" if status is None else status.doing,
        server_name="" if status is None else status.server_name,
        server_version="" if status is None else status.server_version,
        protocol="" if status is None else status.version,
        retry_unix=0 if retry_in_s is None else round(time.time() + retry_in_s),
        notes=() if profile is None else profile.notes,
    )
