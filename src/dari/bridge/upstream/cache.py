"""Cache of a server between runs: its era and its lists. One small file each, nothing secret."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from dari.errors import DariError
from dari.log import format_event
from dari.paths import private_dir
from dari.rpc.codec import UNREADABLE
from dari.struct_types import ready

Era = Literal["handshake", "stateless"]
ListName = Literal["tools", "prompts", "resources", "resourceTemplates"]
JsonObject = dict[str, Any]

CACHE_FORMAT = 1
ERA_TTL_S = 24 * 3600.0
"""A server that was upgraded is asked again for the newer era after this time."""

_log = logging.getLogger("dari.bridge")


class CachedList(Struct):
    """A list as the server last gave it."""

    items: list[JsonObject]
    fetched_unix: float
    ttl_ms: int | None = None
    """What the server said about how long it holds; None: nothing."""


class CachedServer(Struct, omit_defaults=True):
    """Everything known about one server."""

    format: int = CACHE_FORMAT
    era: Era | None = None
    era_unix: float = 0.0
    flavour: Literal["http", "sse"] | None = None
    version: str = ""
    server: JsonObject = field(default_factory=dict)
    capabilities: JsonObject = field(default_factory=dict)
    instructions: str = ""
    failed_unix: float = 0.0
    """When its last start failed, or began without an end; 0 since its tools were listed."""
    lists: dict[str, CachedList] = field(default_factory=dict)

    def era_at(self, now_unix: float) -> Era | None:
        return self.era if now_unix - self.era_unix < ERA_TTL_S else None


class ServerCache:
    """Files below one folder. A file that cannot be read or written is only a cache that is empty."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self.now = now

    def load(self, key: str) -> CachedServer:
        try:
            known = msgspec.json.decode(self._path(key).read_bytes(), type=ready(CachedServer))
        except (OSError, *UNREADABLE):
            return CachedServer()
        return known if known.format == CACHE_FORMAT else CachedServer()

    def save(self, key: str, known: CachedServer) -> None:
        path = self._path(key)
        draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            private_dir(self._folder)
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(msgspec.json.encode(known))
            os.replace(draft, path)
        except (OSError, DariError, UnicodeEncodeError) as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            _log.warning(format_event("bridge", "memory", f"{path}: {error}"))

    def forget(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def cache_key(*parts: str) -> str:
    """A file name for a server: the same for the same parts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:24]
