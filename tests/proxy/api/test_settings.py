"""Settings change while the proxy runs, hold what they say, and refuse what cannot be."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from dari.errors import Conflict, Failed, InvalidInput
from dari.proxy.ca import CertificateAuthority
from dari.proxy.configuration import ClientCertificate, read_address
from dari.proxy.errors import ProxyAlreadyRunning
from tests.support.origins.origin import answering, origin
from tests.support.proxy_engine import request, tunnel, wire
from tests.support.proxy_service import Rig, proxy


def trusting(rig: Rig) -> ssl.SSLContext:
    assert rig.runtime.authority is not None
    return ssl.create_default_context(cadata=rig.runtime.authority.pem.decode())


def refuse_certificate(port: int, authority: str) -> None:
    """As a client does that knows nothing of our CA; asyncio would close without the alert that says so."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        assert b" 200 " in connection.recv(1000)
        ssl.create_default_context().wrap_socket(connection, server_hostname="localhost")


async def test_starting_twice_is_an_error_and_stopping_twice_is_not(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        with pytest.raises(ProxyAlreadyRunning) as caught:
            await rig.service.control.start()
        assert (caught.value.code, caught.value.wire_message) == (-32003, "Proxy already running")
        for _ in range(2):
            assert (await rig.service.control.stop()).status == "stopped"
        assert (await rig.service.control.status()).status == "stopped"


async def test_the_address_moves_and_the_connection_stays(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig, wire(rig.runtime.engine) as client:
        before = rig.port
        assert (await client.get(site.url("/"))).status == 200
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(Failed) as caught:
                await rig.service.settings.set_listen_addr(f"127.0.0.1:{port}")
            assert str(port) in caught.value.message
            assert rig.port == before
        await rig.service.settings.set_listen_addr(f"127.0.0.1:{port}")
        assert rig.port == port
        assert (await client.get(site.url("/"))).status == 200
        assert (await rig.get(site.url("/"))).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        *("localhost:8888", "127.0.0.1", "127.0.0.1:", ":8888", "127.0.0.1:99999", "::1:80", "[127.0.0.1]:80", "x:y"),
        "127.0.0.1:0000001234567",
    ],
)
def test_an_address_is_an_ip_and_a_port(wrong: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_address(wrong)
    assert caught.value.message == "listen_addr must be host:port"


def test_addresses_of_both_families_are_read() -> None:
    assert read_address(" 127.0.0.1:8888 ") == ("127.0.0.1", 8888)
    assert read_address("[::1]:0") == ("::1", 0)


async def test_a_generated_ca_decrypts_the_next_connection(tmp_path: Path) -> None:
    upstream = CertificateAuthority.generate("origin")
    (tmp_path / "roots.pem").write_bytes(upstream.pem)
    async with origin(tls=upstream.context_for("localhost")) as site, proxy(tmp_path) as rig:
        await rig.service.settings.set_upstream(ca_file=str(tmp_path / "roots.pem"))
        await rig.service.rules.add_allow("localhost")
        where = f"localhost:{site.port}"
        why = await rig.service.rules.test(f"https://{where}/")
        assert why.is_decrypted is False and "no CA" in why.decrypted_because
        status = await rig.service.ca.generate()
        assert status.loaded and status.key_type == "ec" and status.days_left is not None and status.days_left > 3000
        async with tunnel(rig.runtime.engine, where) as client:
            await client.start_tls(trusting(rig), "localhost")
            await client.send(f"GET /seen HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
            assert (await client.reply()).status == 200
        entry = (await rig.service.traffic.tail()).entries[0]
        assert entry.url == f"https://{where}/seen"
        with pytest.raises(Conflict):
            await rig.service.ca.generate()
        first = await rig.service.ca.export()
        await rig.service.ca.generate(replace=True, key_type="rsa2048")
        assert (await rig.service.ca.status()).key_type == "rsa2048"
        assert (await rig.service.ca.export()).pem != first.pem
        async with tunnel(rig.runtime.engine, where) as client:
            await client.start_tls(trusting(rig), "localhost")


async def test_a_client_that_refuses_our_certificate_is_told_by_rules_test_and_the_doctor(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.ca.generate()
        await rig.service.rules.add_allow("localhost")
        where = f"localhost:{site.port}"
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(refuse_certificate, rig.port, where)
        while not (await rig.service.control.info()).pinned_hosts:  # noqa: ASYNC110 (the alert is on its way)
            await asyncio.sleep(0)
        why = await rig.service.rules.test(f"https://{where}/")
        assert why.is_decrypted and "refused our certificate for localhost" in why.hints[-1]
        await rig.service.settings.set_policy(passes_through_pinned=True)
        assert (await rig.service.rules.test(f"https://{where}/")).is_decrypted is False
        checks = {check.name: check for check in (await rig.service.health.doctor()).checks}
        assert checks["ca"].status == "warning" and "localhost" in checks["ca"].found
        entry = (await rig.service.traffic.tail()).entries[0]
        assert entry.error is not None and entry.error.startswith("tls_client_rejected")


async def test_the_certificate_of_an_origin_is_verified_unless_told_otherwise(tmp_path: Path) -> None:
    strange = CertificateAuthority.generate("strange")
    async with origin(tls=strange.context_for("localhost")) as site, proxy(tmp_path) as rig:
        url = f"https://localhost:{site.port}/"
        refused = await rig.service.traffic.compose(url)
        assert refused.flow["status"] == 502 and "certificate" in refused.flow["error"]
        await rig.service.settings.set_upstream(insecure_hosts=["localhost"])
        assert (await rig.service.traffic.compose(url)).flow["status"] == 200
        await rig.service.settings.set_upstream(insecure_hosts=[])
        assert (await rig.service.traffic.compose(url)).flow["status"] == 502


async def test_a_wrong_ca_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        await rig.service.ca.generate()
        before = await rig.service.ca.export()
        (tmp_path / "bad.pem").write_text("no certificate")
        with pytest.raises(Failed):
            await rig.service.settings.load_ca(str(tmp_path / "missing.pem"), str(tmp_path / "bad.pem"))
        with pytest.raises(InvalidInput):
            await rig.service.settings.load_ca(str(tmp_path / "bad.pem"), str(tmp_path / "bad.pem"))
        assert await rig.service.ca.export() == before
        CertificateAuthority.generate("mine").save(tmp_path / "mine.pem", tmp_path / "mine-key.pem")
        await rig.service.settings.load_ca(str(tmp_path / "mine.pem"), str(tmp_path / "mine-key.pem"))
        assert (await rig.service.ca.status()).subject == "CN=mine"


async def test_an_upstream_proxy_gets_every_request_and_its_password_is_not_shown(tmp_path: Path) -> None:
    async with origin(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nvia")) as other, proxy(tmp_path) as rig:
        await rig.service.settings.set_upstream(proxy=f"http://me:hush@127.0.0.1:{other.port}")
        assert (await rig.get("http://nowhere.test/x")).body == b"via"
        assert other.requests[0].head.startswith(b"GET http://nowhere.test/x ")
        assert "hush" not in str(await rig.service.settings.dump())
        await rig.service.settings.set_upstream(proxy="")
        assert (await rig.service.settings.dump()).upstream.proxy is None
        with pytest.raises(InvalidInput):
            await rig.service.settings.set_upstream(proxy="not a proxy")
        assert (await rig.service.settings.dump()).upstream.proxy is None


@pytest.mark.parametrize("starts", [True, False])
async def test_wrong_ways_to_an_origin_are_refused_whether_it_runs_or_not(tmp_path: Path, starts: bool) -> None:
    bad = str(tmp_path / "bad.pem")
    Path(bad).write_text("no certificate")
    async with proxy(tmp_path, starts=starts) as rig:
        before = await rig.service.settings.dump()
        with pytest.raises(InvalidInput, match=r"bad\.pem"):
            await rig.service.settings.set_upstream(ca_file=bad)
        with pytest.raises(InvalidInput, match=r"bad\.pem"):
            await rig.service.settings.set_upstream(client_certificates=[ClientCertificate("a.test", bad, bad)])
        with pytest.raises(InvalidInput):
            await rig.service.settings.set_upstream(proxy="socks4://a:1")
        with pytest.raises(Failed):
            await rig.service.settings.set_upstream(ca_file=str(tmp_path / "missing.pem"))
        assert await rig.service.settings.dump() == before


async def test_private_targets_are_refused_when_asked(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.settings.set_policy(blocks_private_targets=True)
        assert (await rig.get(site.url("/"))).status == 403
        await rig.service.settings.set_policy(blocks_private_targets=False)
        assert (await rig.get(site.url("/"))).status == 200


async def test_the_throttle_slows_down_and_is_lifted_at_once(tmp_path: Path) -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + b"x" * 60000
    async with origin(answering(body)) as site, proxy(tmp_path) as rig:
        await rig.service.settings.set_throttle(enabled=True, downstream_bps=1000)
        async with wire(rig.runtime.engine) as client:
            await client.send(request(site.url("/")))
            await client.head()
            slow = asyncio.ensure_future(client.reader.readexactly(60000))
            await rig.get(site.url("/"), "X: 1", method="HEAD")
            assert not slow.done(), "a minute at this rate"
            preset = await rig.service.settings.set_throttle_preset("3g", jitter_ms=5)
            assert (preset.latency_ms, preset.downstream_bps, preset.jitter_ms) == (120, 97 * 1024, 5)
            assert not (await rig.service.settings.set_throttle_preset("off")).enabled
            slow.cancel()
        assert len((await rig.get(site.url("/"))).body) == 60000
        with pytest.raises(InvalidInput):
            await rig.service.settings.set_throttle_preset("5G")
        with pytest.raises(InvalidInput):
            await rig.service.settings.set_throttle(enabled=True, latency_ms=-1)


async def test_transparent_mode_opens_and_closes_its_listener(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        await rig.service.settings.set_transparent(enabled=True, listen_port=port)
        async with wire(rig.runtime.engine, ("127.0.0.1", port)) as client:
            await client.send(f"GET /t HTTP/1.1\r\nHost: {site.authority}\r\n\r\n".encode())
            assert (await client.reply()).status == 200
        await rig.service.settings.set_transparent(enabled=False, listen_port=port)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(InvalidInput):
            await rig.service.settings.set_transparent(enabled=True, listen_port=0)


async def test_the_client_allowlist_folds_and_checks_addresses(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.service.settings.set_client_allowlist(enabled=True, ips=["::ffff:10.0.0.1", " 10.0.0.2 "])
        assert (await rig.service.settings.dump()).client_allowlist.ips == ("10.0.0.1", "10.0.0.2")
        assert (await rig.get(site.url("/"))).status == 200, "loopback always passes"
        assert not rig.runtime.engine._gate.admits("10.9.9.9")  # type: ignore[union-attr]
        assert not rig.runtime.engine._gate.admits("10.9.9.9")  # type: ignore[union-attr]
        notes = [record.message for record in (await rig.service.traffic.log()).records if "LAN" in record.message]
        assert notes == ["LAN_ACCESS_REQUEST ip=10.9.9.9"], "once per device"
        with pytest.raises(InvalidInput) as caught:
            await rig.service.settings.set_client_allowlist(enabled=True, ips=["10.0.0.0/8"])
        assert caught.value.message == "invalid IP address: 10.0.0.0/8"


async def test_the_dump_tells_where_bodies_go_and_how_large_one_may_be(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        bodies = rig.runtime.recording.bodies
        assert bodies is not None
        inspect = (await rig.service.settings.dump()).inspect
        assert (inspect.spool_dir, inspect.spool_max_bytes) == (str(bodies.directory), bodies.body_bytes)
        await rig.service.settings.set_inspect_enabled(False)
        assert not (await rig.service.settings.dump()).inspect.spool


async def test_the_environment_names_proxy_and_roots(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        plain = await rig.service.control.environment()
        assert (
            plain.variables["HTTPS_PROXY"] == f"http://127.0.0.1:{rig.port}" and "SSL_CERT_FILE" not in plain.variables
        )
        await rig.service.ca.generate()
        snippet = await rig.service.control.environment("fish")
        assert rig.runtime.authority is not None
        pem = rig.runtime.authority.pem
        assert Path(snippet.variables["NODE_EXTRA_CA_CERTS"]).read_bytes() == pem
        bundle = Path(snippet.variables["SSL_CERT_FILE"]).read_bytes()
        assert bundle.endswith(pem) and bundle.count(b"BEGIN CERTIFICATE") >= 1
        assert f"set -gx HTTPS_PROXY http://127.0.0.1:{rig.port}" in snippet.script.splitlines()


async def test_the_doctor_looks_at_real_things(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        found = await rig.service.health.doctor()
        assert (found.running, found.ca, found.capture, found.state_db) == (True, "missing", "running", "ok")
        await rig.service.ca.generate()
        assert rig.runtime.recording.store is not None
        rig.runtime.recording.store.problem = "disk I/O error"
        found = await rig.service.health.doctor()
        assert found.ca == "loaded" and "disk I/O error" in found.state_db
        failed = [check for check in found.checks if check.status == "failed"]
        assert [check.name for check in failed] == ["state_db"] and failed[0].hint
        rig.runtime.recording.store.problem = None
