from __future__ import annotations

import base64
import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.errors import InvalidInput
from dari.proxy.flow import Flow, Tls, WebSocketFrame
from dari.proxy.formats import har, har_import
from dari.proxy.query import views
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import HIDING, MAX_CHARS, REVEALED
from tests.support.flows import SECRET, Hiding, flow, tunnel


def exported(*flows: Flow, **how: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(b"".join(har.export(flows, **how)))
    return made


def loaded(document: Any, **how: Any) -> har_import.Imported:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return har_import.load(data, itertools.count(100).__next__, **how)


def entry(**more: Any) -> dict[str, Any]:
    made = {
        "startedDateTime": "2026-11-15T10:00:00.123Z",
        "time": 12.5,
        "request": {"method": "GET", "url": "https://a.test/x?y=1", "httpVersion": "HTTP/1.1", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"size": 2, "mimeType": "text/plain", "text": "hi"}},
        "timings": {"send": 1, "wait": 9, "receive": 2.5},
    }
    made.update(more)
    return made


def log(*entries: Any) -> dict[str, Any]:
    return {"log": {"version": "1.2", "entries": list(entries)}}


def test_an_export_has_every_member_that_har_requires() -> None:
    made = exported(flow(1, "http://a.test/x?a=1&b=", "POST", request=b"hello"))["log"]
    assert made["version"] == "1.2" and made["creator"]["name"] == "dari"
    (one,) = made["entries"]
    assert {"startedDateTime", "time", "request", "response", "cache", "timings"} <= one.keys()
    assert {
        "method", "url", "httpVersion", "cookies", "headers", "queryString", "postData", "headersSize", "bodySize"
    } <= one["request"].keys()  # fmt: skip
    assert {
        "status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL", "headersSize", "bodySize"
    } <= one["response"].keys()  # fmt: skip
    assert one["request"]["queryString"] == [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]
    assert one["request"]["postData"]["text"] == "hello" and one["response"]["statusText"] == "OK"
    timings = one["timings"]
    assert one["time"] == timings["send"] + timings["wait"] + timings["receive"] == 8
    assert one["startedDateTime"].endswith("Z")


def test_bodies_are_decoded_text_or_base64() -> None:
    packed = [(b"Content-Type", b"text/plain"), (b"Content-Encoding", b"gzip")]
    text, binary = exported(
        flow(1, response=gzip.compress(b"hello"), response_headers=packed),
        flow(2, response=b"\x89PNG\0", response_headers=[(b"Content-Type", b"image/png")]),
    )["log"]["entries"]
    assert text["response"]["content"]["text"] == "hello" and text["response"]["content"]["size"] == 5
    assert binary["response"]["content"] == {
        "size": 5,
        "mimeType": "image/png",
        "text": "iVBORwA=",
        "encoding": "base64",
    }


def test_an_export_is_made_one_flow_at_a_time() -> None:
    taken: list[int] = []

    def flows() -> Any:
        for number in itertools.count(1):
            taken.append(number)
            yield flow(number)

    pieces = har.export(flows())
    for _ in range(4):
        next(pieces)
    assert taken == [1, 2, 3]


def test_a_request_that_could_not_be_understood_is_exported_too() -> None:
    bad = flow(1, event="bad_request")
    bad.authority, bad.target = "[oops", "not a url"
    assert exported(bad)["log"]["entries"][0]["request"]["url"] == "http://[oopsnot a url"


def test_tunnels_are_left_out_and_nothing_is_still_valid() -> None:
    assert exported(tunnel(1))["log"]["entries"] == []


def test_secrets_are_hidden_in_the_whole_file() -> None:
    one = flow(
        1,
        f"http://a.test/{SECRET}?key={SECRET}",
        request=SECRET.encode(),
        request_headers=[(b"Cookie", f"sid={SECRET}".encode()), (b"Content-Type", b"text/plain")],
        response=SECRET.encode(),
        response_headers=[(b"Set-Cookie", f"sid={SECRET}".encode()), (b"Location", f"/{SECRET}".encode())],
        frames=[WebSocketFrame(True, 1, SECRET.encode(), 7, 5)],
    )
    assert SECRET not in b"".join(har.export([one], redactor=Hiding())).decode()
    assert SECRET in b"".join(har.export([one])).decode()


