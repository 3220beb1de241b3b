"""The traffic tools on requests that really went through: newest first, whole, decoded, secrets hidden."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.origins.origin import Line, origin
from tests.support.proxy_tools import Crab, Refused, crab, tool_call
from tests.support.waiting import until
from tests.support.wire import Json

PACKED = gzip.compress(json.dumps({"user": {"password": "hunter2"}, "items": [1, 2]}).encode())


async def answers(line: Line) -> None:
    """`/packed` is gzipped JSON with a secret in it, `/missing` a 404, everything else `ok`."""
    while (seen := await line.request()) is not None:
        path = seen.head.split()[1]
        if b"/packed" in path:
            head = b"Content-Type: application/json\r\nContent-Encoding: gzip\r\n"
            line.writer.write(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (head, len(PACKED), PACKED))
        elif b"/missing" in path:
            line.writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone")
        else:
            line.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def test_the_tail_is_newest_first_whole_and_has_the_rewritten_status(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        url = f"http://127.0.0.1:{site.port}"
        await tools.call("rules_add_status_rewrite", matcher=f"{url}/teapot", to_status_code=418)
        for number in range(30):
            await tools.proxy.get(f"{url}/{number}")
        reply = await tools.proxy.get(f"{url}/teapot")
        assert reply.status == 418
        page = await tools.call("traffic_tail", max_entries=3)
        urls = [entry["url"] for entry in page["entries"]]
        assert urls == [f"{url}/teapot", f"{url}/29", f"{url}/28"]
        assert page["entry_count"] == 3
        assert page["entries"][0]["status"] == 418
        # A limit that ends in the middle of a request leaves the request out, and never shows half of it.
        for limit in range(4, 13):
            cut = await tools.call("traffic_tail", limit=limit)
            assert all(entry["status"] and entry["response_headers"] for entry in cut["entries"])
            assert cut["records_scanned"] <= limit
        # What was seen is not shown again.
        assert (await tools.call("traffic_tail", after_seq=page["next_seq"]))["entries"] == []


async def test_headers_and_samples_come_as_they_are_asked_for(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        await tools.proxy.get(f"http://127.0.0.1:{site.port}/a", "X-Tint: blue", "Authorization: Bearer abcdef")
        (entry,) = (await tools.call("traffic_tail"))["entries"]
        assert "X-Tint: blue" in entry["request_headers"]
        assert "abcdef" not in json.dumps(entry)
        assert entry["response_body"] == {"bytes": 2, "preview": "ok", "sample_b64": None}
        (entry,) = (await tools.call("traffic_tail", include_headers=False, include_body_sample_b64=True))["entries"]
        assert entry["request_headers"] is entry["response_headers"] is None
        assert entry["response_body"]["sample_b64"] == "b2s="


async def test_a_request_is_found_by_id_and_named_when_it_is_not(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        await tools.proxy.get(f"http://127.0.0.1:{site.port}/a")
        (entry,) = (await tools.call("traffic_tail"))["entries"]
        found = await tools.call("traffic_get", request_id=entry["request_id"])
        assert found["entry"] == entry
        with pytest.raises(Refused) as missing:
            await tools.call("traffic_get", request_id="99")
        assert missing.value.message.endswith("request_id not found in current log window: 99")
        with pytest.raises(Refused) as outside:
            await tools.call("traffic_get", request_id=entry["request_id"], after_seq=found["next_seq"])
        assert outside.value.message.endswith(f"request_id not found in current log window: {entry['request_id']}")


async def three(tools: Crab, port: int) -> str:
    url = f"http://127.0.0.1:{port}"
    await tools.proxy.get(f"{url}/packed?token=s3cret", "Cookie: sid=123456")
    await tools.proxy.get(f"{url}/missing/42")
    await tools.proxy.get(f"{url}/users/7", method="POST", body=b"hello")
    return url


@pytest.mark.parametrize(
    ("conditions", "paths"),
    [
        ({}, ["/users/7", "/missing/42", "/packed"]),
        ({"status": "4xx"}, ["/missing/42"]),
        ({"status": 200, "method": "POST"}, ["/users/7"]),
        ({"has_error": True}, ["/missing/42"]),
        ({"url_contains": "USERS"}, ["/users/7"]),
        ({"url_regex": r"/(users|missing)/\d+$"}, ["/users/7", "/missing/42"]),
        ({"body_contains": "items"}, ["/packed"]),
        ({"header_contains": "content-encoding: gzip"}, ["/packed"]),
        ({"mime": "json"}, ["/packed"]),
        ({"host": "127.0.0.1", "event": "upstream", "limit": 1}, ["/users/7"]),
        ({"since_unix_ms": 99999999999999}, []),
        ({"body_contains": "hunter2"}, []),
    ],
)
async def test_search_finds_what_fulfils_every_condition(conditions: Json, paths: list[str], tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        url = await three(tools, site.port)
        found = await tools.call("traffic_search", **conditions)
        assert [flow["url"].removeprefix(url).partition("?")[0] for flow in found["flows"]] == paths
        assert "s3cret" not in json.dumps(found)


async def test_search_goes_on_where_the_page_ended(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        await three(tools, site.port)
        seen: list[int] = []
        cursor = None
        while True:
            page = await tools.call("traffic_search", limit=1, fields=["status"], cursor=cursor)
            seen += [flow["id"] for flow in page["flows"]]
            if (cursor := page.get("next_cursor")) is None:
                break
        assert seen == sorted(seen, reverse=True)
        assert len(seen) == 3


async def test_the_summary_counts_by_host_and_path(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        url = await three(tools, site.port)
        await tools.proxy.get(f"{url}/users/8")
        groups = {group["path"]: group for group in (await tools.call("traffic_summary"))["groups"]}
        assert groups["/users/{id}"]["count"] == 2
        assert groups["/missing/{id}"]["error_rate"] == 1.0


async def test_a_body_comes_decoded_and_without_its_secrets(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        await three(tools, site.port)
        (flow,) = (await tools.call("traffic_search", url_contains="/packed"))["flows"]
        body = await tools.call("traffic_body", request_id=str(flow["id"]))
        assert body["encoding"] == "gzip"
        assert json.loads(body["text"])["items"] == [1, 2]
        assert "hunter2" not in body["text"]
        part = await tools.call("traffic_body", request_id=str(flow["id"]), start=0, end=6)
        assert len(part["text"]) == 6
        shown = await tools.call("traffic_show", request_id=str(flow["id"]))
        assert shown["flow"]["response_body"]["decoded_bytes"] == body["decoded_bytes"]


async def test_two_requests_are_compared(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        await three(tools, site.port)
        newest, older = [str(flow["id"]) for flow in (await tools.call("traffic_search", limit=2))["flows"]]
        diff = await tools.call("traffic_diff", first_id=older, second_id=newest)
        assert diff["is_same"] is False
        assert any(change["part"] == "status" for change in diff["changes"]), diff["text"]


async def test_a_replay_sends_the_real_secret_with_the_changes(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        url = f"http://127.0.0.1:{site.port}"
        await tools.proxy.get(f"{url}/a", "Authorization: Bearer real-one")
        (entry,) = (await tools.call("traffic_tail"))["entries"]
        again = await tools.call(
            "traffic_replay", request_id=entry["request_id"], url=f"{url}/missing", set_headers={"X-New": "1"}
        )
        assert again["flow"]["status"] == 404
        assert again["flow"]["replay_of"] == int(entry["request_id"])
        assert site.requests[-1].header("authorization") == "Bearer real-one"
        assert site.requests[-1].header("x-new") == "1"
        for code in (
            await tools.call("traffic_as_curl", request_id=again["request_id"]),
            await tools.call("traffic_as_python", request_id=again["request_id"], library="urllib"),
        ):
            assert f"{url}/missing" in code["code"]
            assert "real-one" not in code["code"]


async def test_har_goes_out_and_comes_back(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        await three(tools, site.port)
        written = await tools.call("traffic_export_har", path=str(tmp_path / "a.har"), status="200")
        entries = json.loads((tmp_path / "a.har").read_text())["log"]["entries"]
        assert [entry["response"]["status"] for entry in entries] == [200, 200]
        with pytest.raises(Refused) as exists:
            await tools.call("traffic_export_har", path=written["path"])
        assert "exists already" in exists.value.message
        assert (await tools.call("logs_clear"))["ok"] is True
        assert (await tools.call("traffic_tail"))["entries"] == []
        imported = await tools.call("traffic_import_har", path=written["path"])
        assert imported["imported"] == 2
        assert len((await tools.call("traffic_search"))["flows"]) == 2


async def test_what_is_not_captured_passes_unseen(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        assert await tools.call("capture_stop") == {"status": "stopped"}
        assert (await tools.proxy.get(f"http://127.0.0.1:{site.port}/a")).status == 200
        assert (await tools.call("traffic_tail"))["entries"] == []
        assert await tools.call("capture_start") == await tools.call("capture_status") == {"status": "running"}


async def test_a_wait_ends_with_the_request_that_it_waits_for(tmp_path: Path) -> None:
    async with origin(answers) as site, crab(tmp_path, starts=True) as tools:
        url = f"http://127.0.0.1:{site.port}"
        waiting = asyncio.create_task(tools.call("traffic_wait", url_contains="/wanted", timeout_s=15))
        # A wait counts what comes after it began; `after_seq` closes the gap before it.
        await tools.proxy.get(f"{url}/other")
        await tools.proxy.get(f"{url}/wanted")
        found = await waiting
        assert found["found"] is True
        assert found["flow"]["url"] == f"{url}/wanted"
        before = await tools.call("traffic_wait", url_contains="/other", after_seq=0, timeout_s=1)
        assert before["flow"]["url"] == f"{url}/other"


async def test_a_wait_in_vain_ends_in_time_and_tells_so(tmp_path: Path) -> None:
    async with crab(tmp_path, starts=True) as tools:
        assert (await tools.call("traffic_wait", host="nobody.test", timeout_s=0))["found"] is False
        assert await tools.call("breakpoints_wait", timeout_s=0) == {"held": [], "revision": 0}


async def test_a_wait_tells_how_far_it_is_and_ends_when_it_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dari.proxy.tools.arguments.TICK_S", 0.01)
    async with crab(tmp_path, starts=True) as tools:
        tools.wire.send(tool_call("crab_traffic_wait", {"timeout_s": 60}, "w", progressToken="p"))
        told: list[Any] = [await tools.wire.messages.get() for _ in range(3)]
        assert [message["method"] for message in told] == ["notifications/progress"] * 3
        progress = [message["params"]["progress"] for message in told]
        assert progress == sorted(set(progress))
        assert told[0]["params"] == {**told[0]["params"], "progressToken": "p", "total": 60}
        listeners = tools.proxy.runtime.recording.ring.on_finished
        assert len(listeners) == 1
        tools.wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}})
        await until(lambda: not listeners)
