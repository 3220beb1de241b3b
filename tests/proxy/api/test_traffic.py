"""What went by: searched, waited for, compared, sent again, exported and read back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dari.errors import Conflict, Denied, Failed, InvalidInput, NotFound
from dari.proxy.errors import ProxyNotRunning
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.replay import RequestEdits
from tests.support.origins.origin import answering, origin
from tests.support.proxy_service import proxy

JSON = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 24\r\n\r\n{"token":"abc123secret"}'
SECRET = "Authorization: Bearer s3cret-value-123"


async def test_the_newest_requests_come_first_and_secrets_are_hidden(tmp_path: Path) -> None:
    async with origin(answering(JSON)) as site, proxy(tmp_path) as rig:
        for path in ("/1", "/2?api_key=hush", "/3"):
            await rig.get(site.url(path), SECRET)
        page = await rig.service.traffic.tail(max_entries=2)
        assert [entry.url for entry in page.entries] == [site.url("/3"), site.url("/2?api_key=<redacted>")]
        shown = json.dumps([str(page), str(await rig.service.traffic.log()), str(await rig.service.traffic.show("1"))])
        assert "s3cret" not in shown and "abc123secret" not in shown and "hush" not in shown
        revealed = await rig.service.traffic.reveal("1")
        assert "s3cret-value-123" in str(revealed) and "abc123secret" in str(revealed)


async def test_a_replay_uses_the_real_secrets_and_says_whose_it_is(tmp_path: Path) -> None:
    async with origin(answering(JSON)) as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/login"), SECRET, method="POST", body=b"name=me")
        sent = await rig.service.traffic.replay("1", RequestEdits(set_headers={"X-Try": "2"}))
        again = site.requests[1]
        assert (again.body, again.header("x-try")) == (b"name=me", "2")
        assert again.header("authorization") == "Bearer s3cret-value-123"
        assert (sent.flow["replay_of"], sent.flow["status"]) == (1, 200)
        assert "abc123secret" not in str(sent)
        diff = await rig.service.traffic.diff("1", sent.request_id)
        assert "x-try" in diff.text.lower() and "s3cret" not in diff.text


async def test_a_composed_request_that_the_proxy_refuses_tells_why(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        with pytest.raises(Failed, match="Connection names a header that is not hop-by-hop"):
            await rig.service.traffic.compose("http://a.test/", headers={"Connection": "host"})


async def test_a_composed_request_goes_through_the_rules(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.rules.add_map_local_text(site.url("/x"), "mapped")
        sent = await rig.service.traffic.compose(site.url("/x"), "POST", {"X-A": "1"}, "data")
        assert sent.flow["event"] == "map_local" and sent.flow["response_body"]["text"] == "mapped"
        await rig.service.rules.clear()
        await rig.service.rules.add_allow("elsewhere.test")
        sent = await rig.service.traffic.compose(site.url("/y"))
        assert (await rig.service.traffic.show(sent.request_id)).flow["status"] == 200, "ours is recorded all the same"


async def test_without_a_running_proxy_nothing_can_be_sent_or_waited_for(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        for asking in (
            rig.service.traffic.compose("http://127.0.0.1:1/"),
            rig.service.traffic.replay("1"),
            rig.service.traffic.wait(timeout_s=1),
            rig.service.control.environment(),
        ):
            with pytest.raises(ProxyNotRunning) as caught:
                await asking
            assert (caught.value.code, caught.value.wire_message) == (-32002, "Proxy not running")


async def test_a_wait_ends_with_the_request_it_was_for(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        waiting = asyncio.ensure_future(rig.service.traffic.wait(TrafficFilter(url_contains="/wanted"), 10))
        await asyncio.sleep(0)
        await rig.get(site.url("/other"))
        await rig.get(site.url("/wanted"))
        found = await waiting
        assert found.found and found.flow is not None and found.flow["url"] == site.url("/wanted")
        assert not (await rig.service.traffic.wait(TrafficFilter(url_contains="/never"), 0.01)).found


async def test_searching_and_summing_up(tmp_path: Path) -> None:
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    async with origin(answering(missing)) as site, proxy(tmp_path) as rig:
        for number in range(5):
            await rig.get(site.url(f"/users/{number}"))
        found = await rig.service.traffic.search(TrafficFilter(status="4xx"), limit=2)
        assert [flow["id"] for flow in found.flows] == [5, 4] and found.next_cursor
        rest = await rig.service.traffic.search(TrafficFilter(status="4xx"), limit=10, cursor=found.next_cursor)
        assert [flow["id"] for flow in rest.flows] == [3, 2, 1]
        summary = await rig.service.traffic.summary()
        assert "/users/{" in str(summary) and "5" in str(summary)


async def test_capture_off_records_nothing_and_traffic_flows_on(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        assert (await rig.service.control.capture_stop()).status == "stopped"
        assert (await rig.get(site.url("/unseen"))).status == 200
        await rig.service.control.capture_start()
        await rig.get(site.url("/seen"))
        assert [entry.url for entry in (await rig.service.traffic.tail()).entries] == [site.url("/seen")]


async def test_inspection_off_keeps_no_bodies(tmp_path: Path) -> None:
    async with origin(answering(JSON)) as site, proxy(tmp_path) as rig:
        await rig.service.settings.set_inspect_enabled(False)
        await rig.get(site.url("/"))
        entry = (await rig.service.traffic.tail()).entries[0]
        assert entry.response_body is not None and (entry.response_body.bytes, entry.response_body.preview) == (
            24,
            None,
        )


async def test_a_har_goes_out_and_comes_back(tmp_path: Path) -> None:
    async with origin(answering(JSON)) as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/a"), SECRET)
        made = await rig.service.traffic.export_har(str(tmp_path / "out.har"))
        text = Path(made.path).read_text()
        assert json.loads(text)["log"]["version"] == "1.2" and "s3cret" not in text
        with pytest.raises(Conflict):
            await rig.service.traffic.export_har(made.path)
        revealed = await rig.service.traffic.reveal_har(str(tmp_path / "full.har"))
        assert "s3cret-value-123" in Path(revealed.path).read_text()
        assert Path(revealed.path).stat().st_mode & 0o077 == 0
        back = await rig.service.traffic.import_har(revealed.path)
        assert (back.imported, back.skipped_count) == (1, 0)
        assert (await rig.service.traffic.show(back.last_id or "")).flow["url"] == site.url("/a")
        default = await rig.service.traffic.export_har()
        assert Path(default.path).is_file()


async def test_files_out_of_bounds_are_neither_written_nor_read(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        with pytest.raises(Denied):
            await rig.service.traffic.export_har("/etc/out.har")
        with pytest.raises(Denied):
            await rig.service.traffic.import_har("/etc/hostname")


async def test_code_for_a_request_leaves_secrets_out(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/a?x=1"), SECRET)
        for language in ("curl", "httpx", "urllib"):
            code = (await rig.service.traffic.code("1", language)).code  # type: ignore[arg-type]
            assert site.url("/a?x=1") in code and "s3cret" not in code


@pytest.mark.parametrize("wrong", ["", "abc", "-1", "1.5", "٣", "9" * 30])
async def test_a_wrong_request_id_is_named(tmp_path: Path, wrong: str) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        with pytest.raises(InvalidInput):
            await rig.service.traffic.show(wrong)
        with pytest.raises(NotFound):
            await rig.service.traffic.show("4711")


async def test_clearing_forgets_and_numbers_go_on(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/"))
        cleared = await rig.service.traffic.clear()
        assert cleared.ok and cleared.cleared > 0
        await rig.get(site.url("/next"))
        page = await rig.service.traffic.tail(after_seq=cleared.next_seq)
        assert [entry.request_id for entry in page.entries] == ["2"]
