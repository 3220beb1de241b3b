"""TLS contexts of origins whose certificates a client must not trust."""

from __future__ import annotations

import datetime
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dari.proxy.ca import CertificateAuthority

DAY = datetime.timedelta(days=1)


def self_signed(_: CertificateAuthority) -> ssl.SSLContext:
    return _context(ec.generate_private_key(ec.SECP256R1()), None, -1, 30)


def expired(authority: CertificateAuthority) -> ssl.SSLContext:
    return _context(ec.generate_private_key(ec.SECP256R1()), authority, -10, -5)


def wrong_name(authority: CertificateAuthority) -> ssl.SSLContext:
    return authority.context_for("other.example")


def _context(
    key: ec.EllipticCurvePrivateKey, authority: CertificateAuthority | None, first_day: int, last_day: int
) -> ssl.SSLContext:
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name if authority is None else authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + first_day * DAY)
        .not_valid_after(now + last_day * DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key if authority is None else authority._key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "chain.pem"
        file.write_bytes(pem)
        context.load_cert_chain(file)
    return context
