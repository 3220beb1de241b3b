"""Node programs through the proxy: undici with a ProxyAgent, and `ws` over a CONNECT of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.clients.programs import npm_packages
from tests.support.proxy_lab import Lab, lab, run
from tests.support.proxy_site import pattern_sha256
from tests.support.waiting import until

HERE = Path(__file__).parent


async def script(node: str, name: str, here: Lab, env: dict[str, str] | None = None, **options: object) -> Any:
    """What the script printed."""
    about = {"packages": str(npm_packages()), "proxy": here.proxy_url, "ca": str(here.ca_file), **options}
    ran = await run([node, str(HERE / name), json.dumps(about)], {"PATH": os.environ["PATH"], **(env or {})})
    assert ran.code == 0, ran.errors
    return json.loads(ran.out)


@pytest.mark.parametrize(("scheme", "tunnels"), [("http", False), ("http", True), ("https", True)])
async def test_undici_sees_what_the_origin_said(
    scheme: str, tunnels: bool, program: Callable[[str], str], tmp_path: Path
) -> None:
    node = program("node")
    async with lab(tmp_path) as here:
        saw = await script(node, "undici_client.mjs", here, base=here.url("", scheme), tunnels=tunnels)
        assert saw["hello"] == "0123456789"
        assert (saw["echo"]["size"], saw["echo"]["sha256"]) == (2_000_000, saw["expected"])
        assert ["transfer-encoding", "chunked"] in saw["echo"]["headers"]
        assert saw["events"][0] == "data: one\n\n" and "".join(saw["events"]) == "data: one\n\ndata: two\n\n"
        assert saw["big"] == pattern_sha256(8)
        assert (saw["chunked"], saw["trailers"]) == ("three chunks", {"x-sum": "12"})
        assert saw["aborted"] == "AbortError"
        assert saw["parallel"] == ["0123456789"] * 30
        flow = await here.flow("/endless")
        assert (flow.error or "").startswith("the client") and flow.response_body.outcome == "error"
        await until(lambda: here.site.has_ended_early == ["/endless"])
        whole = [flow for flow in here.memory.done if flow.target != "/endless"]
        assert len(whole) == 36
        assert {(flow.scheme, flow.status, flow.error) for flow in whole} == {(scheme, 200, None)}


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_ws_messages_are_echoed_and_recorded(scheme: str, program: Callable[[str], str], tmp_path: Path) -> None:
    node = program("node")
    async with lab(tmp_path) as here:
        saw = await script(node, "ws_client.mjs", here, url=here.url("/ws", scheme).replace("http", "ws", 1))
        assert saw["got"] == [3, 100_000, 5]
        assert (saw["status"], saw["pong"], saw["closed"]) == (200, "are you there", 1000)
        assert "permessage-deflate" in saw["extensions"]
        flow = await here.flow("/ws")
        assert (flow.status, flow.scheme, flow.error) == (101, scheme, None)
        sizes = [(frame.from_client, frame.size_bytes) for frame in flow.frames or () if frame.opcode == 1]
        assert sizes == [(side, size) for size in (3, 100_000, 5) for side in (True, False)]


async def test_undici_without_our_ca_is_told_and_so_are_we(program: Callable[[str], str], tmp_path: Path) -> None:
    node = program("node")
    async with lab(tmp_path) as here:
        about = {"packages": str(npm_packages()), "proxy": here.proxy_url, "ca": str(here.origin_ca_file)}
        about |= {"base": here.url("", "https"), "tunnels": True}
        ran = await run([node, str(HERE / "undici_client.mjs"), json.dumps(about)], {"PATH": os.environ["PATH"]})
        assert ran.code != 0 and "certificate" in ran.errors
        flow = await here.memory.flow()
        assert flow.tls is not None and "tls_client_rejected" in (flow.tls.problem or "")
        assert here.secure.connections == 0
