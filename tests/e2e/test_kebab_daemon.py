"""kebabd as installed: warm commands, the hub's tools, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import mcp_types
import pytest
from mcp import Client as SdkClient
from mcp import StdioServerParameters, stdio_client

from dari import app
from dari.cli.hub.client import ask_to_finish
from dari.core.approval_service import ApprovalService
from dari.core.registry import Registry
from dari.daemon.lock import lock_holder
from dari.errors import NeedsApproval
from dari.knowledge.api import KnowledgeApi
from dari.knowledge.daemon import KebabPaths
from dari.knowledge.service import ServiceCache
from dari.knowledge.tools.ingest_guard import IngestGuard
from dari.knowledge.tools.toolkit import make_tools
from dari.mcp.client import Client
from dari.mcp.client.callbacks import Sampled, Sampling
from dari.mcp.server import Info, Server
from dari.settings import ServeSettings
from tests.support.knowledge_base import index_notes, write_config, write_notes
from tests.support.mcp_client import memory_client
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

KEBAB = str(Path(sys.executable).with_name("kebab"))
DARI = str(Path(sys.executable).with_name("dari"))
END_S = 20.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with indexed notes, where kebabd is ended afterwards."""
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.delenv("DARI_NO_DAEMON", raising=False)
    notes, data = write_notes(tmp_path / "notes"), tmp_path / "data"
    index_notes(notes, data)
    write_config(tmp_path / "dari/kebab/config.toml", notes, data)
    yield tmp_path
    ask_to_finish(KebabPaths().run_dir_text, END_S)


