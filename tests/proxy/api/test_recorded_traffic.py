from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from dari.errors import InvalidInput, NotFound, Unavailable
from dari.proxy import replay
from dari.proxy.engine.hooks import RecorderHook as EngineRecorder
from dari.proxy.flow import Flow
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.wait import wait_for
from dari.proxy.recording.recording import Recording, RecordingLimits
from dari.text.redact import Redactor as RealRedactor
from tests.support.flows import SECRET, Hiding, flow, running
from tests.support.proxy_service import traffic_of

LONG = b"y" * 50_000


def record(recording: Recording, count: int = 1, **how: object) -> list[Flow]:
    made = []
    for _ in range(count):
        one = flow(0, **how)  # type: ignore[arg-type]
        recording.recorder.began(one)
        for from_client, body in ((True, one.request_body), (False, one.response_body)):
            if body.size_bytes:
                recording.recorder.body(one, from_client, (body.sample * 10)[: body.size_bytes])
        recording.recorder.finished(one)
        made.append(one)
    return made


async def test_everything_survives_a_restart_and_ids_and_numbers_go_on(tmp_path: Path) -> None:
    first = Recording.open(tmp_path / "t")
    made = record(first, 5, response=LONG)
    last_seq = (await traffic_of(first, tmp_path).log(0, 1000)).next_seq
    await first.close()

    again = Recording.open(tmp_path / "t")
    assert (
        await traffic_of(again, tmp_path).log(last_seq, 1000)
    ).records == []  # a reader that goes on sees nothing twice
    assert [one.request_id for one in (await traffic_of(again, tmp_path).tail()).entries][:5] == [
        "5",
        "4",
        "3",
        "2",
        "1",
    ]
    assert (await traffic_of(again, tmp_path).search(TrafficFilter())).count == 5
    assert (await traffic_of(again, tmp_path).body("5", max_chars=100_000)).text == LONG.decode()
    (new,) = record(again)
    assert new.id > made[-1].id and (await traffic_of(again, tmp_path).log(last_seq, 1000)).records[0].seq > last_seq
    await again.close()


async def test_flows_beyond_the_ring_are_read_from_the_database(tmp_path: Path) -> None:
    traffic = Recording.open(tmp_path / "t", limits=RecordingLimits(capacity=10))
    record(traffic, 300)
    assert traffic.store is not None
    await asyncio.to_thread(traffic.store.flush)
    found = await traffic_of(traffic, tmp_path).search(TrafficFilter(), limit=500, token_budget=10**6)
    assert [row["id"] for row in found.flows] == list(range(300, 0, -1))
    assert (await traffic.flow(1)).id == 1
    assert (await traffic_of(traffic, tmp_path).entry("1")).entry.status == 200
    assert (await traffic_of(traffic, tmp_path).summary()).flows == 300
    done = await traffic_of(traffic, tmp_path).export_har(limit=20)
    names = {(await traffic_of(traffic, tmp_path).export_har(limit=1)).path for _ in range(5)}
    assert len(names - {done.path}) == 5, "a name that we choose is never taken, however quickly one export follows"
    exported = json.loads(Path(done.path).read_bytes())["log"]["entries"]
    assert [one["_dari"]["id"] for one in exported] == list(range(281, 301))
    await traffic.close()


async def test_clearing_removes_memory_database_and_bodies_but_not_what_runs(tmp_path: Path) -> None:
    traffic = Recording.open(tmp_path / "t")
    record(traffic, 3, response=LONG)
    traffic.recorder.began(slow := running(0))
    cleared = await traffic_of(traffic, tmp_path).clear()
    assert cleared.cleared == 13 and (await traffic_of(traffic, tmp_path).search()).count == 0
    assert traffic.bodies is not None and traffic.bodies.used_bytes == 0
    slow.state, slow.status = "done", 200
    traffic.recorder.finished(slow)
    assert [row["id"] for row in (await traffic_of(traffic, tmp_path).search()).flows] == [slow.id]
    await traffic.close()


async def test_what_ends_while_the_disk_is_being_cleared_keeps_its_row_and_its_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = Recording.open(tmp_path / "t")
    assert traffic.store is not None and traffic.bodies is not None
    record(traffic, 3, response=LONG)
    slow = flow(0, response=LONG)
    traffic.recorder.began(slow)
    is_clearing, may_clear, delete_all = threading.Event(), threading.Event(), traffic.store._delete_all

    def delete_late(given_ids: Iterable[int]) -> None:
        is_clearing.set()
        assert may_clear.wait(20)
        delete_all(given_ids)

    monkeypatch.setattr(traffic.store, "_delete_all", delete_late)
    clearing = asyncio.create_task(traffic.clear())
    assert await asyncio.to_thread(is_clearing.wait, 20)
    (new,) = record(traffic, 1, response=LONG)
    traffic.recorder.body(slow, False, LONG)
    traffic.recorder.finished(slow)
    may_clear.set()
    await clearing
    await asyncio.to_thread(traffic.store.flush)
    assert traffic.store.ids() == {slow.id, new.id}
    assert all(traffic.bodies.is_whole(one.response_body) for one in (slow, new))
    assert sorted(os.listdir(traffic.bodies.directory)) == [f"{slow.id}.response", f"{new.id}.response"]
    await traffic.close()


