"""Servers reach the network as the person does: by their CA bundle and their proxy."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.errors import Unavailable
from dari.process.child import ChildSpec, network_advice
from dari.process.children import Children
from dari.process.program import find_program
from dari.sandbox.confinement import Confinement
from tests.support.bridge import ME, Place, lab, text_of
from tests.support.processes import wait_for_line
from tests.support.requirements import require_kernel

pytestmark = pytest.mark.local_mcp

SET_UP = {"SSL_CERT_FILE": "/etc/ssl/ours.pem", "HTTPS_PROXY": "http://me:hunter22@proxy.test:3128", "no_proxy": "x"}


async def environment_of(place: Place) -> dict[str, Any]:
    async with place.bridge() as bridge:
        server = bridge.view(place.around(**SET_UP, PRIVATE="1")).upstream("lab")
        return dict(json.loads(text_of(await server.call_tool("env", b"{}", ME))))


async def test_a_server_gets_the_network_set_up_and_nothing_else(tmp_path: Path) -> None:
    seen = await environment_of(Place(tmp_path))
    assert SET_UP.items() <= seen.items() and "PRIVATE" not in seen


async def test_a_profile_can_refuse_it(tmp_path: Path) -> None:
    seen = await environment_of(Place(tmp_path, lab(tmp_path, inheritNetwork=False)))
    assert not SET_UP.keys() & seen.keys()


async def test_the_password_of_a_proxy_is_masked_in_errors(tmp_path: Path) -> None:
    program = "import os, sys; sys.exit('no way through ' + os.environ['HTTPS_PROXY'])"
    entry = {"id": "lab", "kind": "stdio", "command": sys.executable, "args": ["-c", program]}
    place = Place(tmp_path, entry)
    async with place.bridge() as bridge:
        server = bridge.view(place.around(**SET_UP)).upstream("lab")
        with pytest.raises(Unavailable) as caught:
            await server.call_tool("x", b"{}", ME)
    assert "proxy.test" in caught.value.hint and "hunter22" not in caught.value.hint


@pytest.mark.parametrize("wrapped", [False, True], ids=["landlock", "bubblewrap"])
async def test_a_confined_server_reads_the_ca_file_it_is_told_of(tmp_path: Path, wrapped: bool) -> None:
    require_kernel()
    bundle = tmp_path / "ca.pem"
    bundle.write_text("certificates\n")
    walls = Confinement("enforce", (), "none", uses_bubblewrap=wrapped)
    async with Children() as children:
        spec = ChildSpec("x", ("cat", str(bundle)), env={"SSL_CERT_FILE": str(bundle)}, confinement=walls)
        child = await children.start(spec)
        assert wait_for_line(child.stdout.fileno()) == b"certificates\n"
        await child.gone()


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "SSL_CERT_FILE"),
        ("npm error code SELF_SIGNED_CERT_IN_CHAIN", "NODE_EXTRA_CA_CERTS"),
        ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
        ("HTTP 407 Proxy Authentication Required", "HTTPS_PROXY"),
        ("npm error getaddrinfo ENOTFOUND registry.test", "could not reach"),
        ("error: Failed to fetch: `https://index.test/simple/mcp/`", "could not reach"),
    ],
)
def test_the_last_words_about_the_network_come_with_the_next_step(said: str, advice: str) -> None:
    assert advice in network_advice(said)


def test_other_last_words_come_without() -> None:
    assert network_advice("ValueError: no API key") == ""


def test_uvx_is_found_beside_our_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("python", "uvx"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        os.chmod(tmp_path / name, 0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_program("uvx", {"PATH": "/nonexistent"}) == tmp_path / "uvx"
