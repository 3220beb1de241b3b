"""`console.*` on the hub's control socket: how `dari console` gets a link."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from dari.core.scopes import ADMIN
from dari.daemon.stub import expose
from dari.errors import Unavailable


class LoginLink(Struct, frozen=True):
    url: str
    lifetime_s: float


class ConsoleControl:
    """`make_url` is None where no console is served: a hub in the background has no HTTP."""

    def __init__(self) -> None:
        self.make_url: Callable[[], str] | None = None

    @expose("console.login", ADMIN, needs_person=True)
    async def login(self) -> LoginLink:
        """A link that logs one browser in, once."""
        from dari.console.login import KEY_LIFETIME_S

        if self.make_url is None:
            raise Unavailable("this hub serves no console", "start it in a terminal of your own: dari up")
        return LoginLink(self.make_url(), KEY_LIFETIME_S)
