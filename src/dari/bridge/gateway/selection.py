"""Which servers a client selected, and the names under which their tools are listed.

A listed name fits every client and model, names its server, and is the same in every run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dari.errors import DariError, InvalidInput, NotFound

if TYPE_CHECKING:
    from dari.bridge.config.catalog import Catalog

OWN = "dari"
"""The server that our own tools count as."""
Mode = Literal["full", "search"]


class ServerSelection(NamedTuple):
    """All servers, those of a set (`profile`), or one (`server`); `mode` wins over what the files say."""

    profile: str = ""
    server: str = ""
    mode: Mode | None = None


class SelectedServers(NamedTuple):
    servers: tuple[str, ...]
    """Globs of names."""
    mode: Mode

    def has(self, id: str) -> bool:
        return is_selected(id, self.servers)


def is_selected(id: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(id, pattern) for pattern in patterns)


def read_selection(options: Mapping[str, Any]) -> ServerSelection:
    """What a client of the hub selected."""
    profile, server, mode = options.get("profile"), options.get("server"), options.get("mode")
    return ServerSelection(
        profile=profile if isinstance(profile, str) else "",
        server=server if isinstance(server, str) else "",
        mode=mode if mode in ("search", "full") else None,
    )


def select_servers(catalog: Catalog, choice: ServerSelection, *, has_own: bool = True) -> SelectedServers:
    """What a choice means now; raises when it names what is not there or may not run."""
    if choice.profile and choice.server:
        raise InvalidInput("both a profile and a server were given", "give one of them")
    if choice.server:
        if choice.server != OWN or not has_own or any(one.id == OWN for one in catalog.listed):
            catalog.usable(choice.server)
        return SelectedServers((choice.server,), choice.mode or "full")
    if not choice.profile:
        return SelectedServers(("*",), choice.mode or catalog.gateway.mode)
    found = next((one for one in catalog.sets if one.name == choice.profile), None)
    if found is None:
        raise NotFound(f"unknown profile '{choice.profile}'", _suggest(choice.profile, [s.name for s in catalog.sets]))
    return SelectedServers(found.servers, choice.mode or found.mode)


def selected_patterns(catalog: Catalog, choice: ServerSelection) -> tuple[str, ...]:
    """Globs of the servers that are meant now; none when the choice names what is gone."""
    try:
        return select_servers(catalog, choice).servers
    except DariError:
        return ()


def _suggest(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(names)}" if names else "define it under 'profiles' in mcp.json"


MAX_NAME_CHARS = 64
_HASH_CHARS = 8
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
Naming = Literal["prefixed", "plain", "verbatim"]
"""With the server in front, without it, or exactly as the server says (where there is only one)."""


def fit(name: str) -> str:
    """The name with letters, digits, `_` and `-` only; one that is too long ends with a hash of the whole."""
    fitted = _FOREIGN.sub("_", name) or "_"
    return fitted if len(fitted) <= MAX_NAME_CHARS else _hashed(name)


def expose(
    server: str, names: Iterable[str], taken: Iterable[str], *, separator: str, naming: Naming
) -> dict[str, str]:
    """Original name → the one to show. A name that is taken, or that two share once fitted, gets a hash.

    Names that fit as they are come first, so that no other one can take their place.
    """
    if naming == "verbatim":
        return {name: name for name in names}
    used = set(taken)
    wanted = {name: f"{server}{separator}{name}" if naming == "prefixed" else name for name in names}
    exposed: dict[str, str] = {}
    for name in sorted(wanted, key=lambda one: fit(wanted[one]) != wanted[one]):
        full = f"{server}{separator}{name}"
        shown = next((one for one in (fit(wanted[name]), fit(full)) if one not in used), None) or _hashed(full)
        used.add(shown)
        exposed[name] = shown
    return {name: exposed[name] for name in wanted}


def _hashed(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{_FOREIGN.sub('_', name)[: MAX_NAME_CHARS - _HASH_CHARS - 1]}_{digest}"
