"""Kebab's tools over MCP in memory: the text is the wire JSON, and a failure is a result in every version."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from dari.app import KnowledgeOffers
from dari.knowledge.api import KnowledgeApi
from dari.knowledge.service import ServiceCache
from dari.knowledge.tools.server import build_server
from dari.knowledge.wire.schemas import schema_text
from dari.mcp.client import Client
from dari.mcp.client.results import CallResult
from tests.support.knowledge_base import index_notes, write_config, write_notes
from tests.support.mcp_client import memory_client


@asynccontextmanager
async def kebab(tmp_path: Path, *, config: Path | None = None, **environ: str) -> AsyncIterator[Client]:
    if config is None:
        notes, data = write_notes(tmp_path / "notes"), tmp_path / "data"
        index_notes(notes, data)
        config = write_config(tmp_path / "kebab.toml", notes, data)
    with ServiceCache() as services:
        api = KnowledgeApi(lambda: services.get(str(config), {}, False))
        server = build_server(api, environ=environ, config=str(config))
        async with memory_client(server) as client:
            yield client
        api.close()


def read(result: CallResult) -> Any:
    assert len(result.content) == 1
    return json.loads(result.text)


def check(value: Any, name: str) -> None:
    jsonschema_rs.validate(json.loads(schema_text(name)), value)


async def test_a_search_has_its_hits_as_text_and_the_response_as_structure(tmp_path: Path) -> None:
    async with kebab(tmp_path) as client:
        result = await client.call_tool("search", {"query": "when are backups made", "mode": "lexical"})
    hits = read(result)
    assert hits[0]["doc_path"] == "backups.md"
    for hit in hits:
        check(hit, "search_hit.v1")
    check(result.structured_content, "search_response.v1")
    assert result.structured_content["hits"] == hits


async def test_a_search_that_finds_nothing_is_a_normal_result(tmp_path: Path) -> None:
    async with kebab(tmp_path) as client:
        result = await client.call_tool("search", {"query": "xylophone", "mode": "lexical"})
    assert not result.is_error
    assert read(result) == []


async def test_hybrid_without_a_model_answers_and_says_so(tmp_path: Path) -> None:
    async with kebab(tmp_path) as client:
        result = await client.call_tool("search", {"query": "backups"})
    assert read(result)
    assert result.structured_content["degraded"] == "no_model"
    assert result.structured_content["hint"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_input"),
        ({"query": 3}, "invalid_input"),
        ({"query": "x", "k": 0}, "invalid_input"),
        ({"query": "x", "k": 101}, "invalid_input"),
        ({"query": "x", "mode": "magic"}, "invalid_input"),
        ({"query": "x", "other": 1}, "invalid_input"),
        ({"query": " "}, "invalid_input"),
        ({"query": "x", "mode": "vector"}, "model_not_pulled"),
    ],
)
async def test_a_failure_is_a_result_with_error_v1(tmp_path: Path, arguments: dict[str, Any], code: str) -> None:
    async with kebab(tmp_path) as client:
        result = await client.call_tool("search", arguments)
    assert result.is_error
    check(read(result), "error.v1")
    assert read(result)["code"] == code
    assert read(result)["hint"]


async def test_schema_and_doctor_fit_their_schemas(tmp_path: Path) -> None:
    async with kebab(tmp_path) as client:
        schema = await client.call_tool("schema", {})
        doctor = await client.call_tool("doctor", {})
    check(read(schema), "schema.v1")
    assert read(schema)["capabilities"]["mcp_server"] is True
    assert read(schema)["stats"]["doc_count"] == 3
    check(read(doctor), "doctor.v1")
    assert {"config_loaded", "data_dir_writable", "lexical_index"} <= {one["name"] for one in read(doctor)["checks"]}


async def test_a_configuration_that_cannot_be_read_fails_the_call_not_the_server(tmp_path: Path) -> None:
    config = tmp_path / "kebab.toml"
    config.write_text("config_version = 1\n[search]\ndefault_kk = 3\n")
    async with kebab(tmp_path, config=config) as client:
        result = await client.call_tool("search", {"query": "x"})
        assert result.is_error
        assert read(result)["code"] == "config_invalid"
        assert "default_k" in read(result)["hint"]
        doctor = await client.call_tool("doctor", {})
        assert not doctor.is_error
        assert read(doctor)["ok"] is False
        config.write_text("config_version = 1\n")
        mended = await client.call_tool("search", {"query": "x"})
    assert read(mended)["code"] == "not_indexed"


async def test_a_missing_configuration_has_its_own_code(tmp_path: Path) -> None:
    async with kebab(tmp_path, config=tmp_path / "none.toml") as client:
        result = await client.call_tool("search", {"query": "x"})
    assert read(result)["code"] == "config_not_found"


async def test_an_unhealthy_installation_is_a_normal_result(tmp_path: Path) -> None:
    config = write_config(tmp_path / "kebab.toml", tmp_path / "gone", tmp_path / "data")
    async with kebab(tmp_path, config=config) as client:
        result = await client.call_tool("doctor", {})
    assert not result.is_error
    assert read(result)["ok"] is False


async def test_calls_run_side_by_side(tmp_path: Path) -> None:
    async with kebab(tmp_path) as client:
        queries = ["backups", "deploy", "비밀번호", "restore"] * 10
        results = await asyncio.gather(*(client.call_tool("search", {"query": query}) for query in queries))
    firsts = [read(result)[0]["doc_path"] for result in results]
    assert firsts == ["backups.md", "deploy.md", "korean/보안.md", "backups.md"] * 10


@pytest.mark.parametrize(("variable", "has_fetch"), [("", True), ("default", False)])
async def test_the_file_chooses_the_tools_and_the_variable_wins(tmp_path: Path, variable: str, has_fetch: bool) -> None:
    config = write_config(tmp_path / "kebab.toml", tmp_path, tmp_path / "data", '[mcp]\ntools = "all"\n')
    async with kebab(tmp_path, config=config, KEBAB_TOOLS=variable) as client:
        assert ("fetch" in {tool.name for tool in await client.list_tools()}) is has_fetch


def test_the_hub_s_tools_follow_the_file_and_the_client_s_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path))
    monkeypatch.delenv("KEBAB_CONFIG", raising=False)
    write_config(tmp_path / "kebab/config.toml", tmp_path, tmp_path / "data", '[mcp]\ntools = "all"\n')
    offers = KnowledgeOffers(None)
    assert "kebab_fetch" in {tool.name for tool in offers.chosen_tools("")}
    assert "kebab_fetch" not in {tool.name for tool in offers.chosen_tools("default")}


async def test_all_adds_the_further_tools(tmp_path: Path) -> None:
    async with kebab(tmp_path, KEBAB_TOOLS="all") as client:
        names = {tool.name for tool in await client.list_tools()}
        assert {"bulk_search", "fetch", "list_docs", "inspect_chunk"} <= names
        bulk = await client.call_tool("bulk_search", {"queries": ["nightly_dump", " "], "mode": "lexical"})
        check(bulk.structured_content, "bulk_search_response.v1")
        assert [("response" in item, "error" in item) for item in read(bulk)["items"]] == [(True, False), (False, True)]
        listed = await client.call_tool("list_docs", {"limit": 2})
        check(read(listed), "doc_list.v1")
        after = await client.call_tool("list_docs", {"cursor": read(listed)["next_cursor"]})
        assert [doc["doc_path"] for doc in read(after)["docs"]] == ["korean/보안.md"]
        chunk = read(bulk)["items"][0]["response"]["hits"][0]["chunk_id"]
        fetched = await client.call_tool("fetch", {"chunk_id": chunk, "context": 1})
        check(read(fetched), "fetch_result.v1")
        assert "02:30" in read(fetched)["chunk"]["text"]
        inspected = await client.call_tool("inspect_chunk", {"chunk_id": chunk})
        check(read(inspected), "chunk_inspection.v1")
        unknown = await client.call_tool("inspect_chunk", {"chunk_id": "0" * 32})
        assert read(unknown)["code"] == "chunk_not_found"
        neither = await client.call_tool("fetch", {})
    assert read(neither)["code"] == "invalid_input"


async def test_a_secret_in_a_document_is_hidden_from_an_agent(tmp_path: Path) -> None:
    notes, data = tmp_path / "notes", tmp_path / "data"
    notes.mkdir()
    key = "ghp_" + "a1B2c3D4e5F6" * 3
    (notes / "key.md").write_text(f"# Access\n\nThe zebra service uses {key} everywhere.\n")
    index_notes(notes, data)
    async with kebab(tmp_path, config=write_config(tmp_path / "kebab.toml", notes, data)) as client:
        result = await client.call_tool("search", {"query": "zebra"})
    assert "zebra" in result.text
    assert key not in json.dumps(result.structured_content) + result.text
