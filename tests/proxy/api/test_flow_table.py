"""The live table over a running proxy: rows as requests happen, filters, restarts of crabd, bursts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from dari.errors import InvalidInput
from dari.proxy.api.service import ProxyService, remote_service
from dari.proxy.daemon import CrabPaths, crabd_client
from dari.proxy.query.rows import FlowRow, RowChanges
from tests.support.crab_processes import crabd, run_directory, until_on_disk
from tests.support.origins.origin import Line, origin
from tests.support.proxy_engine import Wire, request
from tests.support.proxy_service import Rig, proxy
from tests.support.waiting import until


async def follow(service: ProxyService, cursor: str, query: str = "") -> tuple[list[FlowRow], str]:
    """Changes up to the first rows."""
    async with asyncio.timeout(20):
        while True:
            changes = await service.table.changes(cursor, query, timeout_s=5)
            assert not changes.is_stale
            cursor = changes.cursor
            if changes.rows:
                return changes.rows, cursor


async def first(service: ProxyService) -> str:
    changes = await service.table.changes()
    assert changes.is_stale and not changes.rows
    return changes.cursor


async def test_a_request_is_a_row_when_it_begins_and_again_when_it_ends(tmp_path: Path) -> None:
    may_answer = asyncio.Event()

    async def handle(line: Line) -> None:
        while await line.request() is not None:
            await may_answer.wait()
            await line.say(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno")

    async with origin(handle) as site, proxy(tmp_path) as rig:
        cursor = await first(rig.service)
        asking = asyncio.create_task(rig.get(site.url("/slow?x=1")))
        rows, cursor = await follow(rig.service, cursor)
        assert [(row.path, row.status, row.state) for row in rows] == [("/slow?x=1", None, "request")]
        may_answer.set()
        await asking
        rows, cursor = await follow(rig.service, cursor)
        assert [(row.id, row.status, row.mime, row.state) for row in rows] == [(1, 404, "text/plain", "done")]
        assert (await rig.service.table.rows()).rows == rows


async def test_a_request_that_leaves_the_filter_is_named_as_gone(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        cursor = await first(rig.service)
        await rig.get(site.url("/one"))
        changes = await rig.service.table.changes(cursor, "is:running")
        assert (changes.rows, changes.gone_ids) == ([], [1])


async def test_requests_that_run_for_long_are_told_while_they_grow(tmp_path: Path) -> None:
    may_end = asyncio.Event()

    async def handle(line: Line) -> None:
        if await line.request() is not None:
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
            await may_end.wait()

    async with origin(handle) as site, proxy(tmp_path) as rig:
        cursor = await first(rig.service)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        wire = Wire(reader, writer)
        await wire.send(request(site.url("/events")))
        await wire.head()
        _, cursor = await follow(rig.service, cursor)
        assert (await rig.service.table.changes(cursor)).rows == []
        shown = (await rig.service.table.changes(cursor, include_running=True)).rows
        assert [(row.status, row.mime, row.state) for row in shown] == [(200, "text/event-stream", "response")]
        may_end.set()
        await wire.rest()
        wire.close()


async def test_a_wrong_filter_is_refused_with_its_place(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        for call in (rig.service.table.rows("stauts:5xx"), rig.service.table.changes("", "stauts:5xx")):
            with pytest.raises(InvalidInput, match="at character 1"):
                await call
        with pytest.raises(InvalidInput, match="limit"):
            await rig.service.table.changes("", limit=10_000)


async def test_a_filter_works_on_what_was_recorded(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        for path in ("/a", "/b", "/a/2"):
            await rig.get(site.url(path))
        page = await rig.service.table.rows("url:/a -/2")
        assert [row.path for row in page.rows] == ["/a"]
        assert page.next_before_id is None and page.scanned == 3


async def test_clearing_is_told_to_those_who_follow(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/a"))
        cursor = await first(rig.service)
        waiting = asyncio.create_task(rig.service.table.changes(cursor, timeout_s=20))
        await asyncio.sleep(0)
        await rig.service.traffic.clear()
        async with asyncio.timeout(20):
            assert (await waiting).is_stale
        assert (await rig.service.table.rows()).rows == []


async def test_who_reads_while_the_disk_is_being_cleared_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/a"))
        cursor = await first(rig.service)
        recording = rig.runtime.recording
        assert recording.store is not None
        has_read, delete_all = threading.Event(), recording.store._delete_all

        def delete_late(given_ids: Iterable[int]) -> None:
            assert has_read.wait(20)
            delete_all(given_ids)

        monkeypatch.setattr(recording.store, "_delete_all", delete_late)
        clearing = asyncio.create_task(rig.service.traffic.clear())
        async with asyncio.timeout(20):
            early = await rig.service.table.changes(cursor, timeout_s=20)
            assert early.is_stale
            has_read.set()
            await clearing
            assert (await rig.service.table.changes(early.cursor, timeout_s=20)).is_stale


async def test_a_burst_comes_in_bounded_batches_and_nothing_waits_for_a_slow_reader(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        cursor = await first(rig.service)
        await _many(rig, site.url("/x"), 120)
        changes = await rig.service.table.changes(cursor, limit=50)
        assert len(changes.rows) == 50 and changes.is_cut
        assert [row.id for row in changes.rows] == list(range(71, 121))
        assert (await rig.service.table.changes(changes.cursor)).rows == []


async def test_the_table_goes_on_when_crabd_is_killed_and_started_again() -> None:
    with run_directory() as run_dir:
        async with origin() as site:
            async with crabd(run_dir):
                before, cursor, seen = await _use(run_dir, site.url("/before"))
                assert not before.is_stale
                await until_on_disk(run_dir, 1)
            async with crabd(run_dir):
                after, _, rows = await _use(run_dir, site.url("/after"), cursor)
                assert after.is_stale, "numbers of the dead daemon mean nothing to the new one"
                assert [row.path for row in rows] == ["/before", "/after"]
                assert rows[0].id == seen[0].id and rows[1].id > seen[0].id


async def _use(run_dir: Path, url: str, cursor: str = "") -> tuple[RowChanges, str, list[FlowRow]]:
    async with crabd_client(CrabPaths(run_dir), "app", starts=False) as client:
        service = remote_service(client)
        if not cursor:
            cursor = (await service.table.changes()).cursor
        if (await service.control.status()).status == "stopped":
            await service.settings.set_listen_addr("127.0.0.1:0")
            await service.control.start()
        address = (await service.control.info()).address
        assert address is not None
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        wire = Wire(reader, writer)
        await wire.send(request(url))
        await wire.reply()
        wire.close()
        found = await service.traffic.wait(timeout_s=20, after_seq=0)
        assert found.found
        changes = await service.table.changes(cursor, timeout_s=20)
        rows = (await service.table.rows()).rows
        return changes, changes.cursor, rows


async def _many(rig: Rig, url: str, count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    wire = Wire(reader, writer)
    for _ in range(count):
        await wire.get(url)
    wire.close()
    await until(lambda: all(flow.state == "done" for flow in rig.runtime.recording.ring.newest()))
