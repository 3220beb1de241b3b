from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.query import views
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import MAX_CHARS, MAX_WHOLE_CHARS, REVEALED
from tests.support.flows import SECRET, Hiding, flow

JSON = [(b"Content-Type", b"application/json")]
PLAIN = [(b"Content-Type", b"text/plain")]


def test_json_is_indented_and_its_numbers_stay_as_written() -> None:
    shown = views.view(flow(response=b'{"a":1.10,"b":[12345678901234567890]}'), False)
    assert shown.kind == "json"
    assert shown.text == '{\n  "a": 1.10,\n  "b": [\n    12345678901234567890\n  ]\n}'


def test_broken_json_is_shown_as_text_with_the_fact_in_its_kind() -> None:
    assert views.view(flow(response=b'{"a":'), False).kind == "text"


def test_a_packed_body_is_decoded_and_says_how_it_was_packed() -> None:
    head = [*PLAIN, (b"Content-Encoding", b"gzip")]
    packed = gzip.compress(b"hello")
    shown = views.view(flow(response=packed, response_headers=head), False)
    assert (shown.text, shown.encoding, shown.size_bytes, shown.decoded_bytes) == ("hello", "gzip", len(packed), 5)


def test_a_binary_body_is_described_by_type_size_and_digest() -> None:
    data = b"\x89PNG\0\0"
    one = flow(response=data, response_headers=[(b"Content-Type", b"image/png")])
    assert views.view(one, False).sha256 is None
    shown = views.view(one, False, redactor=REVEALED)
    assert (shown.kind, shown.mime, shown.text) == ("binary", "image/png", None)
    assert shown.sha256 == hashlib.sha256(data).hexdigest() and shown.decoded_bytes == 6


def test_an_empty_body_is_just_empty() -> None:
    assert views.view(flow(response=b""), False).kind == "empty"


def test_a_range_counts_decoded_bytes() -> None:
    head = [*PLAIN, (b"Content-Encoding", b"gzip")]
    shown = views.view(flow(response=gzip.compress(b"0123456789"), response_headers=head), False, start=2, end=5)
    assert (shown.text, shown.start, shown.end, shown.decoded_bytes) == ("234", 2, 5, 10)


@pytest.mark.parametrize(("start", "end"), [(-1, None), (5, 2)])
def test_an_impossible_range_is_refused(start: int, end: int | None) -> None:
    with pytest.raises(InvalidInput):
        views.view(flow(), False, start=start, end=end)


def test_a_long_text_is_cut_and_says_so() -> None:
    shown = views.view(flow(response=b"a" * 100, response_headers=PLAIN), False, max_chars=10)
    assert shown.text == "a" * 10 and shown.truncated


def test_a_body_that_was_not_kept_whole_says_how_much_there_is() -> None:
    shown = views.view(flow(response=b"a" * 100_000, response_headers=PLAIN), False)
    assert not shown.is_whole and "16384 of 100000 bytes" in (shown.note or "")


def test_the_whole_body_is_read_from_disk(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    one = flow(response=b"a" * 100_000, response_headers=PLAIN)
    bodies.write(one, False, b"a" * 100_000)
    bodies.finish(one)
    shown = views.view(one, False, bodies, max_chars=200_000)
    assert shown.is_whole and shown.text == "a" * 100_000


def test_a_bomb_is_shown_as_far_as_the_limit() -> None:
    head = [*PLAIN, (b"Content-Encoding", b"gzip")]
    bomb = gzip.compress(b"a" * 10_000_000)
    shown = views.view(flow(response=bomb, response_headers=head), False)
    assert shown.truncated and shown.decoded_bytes == 8 * 1024 * 1024


def test_what_is_wrongly_labelled_is_described_with_the_reason() -> None:
    head = [*PLAIN, (b"Content-Encoding", b"br")]
    shown = views.view(flow(response=b"plain after all", response_headers=head), False)
    assert shown.note is not None and "brotli" in shown.note


def test_a_range_shows_no_part_of_a_secret() -> None:
    one = flow(response=b"key=" + SECRET.encode() + b"!", response_headers=PLAIN)
    for start in range(12):
        assert "nter2" not in (views.view(one, False, start=start, redactor=Hiding()).text or "")
    assert views.view(one, False, redactor=Hiding()).text == "key=<redacted>!"


def long_text(tmp_path: Path) -> tuple[Flow, BodyStore]:
    """With a line to look for and a secret, both far behind what one search for secrets takes."""
    lines = [f"line {number}" for number in range(60_000)]
    lines[50_000:50_000] = ["here it is", "password: open-sesame"]
    data = "\n".join(lines).encode()
    assert data.index(b"here it is") > MAX_CHARS
    bodies = BodyStore(tmp_path / "bodies")
    one = flow(response=data, response_headers=PLAIN)
    bodies.keep(one, False, data)
    return one, bodies


def test_a_range_far_into_a_long_text_is_shown_without_its_secrets(tmp_path: Path) -> None:
    one, bodies = long_text(tmp_path)
    start = b"".join(bodies.pieces(one.response_body)).index(b"here it is")
    shown = views.view(one, False, bodies, start=start, end=start + 44)
    assert shown.text is not None and shown.text.startswith("here it is\npassword: <redacted>\nline 50000")
    assert "open" not in shown.text and not shown.truncated


def test_a_long_text_is_shown_as_far_as_was_asked_for_and_calls_nothing_hidden_that_is_not(tmp_path: Path) -> None:
    one, bodies = long_text(tmp_path)
    shown = views.view(one, False, bodies, max_chars=300_000)
    assert shown.text is not None and len(shown.text) == 300_000 and "more characters" not in shown.text
    assert shown.truncated and shown.note is None and shown.size_bytes % 64 == 0
    everything = views.view(one, False, bodies, max_chars=4_000_000)
    assert everything.text is not None and everything.text.endswith("line 59999") and not everything.truncated
    assert "open-sesame" not in everything.text and "secrets are hidden" in (everything.note or "")


def test_a_range_beyond_what_is_searched_for_secrets_says_why_it_is_empty() -> None:
    one = flow(response=b"", response_headers=[*PLAIN, (b"Content-Encoding", b"gzip")])
    packed = gzip.compress(b"a line\n" * (MAX_WHOLE_CHARS // 5))
    one.response_body.sample, one.response_body.size_bytes = packed, len(packed)
    shown = views.view(one, False, start=MAX_WHOLE_CHARS + 10, end=MAX_WHOLE_CHARS + 20)
    assert shown.text == "" and "no more is shown" in (shown.note or "")
    assert views.view(one, False, start=MAX_WHOLE_CHARS, end=MAX_WHOLE_CHARS + 7, redactor=REVEALED).text
