"""Which servers a client selected, and how they are listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        raise InvalidInput("a profile and a server are named", "name one of them")
    if choice.server:
        if choice.server != OWN or not has_own or any(one.id == OWN for one in catalog.listed):
            catalog.usable(choice.server)
        return SelectedServers((choice.server,), choice.mode or "full")
    if not choice.profile:
        return SelectedServers(("*",), choice.mode or catalog.gateway.mode)
    found = next((one for one in catalog.sets if one.name == choice.profile), None)
    if found is None:
        raise NotFound(
            f"there is no profile '{choice.profile}'", _suggest(choice.profile, [s.name for s in catalog.sets])
        )
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