def test_cookies_are_exported_as_they_were_sent() -> None:
    odd = '"' + "\\a" * 30_000 + '"'
    one = flow(
        1,
        request_headers=[(b"Cookie", f"a=1; b={odd}; c d={{x}}; lonely".encode())],
        response_headers=[(b"Set-Cookie", b"s=1; Path=/; HttpOnly"), (b"Set-Cookie", b"t=a=b; Secure")],
    )
    found = exported(one, redactor=REVEALED)["log"]["entries"][0]
    pairs = {cookie["name"]: cookie["value"] for cookie in found["request"]["cookies"]}
    assert pairs == {"a": "1", "b": odd, "c d": "{x}"}
    assert found["response"]["cookies"] == [{"name": "s", "value": "1"}, {"name": "t", "value": "a=b"}]


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode-escape", "zlib", "no-such-thing"])
def test_a_charset_that_is_none_makes_a_body_utf_8(charset: str) -> None:
    text = "".join(map(chr, range(0x4E00, 0x9F00)))
    one = entry()
    one["response"]["content"] = {"mimeType": f"text/plain; charset={charset}", "text": text, "size": 1}
    (read,) = loaded(log(one)).flows
    assert text.encode().startswith(read.response_body.sample) and read.response_body.size_bytes == len(text.encode())


