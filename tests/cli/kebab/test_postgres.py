"""The commands over a store in PostgreSQL: from nothing to an answer, and no password in anything that is shown."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.knowledge.api import KnowledgeApi
from dari.knowledge.config import load_settings
from dari.knowledge.ingest.writer import open_writer
from dari.knowledge.service import ServiceCache
from dari.knowledge.tools.server import build_server
from dari.mcp.client import Client
from dari.transport.client.child import ChildChannel
from tests.support.kebab_command import Kebab, kebab_home
from tests.support.knowledge_base import write_notes
from tests.support.mcp_client import memory_client
from tests.support.postgres_server import PASSWORD

KEBAB = str(Path(sys.executable).with_name("kebab"))
DEADLINE_S = 90
pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture
def kebab(tmp_path: Path, postgres_url: str) -> Iterator[Kebab]:
    with kebab_home(tmp_path, is_indexed=False) as home:
        write_notes(home.notes)
        home.environ["KEBAB_STORE_SCHEMA"] = "c" + hashlib.sha256(str(tmp_path).encode()).hexdigest()[:20]
        yield home


async def test_from_nothing_to_an_answer_and_back(kebab: Kebab, postgres_url: str) -> None:
    made = await kebab("init", "notes", "--store", postgres_url, "--json")
    assert made.code == 0, made.err
    before = await kebab("doctor")
    ingested = await kebab("ingest", "--json", "--quiet")
    found = await kebab("search", "비밀번호는 며칠마다", "--json")
    phrase = await kebab("search", '"five percent"', "--json")
    answer = await kebab("ask", "When are backups made?", "--json")
    listed = await kebab("list", "docs")
    schema = await kebab("schema", "--json")
    doctor = await kebab("doctor")
    again = await kebab("ingest", "--json", "--quiet")
    piped = await kebab("ingest-stdin", "--title", "Ships", "--json", "--quiet", stdin="The zeppelin lands at noon.")
    fetched = await kebab("search", "zeppelin", "--json")
    span = await kebab("fetch", "span", fetched.json["hits"][0]["doc_path"], "1", "1", "--json")
    orphans = await kebab("reset", "--orphans-only", "--yes", "--json")
    reset = await kebab("reset", "--data-only", "--yes", "--json")
    empty = await kebab("search", "backups", "--json")
    anew = await kebab("ingest", "--json", "--quiet")
    assert before.code == 3 and "nothing is indexed" in before.out
    assert (ingested.code, ingested.json["new"]) == (0, 3)
    assert found.json["hits"][0]["doc_path"] == "korean/보안.md"
    assert phrase.json["hits"][0]["doc_path"] == "deploy.md"
    assert (answer.code, answer.json["grounded"]) == (0, True)
    assert "backups.md" in listed.out
    assert schema.json["models"]["index_version"].startswith("postings-")
    assert schema.json["stats"]["index_bytes"]["lexical"] > 0
    assert doctor.code == 0, doctor.out
    assert (again.json["new"], again.json["unchanged"]) == (0, 3)
    assert piped.json["new"] == 1
    assert "zeppelin" in span.json["text"]
    assert orphans.json["documents_removed"] == 0
    assert reset.json["documents_removed"] == 4
    assert empty.error["code"] == "not_indexed"
    assert anew.json["new"] == 3
    assert not (kebab.root / "dari/kebab/data/kebab.sqlite").exists()
    for done in (made, before, ingested, found, answer, schema, doctor, reset, empty):
        assert PASSWORD not in done.out + done.err
    assert Path(made.json["config"]).stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in str(made.json)
    data = kebab.root / "dari/kebab/data"
    (data / "model.json").write_text("{}")
    everything = await kebab("reset", "--all", "--yes", "--json")
    assert str(data / "model.json") in everything.json["removed"]
    assert not (data / "model.json").exists()


async def test_a_writer_elsewhere_is_the_error_of_a_locked_store(kebab: Kebab, postgres_url: str) -> None:
    kebab.environ["KEBAB_STORE_URL"] = postgres_url
    await kebab("init", "notes")
    await kebab("ingest")
    with open_writer(load_settings(str(kebab.root / "dari/kebab/config.toml"), kebab.environ)):
        refused = await kebab("ingest", "--json", "--quiet")
        found = await kebab("search", "backups", "--json")
    assert (refused.code, refused.error["code"]) == (2, "store_locked")
    assert found.code == 0  # readers are not kept out


async def test_a_wrong_url_is_refused_without_its_password(kebab: Kebab, postgres_url: str) -> None:
    refused = await kebab("init", "notes", "--store", f"mysql://me:{PASSWORD}@db/x", "--json")
    assert refused.error["code"] == "config_invalid"
    assert PASSWORD not in refused.err
    stranger = postgres_url.replace("kebab:", "stranger:")
    untried = await kebab("init", "notes", "--store", stranger, "--json")
    assert untried.error["code"] == "denied"
    assert PASSWORD not in untried.err
    assert not (kebab.root / "dari/kebab/config.toml").exists()
    kebab.environ["KEBAB_STORE_URL"] = stranger
    done = await kebab("doctor", "--json")
    assert done.code == 3
    assert "refuses the login" in done.out
    assert PASSWORD not in done.out + done.err


async def test_a_second_machine_takes_a_source_over_when_it_says_so(
    kebab: Kebab, postgres_url: str, tmp_path: Path
) -> None:
    kebab.environ["KEBAB_STORE_URL"] = postgres_url
    await kebab("init", "notes")
    await kebab("ingest")
    (tmp_path / "second").mkdir()
    with kebab_home(tmp_path / "second", is_indexed=False) as second:
        second.environ |= {name: kebab.environ[name] for name in ("KEBAB_STORE_URL", "KEBAB_STORE_SCHEMA")}
        second.notes.mkdir()
        (second.notes / "other.md").write_text("# Other\n\nThe zeppelin lands at noon.\n")
        await second("init", "notes")
        found = await second("search", "backups", "--json")
        refused = await second("ingest", "--json", "--quiet")
        orphans = await second("reset", "--orphans-only", "--yes", "--json")
        taken = await second("ingest", "--take-over", "--json", "--quiet")
    assert found.json["hits"]
    assert refused.code != 0 and "belongs to another machine" in refused.error["message"]
    assert orphans.json["documents_removed"] == 0
    assert (taken.code, taken.json["new"], taken.json["removed"]) == (0, 1, 3)


@pytest.mark.parametrize("is_option", [False, True])
async def test_a_password_that_others_may_read_fails_the_doctor(
    kebab: Kebab, postgres_url: str, is_option: bool
) -> None:
    url = f"{postgres_url.replace(f':{PASSWORD}', '')}?password={PASSWORD}" if is_option else postgres_url
    made = await kebab("init", "notes", "--store", url, "--json")
    await kebab("ingest")
    private = await kebab("doctor", "--json")
    Path(made.json["config"]).chmod(0o644)
    public = await kebab("doctor", "--json")
    assert (private.code, public.code) == (0, 3)
    assert "chmod 600" in public.out
    assert PASSWORD not in public.out


async def test_an_agent_searches_and_asks_over_mcp(kebab: Kebab, postgres_url: str) -> None:
    kebab.environ["KEBAB_STORE_URL"] = postgres_url
    await kebab("init", "notes")
    await kebab("ingest")
    config = str(kebab.root / "dari/kebab/config.toml")
    with ServiceCache() as services:
        api = KnowledgeApi(lambda: services.get(config, kebab.environ, False))
        async with memory_client(build_server(api, environ={})) as client:
            found = await client.call_tool("search", {"query": "when are backups made"})
            answer = await client.call_tool("ask", {"query": "When are backups made?"})
            health = await client.call_tool("doctor", {})
        api.close()
    assert "backups.md" in found.text
    assert '"grounded":true' in answer.text.replace(" ", "")
    assert PASSWORD not in found.text + answer.text + health.text
    assert "postgresql://127.0.0.1" in health.text


async def test_an_agent_is_served_over_real_stdio(kebab: Kebab, postgres_url: str) -> None:
    kebab.environ["KEBAB_STORE_URL"] = postgres_url
    await kebab("init", "notes")
    await kebab("ingest")
    environ = {**kebab.environ, "PATH": os.environ["PATH"]}
    async with asyncio.timeout(DEADLINE_S), Client(ChildChannel((KEBAB, "mcp"), env=environ)) as client:
        found = await client.call_tool("search", {"query": "when are backups made"})
        answer = await client.call_tool("ask", {"query": "When are backups made?"})
    assert "backups.md" in found.text
    assert json.loads(answer.text)["grounded"] is True


async def test_watch_follows_a_folder_into_the_server(kebab: Kebab, postgres_url: str) -> None:
    kebab.environ |= {"KEBAB_STORE_URL": postgres_url, "KEBAB_INGEST_WATCH_DEBOUNCE_MS": "50"}
    await kebab("init", "notes")
    process = await asyncio.create_subprocess_exec(
        *(KEBAB, "watch", "--json", "--quiet"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env={**kebab.environ, "PATH": os.environ["PATH"]},
        cwd=kebab.root,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            first = json.loads(await process.stdout.readline())
            (kebab.notes / "airship.md").write_text("# Airship\n\nThe zeppelin lands at noon.\n")
            later = json.loads(await process.stdout.readline())
            found = await kebab("search", "zeppelin", "--json")
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (first["new"], later["new"]) == (3, 1)
    assert found.json["hits"][0]["doc_path"] == "airship.md"
