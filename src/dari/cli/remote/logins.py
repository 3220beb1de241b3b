"""Which server a login is about, and where logins lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dari.bridge.config.profile import HttpSettings
from dari.bridge.oauth.store import KeptLogin, LoginStore
from dari.cli.remote.failures import as_configuration
from dari.cli.remote.sheets import plain
from dari.cli.remote.world import World
from dari.errors import DariError, InvalidInput

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream


def store_of(world: World) -> LoginStore:
    return LoginStore(world.bridge.home)


def oauth_server(world: World, id: str) -> Upstream:
    """The server, if it is one that a person can log in to."""
    try:
        upstream = world.view.upstream(id)
    except DariError as error:
        raise as_configuration(error) from None
    connection = upstream.profile.connection
    if not isinstance(connection, HttpSettings):
        raise InvalidInput(
            f"'{plain(id)}' is a program on this machine, there is nothing to log in to", "give it a key in env"
        )
    if connection.auth.type in ("bearer", "header"):
        raise InvalidInput(
            f"'{plain(id)}' uses the key in {upstream.profile.source}",
            "to log in instead, remove apiKey (or auth) from the profile",
        )
    return upstream


def kept_login(world: World, upstream: Upstream) -> KeptLogin:
    connection = cast(HttpSettings, upstream.profile.connection)
    uses_keyring = connection.auth.uses_keyring
    return store_of(world).login(upstream.id, connection.url, uses_keyring=uses_keyring)
