"""How a login shows its URL to a person and reads back a pasted address."""

from __future__ import annotations

import asyncio
from typing import Protocol


class LoginPrompt(Protocol):
    """How a person is asked. Implemented by `Nobody` and by the login command's terminal."""

    can_ask: bool

    async def show(self, url: str, redirect_url: str) -> None:
        """Tell the person to open `url` in a browser, which comes back to `redirect_url`."""

    async def pasted(self, complaint: str) -> str:
        """An address that the person pasted; waits for ever where none can be. `complaint` is about the last one."""
        ...


class NoPrompt:
    """A daemon, a pipe, a model: no one to open a browser."""

    can_ask = False

    async def show(self, url: str, redirect_url: str) -> None:
        raise AssertionError("there is nobody to show it to")

    async def pasted(self, complaint: str) -> str:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never


NO_PROMPT = NoPrompt()