def test_what_is_exported_comes_back(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    one = flow(
        7,
        "https://a.test:8443/x?y=1",
        "POST",
        503,
        request=b"\0\1\2",
        request_headers=[(b"Content-Type", b"application/octet-stream"), (b"X-A", b"1"), (b"X-A", b"2")],
        response="žluť".encode() * 10_000,
        response_headers=[(b"Content-Type", b"text/plain; charset=utf-8")],
        upstream_status=200,
        event="map_remote",
        map_remote="/x",
        map_remote_to="https://b.test/x?y=1",
        rule_ids=("r1", "r2"),
        process="curl",
        pid=5,
        tls=Tls(sni="a.test"),
        frames=[
            WebSocketFrame(True, 1, b"hi", 2, 1_790_000_000_500),
            WebSocketFrame(False, 2, b"\0", 1, 1_790_000_000_600),
        ],
    )
    bodies.write(one, False, "žluť".encode() * 10_000)
    bodies.finish(one)
    imported = loaded(b"".join(har.export([one], bodies)), bodies=bodies)
    (again,) = imported.flows
    assert imported.skipped_count == 0 and again.id == 100
    assert views.raw(again, False, bodies) == "žluť".encode() * 10_000 and again.response_body.spool == "100.response"
    before, after = (msgspec.to_builtins(msgspec.structs.asdict(each)) for each in (one, again))
    for name in ("id", "response_body"):
        del before[name], after[name]
    assert after == before


@given(
    st.binary(max_size=300),
    st.sampled_from([b"text/plain", b"text/plain; charset=latin-1", b"application/json", b"image/png"]),
)
def test_any_body_comes_back_byte_for_byte(data: bytes, mime: bytes) -> None:
    one = flow(1, method="POST", request=data, response=data, request_headers=[(b"Content-Type", mime)])
    one.response_headers = [(b"Content-Type", mime)]
    (again,) = loaded(b"".join(har.export([one], redactor=REVEALED))).flows
    assert again.request_body.sample == data and again.response_body.sample == data


def test_a_file_of_chrome_is_read() -> None:
    chrome = entry(
        _resourceType="websocket",
        _webSocketMessages=[{"type": "send", "time": 1_790_000_000.5, "opcode": 1, "data": "hi"}],
        _initiator={"type": "script"},
        cache={},
    )
    chrome["request"] |= {
        "url": "wss://a.test/socket",
        "httpVersion": "http/2.0",
        "headers": [{"name": ":authority", "value": "a.test"}, {"name": "origin", "value": "https://a.test"}],
    }
    chrome["timings"] = {"blocked": 3.1, "dns": -1, "ssl": -1, "connect": -1, "send": 0, "wait": 5, "receive": 1}
    (one,) = loaded(b"\xef\xbb\xbf" + json.dumps(log(chrome)).encode()).flows
    assert one.url == "https://a.test/socket" and one.http_version == "2.0"
    assert one.request_headers == [(b"origin", b"https://a.test")]
    assert one.frames is not None and one.frames[0].payload == b"hi" and one.frames[0].from_client


def test_a_file_of_firefox_is_read() -> None:
    firefox = entry(startedDateTime="2026-11-15T11:00:00.000+01:00", connection="443", serverIPAddress="1.2.3.4")
    firefox["request"] |= {
        "method": "POST",
        "postData": {
            "mimeType": "application/x-www-form-urlencoded",
            "params": [{"name": "a", "value": "1 2"}],
            "text": "a=1+2",
        },
    }
    firefox["response"] |= {"content": {"mimeType": "text/html; charset=utf-8", "size": 0, "text": ""}, "bodySize": 512}
    (one,) = loaded(log(firefox)).flows
    assert one.request_body.sample == b"a=1+2" and one.started_unix_ms == 1_794_736_800_000
    assert one.response_body.size_bytes == 512 and one.response_body.sample == b""


def test_a_file_of_charles_is_read() -> None:
    charles = entry(time="17", comment=None)
    charles["timings"] = {"send": -1, "wait": "-1", "receive": "5"}
    charles["response"] |= {
        "status": "404",
        "headers": [{"name": "Content-Encoding", "value": "gzip"}, {"name": "X", "value": None}],
        "content": {"mimeType": "image/png", "encoding": "base64", "text": "iVBORwA=", "size": "5"},
    }
    (one,) = loaded(log(charles)).flows
    assert one.status == 404 and one.total_ms == 17 and one.head_ms == 12
    assert one.response_headers == [(b"X", b"")]  # the content is not packed any more
    assert one.response_body.sample == b"\x89PNG\0"


def test_posted_fields_without_a_text_are_put_together() -> None:
    posted = entry()
    posted["request"]["postData"] = {"params": [{"name": "a b", "value": "1&2"}]}
    assert loaded(log(posted)).flows[0].request_body.sample == b"a+b=1%262"


def test_an_entry_that_makes_no_sense_is_skipped_and_named() -> None:
    bad_url, bad_time, bad_method = entry(), entry(startedDateTime="yesterday"), entry()
    bad_url["request"] = {"method": "GET", "url": "chrome-extension://x"}
    bad_method["request"] = {"method": "G\r\nX", "url": "http://a.test/"}
    imported = loaded(log(bad_url, entry(), bad_time, "nonsense", bad_method, None))
    assert len(imported.flows) == 1 and imported.skipped_count == 5
    assert [one.index for one in imported.skipped] == [0, 2, 3, 4, 5]


def test_a_request_that_was_never_answered_is_an_error() -> None:
    unanswered = entry()
    unanswered["response"] = {"status": 0, "_error": "net::ERR_FAILED", "content": {}}
    (one,) = loaded(log(unanswered)).flows
    assert one.status is None and one.error == "net::ERR_FAILED"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"log":{}}', b'{"log":{"entries":{}}}', b"\xff", b"[" * 100_000])
def test_what_is_no_har_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        loaded(data)


def test_only_so_many_entries_are_read() -> None:
    imported = loaded(log(*(entry() for _ in range(10))), most=4)
    assert len(imported.flows) == 4 and imported.skipped_count == 6


def test_a_file_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(har_import, "MAX_FILE_BYTES", 10)
    with pytest.raises(InvalidInput):
        loaded(log())


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MEMBERS = ["startedDateTime", "time", "request", "response", "timings", "_dari", "_webSocketMessages"]
INNER = [
    "method",
    "url",
    "headers",
    "postData",
    "status",
    "content",
    "bodySize",
    "httpVersion",
    "text",
    "encoding",
    "params",
]


