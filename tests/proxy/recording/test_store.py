from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.errors import Conflict, Unavailable
from dari.proxy.flow import Flow, Tls, WebSocketFrame
from dari.proxy.recording import store as store_module
from dari.proxy.recording.store import MIGRATIONS, FlowStore
from tests.support.flows import flow, running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "traffic.db"


@pytest.fixture
def store(path: Path) -> Iterator[FlowStore]:
    opened = FlowStore(path, batch_s=0)
    yield opened
    opened.close()


def check(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        answer: str = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    return answer


def same(a: Flow | None, b: Flow | None) -> bool:
    return bool(msgspec.to_builtins(a) == msgspec.to_builtins(b))


def test_a_flow_comes_back_as_it_was(store: FlowStore) -> None:
    one = flow(
        5,
        request=b"\0\xff",
        rule_ids=("a", "b"),
        tls=Tls(sni="api.test"),
        frames=[WebSocketFrame(True, 1, b"hi", 2, 3)],
        error="x",
        process="curl",
        pid=7,
    )
    store.put(one)
    store.flush()
    assert same(store.get(5), one)


@given(data=st.data())
def test_any_flow_that_can_be_written_comes_back(data: st.DataObject) -> None:
    text = st.text(st.characters(codec="utf-8"), max_size=20)
    block = st.lists(st.tuples(st.binary(max_size=10), st.binary(max_size=10)), max_size=4)
    one = flow(data.draw(st.integers(1, 2**40)), request=data.draw(st.binary(max_size=50)))
    one.method, one.authority, one.target = data.draw(text), data.draw(text), data.draw(text)
    one.request_headers, one.response_headers = data.draw(block), data.draw(block)
    one.status = data.draw(st.none() | st.integers(100, 999))
    assert same(store_module._decode(store_module._encode(one)), one)


def test_nothing_is_there_after_a_flow_that_was_never_put(store: FlowStore) -> None:
    assert store.get(99) is None and store.last_id() == 0 and store.count() == 0


def test_ids_go_on_after_a_restart_and_even_after_everything_was_cleared(path: Path) -> None:
    first = FlowStore(path)
    first.put(flow(41))
    first.clear()
    first.close()
    again = FlowStore(path)
    assert again.last_id() == 41
    again.put(flow(42))
    again.flush()
    again.clear()
    assert again.last_id() == 42 and again.count() == 0
    again.close()


def test_closing_writes_what_is_queued(path: Path) -> None:
    first = FlowStore(path, batch_s=30)
    for number in range(1, 101):
        first.put(flow(number))
    first.close()
    again = FlowStore(path)
    assert again.count() == 100
    again.close()


def test_the_files_are_private(store: FlowStore, path: Path) -> None:
    store.put(flow(1))
    store.flush()
    for name in os.listdir(path.parent):
        assert stat.S_IMODE(os.stat(path.parent / name).st_mode) == 0o600, name
    assert stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700


def test_a_full_queue_drops_the_newest_from_the_disk_and_counts_it(path: Path) -> None:
    store = FlowStore(path, queue_flows=10, batch_s=30)
    for number in range(1, 16):
        store.put(flow(number))
    store.flush()
    assert store.lost >= 1 and store.count() == 15 - store.lost
    store.close()


def test_the_oldest_rows_go_when_the_size_is_reached(path: Path) -> None:
    store = FlowStore(path, size_bytes=400_000, batch_s=0)
    for number in range(1, 201):
        store.put(flow(number, response=os.urandom(8000)))
        if number % 10 == 0:
            store.flush()
    ids = sorted(store.ids())
    assert 10 < len(ids) < 60 and ids[-1] == 200 and ids == list(range(ids[0], 201))
    store.close()
    assert path.stat().st_size <= 400_000 * 5 // 4 + 16 * 16384 and check(path) == "ok"


def test_a_disk_that_is_full_loses_flows_and_nothing_else(path: Path) -> None:
    store = FlowStore(path, size_bytes=250_000, batch_s=0)
    for number in range(1, 81):
        store.put(flow(number, response=os.urandom(16_000)))
    store.flush()
    assert store.lost > 0 and "full" in (store.problem or "")
    store.put(flow(99))
    store.flush()
    assert store.get(99) is not None
    store.close()
    assert check(path) == "ok"


def test_text_that_no_encoding_takes_costs_that_flow_only(store: FlowStore) -> None:
    store.put(flow(1, map_local="\ud800"))
    store.put(flow(2))
    store.flush()
    assert store.ids() == {2} and store.lost == 1


def test_a_request_that_hangs_is_written_before_it_ends(path: Path) -> None:
    store = FlowStore(path, batch_s=0)
    hanging = running(3, started_unix_ms=0)
    store.open_flows = lambda: [hanging]
    store._open_asked = 0.0
    store.flush()
    assert store.ids() == {3}
    hanging.status, hanging.state = 200, "done"
    store.open_flows = list
    store.put(hanging)
    store.flush()
    kept = store.get(3)
    assert kept is not None and kept.status == 200 and store.count() == 1
    store.close()


def test_what_was_queued_before_a_clear_does_not_come_back(path: Path) -> None:
    store = FlowStore(path, batch_s=30)
    store.put(flow(1))
    store.put(flow(2))
    store.clear()
    assert store.ids() == set()
    store.close()


@pytest.mark.parametrize("is_written", [True, False])
def test_a_clear_that_deletes_nothing_on_disk_says_so(path: Path, is_written: bool) -> None:
    store = FlowStore(path, batch_s=30)
    store._writer.execute("PRAGMA busy_timeout = 0")
    store.put(flow(1))
    if is_written:
        store.flush()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked") as refused:
        store.clear()
    assert refused.value.hint and str(path) in refused.value.message
    other.execute("COMMIT")
    other.close()
    store.put(flow(2))
    store.flush()
    assert store.ids() == ({1, 2} if is_written else {2})
    store.clear()
    assert store.ids() == set()
    store.close()


def test_flows_put_after_a_clear_began_are_written_though_the_clear_fails(path: Path) -> None:
    store = FlowStore(path, batch_s=30)
    store.put(flow(1))

    def fail(given_ids: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    store._delete_all = fail  # type: ignore[method-assign]
    clearing = store.start_clear()
    store.put(flow(2))
    with pytest.raises(Unavailable, match="full"):
        clearing.wait()
    store.flush()
    assert store.ids() == {2} and store.lost == 0
    store.close()


def test_what_is_put_after_a_clear_began_stays_whatever_its_id(path: Path) -> None:
    store = FlowStore(path, batch_s=30)
    store.put(flow(3))
    clearing = store.start_clear()
    store.put(flow(2))  # it began before the clear and ended after it
    clearing.wait()
    store.flush()
    assert store.ids() == {2} and store.last_id() == 3
    store.close()


def test_a_request_that_runs_during_a_clear_is_not_written_back_by_it(path: Path) -> None:
    store = FlowStore(path, batch_s=30)
    store.open_flows = lambda: [running(5, started_unix_ms=0)]
    store._open_asked = 0.0
    store.clear()
    assert store.ids() == set() and store.last_id() == 5
    store.close()


def test_a_clear_that_leaves_deleted_pages_in_the_file_is_a_problem_that_the_doctor_shows(path: Path) -> None:
    store = FlowStore(path, batch_s=0)

    def fail() -> None:
        raise sqlite3.OperationalError("database or disk is full")

    store._shrink = fail  # type: ignore[method-assign]
    store.put(flow(1))
    store.clear()
    assert store.ids() == set() and "full" in (store.problem or "")
    store.close()


def test_an_older_database_is_brought_up_to_date(path: Path) -> None:
    old = FlowStore(path)
    old.put(flow(1))
    old.close()
    new = FlowStore(path, migrations=(*MIGRATIONS, "CREATE TABLE extra (x);"))
    assert new._rows("SELECT count(*) FROM extra", ()) == [(0,)] and new._rows("PRAGMA user_version", ()) == [(2,)]
    assert new.get(1) is not None
    new.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(path: Path) -> None:
    FlowStore(path).close()
    with pytest.raises(Unavailable):
        FlowStore(path, migrations=(*MIGRATIONS, "CREATE TABLE half (x); CREATE TABLE nonsense;"))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'half'").fetchall() == []
    connection.close()


def test_a_database_of_a_newer_version_is_left_alone(path: Path) -> None:
    FlowStore(path, migrations=(*MIGRATIONS, "CREATE TABLE extra (x);")).close()
    with pytest.raises(Conflict):
        FlowStore(path)


def test_a_file_that_is_no_database_is_put_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is not a database, it is a text of more than a hundred bytes" * 20)
    store = FlowStore(path)
    store.put(flow(1))
    store.flush()
    assert store.get(1) is not None
    store.close()
    assert any(".broken-" in name for name in os.listdir(path.parent))


def test_the_questions_that_a_search_asks_walk_from_the_newest_row_and_sort_nothing(store: FlowStore) -> None:
    def plan(where: str, *values: Any) -> str:
        query = f"EXPLAIN QUERY PLAN SELECT id FROM flows WHERE id < 99 AND {where} ORDER BY id DESC LIMIT 10"
        return " ".join(row[3] for row in store._rows(query, values))

    for where in ("host >= 'a' AND host < 'b'", "started_unix_ms >= 5", "status = 404"):
        assert "PRIMARY KEY" in plan(where) and "TEMP B-TREE" not in plan(where)


def test_what_was_cleared_is_not_left_in_the_files(store: FlowStore, path: Path) -> None:
    for number in range(1, 200):
        store.put(flow(number, response=b"top-secret-" * 500))
    store.flush()
    store.clear()
    left = b"".join(one.read_bytes() for one in path.parent.iterdir())
    assert b"top-secret-" not in left and len(left) < 200_000


def test_a_running_socket_is_written_again_when_messages_came(path: Path) -> None:
    store = FlowStore(path, batch_s=0)
    socket = running(3, started_unix_ms=0, frames=[])
    store.open_flows = lambda: [socket]
    store._open_asked = 0.0
    store.flush()
    assert socket.frames is not None
    socket.frames.append(WebSocketFrame(True, 1, b"hi", 2, 5))
    store._open_asked = 0.0  # a second later
    store.flush()
    kept = store.get(3)
    assert kept is not None and kept.frames is not None and kept.frames[0].payload == b"hi"
    store.close()


def test_a_flow_that_cannot_be_written_does_not_end_the_writer(store: FlowStore) -> None:
    broken = flow(1)
    broken.method = object()  # type: ignore[assignment]
    store.put(broken)
    store.flush()
    store.put(flow(2))
    store.flush()
    assert store.ids() == {2} and store.lost == 1


def test_whoever_waits_for_a_flush_does_not_wait_for_the_batch(path: Path) -> None:
    store = FlowStore(path, batch_s=3600)
    for number in range(1, 4):
        store.put(flow(number))
        while store._wake.is_set():  # until the writer sleeps on its batch
            pass
        store.flush()
        assert store.get(number) is not None
    store.close()


def test_a_disk_that_others_filled_costs_new_flows_and_not_the_recorded_ones(path: Path) -> None:
    store = FlowStore(path, batch_s=0)
    for number in range(1, 51):
        store.put(flow(number, response=os.urandom(8000)))
    store.flush()
    # As SQLite meets a full disk: the file can grow no more, though it is far from its own limit.
    limit = store._writer.execute("PRAGMA max_page_count").fetchone()[0]
    store._writer.execute("PRAGMA max_page_count = 1")
    for number in range(51, 61):
        store.put(flow(number, response=os.urandom(16_000)))
    store.flush()
    assert store.ids() >= set(range(1, 51)) and store.lost > 0 and "full" in (store.problem or "")
    store._writer.execute(f"PRAGMA max_page_count = {limit}")
    store.put(flow(99))
    store.flush()
    assert 99 in store.ids()
    store.close()


def test_a_clock_that_is_set_back_keeps_no_running_request_from_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FlowStore(path)
    store.close()  # its thread asks no more; it has just asked
    hour_ago, soon = time.time() - 3600, time.monotonic() + store_module.OPEN_S
    monkeypatch.setattr(store_module.time, "time", lambda: hour_ago)
    monkeypatch.setattr(store_module.time, "monotonic", lambda: soon)
    store.open_flows = lambda: [running(6, started_unix_ms=0)]
    assert [one.id for one in store._still_open()] == [6]


def test_a_database_that_cannot_be_written_says_which_file_it_is(path: Path) -> None:
    FlowStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE facts")
    connection.close()
    with pytest.raises(Unavailable, match=str(path)):
        FlowStore(path)
