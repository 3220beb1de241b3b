"""`dari_proxy_*`: what the page does with the proxy, through the same server as every tool."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.console.console import GRANT
from dari.console.tools.proxy import ProxyPageTools
from dari.core.registry import Registry
from dari.core.scopes import ADMIN, MCP_GRANT
from dari.mcp.server import Info, Server
from tests.support.console_proxy import console_proxy
from tests.support.origins.origin import origin
from tests.support.proxy_service import Rig
from tests.support.proxy_tools import Refused, tool_call
from tests.support.wire import Json, MemoryWire, initialize


class Page:
    def __init__(self, rig: Rig, server: Server) -> None:
        self.rig = rig
        self.server = server
        self.wire = MemoryWire(server)
        self.wire.grant = GRANT

    async def call(self, name: str, /, **arguments: Any) -> Json:
        result = (await self.wire.ask(tool_call(f"dari_proxy_{name}", arguments)))["result"]
        if result.get("isError"):
            raise Refused(result["_meta"]["dari/error"])
        return dict(result["structuredContent"])


@asynccontextmanager
async def page(directory: Path) -> AsyncIterator[Page]:
    async with console_proxy(directory) as (rig, backends):
        registry = Registry()
        registry.add_toolkit(ProxyPageTools(backends))
        made = Page(rig, Server(registry, Info(name="console", version="1")))
        await made.wire.ask(initialize())
        yield made


async def test_every_tool_of_the_page_is_for_a_person_alone(tmp_path: Path) -> None:
    async with page(tmp_path) as opened:
        assert {tool.scope for tool in opened.server.registry.tools.values()} == {ADMIN}
        opened.wire.grant = MCP_GRANT
        with pytest.raises(Refused):
            await opened.call("throttle_presets")


async def test_recorded_requests_leave_in_parts_and_come_back(tmp_path: Path) -> None:
    async with origin() as site, page(tmp_path) as opened:
        for number in range(3):
            await opened.rig.get(site.url(f"/{number}?token=s3cret-planted-1"))
        part = await opened.call("har_part", wanted={"url_contains": "/"})
        assert part["next_before_id"] is None and "s3cret" not in json.dumps(part)
        assert [entry["request"]["url"].rpartition("/")[2][0] for entry in part["entries"]] == ["2", "1", "0"]
        assert (await opened.call("har_part", wanted={"host": "nobody.test"}))["entries"] == []
        added = await opened.call("import_har", text=json.dumps({"log": {"entries": part["entries"]}}))
        assert (added["imported"], added["first_id"], added["last_id"]) == (3, "4", "6")
        with pytest.raises(Refused) as refused:
            await opened.call("import_har", text="<html>")
        assert "HAR" in refused.value.hint


async def test_a_deleted_rule_comes_back(tmp_path: Path) -> None:
    async with page(tmp_path) as opened:
        rule = await opened.rig.service.rules.add({"kind": "block", "matcher": "x.test"})
        await opened.rig.service.rules.remove(rule.id)
        assert (await opened.call("restore_rule", id=rule.id))["matcher"] == "x.test"
        with pytest.raises(Refused) as refused:
            await opened.call("restore_rule", id="r99")
        assert "r99" in refused.value.message


async def test_a_person_lets_a_rule_send_credentials_and_takes_it_back(tmp_path: Path) -> None:
    async with page(tmp_path) as opened:
        made = {"kind": "map_remote", "matcher": "a.test", "destination": "http://b.test"}
        rule = await opened.rig.service.rules.add(made)
        for keeps in (True, False):
            changed = await opened.call("keep_credentials", id=rule.id, keeps=keeps)
            assert changed["settings"]["keeps_credentials"] is keeps


async def test_the_certificate_has_no_key_and_the_presets_have_numbers(tmp_path: Path) -> None:
    async with page(tmp_path) as opened:
        with pytest.raises(Refused):
            await opened.call("ca_certificate")
        await opened.rig.service.ca.generate()
        pem = (await opened.call("ca_certificate"))["pem"]
        assert pem.startswith("-----BEGIN CERTIFICATE-----") and "KEY" not in pem
        presets = (await opened.call("throttle_presets"))["presets"]
        assert {"name": "3G", "latency_ms": 120, "downstream_bps": 97 * 1024, "upstream_bps": 41 * 1024} in presets
