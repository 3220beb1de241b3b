"""The CA and its leaves, checked by OpenSSL's own verifier and by the openssl command."""

from __future__ import annotations

import datetime
import ipaddress
import shutil
import ssl
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from dari.errors import InvalidInput
from dari.proxy.ca import CertificateAuthority, KeyType
from dari.proxy.cert_page import CERT_PAGE_HOSTS, CertPage

EC = CertificateAuthority.generate()


def handshake(authority: CertificateAuthority, host: str, name: str | None = None) -> str:
    """A client that trusts only this CA meets a server with the leaf for `host`."""
    client_context = ssl.create_default_context(cadata=authority.pem.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=name or host)
    server = authority.context_for(host).wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    return client.version() or ""


@pytest.mark.parametrize(
    "host", ["example.com", "a" * 60 + "." + "b" * 60 + ".example", "127.0.0.1", "::1", "xn--bcher-kva.example"]
)
@pytest.mark.parametrize("key_type", ["ec", "rsa2048"])
def test_a_leaf_is_good_for_its_host(key_type: KeyType, host: str) -> None:
    authority = EC if key_type == "ec" else CertificateAuthority.generate(key_type="rsa2048")
    assert handshake(authority, host) == "TLSv1.3"


def test_a_leaf_is_good_for_no_other_host() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(EC, "example.com", "sub.example.com")


def test_a_leaf_has_what_strict_clients_ask_for() -> None:
    leaf = EC.leaf("example.com")
    lifetime = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    assert lifetime <= datetime.timedelta(days=398)
    assert leaf.serial_number != EC.leaf("example.com").serial_number
    extensions = leaf.extensions
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]
    issuer = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    own = EC.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert issuer == own
    assert extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_an_address_stands_in_the_leaf_as_an_address() -> None:
    names = EC.leaf("::1").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("::1")]


@pytest.mark.parametrize(
    ("offered", "taken"),
    [(["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), (["http/1.1", "h2"], "h2"), ([], None)],
)
def test_http2_is_taken_where_a_client_offers_it(offered: list[str], taken: str | None) -> None:
    context = ssl.create_default_context(cadata=EC.pem.decode())
    context.set_alpn_protocols(offered)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server, server_hostname="example.com")
    server = EC.context_for("example.com").wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server) * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            pass
    assert server.selected_alpn_protocol() == client.selected_alpn_protocol() == taken


def test_contexts_are_cached_by_host_without_case_or_closing_dot() -> None:
    assert EC.context_for("Example.com.") is EC.context_for("example.com")


def test_the_cache_forgets_the_host_that_was_not_used_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dari.proxy.ca._CACHED_HOSTS", 2)
    authority = CertificateAuthority.generate()
    first = authority.context_for("a")
    authority.context_for("b")
    assert authority.context_for("a") is first
    authority.context_for("c")
    assert authority.context_for("a") is first
    assert list(authority._contexts) == ["c", "a"]


def test_a_saved_ca_is_loaded_again_and_its_key_is_private(tmp_path: Path) -> None:
    certificate, key = tmp_path / "ca.pem", tmp_path / "ca.key"
    EC.save(certificate, key)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    again = CertificateAuthority.load(certificate, key)
    assert again.fingerprint == EC.fingerprint
    assert handshake(again, "example.com") == "TLSv1.3"


def test_what_is_no_ca_is_refused_with_a_reason(tmp_path: Path) -> None:
    certificate, key = tmp_path / "ca.pem", tmp_path / "ca.key"
    EC.save(certificate, key)
    other = tmp_path / "other.key"
    CertificateAuthority.generate().save(tmp_path / "other.pem", other)
    noise = tmp_path / "noise"
    noise.write_bytes(b"noise")
    leaf = tmp_path / "leaf.pem"
    from cryptography.hazmat.primitives import serialization

    leaf.write_bytes(EC.leaf("a").public_bytes(serialization.Encoding.PEM))
    for pair in ((certificate, other), (noise, key), (certificate, noise), (tmp_path / "gone", key), (leaf, key)):
        with pytest.raises(InvalidInput):
            CertificateAuthority.load(*pair)
    with pytest.raises(InvalidInput):
        CertificateAuthority.generate(days=0)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_reads_the_certificate_and_the_crl(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(EC.pem)
    (tmp_path / "ca.der").write_bytes(EC.der)
    (tmp_path / "ca.crl").write_bytes(EC.crl())
    from cryptography.hazmat.primitives import serialization

    (tmp_path / "leaf.pem").write_bytes(EC.leaf("example.com").public_bytes(serialization.Encoding.PEM))
    run = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", "leaf.pem"]
    assert subprocess.run(run, cwd=tmp_path, capture_output=True, text=True).stdout == "leaf.pem: OK\n"
    shown = ["openssl", "x509", "-inform", "der", "-in", "ca.der", "-noout", "-fingerprint", "-sha256"]
    assert EC.fingerprint in subprocess.run(shown, cwd=tmp_path, capture_output=True, text=True).stdout
    crl = ["openssl", "crl", "-inform", "der", "-in", "ca.crl", "-CAfile", "ca.pem", "-noout"]
    assert "verify OK" in subprocess.run(crl, cwd=tmp_path, capture_output=True, text=True).stderr


def test_the_portal_has_every_page() -> None:
    portal = CertPage(EC)
    assert portal.answer("GET", b"/ca.pem").body == EC.pem
    assert portal.answer("GET", b"/ca.der").body == portal.answer("HEAD", b"/android.crt").body == EC.der
    assert EC.fingerprint.encode() in portal.answer("GET", b"/?x").body
    assert x509.load_der_x509_crl(portal.answer("GET", b"/ca.crl").body).is_signature_valid(
        EC.certificate.public_key()  # type: ignore[arg-type]
    )
    profile = portal.answer("GET", b"/ios.mobileconfig")
    assert profile.body == portal.answer("GET", b"/ios.mobileconfig").body
    import plistlib

    content = plistlib.loads(profile.body)["PayloadContent"][0]
    assert content["PayloadContent"] == EC.der
    assert portal.answer("GET", b"/other").status == 404
    assert portal.answer("POST", b"/").status == 405
    assert CertPage(None).answer("GET", b"/").status == 503
    assert len(CERT_PAGE_HOSTS) == 3
