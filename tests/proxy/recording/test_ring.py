from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dari.proxy.flow import Flow
from dari.proxy.formats import log
from dari.proxy.recording.ring import Note, Ring
from tests.support.flows import flow, running


def test_a_flow_is_found_by_its_id_while_it_runs() -> None:
    ring = Ring()
    ring.began(running(7))
    slot = ring.get(7)
    assert slot is not None and slot.end_seq == 0 and slot.seq == 1


def test_the_oldest_flows_make_room_for_new_ones() -> None:
    ring = Ring(capacity=100)
    for number in range(1, 1001):
        ring.began(one := flow(number))
        ring.finished(one)
    assert len(ring) == 100
    assert [one.id for one in ring.newest()] == list(range(1000, 900, -1))
    assert ring.get(1) is None


def test_a_flow_that_was_pushed_out_while_it_ran_is_back_when_it_ends() -> None:
    ring = Ring(capacity=2)
    ring.began(slow := running(1))
    for number in range(2, 20):
        ring.began(flow(number))
    assert ring.get(1) is None
    ring.finished(slow)
    assert ring.get(1) is not None


def test_a_second_end_of_a_flow_is_not_recorded_twice() -> None:
    ring = Ring()
    ring.began(one := flow())
    ring.finished(one)
    last_seq = ring.last_seq
    ring.finished(one)
    assert ring.last_seq == last_seq


def test_what_the_ring_holds_is_bounded_when_nothing_ever_ends() -> None:
    ring = Ring(capacity=50)
    for number in range(5000):
        ring.began(running(number))
        ring.note("line")
    assert len(ring.clear()) <= 2 * 50 + 128


class Model:
    """The log as the original kept it: a list of (seq, what)."""

    def __init__(self) -> None:
        self.ring = Ring(capacity=1000)
        self.open: list[Flow] = []
        self.last_id = 0
        self.expected: list[tuple[str, str]] = []

    def step(self, action: str) -> None:
        if action == "began":
            self.last_id += 1
            self.open.append(one := flow(self.last_id, request=b"x" * (self.last_id % 2)))
            self.ring.began(one)
            self.expected.append((str(one.id), "request_headers"))
        elif action == "finished" and self.open:
            one = self.open.pop(self.last_id % len(self.open))
            self.ring.finished(one)
            kinds = ["response_headers", "upstream", "body_inspection"]
            if one.request_body.size_bytes:
                kinds.insert(0, "body_inspection")
            self.expected += [(str(one.id), kind) for kind in kinds]
        elif action == "note":
            self.ring.note("a line")
            self.expected.append(("", "a line"))
        elif action == "clear":
            assert log.count(self.ring.clear()) == len(self.expected)
            self.expected = []


def told(record: log.TrafficLogRecord) -> tuple[str, str]:
    import json

    if not record.message.startswith("CRAB_JSON "):
        return "", record.message
    members = json.loads(record.message.removeprefix("CRAB_JSON "))
    return members["request_id"], members["event"]


@given(
    st.lists(st.sampled_from(["began", "finished", "note", "clear", "began", "finished"]), max_size=60),
    st.integers(1, 7),
)
def test_reading_in_pages_of_any_size_gives_every_record_once_and_in_order(actions: list[str], limit: int) -> None:
    model = Model()
    for action in actions:
        model.step(action)
    read: list[log.TrafficLogRecord] = []
    after_seq = 0
    while page := log.tail(model.ring, after_seq, limit).records:
        assert len(page) <= limit
        read += page
        after_seq = page[-1].seq
    assert [told(record) for record in read] == model.expected
    assert all(a.seq < b.seq for a, b in pairwise(read))


@given(st.lists(st.sampled_from(["began", "finished", "note", "clear"]), max_size=60), st.data())
def test_a_reader_that_comes_back_at_any_time_misses_nothing(actions: list[str], data: st.DataObject) -> None:
    model = Model()
    read: list[tuple[str, str]] = []
    expected: list[tuple[str, str]] = []
    after_seq = 0
    for action in actions:
        if action == "clear":  # what was cleared before it was read is gone, and that is right
            after_seq, news = read_all(model, after_seq)
            read += news
        before = len(model.expected)
        model.step(action)
        expected += model.expected[before:] if action != "clear" else []
        if data.draw(st.booleans()):
            page = log.tail(model.ring, after_seq, data.draw(st.integers(1, 5)))
            after_seq = page.next_seq
            read += [told(record) for record in page.records]
    assert read + read_all(model, after_seq)[1] == expected


def read_all(model: Model, after_seq: int) -> tuple[int, list[tuple[str, str]]]:
    page = log.tail(model.ring, after_seq, 1000)
    return page.next_seq, [told(record) for record in page.records]


def test_notes_keep_their_level_and_text() -> None:
    ring = Ring()
    ring.note("LAN_ACCESS_REQUEST ip=10.0.0.9", level=3)
    (_, mark), *_ = ring.marks_newest()
    assert isinstance(mark, Note) and mark.level == 3 and mark.message == "LAN_ACCESS_REQUEST ip=10.0.0.9"


class Counted(list[int]):
    """Counts how often a place is read."""

    reads = 0

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        Counted.reads += 1
        return super().__getitem__(place)


def test_the_tail_of_a_full_ring_reads_only_the_marks_it_needs() -> None:
    ring = Ring()
    for number in range(1, 10_001):
        ring.began(one := flow(number))
        ring.finished(one)
    ring._seqs = Counted(ring._seqs)
    Counted.reads = 0
    page = log.tail(ring, ring.last_seq - 500, 100)
    assert len(page.records) == 100
    assert Counted.reads < 100
