"""Design 004 (`kebab mcp`) line by line, over real stdio: raw lines, the official SDK's client, and ours.

Each test names the lines that it holds kebab to.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import jsonschema_rs
import pytest
from mcp import Client as SdkClient
from mcp import StdioServerParameters, stdio_client

from dari.knowledge.wire.schemas import schema_text
from dari.mcp.client import Client
from dari.transport.client.child import ChildChannel
from dari.version import VERSION
from tests.support.knowledge_base import index_notes, write_config, write_notes
from tests.support.wire import call, initialize, stateless

pytestmark = pytest.mark.e2e

KEBAB = str(Path(sys.executable).with_name("kebab"))
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODES = ("auto", "legacy", "2026-07-28")
DESCRIPTIONS = {
    "search": "Lexical / vector / hybrid retrieval over indexed corpus.",
    "ask": "Grounded RAG answer with citations. Returns answer.v1 with grounded=false when KB lacks context.",
    "schema": "Introspection — wire schemas, capabilities, model versions, index stats.",
    "doctor": "Health check — config / data dir / Ollama reachability.",
}
WIRE_OF = {"ask": "answer.v1", "schema": "schema.v1", "doctor": "doctor.v1"}
Json = dict[str, Any]


class Place:
    """A home with indexed notes, and the words that start kebab on them."""

    def __init__(self, root: Path, **environ: str) -> None:
        self.notes, self.data = write_notes(root / "notes"), root / "data"
        index_notes(self.notes, self.data)
        self.config = write_config(root / "kebab.toml", self.notes, self.data)
        self.environ = {"HOME": str(root), "DARI_HOME": str(root / "dari"), "PATH": os.environ["PATH"], **environ}
        self.errors = root / "stderr"

    @asynccontextmanager
    async def raw(self, *words: str) -> AsyncIterator[RawServer]:
        with self.errors.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *(KEBAB, "mcp", *(words or ("--config", str(self.config)))),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=self.environ,
                limit=16 * 1024 * 1024,
            )
        server = RawServer(process)
        try:
            yield server
        finally:
            assert process.stdin is not None
            process.stdin.close()
            server.exit_code = await process.wait()

    @asynccontextmanager
    async def sdk(self, mode: str) -> AsyncIterator[SdkClient]:
        words = StdioServerParameters(command=KEBAB, args=["mcp", "--config", str(self.config)], env=self.environ)
        with self.errors.open("a") as errors:
            async with SdkClient(stdio_client(words, errlog=errors), mode=mode) as client:
                yield client

    def ours(self, mode: Any = "auto") -> Client:
        words = (KEBAB, "mcp", "--config", str(self.config))
        return Client(ChildChannel(words, env=self.environ), mode=mode)


class RawServer:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.exit_code: int | None = None

    def send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def receive(self) -> Json:
        assert self._process.stdout is not None
        found: Json = json.loads(await self._process.stdout.readline())
        return found

    async def ask(self, message: Json) -> Json:
        self.send(message)
        return await self.receive()

    async def handshake(self, version: str = "2025-06-18") -> Json:
        reply = await self.ask(initialize(version))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: Json = reply["result"]
        return result

    async def call(self, name: str, **arguments: Any) -> Json:
        reply = await self.ask(call(name, **arguments))
        assert "error" not in reply, reply
        result: Json = reply["result"]
        return result


def check(value: Any, name: str) -> None:
    jsonschema_rs.validate(json.loads(schema_text(name)), value)


def text_of(result: Json) -> Any:
    (block,) = result["content"]
    assert block["type"] == "text"
    return json.loads(block["text"])


# Surface 1: the command


async def test_the_configuration_may_stand_before_the_word(tmp_path: Path) -> None:
    place = Place(tmp_path)
    words = (KEBAB, "--config", str(place.config), "mcp")
    async with Client(ChildChannel(words, env=place.environ)) as client:
        found = await client.call_tool("search", {"query": "backups"})
    assert "backups.md" in found.text


@pytest.mark.parametrize("words", [("--port", "3"), ("--http",), ("serve",), ("--config",)])
async def test_surface_1_no_flag_besides_config(tmp_path: Path, words: tuple[str, ...]) -> None:
    """«--config 외 추가 flag 없음»"""
    process = await asyncio.create_subprocess_exec(
        *(KEBAB, "mcp", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )
    out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert b"--config" in err


async def test_surface_1_the_environment_sets_the_rest(tmp_path: Path) -> None:
    """«agent host 가 spawn 명령에서 환경 변수로 추가 설정 주입»"""
    place = Place(tmp_path)
    place.environ |= {"KEBAB_CONFIG": str(place.config), "KEBAB_SEARCH_SNIPPET_CHARS": "30"}
    words = (sys.executable, "-c", "import sys; from dari.cli.kebab.fast_client import main; main(['mcp'])")
    async with Client(ChildChannel(words, env=place.environ)) as client:
        result = await client.call_tool("search", {"query": "backups", "mode": "lexical"})
    hits = json.loads(result.text)
    assert hits
    assert all(len(hit["snippet"]) <= 60 for hit in hits)


async def test_surface_1_stdin_that_ends_is_the_end(tmp_path: Path) -> None:
    """«stdio 단일 transport»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
    assert server.exit_code == 0


