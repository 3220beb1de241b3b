"""The methods that every daemon has, beside the handshake."""

from __future__ import annotations

from collections.abc import Callable

from dari.daemon.methods import Method
from dari.daemon.protocol import PROTOCOL_VERSION
from dari.daemon.tokens import Tokens


def system_methods(version: str, tokens: Tokens, shut_down: Callable[[], None]) -> tuple[Method, ...]:
    """`system.ping`, `system.version`, `system.rotate_token` and `system.shutdown`."""

    async def ping(_: dict[str, object]) -> object:
        return {"pong": True}

    async def engine(_: dict[str, object]) -> object:
        return {"engine": version, "protocol": PROTOCOL_VERSION}

    async def rotate_token(_: dict[str, object]) -> object:
        tokens.rotate()
        return {"rotated": True, "reconnect_required": True}

    async def shutdown(_: dict[str, object]) -> object:
        shut_down()
        return {"status": "shutting_down"}

    return (
        Method("system.ping", "read", ping),
        Method("system.version", "read", engine),
        Method("system.rotate_token", "admin", rotate_token),
        Method("system.shutdown", "control", shutdown),
    )