async def test_a_clear_that_the_database_refuses_is_an_error_and_removes_the_bodies_all_the_same(
    tmp_path: Path,
) -> None:
    traffic = Recording.open(tmp_path / "t")
    assert traffic.store is not None and traffic.bodies is not None
    record(traffic, 3, response=LONG)
    await asyncio.to_thread(traffic.store.flush)

    def fail(given_ids: Iterable[int]) -> None:
        raise sqlite3.OperationalError("database is locked")

    traffic.store._delete_all = fail  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="locked"):
        await traffic_of(traffic, tmp_path).clear()
    assert traffic.bodies.used_bytes == 0 and traffic.store.count() == 3
    del traffic.store._delete_all
    await traffic_of(traffic, tmp_path).clear()
    assert traffic.store.count() == 0
    await traffic.close()


async def test_a_flow_that_is_not_there_names_the_tool_that_finds_one(tmp_path: Path) -> None:
    traffic = Recording()
    with pytest.raises(NotFound) as refused:
        await traffic.flow(7)
    assert "crab_traffic_search" in refused.value.hint
    for request_id in ("7", "seven", "", "-1", "9" * 30, "٣"):
        with pytest.raises(NotFound) as gone:
            await traffic_of(traffic, tmp_path).entry(request_id)
        assert gone.value.message == f"request_id not found in current log window: {request_id}"


async def test_what_the_allow_list_leaves_out_is_not_recorded(tmp_path: Path) -> None:
    traffic = Recording()
    hidden = flow(1, is_recorded=False)
    traffic.recorder.began(hidden)
    traffic.recorder.finished(hidden)
    assert (await traffic_of(traffic, tmp_path).tail()).entries == [] and (
        await traffic_of(traffic, tmp_path).log()
    ).records == []


async def test_an_engine_that_counts_from_one_again_overwrites_nothing(tmp_path: Path) -> None:
    traffic = Recording.open(tmp_path / "t")
    for _ in range(2):  # started twice
        for number in (1, 2, 3):
            traffic.recorder.began(one := flow(number))
            traffic.recorder.finished(one)
            traffic.recorder.finished(one)
    assert (await traffic_of(traffic, tmp_path).search()).count == 6
    await traffic.close()


async def test_a_flow_that_ends_without_having_begun_is_recorded(tmp_path: Path) -> None:
    traffic = Recording()
    traffic.recorder.began(other := flow(1))
    traffic.recorder.finished(refused := flow(1, error="tls_client_rejected"))
    traffic.recorder.finished(other)
    assert [one.request_id for one in (await traffic_of(traffic, tmp_path).tail()).entries] == [
        "1",
        "2",
    ] and refused.id == 2


async def test_small_bodies_are_whole_even_when_the_engine_takes_no_samples(tmp_path: Path) -> None:
    traffic = Recording.open(tmp_path / "t")
    one = flow(0, response=b"hello", response_headers=[(b"Content-Type", b"text/plain")])
    one.response_body.sample = b""
    traffic.recorder.began(one)
    traffic.recorder.body(one, False, b"hello")
    traffic.recorder.finished(one)
    assert (await traffic_of(traffic, tmp_path).body(str(one.id))).text == "hello"
    await traffic.close()


async def test_bodies_are_not_wanted_when_nothing_would_be_done_with_them(tmp_path: Path) -> None:
    assert not Recording().recorder.spools
    traffic = Recording.open(tmp_path / "t")
    assert traffic.recorder.spools
    traffic.recorder.keeps_bodies = False
    assert not traffic.recorder.spools
    await traffic.close()


def test_the_recorder_is_what_the_engine_asks_for() -> None:
    recorder: EngineRecorder = Recording().recorder
    assert {"spools", "began", "body", "frame", "finished"} <= set(dir(recorder))


async def test_the_real_redactor_is_what_the_store_asks_for(tmp_path: Path) -> None:
    traffic = Recording(redactor=RealRedactor())
    record(traffic, request_headers=[(b"Authorization", b"Bearer abcdef123456")])
    assert "abcdef123456" not in str(await traffic_of(traffic, tmp_path).tail())


async def test_recording_can_be_switched_off_and_what_began_is_finished(tmp_path: Path) -> None:
    traffic = Recording()
    traffic.recorder.began(one := flow(0))
    traffic.recorder.is_on = False
    record(traffic, 3)
    traffic.recorder.finished(one)
    assert [entry.request_id for entry in (await traffic_of(traffic, tmp_path).tail()).entries] == ["1"]


