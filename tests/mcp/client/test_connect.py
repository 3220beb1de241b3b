"""One function for everything that names a server."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dari.errors import InvalidInput, Unavailable
from dari.mcp import client as package
from dari.transport.client.child import ChildChannel
from dari.transport.client.http import HttpChannel
from dari.transport.client.lines import UnixChannel
from dari.transport.connect import connect
from tests.support.mcp_client import INITIALIZED, Peer, http_script


@pytest.mark.parametrize(
    ("server", "kind"),
    [
        (["npx", "server"], ChildChannel),
        (("npx", "server"), ChildChannel),
        ("npx -y server 'with space'", ChildChannel),
        ("http://localhost/mcp", HttpChannel),
        ("https://localhost/mcp", HttpChannel),
        ("unix:/run/x.sock", UnixChannel),
        (Path("/run/x.sock"), UnixChannel),
        ("http+unix:/run/x.sock", HttpChannel),
    ],
)
async def test_the_channel_follows_from_the_name(server: Any, kind: type) -> None:
    assert type(connect(server)._channel) is kind


async def test_a_command_line_that_does_not_end_is_refused() -> None:
    with pytest.raises(InvalidInput):
        connect("server 'half")


def test_the_package_exports_what_it_says() -> None:
    assert sorted(package.__all__) == ["Client", "RemoteError"]
    assert all(hasattr(package, name) for name in package.__all__)


def certificate(directory: Path) -> tuple[Path, Path]:
    """A key and a certificate that signs itself, for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_path, certificate_path = directory / "key.pem", directory / "cert.pem"
    encoding = serialization.Encoding.PEM
    key_path.write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    certificate_path.write_bytes(signed.public_bytes(encoding))
    return key_path, certificate_path


async def test_tls_is_spoken_and_an_unknown_issuer_refused(tmp_path: Path) -> None:
    key, cert = certificate(tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(cert, key)

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.body.get("method") == "initialize":
                peer.reply(INITIALIZED)
            elif peer.body.get("method") == "ping":
                peer.reply({})
            else:
                peer.respond(202)

    async with http_script(handler, serving) as url:
        trusting = ssl.create_default_context(cafile=str(cert))
        async with connect(url, mode="handshake", ssl_context=trusting) as client:
            await client.ping()
        with pytest.raises(Unavailable, match=r"127\.0\.0\.1") as caught:
            await connect(url, mode="handshake").open()
    assert "ssl_context" in caught.value.hint