@given(
    st.dictionaries(st.sampled_from(MEMBERS), jsons, max_size=4),
    st.dictionaries(st.sampled_from(INNER), jsons, max_size=4),
)
def test_no_entry_whatever_it_holds_ends_the_import(outer: dict[str, Any], inner: dict[str, Any]) -> None:
    mixed = entry()
    mixed["request"] |= inner
    mixed["response"] |= inner
    imported = loaded(log(mixed, entry(**outer), entry()))
    assert len(imported.flows) + imported.skipped_count == 3
    exported(*imported.flows)


def test_a_long_text_that_is_cut_says_so_and_is_whole_with_its_secrets(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    data = b"// a line of a bundle\n" * 30_000 + b"end"
    one = flow(response=data, response_headers=[(b"Content-Type", b"text/javascript")])
    bodies.keep(one, False, data)
    hidden, revealed = (
        exported(one, bodies=bodies, redactor=redactor)["log"]["entries"][0]["response"]["content"]
        for redactor in (HIDING, REVEALED)
    )
    assert len(hidden["text"]) == MAX_CHARS and "only the first" in hidden["comment"]
    assert revealed["text"] == data.decode() and "comment" not in revealed


def test_json_that_is_called_binary_shows_no_secret_in_base64() -> None:
    secret = b'{"password": "open-sesame"}'
    head = [(b"Content-Type", b"application/octet-stream")]
    frames = [WebSocketFrame(True, 2, each, len(each), 5) for each in (secret, b'{"page": 1}', b"\xff" + secret[:4])]
    one = flow(method="POST", request=secret, request_headers=head, response=secret, response_headers=head)
    one.frames = frames
    entry = exported(one)["log"]["entries"][0]
    for content in (entry["request"]["postData"], entry["response"]["content"]):
        assert "text" not in content and "a secret" in content["comment"]
    shown = [base64.b64decode(each["data"]) for each in entry["_webSocketMessages"]]
    assert shown == [b"", b'{"page": 1}', b"\xff" + secret[:4]]


def test_a_form_with_a_picture_shows_no_password_in_base64() -> None:
    form = (
        b'--x\r\nContent-Disposition: form-data; name="password"\r\n\r\nopen-sesame\r\n'
        b'--x\r\nContent-Disposition: form-data; name="f"\r\n\r\n\x89PNG\0\xff\xfe\r\n--x--\r\n'
    )
    head = [(b"Content-Type", b"multipart/form-data; boundary=x")]
    (entry,) = exported(flow(method="POST", request=form, request_headers=head))["log"]["entries"]
    assert "text" not in entry["request"]["postData"] and "a secret" in entry["request"]["postData"]["comment"]


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("text/plain; charset=Shift_JIS", "日本語"),
        ("text/html", '<meta charset="euc-kr"><p>한국어</p>'),
        ("text/html", "<p>한국어</p>"),
        ("text/plain; charset=utf-16", "žluť"),
    ],
)
def test_a_text_whose_type_names_no_charset_is_read_back_as_it_was(header: str, text: str) -> None:
    one = entry()  # Chrome's mimeType is the bare type, whatever the header says
    one["response"] |= {
        "headers": [{"name": "Content-Type", "value": header}],
        "content": {"mimeType": header.partition(";")[0], "text": text, "size": 1},
    }
    (read,) = loaded(log(one)).flows
    assert views.view(read, False).text == text


def test_parameters_beside_an_empty_text_are_the_body() -> None:
    one = entry()
    one["request"] |= {"method": "POST", "postData": {"text": "", "params": [{"name": "a", "value": "1"}]}}
    assert loaded(log(one)).flows[0].request_body.sample == b"a=1"


def test_headers_that_were_joined_with_line_breaks_come_apart() -> None:
    one = entry()
    one["response"]["headers"] = [{"name": "set-cookie", "value": "a=1; Path=/\nb=2"}, {"name": "x", "value": "1\r\n"}]
    assert loaded(log(one)).flows[0].response_headers[:2] == [(b"set-cookie", b"a=1; Path=/"), (b"set-cookie", b"b=2")]
