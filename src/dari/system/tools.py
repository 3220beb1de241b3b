"""The built-in toolkit: is it alive, what is it, is it healthy."""

from __future__ import annotations

from msgspec import Struct

from dari.core.tool import tool


class Pong(Struct):
    pong: bool = True


class SystemTools:
    """Tools named `dari_<method>`."""

    prefix = "dari"

    @tool()
    async def ping(self) -> Pong:
        """Answer at once; returns {pong: true}."""
        return Pong()
