"""`ask` over MCP: the client's own model by sampling, progress, and what a document says is data."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.knowledge.api import KnowledgeApi
from dari.knowledge.service import ServiceCache
from dari.knowledge.tools.server import build_server
from dari.mcp.client import Client
from dari.mcp.client.callbacks import Sampled, Sampling
from tests.support.knowledge_base import index_notes, write_config, write_notes
from tests.support.mcp_client import memory_client

Answer = Callable[[Sampling], str]


@asynccontextmanager
async def kebab(tmp_path: Path, mode: Any, sample: Answer | None, more: str = "") -> AsyncIterator[Client]:
    notes, data = write_notes(tmp_path / "notes"), tmp_path / "data"
    index_notes(notes, data)
    config = write_config(tmp_path / "kebab.toml", notes, data, more)

    async def on_sample(asked: Sampling) -> Sampled:
        assert sample is not None
        return Sampled(content={"type": "text", "text": sample(asked)}, model="theirs", role="assistant")

    with ServiceCache() as services:
        api = KnowledgeApi(lambda: services.get(str(config), {}, False))
        server = build_server(api, environ={}, config=str(config))
        client = memory_client(server, mode=mode, on_sample=on_sample if sample else None)
        async with client:
            yield client
        api.close()


@pytest.mark.parametrize("mode", ["handshake", "stateless"])
async def test_the_clients_own_model_writes_where_none_is_configured(tmp_path: Path, mode: str) -> None:
    asked: list[Sampling] = []

    def sample(request: Sampling) -> str:
        asked.append(request)
        return "Backups are made every night at 02:30 [#1]."

    async with kebab(tmp_path, mode, sample) as client:
        result = await client.call_tool("ask", {"query": "When are backups made?"})
    answer = json.loads(result.text)
    assert (answer["grounded"], answer["model"]["provider"]) == (True, "sampling")
    assert answer["answer"].startswith("Backups are made every night")
    assert answer["citations"][0]["citation"]["path"] == "backups.md"
    assert len(asked) == 1


async def test_ask_searches_in_the_configured_mode(tmp_path: Path) -> None:
    async with kebab(tmp_path, "handshake", None, '[search]\ndefault_mode = "lexical"\n') as client:
        result = await client.call_tool("ask", {"query": "When are backups made?"})
    answer = json.loads(result.text)
    assert answer["grounded"]
    assert "hint" not in answer, "hybrid without a model says so"


async def test_what_the_model_makes_up_is_refused(tmp_path: Path) -> None:
    async with kebab(tmp_path, "handshake", lambda _: "Backups are made at 17:45 [#1].") as client:
        result = await client.call_tool("ask", {"query": "When are backups made?"})
    answer = json.loads(result.text)
    assert not result.is_error
    assert (answer["grounded"], answer["refusal_reason"]) == (False, "verification_failed")


async def test_a_client_that_refuses_to_sample_still_gets_the_sentences(tmp_path: Path) -> None:
    def refuse(_: Sampling) -> str:
        raise RuntimeError("not today")

    async with kebab(tmp_path, "handshake", refuse) as client:
        result = await client.call_tool("ask", {"query": "When are backups made?"})
    answer = json.loads(result.text)
    assert (answer["grounded"], answer["model"]["provider"]) == (True, "extractive")
    assert answer["hint"]


async def test_sampling_is_not_used_where_the_person_forbids_it(tmp_path: Path) -> None:
    async with kebab(tmp_path, "handshake", lambda _: "never", '[llm]\nprovider = "none"\n') as client:
        result = await client.call_tool("ask", {"query": "When are backups made?"})
    assert json.loads(result.text)["model"]["provider"] == "extractive"


async def test_who_asks_for_progress_hears_of_the_passages(tmp_path: Path) -> None:
    heard: list[object] = []
    async with kebab(tmp_path, "handshake", lambda _: "Every night at 02:30 [#1].") as client:
        await client.call_tool(
            "ask", {"query": "When are backups made?"}, progress=lambda told: heard.append(told.message)
        )
    assert any("passages" in str(message) for message in heard)