# Surface 2: the tools


async def test_surface_2_four_tools_with_the_words_and_arguments_of_the_design(tmp_path: Path) -> None:
    """«tools/list response 가 4 tool 을 노출. 각 tool 은 inputSchema 가 inline»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        listed = await server.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    tools = {tool["name"]: tool for tool in listed["result"]["tools"]}
    assert list(tools) == ["search", "ask", "schema", "doctor"]
    assert {name: tool["description"] for name, tool in tools.items()} == DESCRIPTIONS
    search = tools["search"]["inputSchema"]
    assert search["required"] == ["query"]
    properties = search["properties"]
    assert properties["query"] == {"type": "string"}
    assert (sorted(properties["mode"]["enum"]), properties["mode"]["default"]) == (
        ["hybrid", "lexical", "vector"],
        "hybrid",
    )
    k = properties["k"]
    assert (k["type"], k["default"], k["minimum"], k["maximum"]) == ("integer", 10, 1, 100)
    assert set(properties) == {"query", "mode", "k"}
    ask = tools["ask"]["inputSchema"]
    assert (ask["required"], ask["properties"]) == (
        ["query"],
        {"query": {"type": "string"}, "session_id": {"type": "string"}},
    )
    for name in ("schema", "doctor"):
        assert tools[name]["inputSchema"]["properties"] == {}
    for tool in tools.values():
        assert tool["annotations"]["readOnlyHint"] is True
        jsonschema_rs.meta.validate(tool["inputSchema"])
        jsonschema_rs.meta.validate(tool["outputSchema"])


@pytest.mark.parametrize("version", VERSIONS)
async def test_structured_output_is_only_for_versions_that_know_it(version: str, tmp_path: Path) -> None:
    async with Place(tmp_path).raw() as server:
        await server.handshake(version)
        listed = await server.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        found = await server.call("search", query="backups", mode="lexical")
        again = await server.ask(stateless({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}))
    knows = version >= "2025-06-18"
    assert [("outputSchema" in tool) for tool in listed["result"]["tools"]] == [knows] * 4
    assert ("structuredContent" in found) == knows
    assert all("outputSchema" in tool for tool in again["result"]["tools"]), "each message has the list of its version"


async def test_surface_2_the_text_of_a_search_is_the_array_of_hits(tmp_path: Path) -> None:
    """«output: text content = serde_json::to_string(wire::wire_search_hits(&hits))»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        result = await server.call("search", query="when are backups made", mode="lexical", k=2)
    hits = text_of(result)
    assert hits[0]["doc_path"] == "backups.md"
    assert 1 <= len(hits) <= 2
    for hit in hits:
        check(hit, "search_hit.v1")
    check(result["structuredContent"], "search_response.v1")
    assert result["structuredContent"]["hits"] == hits
    assert not result.get("isError", False)


@pytest.mark.parametrize("version", VERSIONS)
async def test_surface_2_every_version_gets_the_text_and_later_ones_the_structure(tmp_path: Path, version: str) -> None:
    """«모든 tool 이 wire schema v1 JSON 을 text content 로 반환»; 2025-06-18 brought structured content."""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake(version)
        result = await server.call("search", query="backups", mode="lexical")
    assert text_of(result)[0]["doc_path"] == "backups.md"
    assert ("structuredContent" in result) == (version >= "2025-06-18")