async def test_an_agent_reads_no_secret_anywhere_and_replay_still_has_it(tmp_path: Path) -> None:
    traffic = Recording.open(tmp_path / "t", Hiding())
    head = [(b"Authorization", f"Bearer {SECRET}".encode()), (b"Content-Type", b"text/plain")]
    url = f"http://a.test/?key={SECRET}"
    body = SECRET.encode()
    a, b = record(traffic, 2, url=url, method="POST", request=body, response=body, request_headers=head)
    b.request_headers = [(b"Authorization", f"Basic {SECRET}".encode())]
    told = [
        (await traffic_of(traffic, tmp_path).log(0, 1000)),
        (await traffic_of(traffic, tmp_path).tail()),
        await traffic_of(traffic, tmp_path).entry("1"),
        await traffic_of(traffic, tmp_path).search(
            fields=["url", "request_headers", "response_headers", "request_body", "response_body"]
        ),
        await traffic_of(traffic, tmp_path).show(str(a.id), ["url", "request_body"]),
        await traffic_of(traffic, tmp_path).summary(),
        await traffic_of(traffic, tmp_path).body(str(a.id)),
        await traffic_of(traffic, tmp_path).diff(str(a.id), str(b.id)),
        await traffic_of(traffic, tmp_path).code(str(a.id)),
        await traffic_of(traffic, tmp_path).code(str(a.id), "httpx"),
        Path((await traffic_of(traffic, tmp_path).export_har()).path).read_text(),
    ]
    for one in told:
        assert SECRET not in str(one)
    assert SECRET in str(await traffic_of(traffic, tmp_path).reveal(str(a.id)))
    again = replay.build(await traffic.flow(a.id), replay.RequestEdits(method="PUT"), traffic.bodies)
    assert (
        SECRET in again.url and again.body == body and (b"Authorization", f"Bearer {SECRET}".encode()) in again.headers
    )
    await traffic.close()


async def test_an_imported_file_is_searched_like_traffic(tmp_path: Path) -> None:
    source = Recording()
    record(source, 30, url="http://imported.test/x")
    traffic = Recording.open(tmp_path / "t")
    record(traffic, 2)
    exported = await traffic_of(source, tmp_path).export_har(str(tmp_path / "source.har"))
    imported = await traffic_of(traffic, tmp_path).import_har(exported.path)
    assert imported.imported == 30 and imported.first_id == "3"
    assert (await traffic_of(traffic, tmp_path).search(TrafficFilter(host="imported.test"))).count == 30
    await traffic.close()
    again = Recording.open(tmp_path / "t")
    assert (await traffic_of(again, tmp_path).search(TrafficFilter(host="imported.test"))).count == 30
    await again.close()


async def test_a_request_that_hung_when_the_proxy_was_killed_is_shown_as_cut_off(tmp_path: Path) -> None:
    first = Recording.open(tmp_path / "t")
    hanging = running(0, started_unix_ms=1000)
    first.recorder.began(hanging)
    assert first.store is not None
    first.store._open_asked = 0.0
    await asyncio.to_thread(first.store.flush)
    await first.close()
    again = Recording.open(tmp_path / "t")
    (row,) = (await traffic_of(again, tmp_path).search(TrafficFilter(has_error=True))).flows
    assert row["error"] == "the proxy ended before this request did"
    await again.close()


async def test_waiting_sees_a_flow_recorded_by_the_engine() -> None:
    traffic = Recording()
    waiting = asyncio.create_task(wait_for(traffic.ring, TrafficFilter(url_contains="items")))
    await asyncio.sleep(0)
    (made,) = record(traffic)
    assert (await waiting).flow is made


async def test_a_plain_line_stands_in_the_log_and_not_among_the_requests(tmp_path: Path) -> None:
    traffic = Recording()
    traffic.note("LAN_ACCESS_REQUEST ip=10.0.0.9")
    record(traffic)
    assert (await traffic_of(traffic, tmp_path).log()).records[0].message == "LAN_ACCESS_REQUEST ip=10.0.0.9"
    assert (await traffic_of(traffic, tmp_path).tail()).entry_count == 1


async def test_a_har_goes_out_and_comes_back_in_parts_with_every_request_once(tmp_path: Path) -> None:
    source = Recording.open(tmp_path / "source")
    record(source, 40, response=LONG, response_headers=[(b"Set-Cookie", b"session=planted-Secret-1")])
    traffic = traffic_of(source, tmp_path)
    parts = [await traffic.har_part()]
    while parts[-1].next_before_id is not None:
        parts.append(await traffic.har_part(before_id=parts[-1].next_before_id))
    entries = [entry for part in parts for entry in part.entries]
    assert len(parts) > 1
    assert [entry["_dari"]["id"] for entry in entries] == list(range(40, 0, -1))
    assert "planted-Secret" not in json.dumps(entries)
    await source.close()

    target = Recording.open(tmp_path / "target")
    added = [
        await traffic_of(target, tmp_path).import_har_text(json.dumps({"log": {"entries": part.entries}}))
        for part in parts
    ]
    assert sum(one.imported for one in added) == 40 and added[-1].last_id == "40"
    with pytest.raises(InvalidInput):
        await traffic_of(target, tmp_path).import_har_text("not a HAR")
    await target.close()
