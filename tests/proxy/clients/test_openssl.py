"""openssl as a TLS client that shows what it was given: old versions, no SNI, the chain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.proxy_lab import Lab, Ran, lab, run

GET = b"GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def talk(program: str, here: Lab, *options: str) -> Ran:
    words = [program, "s_client", "-proxy", f"127.0.0.1:{here.port}", "-connect", f"localhost:{here.secure.port}"]
    return await run([*words, "-CAfile", str(here.ca_file), "-verify_return_error", "-ign_eof", *options], stdin=GET)


@pytest.mark.parametrize(
    ("options", "version"), [(["-tls1_2"], "TLSv1.2"), (["-tls1_3"], "TLSv1.3"), (["-alpn", "http/1.1"], "TLSv1.3")]
)
async def test_a_client_of_any_supported_version_is_decrypted(
    options: list[str], version: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    path = program("openssl")
    async with lab(tmp_path) as here:
        ran = await talk(path, here, "-servername", "localhost", *options)
        assert ran.code == 0, ran.errors
        assert b"Verify return code: 0 (ok)" in ran.out and b"issuer=CN=CrabProxyCA" in ran.out.replace(b" ", b"")
        assert b"HTTP/1.1 200 OK" in ran.out and b"0123456789" in ran.out
        flow = await here.flow("/hello")
        assert flow.tls is not None and flow.tls.client_version == version
        assert flow.tls.client_alpn == ("http/1.1" if "-alpn" in options else None)


async def test_without_sni_the_leaf_is_for_the_name_in_connect(program: Callable[[str], str], tmp_path: Path) -> None:
    path = program("openssl")
    async with lab(tmp_path) as here:
        ran = await talk(path, here, "-noservername", "-verify_hostname", "localhost")
        assert ran.code == 0 and b"0123456789" in ran.out, ran.errors
        flow = await here.flow("/hello")
        assert flow.tls is not None and flow.tls.sni is None


async def test_a_version_that_is_too_old_is_refused_and_recorded(program: Callable[[str], str], tmp_path: Path) -> None:
    path = program("openssl")
    async with lab(tmp_path) as here:
        ran = await talk(path, here, "-tls1", "-cipher", "ALL:@SECLEVEL=0")
        assert ran.code != 0
        flow = await here.memory.flow()
        # OpenSSL builds name it differently: UNSUPPORTED_PROTOCOL, or NO_SUITABLE_SIGNATURE_ALGORITHM in Debian's.
        assert flow.tls is not None and (flow.tls.problem or "").startswith("tls_failed: "), flow.tls
        assert here.secure.connections == 0