async def test_surface_2_no_hit_is_a_normal_answer(tmp_path: Path) -> None:
    """«빈 결과 = 정상 응답 (empty search_hit.v1 array)»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        result = await server.call("search", query="xylophone quartet", mode="lexical")
    assert text_of(result) == []
    assert not result.get("isError", False)


async def test_surface_2_an_answer_is_grounded_and_cited(tmp_path: Path) -> None:
    """«Grounded RAG answer with citations»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        result = await server.call("ask", query="When are backups made every night?")
    answer = text_of(result)
    check(answer, "answer.v1")
    assert answer["grounded"] is True
    assert "02:30" in answer["answer"]
    assert answer["citations"][0]["citation"]["path"] == "backups.md"
    assert result["structuredContent"] == answer


async def test_surface_2_a_refusal_is_a_normal_answer(tmp_path: Path) -> None:
    """«Refusal (grounded: false) = 정상 응답. refusal_reason 도 답변에 포함»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        result = await server.call("ask", query="Which wine goes with roasted pheasant in autumn?")
    answer = text_of(result)
    check(answer, "answer.v1")
    assert answer["grounded"] is False
    assert answer["refusal_reason"]
    assert not result.get("isError", False)


async def test_surface_2_a_session_keeps_a_conversation_across_servers(tmp_path: Path) -> None:
    """«Multi-turn ask: optional session_id»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        first = text_of(await server.call("ask", query="When are backups made?", session_id="talk"))
    async with place.raw() as server:
        await server.handshake()
        second = text_of(await server.call("ask", query="How long are they kept?", session_id="talk"))
    assert first["session_id"] == second["session_id"] == "talk"
    assert second["resolved_query"] != "How long are they kept?"
    assert "35" in second["answer"]


async def test_surface_2_schema_tells_that_the_mcp_server_exists(tmp_path: Path) -> None:
    """«capabilities.mcp_server 가 true»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        schema = text_of(await server.call("schema"))
    check(schema, "schema.v1")
    assert schema["capabilities"]["mcp_server"] is True
    assert schema["stats"]["doc_count"] == 3


async def test_surface_2_an_unhealthy_doctor_is_a_normal_answer(tmp_path: Path) -> None:
    """«DoctorUnhealthy = 정상 응답 (doctor.v1 with ok: false)»"""
    place = Place(tmp_path)
    broken = write_config(tmp_path / "broken.toml", tmp_path / "gone", tmp_path / "empty")
    async with place.raw("--config", str(broken)) as server:
        await server.handshake()
        result = await server.call("doctor")
    report = text_of(result)
    check(report, "doctor.v1")
    assert report["ok"] is False
    assert not result.get("isError", False)


# Surface 3: lifecycle, capabilities, errors


@pytest.mark.parametrize("version", VERSIONS)
async def test_surface_3_initialize_tells_tools_and_nothing_else(tmp_path: Path, version: str) -> None:
    """«resources / prompts / sampling / notifications — 모두 미선언»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        told = await server.handshake(version)
    assert told == {
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "kebab", "version": VERSION},
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_surface_3_a_failure_is_a_result_with_error_v1_in_every_version(tmp_path: Path, version: str) -> None:
    """«facade Err(e) → { isError: true, content: [{ type: "text", text: <error.v1 JSON> }] }»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake(version)
        failed = await server.call("search", query="x", mode="vector")
        wrong = await server.call("search", query="x", k=0)
    for result, code in ((failed, "model_not_pulled"), (wrong, "invalid_input")):
        assert result["isError"] is True
        check(text_of(result), "error.v1")
        assert text_of(result)["code"] == code
        assert "structuredContent" not in result


async def test_surface_3_a_bad_configuration_is_an_error_of_the_call_with_its_hint(tmp_path: Path) -> None:
    """«bad config 로 호출 → tool error with error.v1 + isError=true», «hint field 그대로»"""
    place = Place(tmp_path)
    bad = tmp_path / "bad.toml"
    bad.write_text("config_version = 1\n[search]\ndefault_kk = 3\n")
    async with place.raw("--config", str(bad)) as server:
        await server.handshake()
        result = await server.call("search", query="backups")
    assert result["isError"] is True
    error = text_of(result)
    check(error, "error.v1")
    assert error["code"] == "config_invalid"
    assert "default_k" in error["hint"]


async def test_surface_3_faults_of_the_protocol_are_json_rpc_errors(tmp_path: Path) -> None:
    """«protocol-level error (invalid method / malformed params) 는 JSON-RPC error envelope»"""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        unknown = await server.ask({"jsonrpc": "2.0", "id": 5, "method": "nothing/here"})
        nobody = await server.ask(call("no_such_tool"))
        resources = await server.ask({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": 3})
    assert unknown["error"]["code"] == -32601
    assert nobody["error"]["code"] == -32602
    assert resources["error"]["code"] in (-32600, -32602)


async def test_surface_3_the_stateless_version_gets_the_same(tmp_path: Path) -> None:
    """MCP versions evolve: 2026-07-28 has no handshake."""
    place = Place(tmp_path)
    async with place.raw() as server:
        found = await server.ask(stateless({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}))
        result = (await server.ask(stateless(call("search", query="backups", mode="lexical"))))["result"]
        failed = (await server.ask(stateless(call("search", query="x", mode="vector"))))["result"]
    assert found["result"]["capabilities"] == {"tools": {"listChanged": False}}
    assert text_of(result)[0]["doc_path"] == "backups.md"
    assert failed["isError"] is True
    assert text_of(failed)["code"] == "model_not_pulled"


# Concurrency


async def test_concurrency_calls_run_side_by_side_on_one_open_store(tmp_path: Path) -> None:
    """«각 tools/call request 가 독립 task», «한 번 init 후 모든 tool call 이 hot»"""
    place = Place(tmp_path)
    queries = ("backups", "deploy", "비밀번호", "restore") * 15
    async with place.ours() as client:
        results = await asyncio.gather(
            *(client.call_tool("search", {"query": query, "mode": "lexical"}) for query in queries)
        )
    firsts = [json.loads(result.text)[0]["doc_path"] for result in results]
    assert firsts == ["backups.md", "deploy.md", "korean/보안.md", "backups.md"] * 15


# Risks: stdout is the protocol's alone


async def test_risk_logs_never_reach_stdout(tmp_path: Path) -> None:
    """«모든 log 는 stderr 또는 file»"""
    place = Place(tmp_path, KEBAB_LOGGING_LEVEL="debug")
    async with place.raw() as server:
        await server.handshake()
        for number in range(3):
            assert (await server.ask(call("schema", number)))["id"] == number
    assert "transport=stdio" in place.errors.read_text()
    assert (tmp_path / "dari/kebab/logs/mcp.log").read_text()


async def test_the_level_of_the_logs_is_a_setting_of_the_file(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.config.write_text(place.config.read_text() + '\n[logging]\nlevel = "debug"\n')
    async with place.raw() as server:
        await server.handshake()
        await server.call("search", query="backups")
    assert "DEBUG kebab event=open" in place.errors.read_text()


async def test_risk_a_call_is_in_the_one_audit_log(tmp_path: Path) -> None:
    """The house's rule: each call is recorded, with the part that ran it."""
    place = Place(tmp_path)
    async with place.raw() as server:
        await server.handshake()
        await server.call("search", query="backups")
    spooled = "".join(path.read_text() for path in (tmp_path / "dari/bridge/audit-spool").glob("*.jsonl"))
    (record,) = [json.loads(line) for line in spooled.splitlines()]
    assert (record["part"], record["tool"], record["outcome"]) == ("kebab", "search", "ok")