async def kebab(*words: str, **environ: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(KEBAB, *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environ},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@asynccontextmanager
async def hub(**options: Any) -> AsyncIterator[Client]:
    server = app.build(ServeSettings(token_path=Path("/nowhere")))
    async with memory_client(server, **options) as client:
        yield client
    server.close()
    server.registry.close()


async def test_a_warm_command_says_what_a_cold_one_says(home: Path) -> None:
    cold = await kebab("search", "backups", "--mode", "lexical", DARI_NO_DAEMON="1")
    started = await kebab("daemon", "start", "--json")
    assert json.loads(started[1])["running"] is True
    pid = lock_holder(KebabPaths().lock_text)
    warm = await kebab("search", "backups", "--mode", "lexical")
    again = await kebab("search", "xylophone", "--json")
    wrong = await kebab("fetch", "doc", "nope.md", "--json")
    assert warm == cold
    assert (again[0], json.loads(again[1])["hits"]) == (1, [])
    assert (wrong[0], json.loads(wrong[2])["code"]) == (2, "doc_not_found")
    streamed = await kebab("ask", "--stream", "--json", "When are backups made?")
    assert [json.loads(line)["kind"] for line in streamed[2].splitlines()] == ["retrieval_done", "final"]
    assert json.loads(streamed[1])["grounded"] is True
    assert lock_holder(KebabPaths().lock_text) == pid
    stopped = await kebab("daemon", "stop", "--json")
    assert json.loads(stopped[1]) == {
        "running": False,
        "pid": None,
        "stopped": True,
        "schema_version": "daemon_status.v1",
    }
    status = json.loads((await kebab("daemon", "status", "--json"))[1])
    assert (status["running"], status["pid"]) == (False, None)


async def test_a_warm_command_sees_what_another_process_has_indexed_since(home: Path) -> None:
    await kebab("daemon", "start")
    assert (await kebab("search", "zanzibar"))[0] == 1
    (home / "notes/zanzibar.md").write_text("# Zanzibar\n\nThe zanzibar service answers on port 9000.\n")
    index_notes(home / "notes", home / "data")
    code, out, _ = await kebab("search", "zanzibar")
    assert code == 0
    assert "zanzibar.md" in out


async def test_a_warm_command_follows_the_callers_folder_and_environment(home: Path) -> None:
    await kebab("daemon", "start")
    other = home / "other"
    (other / "notes").mkdir(parents=True)
    (other / "notes/a.md").write_text("# Quagga\n\nA quagga is striped.\n")
    index_notes(other / "notes", other / "data")
    config = write_config(other / "kebab.toml", other / "notes", other / "data")
    assert (await kebab("search", "quagga"))[0] == 1
    assert (await kebab("search", "quagga", "--config", str(config)))[0] == 0
    assert (await kebab("search", "quagga", KEBAB_CONFIG=str(config)))[0] == 0


async def test_the_hub_has_the_same_tools_and_the_passages_as_resources(home: Path) -> None:
    async with hub() as client:
        listed = {tool.name for tool in await client.list_tools()}
        assert {"kebab_search", "kebab_schema", "kebab_doctor"} <= listed
        assert "kebab_fetch" not in listed
        found = await client.call_tool("kebab_search", {"query": "backups", "mode": "lexical"})
        hits: list[dict[str, Any]] = json.loads(found.text)
        assert hits[0]["doc_path"] == "backups.md"
        chunk = await client.read_resource(f"kebab://chunk/{hits[0]['chunk_id']}")
        document = await client.read_resource(f"kebab://doc/{hits[0]['doc_id']}")
        failed = await client.call_tool("kebab_search", {"query": "x", "mode": "vector"})
    assert hits[0]["snippet"][:20] in chunk.contents[0].text
    assert document.contents[0].text == (home / "notes/backups.md").read_text()
    assert failed.is_error
    assert json.loads(failed.text)["code"] == "model_not_pulled"


async def test_kebabd_follows_a_folder_that_it_watches(home: Path) -> None:
    config = home / "dari/kebab/config.toml"
    config.write_text(config.read_text() + "[daemon]\nwatch = true\n[ingest]\nwatch_debounce_ms = 50\n")
    await kebab("daemon", "start")
    (home / "notes/late.md").write_text("# Late\n\nThe wombat came late.\n")
    with ServiceCache() as services:
        service = services.get(str(config), {}, False)
        await until(lambda: service.search("wombat", mode="lexical").hits)


async def test_a_command_whose_key_kebabd_does_not_have_runs_by_itself(home: Path) -> None:
    config = home / "dari/kebab/config.toml"
    config.write_text(config.read_text() + '[llm]\napi_key_env = "MY_TEST_KEY"\n')
    await kebab("daemon", "start")
    without = await kebab("search", "backups", "--mode", "lexical")
    with_key = await kebab("search", "backups", "--mode", "lexical", MY_TEST_KEY="of the caller")
    assert without == with_key
    assert without[0] == 0


async def test_what_an_agent_may_ingest_ends_at_the_configured_folders(home: Path) -> None:
    inside, outside = home / "notes/inside.md", home / "outside.md"
    inside.write_text("# Inside\n\nThe numbat is inside.\n")
    outside.write_text("# Outside\n\nThe dingo is outside.\n")
    (home / "notes/link.md").symlink_to(outside)
    asked: list[dict[str, Any]] = []

    class Queue:
        """Stands for the queue of the hub: notes what is asked, and lets it wait."""

        async def ask(self, **call: Any) -> None:
            asked.append(call)
            raise NeedsApproval(f"{call['message']} (approval ab12cd34)", "dari approvals approve ab12cd34")

    with ServiceCache() as services:
        config = str(home / "dari/kebab/config.toml")
        api = KnowledgeApi(lambda: services.get(config, {}, False))
        registry = Registry()
        guard = IngestGuard(api, cast(ApprovalService, Queue()))
        registry.add_tools(*make_tools(api, lambda: guard, "all"))
        async with memory_client(Server(registry, Info(name="kebab", version="1"))) as client:
            done = await client.call_tool("ingest_file", {"path": str(inside)})
            held = await client.call_tool("ingest_file", {"path": str(outside)})
            linked = await client.call_tool("ingest_file", {"path": str(home / "notes/link.md")})
            text = await client.call_tool("ingest_stdin", {"title": "T", "text": "# T\n\nNew.\n"})
            relative = await client.call_tool("ingest_file", {"path": "notes/inside.md"})
            strange = await client.call_tool("ingest_file", {"path": "/notes/\0"})
            folder = await client.call_tool("ingest_file", {"path": str(home / "notes")})
            short = await client.call_tool("fetch", {"doc_id": "backups.md", "max_tokens": 0})
        api.close()
    assert json.loads(done.text)["new"] == 1
    for result in (held, linked, text):
        assert result.is_error
        error = json.loads(result.text)
        assert (error["code"], error["details"]) == ("needs_approval", {"approval_id": "ab12cd34"})
    assert [call["arguments"].get("path") for call in asked] == [str(outside), str(outside), None]
    for result in (relative, strange, folder, short):
        assert json.loads(result.text)["code"] == "invalid_input"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_in_the_hub_the_clients_own_model_writes_the_answer(home: Path, mode: str) -> None:
    """`dari mcp` on stdio → the hub → kebabd, and the question for the model the whole way back."""
    asked: list[mcp_types.CreateMessageRequestParams] = []

    async def sample(_: object, params: mcp_types.CreateMessageRequestParams) -> mcp_types.CreateMessageResult:
        asked.append(params)
        text = "Backups are kept for 35 days [#1]." if "35 days" in str(params) else "They are kept for 99 days [#1]."
        said = mcp_types.TextContent(type="text", text=text)
        return mcp_types.CreateMessageResult(role="assistant", content=said, model="theirs")

    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "DARI_HOME": str(home / "dari")}
    server = StdioServerParameters(command=DARI, args=["mcp"], env=environ)
    try:
        with (home / "stderr").open("w") as errors:
            async with SdkClient(stdio_client(server, errlog=errors), mode=mode, sampling_callback=sample) as client:
                first = await client.call_tool(
                    "kebab_ask", {"query": "How long are backups kept?", "session_id": "talk"}
                )
                made_up = await client.call_tool("kebab_ask", {"query": "What does the canary of a deploy take?"})
    finally:
        await asyncio.to_thread(
            subprocess.run, [DARI, "remote", "daemon", "stop"], env=environ, capture_output=True, check=True
        )
    answer, refused = json.loads(first.content[0].text), json.loads(made_up.content[0].text)
    assert (answer["grounded"], answer["model"]) == (True, {"id": "client", "provider": "sampling"})
    assert answer["citations"][0]["citation"]["path"] == "backups.md"
    # What the model makes up is found out in kebabd as everywhere.
    assert (refused["grounded"], refused["refusal_reason"]) == (False, "verification_failed")
    assert len(asked) == 2
    with ServiceCache() as services:
        store = services.get(str(home / "dari/kebab/config.toml"), {}, False).base().store
        turns = store.journal.turns("talk", 10)
    assert [turn.question for turn in turns] == ["How long are backups kept?"], "a round recorded more than the answer"


async def test_a_client_of_the_hub_without_a_model_gets_the_best_sentences(home: Path) -> None:
    async with hub() as client:
        result = await client.call_tool("kebab_ask", {"query": "How long are backups kept?"})
    assert json.loads(result.text)["model"]["provider"] == "extractive"


async def test_a_client_of_the_hub_that_refuses_to_sample_gets_the_best_sentences(home: Path) -> None:
    async def refuse(_: Sampling) -> Sampled:
        raise RuntimeError("not today")

    async with hub(on_sample=refuse, mode="handshake") as client:
        result = await client.call_tool("kebab_ask", {"query": "How long are backups kept?"})
    answer = json.loads(result.text)
    assert (answer["grounded"], answer["model"]["provider"]) == (True, "extractive")
    assert "the language model did not answer" in answer["hint"]
