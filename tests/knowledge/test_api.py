"""The knowledge base for async callers: what waits for a language model keeps no search waiting."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from dari.knowledge.api import MAX_ASKS, MAX_THREADS, KnowledgeApi
from dari.knowledge.service import ServiceCache
from tests.support.kebab_command import Kebab
from tests.support.knowledge_base import index_notes, write_config, write_notes

QUESTION = "How long are backups kept?"


@contextmanager
def _silent_server() -> Iterator[socket.socket]:
    """A language model's server that takes every request and answers none; its end ends what waits for it."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        server.setblocking(False)
        yield server


def _config(folder: Path, server: socket.socket) -> str:
    notes, data = write_notes(folder / "notes"), folder / "data"
    index_notes(notes, data)
    llm = f'[llm]\nprovider = "openai"\nmodel = "m"\nendpoint = "http://127.0.0.1:{server.getsockname()[1]}/v1"\n'
    return str(write_config(folder / "kebab.toml", notes, data, llm))


async def _accept(server: socket.socket, count: int) -> list[socket.socket]:
    return [(await asyncio.get_running_loop().sock_accept(server))[0] for _ in range(count)]


async def test_as_many_asks_as_wait_at_most_leave_searches_as_they_are(tmp_path: Path) -> None:
    with _silent_server() as server, ServiceCache() as services:
        config = _config(tmp_path, server)
        api = KnowledgeApi(lambda: services.get(config, {}, False))
        asks = [asyncio.create_task(api.ask(QUESTION)) for _ in range(max(MAX_ASKS, MAX_THREADS))]
        waiting = await asyncio.wait_for(_accept(server, MAX_ASKS), 30)
        found = await asyncio.wait_for(api.search("backups", "lexical"), 30)
        assert found.hits
        assert not any(ask.done() for ask in asks)
        for connection in waiting:
            connection.close()
        answers = [step.answer for step in await asyncio.gather(*asks)]
        api.close()
    assert {answer and answer.model.provider for answer in answers} == {"extractive"}


async def test_commands_that_wait_for_their_model_leave_searches_as_they_are(tmp_path: Path) -> None:
    """The event loop's own threads are few: kebabd runs every command's work in them."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    with _silent_server() as server, ServiceCache() as services:
        kebab = Kebab(tmp_path, services)
        _config(tmp_path, server)
        asks = [asyncio.create_task(kebab("ask", QUESTION)) for _ in range(8)]
        waiting = await asyncio.wait_for(_accept(server, len(asks)), 30)
        found = await asyncio.wait_for(kebab("search", "backups", "--mode", "lexical"), 30)
        assert found.code == 0
        for connection in waiting:
            connection.close()
        assert {ask.code for ask in await asyncio.gather(*asks)} == {0}
