"""curl, pointed at the lab's proxy and at nothing of the user's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.proxy_lab import Lab, Ran, lab, run


class Curl:
    def __init__(self, path: str, here: Lab) -> None:
        # -q first: no .curlrc. An empty --noproxy: localhost too goes through the proxy.
        self.words = [path, "-q", "-sS", "--max-time", "20", "-x", here.proxy_url, "--noproxy", ""]

    async def __call__(self, *words: str) -> Ran:
        return await run([*self.words, *words])

    async def ok(self, *words: str) -> bytes:
        ran = await self(*words)
        assert ran.code == 0, ran.errors
        return ran.out


@asynccontextmanager
async def curling(
    program: Callable[[str], str], directory: Path, decrypts: bool = True
) -> AsyncIterator[tuple[Lab, Curl]]:
    path = program("curl")
    async with lab(directory, decrypts=decrypts) as here:
        yield here, Curl(path, here)
