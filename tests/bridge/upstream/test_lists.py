"""Lists that are remembered: on disk, for a time, and renewed behind the caller's back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from dari.bridge.upstream.cache import CachedServer, ServerCache
from dari.errors import Unavailable
from tests.support.bridge import LAB, ME, Place, lab, text_of
from tests.support.lab import DEFAULT
from tests.support.waiting import until

pytestmark = pytest.mark.local_mcp


def starts(place: Place) -> int:
    return sum(line.startswith("start") for line in place.noted())


async def test_a_list_that_is_known_needs_no_server(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.upstream() as server:
        assert server.known_tools() is None
        names = [tool.name for tool in await server.tools()]
    async with place.upstream() as server:
        known = server.known_tools()
        assert known is not None and [tool.name for tool in known] == names
        assert [tool.name for tool in await server.tools()] == names
        assert (server.status().state, server.status().tools) == ("known", len(names))
    assert starts(place) == 1


async def test_a_stale_list_is_shown_at_once_and_renewed_behind_it(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(tmp_path, toolsCacheTtlMs=0))
    async with place.upstream() as server:
        await server.tools()
    (tmp_path / "tools.json").write_text(json.dumps([*DEFAULT, {"name": "extra", "inputSchema": {"type": "object"}}]))
    async with place.upstream() as server:
        changed = asyncio.Event()
        server.changes.subscribe(lambda kind: changed.set())
        assert "extra" not in {tool.name for tool in await server.tools()}
        await changed.wait()
        assert "extra" in {tool.name for tool in await server.tools()}


async def test_a_stale_list_of_a_server_that_is_gone_stays(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(tmp_path, toolsCacheTtlMs=0))
    async with place.upstream() as server:
        await server.tools()
    (tmp_path / "gone.py").write_text("raise SystemExit('gone')")
    (tmp_path / "lab.log").unlink()
    async with place.upstream() as server:
        server._opening.target.spec.env["PYTHONSTARTUP"] = ""  # type: ignore[index, union-attr]
        assert server.target.spec is not None
        gone = replace(server.target.spec, command=("/nowhere/python",))
        server._opening.target = replace(server.target, spec=gone)
        assert await server.tools()
        with pytest.raises(Unavailable, match="/nowhere/python"):
            await server.tools(fresh=True)
        assert await server.tools()


async def test_twenty_who_ask_at_once_share_one_request(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.upstream() as server:
        lists = await asyncio.gather(*(server.tools() for _ in range(20)))
    assert len({tuple(tool.name for tool in tools) for tools in lists}) == 1
    assert starts(place) == 1


async def test_a_server_that_tells_of_a_change_is_asked_again(tmp_path: Path) -> None:
    async with Place(tmp_path).upstream() as server:
        await server.tools()
        extra = {"name": "extra", "inputSchema": {"type": "object"}}
        (tmp_path / "tools.json").write_text(json.dumps([*DEFAULT, extra]))
        changed = asyncio.Event()
        server.changes.subscribe(lambda kind: changed.set())
        await server.call_tool("change", b"{}", ME)
        await changed.wait()
        known = server.known_tools()
        assert known is not None and "extra" in {tool.name for tool in known}


def test_what_cannot_be_read_is_as_good_as_forgotten(tmp_path: Path) -> None:
    memory = ServerCache(tmp_path / "memory")
    memory.save("k", CachedServer(era="handshake", version="2025-06-18"))
    assert memory.load("k").era == "handshake"
    assert (tmp_path / "memory/k.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "memory/k.json").write_bytes(b'{"format": 9')
    assert memory.load("k") == CachedServer()
    memory.forget("k")
    assert memory.load("k") == CachedServer()


def test_a_full_disk_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    ServerCache(tmp_path / "file").save("k", CachedServer())
    assert "memory" in caplog.text


def test_an_era_is_believed_for_a_day() -> None:
    known = CachedServer(era="handshake", era_unix=1000)
    assert known.era_at(1000 + 3600) == "handshake"
    assert known.era_at(1000 + 25 * 3600) is None


async def test_a_change_in_a_clients_own_session_is_seen_too(tmp_path: Path) -> None:
    async with Place(tmp_path, lab(tmp_path, isolation="per-client")).upstream() as server:
        await server.tools()
        await server.call_tool("greet", b"{}", ME)
        extra = {"name": "extra", "inputSchema": {"type": "object"}}
        (tmp_path / "tools.json").write_text(json.dumps([*DEFAULT, extra]))
        changed = asyncio.Event()
        server.changes.subscribe(lambda kind: changed.set())
        await server.call_tool("change", b"{}", ME)
        await changed.wait()
        known = server.known_tools()
        assert known is not None and "extra" in {tool.name for tool in known}


async def test_a_server_that_announces_a_change_with_every_list_is_asked_less_and_less_often(tmp_path: Path) -> None:
    source = (
        f"import runpy\nlab = runpy.run_path({str(LAB)!r})\n"
        "send = lab['send']\n"
        "def changing(message):\n"
        "    send(message)\n"
        "    if 'tools' in message.get('result', {}):\n"
        "        send({'jsonrpc': '2.0', 'method': 'notifications/tools/list_changed'})\n"
        "lab['serve'].__globals__['send'] = changing\n"
        "lab['serve']()\n"
    )
    place = Place(tmp_path, lab(tmp_path, args=["-c", source]))
    async with place.upstream() as server:
        await server.tools()
        await until(lambda: "tools" in server._lists._pausing)
        assert text_of(await server.call_tool("greet", b"{}", ME)) == "hello"
        await server.tools(fresh=True)  # who wants it now does not wait for the pause