# Agents: the official SDK's client, and ours


@pytest.mark.parametrize("mode", MODES)
async def test_agents_the_official_sdk_lists_and_calls_every_tool(tmp_path: Path, mode: str) -> None:
    """«MCP-aware host 모두 지원». The SDK checks structured content against each output schema."""
    place = Place(tmp_path)
    with anyio.fail_after(40):
        async with place.sdk(mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            assert tools == list(DESCRIPTIONS)
            found = await client.call_tool("search", {"query": "backups", "mode": "lexical"})
            check(found.structured_content, "search_response.v1")
            for name, arguments in (("ask", {"query": "When are backups made?"}), ("schema", {}), ("doctor", {})):
                result = await client.call_tool(name, arguments)
                assert not result.is_error
                check(result.structured_content, WIRE_OF[name])
            failed = await client.call_tool("search", {"query": "x", "mode": "vector"})
            assert failed.is_error
            check(json.loads(failed.content[0].text), "error.v1")  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["handshake", "stateless"])
async def test_agents_our_client_lists_and_calls_every_tool(tmp_path: Path, mode: str) -> None:
    place = Place(tmp_path)
    async with place.ours(mode) as client:
        assert [tool.name for tool in await client.list_tools()] == list(DESCRIPTIONS)
        found = await client.call_tool("search", {"query": "backups", "mode": "lexical"})
        check(found.structured_content, "search_response.v1")
        for name, arguments in (("ask", {"query": "When are backups made?"}), ("schema", {}), ("doctor", {})):
            result = await client.call_tool(name, arguments)
            assert not result.is_error
            check(json.loads(result.text), WIRE_OF[name])
