from __future__ import annotations

import base64
import gzip

import msgspec

from dari.proxy.formats import entries
from dari.proxy.formats.entries import EntryOptions
from dari.proxy.recording.ring import Ring
from tests.support.flows import SECRET, Hiding, flow, running, tunnel


def full(count: int, capacity: int = 10_000) -> Ring:
    ring = Ring(capacity)
    for number in range(1, count + 1):
        ring.began(one := flow(number))
        ring.finished(one)
    return ring


def test_the_newest_requests_come_first() -> None:
    page = entries.tail(full(300))
    assert [one.request_id for one in page.entries] == [str(number) for number in range(300, 200, -1)]
    assert page.entry_count == 100 and page.truncated


def test_an_entry_has_exactly_the_members_of_the_original_and_the_error() -> None:
    (one,) = entries.tail(full(1)).entries
    assert list(msgspec.to_builtins(one)) == [
        "request_id", "event", "method", "url", "peer", "status", "duration_ms", "response_size_bytes",
        "map_local", "map_remote", "map_remote_to", "request_headers", "response_headers", "request_body",
        "response_body", "seq_first", "seq_last", "ts_unix_ms", "error",
    ]  # fmt: skip


def test_a_limit_never_cuts_a_request_in_two() -> None:
    page = entries.tail(full(10), limit=10)  # four records each
    assert [one.request_id for one in page.entries] == ["10", "9"]
    assert page.records_scanned == 8 and page.truncated
    assert all(one.seq_last - one.seq_first >= 3 for one in page.entries)


def test_one_request_is_given_even_when_the_limit_is_smaller_than_it() -> None:
    assert entries.tail(full(3), limit=1).entry_count == 1
    assert entries.tail(full(3), limit=0).entry_count == 0


def test_only_what_has_news_after_a_number_is_given_and_given_whole() -> None:
    ring = full(5)
    ring.began(slow := running(6))
    seen = entries.tail(ring).next_seq
    assert entries.tail(ring, seen).entries == []
    slow.status, slow.state = 200, "done"
    ring.finished(slow)
    (one,) = entries.tail(ring, seen).entries
    assert one.request_id == "6" and one.status == 200 and one.request_headers


def test_the_status_is_the_one_the_client_saw() -> None:
    ring = Ring()
    ring.began(one := flow(1, status=503, upstream_status=200))
    ring.finished(one)
    assert entries.tail(ring).entries[0].status == 503


def test_headers_can_be_left_out_and_samples_asked_for() -> None:
    ring = full(1)
    lean = entries.tail(ring, look=EntryOptions(include_headers=False)).entries[0]
    assert lean.request_headers is None and lean.response_body is not None and lean.response_body.sample_b64 is None
    rich = entries.tail(ring, look=EntryOptions(include_body_sample_b64=True)).entries[0]
    assert rich.response_body is not None and rich.response_body.sample_b64 == base64.b64encode(b'{"ok":true}').decode()


def test_a_compressed_body_is_shown_decoded() -> None:
    ring = Ring()
    head = [(b"Content-Type", b"text/plain"), (b"Content-Encoding", b"gzip")]
    ring.began(one := flow(1, response=gzip.compress(b"hello there"), response_headers=head))
    ring.finished(one)
    shown = entries.tail(ring).entries[0].response_body
    assert shown is not None and shown.preview == "hello there"


def test_a_long_body_is_cut_and_a_binary_one_described() -> None:
    ring = Ring()
    for one in (
        flow(1, response=b"a" * 5000, response_headers=[(b"Content-Type", b"text/plain")]),
        flow(2, response=b"\x89PNG\0", response_headers=[(b"Content-Type", b"image/png")]),
    ):
        ring.began(one)
        ring.finished(one)
    binary, text = entries.tail(ring).entries
    assert text.response_body is not None and text.response_body.preview == "a" * 2048 + "...(truncated)"
    assert binary.response_body is not None and binary.response_body.preview == "<binary image/png, 5 bytes>"


def test_a_tunnel_shows_no_bodies() -> None:
    ring = Ring()
    ring.began(one := tunnel(1))
    ring.finished(one)
    (shown,) = entries.tail(ring).entries
    assert shown.event == "tunnel" and shown.request_body is None and shown.response_body is None


def test_secrets_are_hidden_before_a_preview_is_cut() -> None:
    ring = Ring()
    long = b"x" * (2048 - 3) + SECRET.encode() + b"y" * 100
    ring.began(one := flow(1, response=long, response_headers=[(b"Content-Type", b"text/plain")]))
    ring.finished(one)
    look = EntryOptions(include_body_sample_b64=True)
    (shown,) = entries.tail(ring, look=look, redactor=Hiding()).entries
    assert shown.response_body is not None and shown.response_body.preview is not None
    assert "hun" not in shown.response_body.preview
    assert SECRET.encode() not in base64.b64decode(shown.response_body.sample_b64 or "")


def test_a_full_ring_is_not_walked_for_a_hundred_entries() -> None:
    ring = full(10_000)
    steps = 0
    walk = ring.marks_newest

    def counted():  # type: ignore[no-untyped-def]
        nonlocal steps
        for mark in walk():
            steps += 1
            yield mark

    ring.marks_newest = counted  # type: ignore[method-assign]
    assert entries.tail(ring).entry_count == 100
    assert steps <= 2 * 100 + 1
