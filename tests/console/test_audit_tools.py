"""What a person reads of the audit log at the page: search, one record, sessions, export, the chain, news, charts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from dari.bridge.service import Bridge
from dari.console.backends import ConsoleBackends
from dari.console.live import TopicOptions
from dari.console.tools.activity import ActivityTools
from dari.console.tools.audit import AuditFilter, AuditTools
from dari.console.topics.activity import follow_activity
from dari.console.topics.audit import follow_audit
from dari.core.audit.log import AuditLog
from dari.errors import InvalidInput, NotFound, Unavailable
from tests.support.bridge import ME, Place, lab


class _Backends:
    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge


@asynccontextmanager
async def open_log(folder: Path, **options: Any) -> AsyncIterator[tuple[AuditTools, ConsoleBackends]]:
    async with Bridge(folder / "state", **options) as bridge:
        backends = cast(ConsoleBackends, _Backends(bridge))
        yield AuditTools(backends), backends


def log_of(backends: ConsoleBackends) -> AuditLog:
    assert backends.bridge.audit is not None
    return backends.bridge.audit


def work(log: AuditLog) -> None:
    """Two agents; the first works in three parts."""
    log.call("crab", "crab_traffic_tail", "ok", part="crab", who="mcp:claude", session="a-1", ms=4, result_bytes=4000)
    held: dict[str, Any] = {"part": "crux", "who": "mcp:claude", "session": "a-1"}
    held["error"] = "`rm -rf dist` needs approval (approval 1a2b3c4d)"
    log.call("crux", "crux_execute_command", "held", arguments=b'{"command":"rm -rf dist"}', **held)
    log.note_decision(
        server="crux", tool="command/execute", who="ann", session="a-1", event="call denied", id="1a2b3c4d"
    )
    log.call("git", "git_log", "ok", who="mcp:claude", session="a-1", ms=120)
    log.call(
        "git", "git_log", "error", who="mcp:cursor", session="b-1", error="no repository <script>alert(1)</script>"
    )


async def test_a_session_is_a_timeline_across_all_parts(tmp_path: Path) -> None:
    async with open_log(tmp_path) as (tools, backends):
        work(log_of(backends))
        found = await tools.search_records(AuditFilter(session="a-1"))
        assert [(one.part, one.tool) for one in found.records] == [
            ("bridge", "git_log"),
            ("", "command/execute"),
            ("crux", "crux_execute_command"),
            ("crab", "crab_traffic_tail"),
        ]
        assert [one.approval for one in found.records] == ["", "1a2b3c4d", "1a2b3c4d", ""]
        assert found.next == "" and found.records[2].arguments == msgspec.Raw(b'{"command":"rm -rf dist"}')
        first, second = (await tools.sessions()).sessions
        by_name = {one.session: one for one in (first, second)}
        assert by_name["a-1"].parts == ["bridge", "crab", "crux"] and by_name["a-1"].calls == 3
        assert by_name["b-1"].failed == 1


async def test_a_record_has_an_address_and_carries_its_hash(tmp_path: Path) -> None:
    async with open_log(tmp_path) as (tools, backends):
        work(log_of(backends))
        (found,) = (await tools.search_records(AuditFilter(text="<SCRIPT>"))).records
        shown = await tools.show(found.n)
        assert shown.record == found and json.loads(shown.line)["prev"] == shown.prev
        following = await tools.show(found.n - 1)
        assert following.hash == shown.prev
        with pytest.raises(NotFound):
            await tools.show(10_000)


async def test_pages_and_exports_go_on_by_cursors(tmp_path: Path) -> None:
    async with open_log(tmp_path) as (tools, backends):
        log = log_of(backends)
        for number in range(25):
            log.call("git", f"tool{number}", "ok", who="mcp:claude")
        names, cursor = [], ""
        while True:
            page = await tools.search_records(AuditFilter(who="mcp:*"), cursor, 10)
            names += [one.tool for one in page.records]
            if not (cursor := page.next):
                break
        assert names == [f"tool{number}" for number in reversed(range(25))]
        part = await tools.export(AuditFilter(server="git"), limit=20)
        rest = await tools.export(AuditFilter(server="git"), part.next, 20)
        lines = (part.lines + rest.lines).splitlines()
        assert (part.records, rest.records) == (20, 5) and json.loads(lines[-1])["tool"] == "tool0"
        with pytest.raises(InvalidInput, match="cursor"):
            await tools.search_records(cursor="../x")


async def test_a_log_that_somebody_changed_is_named(tmp_path: Path) -> None:
    async with open_log(tmp_path) as (tools, backends):
        work(log_of(backends))
        whole = await tools.verify()
        assert whole.is_whole and whole.records == 6 and whole.head.startswith("6:")
        (file,) = log_of(backends).directory.glob("*.jsonl")
        file.write_bytes(file.read_bytes().replace(b"crab_traffic_tail", b"crab_traffic_look"))
        broken = await tools.verify()
        assert not broken.is_whole and broken.broken is not None and broken.broken.line == 3


async def test_news_come_as_they_are_written_and_what_was_missed_first(tmp_path: Path) -> None:
    async with open_log(tmp_path) as (_, backends), asyncio.timeout(20):
        log = log_of(backends)
        work(log)
        log.flush()
        options = TopicOptions(since="4", extra={"who": "mcp:*"})
        news = follow_audit(backends, "", options)
        async with aclosing(news):  # type: ignore[type-var]
            assert [one.n for one in (await anext(news)).records] == [6, 5]
            log.call("git", "wanted", "ok", who="mcp:claude")
            log.call("git", "not wanted", "ok", who="cli")
            assert [one.tool for one in (await anext(news)).records] == ["wanted"]


async def test_a_page_that_was_away_for_long_searches_anew(tmp_path: Path) -> None:
    async with open_log(tmp_path) as (_, backends), asyncio.timeout(20):
        log = log_of(backends)
        for _ in range(250):
            log.call("git", "log", "ok")
        log.flush()
        news = follow_audit(backends, "", TopicOptions(since="2"))
        async with aclosing(news):  # type: ignore[type-var]
            first = await anext(news)
            assert first.is_reset and first.records == []


async def test_a_wrong_filter_and_a_hub_without_a_log_are_told(tmp_path: Path) -> None:
    async with open_log(tmp_path) as (_, backends):
        with pytest.raises(InvalidInput, match="filter"):
            await anext(follow_audit(backends, "", TopicOptions(extra={"outcome": "x"})))
    async with open_log(tmp_path, audits=False) as (tools, backends):
        with pytest.raises(Unavailable):
            await tools.search_records()
        with pytest.raises(Unavailable):
            await ActivityTools(backends).calls()
        assert (await anext(follow_activity(backends, "", TopicOptions()))).processes


async def test_calls_are_counted_and_processes_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    place = Place(tmp_path, lab(tmp_path))
    async with place.bridge() as bridge, asyncio.timeout(60):
        backends = cast(ConsoleBackends, _Backends(bridge))
        await bridge.view(place.around()).upstream("lab").call_tool("greet", b"{}", ME)
        tools = ActivityTools(backends)
        log_of(backends).flush()
        (series,) = (await tools.calls(group_by="tool")).series
        assert (series.name, sum(series.calls)) == ("greet", 1) and sum(series.tokens) > 0
        topic = follow_activity(backends, "", TopicOptions())
        async with aclosing(topic):  # type: ignore[type-var]
            kinds = {one.process.name: one.process for one in (await anext(topic)).processes}
        assert kinds["lab"].kind == "server" and kinds["lab"].memory_bytes > 1_000_000
        assert kinds["hub"].kind == "hub"
