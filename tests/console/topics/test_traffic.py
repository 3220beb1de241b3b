"""The topic `traffic`: snapshot, changes, filters, bursts, clearing, and a crabd that goes and comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from dari.console.backends import ConsoleBackends
from dari.console.live import TopicOptions
from dari.console.topics.traffic import Down, FlowChanges, FlowSnapshot, TrafficEvent, follow, follow_traffic
from dari.errors import InvalidInput
from dari.proxy.api.service import ProxyService, remote_service
from dari.proxy.daemon import CrabPaths, crabd_client
from dari.proxy.query.rows import MAX_CHANGES, FlowRow
from tests.support.crab_processes import crabd, end_crabd, run_directory, until_on_disk
from tests.support.flows import flow
from tests.support.origins.origin import Line, origin
from tests.support.proxy_engine import Wire, request
from tests.support.proxy_service import Rig, proxy
from tests.support.waiting import turn_until

Events = AsyncGenerator[TrafficEvent, None]
PATIENCE_S = 30


async def next_of(events: Events) -> TrafficEvent:
    async with asyncio.timeout(PATIENCE_S):
        return await anext(events)


async def rows_until(events: Events, count: int) -> list[FlowRow]:
    """The rows of changes, until there are so many different ones that have ended."""
    done: dict[int, FlowRow] = {}
    while len(done) < count:
        event = await next_of(events)
        assert isinstance(event, FlowChanges), event
        done |= {row.id: row for row in event.rows if row.state == "done"}
    return [done[flow_id] for flow_id in sorted(done)]


async def test_the_first_event_is_what_was_recorded_and_the_state_of_the_proxy(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/before"))
        async with aclosing(follow(rig.service, "")) as events:
            first = await next_of(events)
            assert isinstance(first, FlowSnapshot)
            assert [row.path for row in first.rows] == ["/before"] and first.next_before_id is None
            assert first.proxy.status == "running" and first.proxy.address


async def test_requests_come_as_changes_while_they_happen(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig, aclosing(follow(rig.service, "")) as events:
        await next_of(events)
        for path in ("/a", "/b"):
            await rig.get(site.url(path))
        assert [row.path for row in await rows_until(events, 2)] == ["/a", "/b"]


async def test_a_filter_shows_what_fits_and_takes_away_what_does_not_any_more(tmp_path: Path) -> None:
    may_answer = asyncio.Event()

    async def handle(line: Line) -> None:
        while await line.request() is not None:
            await may_answer.wait()
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with (
        origin(handle) as site,
        proxy(tmp_path) as rig,
        aclosing(follow(rig.service, "is:running")) as events,
    ):
        await next_of(events)
        asking = asyncio.create_task(rig.get(site.url("/slow")))
        shown = await next_of(events)
        assert isinstance(shown, FlowChanges) and [row.state for row in shown.rows] == ["request"]
        may_answer.set()
        await asking
        while not (gone := await next_of(events)).gone_ids:  # type: ignore[union-attr]
            assert isinstance(gone, FlowChanges)
        assert isinstance(gone, FlowChanges) and (gone.gone_ids, gone.rows) == ([1], [])


async def test_a_page_that_comes_back_goes_on_where_it_was(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        async with aclosing(follow(rig.service, "")) as events:
            first = await next_of(events)
            assert isinstance(first, FlowSnapshot)
        await rig.get(site.url("/meanwhile"))
        async with aclosing(follow(rig.service, "", first.cursor)) as events:
            again = await next_of(events)
            assert isinstance(again, FlowChanges) and [row.path for row in again.rows] == ["/meanwhile"]
            assert again.proxy is not None


async def test_clearing_sends_an_empty_snapshot(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/a"))
        async with aclosing(follow(rig.service, "")) as events:
            await next_of(events)
            await rig.service.traffic.clear()
            while not isinstance(event := await next_of(events), FlowSnapshot):
                pass
            assert event.rows == []


async def test_the_state_of_the_proxy_is_told_when_it_changes(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig, aclosing(follow(rig.service, "")) as events:
        await next_of(events)
        await rig.service.control.stop()
        event = await next_of(events)
        assert isinstance(event, FlowChanges) and event.proxy is not None and event.proxy.status == "stopped"


async def test_a_burst_costs_a_slow_page_one_bounded_event(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig, aclosing(follow(rig.service, "")) as events:
        await next_of(events)
        record(rig, range(1, 5001))
        event = await next_of(events)
        assert isinstance(event, FlowChanges) and event.is_cut and len(event.rows) == MAX_CHANGES
        assert event.rows[-1].id == 5000
        assert len(msgspec.json.encode(event)) < 100_000
        older = await rig.service.table.rows("", event.rows[0].id, 2000)
        assert [row.id for row in older.rows] == list(range(5000 - MAX_CHANGES - 1999, 5000 - MAX_CHANGES + 1))


async def test_hostile_names_come_through_as_they_are_and_cannot_break_the_stream(tmp_path: Path) -> None:
    names = ("<img src=x onerror=alert(1)>", "‮gnp.exe", "a​b", "x" * 100_000, "%00\x00")
    async with proxy(tmp_path) as rig, aclosing(follow(rig.service, "")) as events:
        await next_of(events)
        for number, name in enumerate(names, 1):
            one = flow(number, f"http://{name}.test/{name}", process=f"{name}\ud800")
            rig.runtime.recording.ring.began(one)
            rig.runtime.recording.ring.finished(one)
        rows = await rows_until(events, len(names))
        msgspec.json.encode(rows)
        assert rows[0].host == f"{names[0]}.test"


async def test_a_filter_that_cannot_be_read_ends_the_topic_with_the_reason() -> None:
    backends = cast(ConsoleBackends, SimpleNamespace(proxy=lambda starts: None))
    with pytest.raises(InvalidInput, match="stauts"):
        await anext(aiter(follow_traffic(backends, "stauts:5xx", TopicOptions())))


async def test_looking_at_traffic_starts_no_daemon_and_finds_one_that_somebody_starts() -> None:
    with run_directory() as run_dir:
        async with service_of(run_dir) as service, aclosing(follow(service, "")) as events:
            down = await next_of(events)
            assert isinstance(down, Down) and down.hint
            async with crabd(run_dir):
                first = await next_of(events)
                assert isinstance(first, FlowSnapshot) and first.proxy.status == "stopped"


async def test_a_page_survives_a_crabd_that_is_killed_and_started_again() -> None:
    with run_directory() as run_dir:
        async with origin() as site, service_of(run_dir) as service, aclosing(follow(service, "")) as events:
            async with crabd(run_dir):
                while not isinstance(await next_of(events), FlowSnapshot):
                    pass
                await service.settings.set_listen_addr("127.0.0.1:0")
                await service.control.start()
                await get(service, site.url("/before"))
                await service.traffic.wait(after_seq=0)
                while not isinstance(event := await next_of(events), FlowChanges) or not event.rows:
                    pass
                await until_on_disk(run_dir, 1)
                end_crabd(run_dir)
                while not isinstance(await next_of(events), Down):
                    pass
            async with crabd(run_dir):
                again = await next_of(events)
                assert isinstance(again, FlowSnapshot) and [row.path for row in again.rows] == ["/before"]
                await get(service, site.url("/after"))
                assert (await rows_until(events, 1))[-1].path == "/after"


async def test_a_page_that_leaves_leaves_nothing_waiting(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        events: Any = follow(rig.service, "")
        await next_of(events)
        waiting = asyncio.create_task(anext(events))
        await turn_until(lambda: rig.runtime.recording.ring.on_change)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await events.aclose()
        assert rig.runtime.recording.ring.on_change == []


def record(rig: Rig, numbers: range) -> None:
    ring = rig.runtime.recording.ring
    for number in numbers:
        ring.began(one := flow(number))
        ring.finished(one)


@asynccontextmanager
async def service_of(run_dir: Path) -> AsyncIterator[ProxyService]:
    async with crabd_client(CrabPaths(run_dir), "app", starts=False) as client:
        yield remote_service(client)


async def get(service: ProxyService, url: str) -> None:
    address = (await service.control.info()).address
    assert address is not None
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    wire = Wire(reader, writer)
    await wire.send(request(url))
    await wire.reply()
    wire.close()
