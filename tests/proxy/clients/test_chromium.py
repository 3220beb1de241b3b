"""Chromium through the decrypting proxy: a page with fetch, an image, a WebSocket and an event stream."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.proxy.clients.devtools import browser
from tests.support.proxy_lab import OURS, lab
from tests.support.proxy_site import pattern_sha256

pytestmark = [pytest.mark.timeout(150), pytest.mark.xdist_group("chromium")]


def trusting() -> str:
    """Chromium takes certificates of our CA's leaf key, and no other that its own roots do not vouch for."""
    key = OURS.leaf("localhost").public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"--ignore-certificate-errors-spki-list={base64.b64encode(hashlib.sha256(key).digest()).decode()}"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_page_works_as_if_there_were_no_proxy(
    scheme: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    path = program("chromium")
    async with lab(tmp_path) as here:
        async with browser(path, tmp_path / "profile", here.proxy_url, trusting()) as page:
            assert await page.go(here.url("/page", scheme)) is None
            saw = json.loads(await page.evaluate("everything()"))
        assert saw["image"] == [2, 3]
        assert saw["socket"] == {"first": "hello from the page", "got": [19, 70_000], "code": 1000}
        assert saw["events"] == ["one", "two"]
        assert saw["post"] == {"size": 300_000, "isSame": True, "line": "POST /echo HTTP/1.1"}
        assert saw["big"] == pattern_sha256(4)
        spoken = "h2" if scheme == "https" and "h2" in OURS.alpn else "http/1.1"
        assert {saw["versions"][name] for name in ("/page", "/image.png", "/echo", "/big")} == {spoken}

        await here.flow("/ws")
        flows = [flow for flow in here.memory.done if flow.authority.startswith("localhost")]
        assert {(flow.scheme, flow.error) for flow in flows} == {(scheme, None)}
        paths = ["/page", "/image.png", "/ws", "/events", "/release", "/echo", "/big?4"]
        assert Counter(flow.target for flow in flows) == Counter(paths)
        assert {flow.target: flow.status for flow in flows} == dict.fromkeys(paths, 200) | {"/ws": 101}
        frames = next(flow.frames for flow in flows if flow.target == "/ws")
        sizes = [(frame.from_client, frame.size_bytes) for frame in frames or () if frame.opcode == 1]
        assert sizes == [(True, 19), (False, 19), (True, 70_000), (False, 70_000)]


async def test_a_browser_without_our_ca_refuses_and_the_flow_says_so(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    path = program("chromium")
    async with lab(tmp_path) as here:
        async with browser(path, tmp_path / "profile", here.proxy_url) as page:
            assert await page.go(here.url("/page", "https")) == "net::ERR_CERT_AUTHORITY_INVALID"
        flow = await here.memory.flow()
        assert flow.tls is not None and (flow.tls.problem or "").startswith("tls_client_rejected")
        assert here.secure.requests == []
