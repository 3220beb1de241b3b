"""Certificates of one run: the origin's, and the authorities that peers need given. Valid for a day, thrown away."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """The paths of a certificate and its key, both PEM."""

    certificate: Path
    key: Path


def make(home: Path, name: str, *, is_authority: bool) -> Pair:
    """A self-signed one. The origin's key is EC, as ours is; authorities for peers are RSA, as their documents say."""
    key = rsa.generate_private_key(65537, 2048) if is_authority else ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"bench {name}")])
    now = datetime.datetime.now(datetime.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    pair = Pair(home / f"{name}.pem", home / f"{name}.key")
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(_encoded(key))
    return pair


def make_key(path: Path) -> Path:
    """An RSA key alone, for leaves that a peer signs."""
    path.write_bytes(_encoded(rsa.generate_private_key(65537, 2048)))
    return path


def _encoded(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
