from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from dari.proxy.formats import log
from dari.proxy.recording.ring import Ring
from tests.support.flows import SECRET, Hiding, flow, running, tunnel


def lines(ring: Ring, **how: Any) -> list[dict[str, Any]]:
    page = log.tail(ring, **how)
    return [json.loads(record.message.removeprefix("CRAB_JSON ")) for record in page.records]


def recorded(*flows: Any) -> Ring:
    ring = Ring()
    for one in flows:
        ring.began(one)
        if one.state == "done":
            ring.finished(one)
    return ring


def test_a_whole_request_makes_five_records_with_the_members_of_the_original() -> None:
    ring = recorded(flow(3, "http://api.test/items?q=1", "POST", request=b"hello"))
    found = lines(ring)
    assert [(one["type"], one["event"]) for one in found] == [
        ("meta", "request_headers"),
        ("meta", "body_inspection"),
        ("meta", "response_headers"),
        ("entry", "upstream"),
        ("meta", "body_inspection"),
    ]
    for one in found:
        assert one["request_id"] == "3" and one["peer"] == "127.0.0.1:5000" and one["method"] == "POST"
        assert one["url"] == "http://api.test/items?q=1"
    assert base64.b64decode(found[0]["headers_b64"]) == b"Host: api.test\nAccept: */*\n"
    assert found[1]["direction"] == "request" and base64.b64decode(found[1]["sample_b64"]) == b"hello"
    assert found[3]["status"] == 200 and found[3]["duration_ms"] == 5 and found[3]["response_size_bytes"] == 11
    assert found[4]["outcome"] == "complete" and found[4]["body_bytes"] == 11


def test_records_have_level_two_and_rising_times() -> None:
    page = log.tail(recorded(flow(1)))
    assert {record.level for record in page.records} == {2}
    times = [record.ts_unix_ms for record in page.records]
    assert times == sorted(times)


def test_a_request_that_runs_has_only_its_headers() -> None:
    assert [one["event"] for one in lines(recorded(running(1)))] == ["request_headers"]


def test_a_tunnel_is_one_entry() -> None:
    (one,) = lines(recorded(tunnel(4)))
    assert one["event"] == "tunnel" and one["encrypted"] is True and one["method"] == "CONNECT"


def test_the_entry_has_the_rewritten_status_and_the_headers_the_original_one() -> None:
    rewritten = flow(1, status=503, upstream_status=200, status_rewrite="/")
    by_event = {one["event"]: one for one in lines(recorded(rewritten))}
    assert by_event["upstream"]["status"] == 503
    assert by_event["response_headers"]["status"] == 200


def test_a_failed_request_says_why() -> None:
    failed = flow(1, status=None, event="upstream_error", error="connection refused")
    assert lines(recorded(failed))[-1]["error"] == "connection refused"


def test_an_empty_log_gives_back_the_number_it_was_asked_with() -> None:
    assert log.tail(Ring(), 42).next_seq == 42


def test_more_than_a_thousand_records_are_never_given_at_once() -> None:
    assert len(log.tail(recorded(*(flow(number) for number in range(1, 400))), 0, 5000).records) == 1000


def test_numbers_go_on_after_the_log_was_cleared() -> None:
    ring = recorded(flow(1))
    last_seq = ring.last_seq
    assert log.count(ring.clear()) == 4 and log.tail(ring).records == []
    ring.note("later")
    assert log.tail(ring, last_seq).records[0].seq == last_seq + 1


def test_secrets_are_hidden_in_headers_url_and_even_in_a_compressed_sample() -> None:
    packed = gzip.compress(f'{{"password":"{SECRET}"}}'.encode())
    head = [(b"Content-Type", b"application/json"), (b"Content-Encoding", b"gzip"), (b"X-Key", SECRET.encode())]
    ring = recorded(flow(1, f"http://api.test/?key={SECRET}", response=packed, response_headers=head))
    told = ""
    for one in lines(ring, redactor=Hiding()):
        told += one["url"] + base64.b64decode(one.get("headers_b64", "")).decode()
        told += base64.b64decode(one.get("sample_b64", "")).decode()
    assert SECRET not in told and told.count("<redacted>") == 4 + 1 + 1


def test_no_sample_of_binary_data_holds_a_secret_packed_or_in_another_alphabet() -> None:
    for data in (b"\0" + f'{{"password":"{SECRET}"}}'.encode(), f'{{"password":"{SECRET}"}}'.encode("utf-16-le")):
        for coding, sent in ((b"identity", data), (b"gzip", gzip.compress(data))):
            head = [(b"Content-Type", b"application/json"), (b"Content-Encoding", coding)]
            (told,) = [
                one["sample_b64"]
                for one in lines(recorded(flow(response=sent, response_headers=head)))
                if "sample_b64" in one
            ]
            assert told == ""
