"""The certificate authority: made or loaded, exported, and signing a leaf for any host while the proxy runs."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dari.errors import InvalidInput
from dari.paths import StagedFile, read_regular

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
KeyType = Literal["ec", "rsa2048", "rsa4096"]

# Apple refuses leaves that are valid for more than 398 days.
_LEAF_DAYS = 365
_CACHED_HOSTS = 2048
# What X.520 allows for a common name; a longer host name stands in the SAN alone.
_NAME_CHARS = 64
_DAY = datetime.timedelta(days=1)
EXPIRES_SOON_DAYS = 30
MAX_PEM_BYTES = 1024 * 1024
_NEW_CA = "crab_ca_generate with replace=true makes a new one, which clients must trust again"
CRL_URL = "http://crab-proxy.local/ca.crl"


class CertificateAuthority:
    """A CA's certificate and key, one leaf key, and a cache of TLS contexts by host."""

    def __init__(self, certificate: x509.Certificate, key: Key) -> None:
        self.certificate = certificate
        self._key = key
        # One leaf key per CA: generating RSA costs 40 ms per host, and a client cannot tell.
        self._leaf_key: Key = _make_key("ec" if isinstance(key, ec.EllipticCurvePrivateKey) else "rsa2048")
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        self.alpn = ["h2", "http/1.1"]
        """What is offered to clients; set it before the first handshake."""

    @classmethod
    def generate(cls, name: str = "Crab Proxy CA", days: int = 3650, key_type: KeyType = "ec") -> CertificateAuthority:
        if not 1 <= days <= 36500:
            raise InvalidInput(f"days must be between 1 and 36500, got {days}", "choose a shorter or longer time")
        key = _make_key(key_type)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_NAME_CHARS])])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + days * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(is_ca=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def load(cls, certificate_file: Path, key_file: Path) -> CertificateAuthority:
        try:
            certificate = x509.load_pem_x509_certificate(read_regular(certificate_file, MAX_PEM_BYTES))
            key = serialization.load_pem_private_key(read_regular(key_file, MAX_PEM_BYTES), password=None)
        except OSError as error:
            raise InvalidInput(f"cannot read {error.filename}: {error.strerror}", "check both paths") from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise InvalidInput(f"not a PEM certificate and an unencrypted PEM key: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise InvalidInput("the CA's key is neither EC nor RSA", "make a CA with an EC P-256 or RSA key")
        if certificate.public_key() != key.public_key():
            raise InvalidInput("the key does not belong to the certificate", "name the pair that was made together")
        try:
            constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        except x509.ExtensionNotFound:
            constraints = None
        if constraints is None or not constraints.ca:
            raise InvalidInput("the certificate may not sign others", "use one with CA:TRUE, or generate a CA")
        _check_usage(certificate)
        _check_dates(certificate)
        return cls(certificate, key)

    def warnings(self) -> tuple[str, ...]:
        """What clients will complain about now or soon; a CA that ran out while it was loaded is still signing."""
        problem = date_problem(self.certificate)
        if problem is not None:
            return (f"{problem}; {_NEW_CA}",)
        left = self.days_left
        return (f"the CA ends in {left} days; {_NEW_CA}",) if left < EXPIRES_SOON_DAYS else ()

    @property
    def days_left(self) -> int:
        return (self.certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)).days

    def save(self, certificate_file: Path, key_file: Path) -> None:
        for staged in self.stage(certificate_file, key_file):
            staged.commit()

    def stage(self, certificate_file: Path, key_file: Path) -> tuple[StagedFile, StagedFile]:
        """Both on disk, or neither; they take their names when they are committed."""
        key = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        staged = StagedFile(key_file, key)
        try:
            return staged, StagedFile(certificate_file, self.pem)
        except BaseException:
            staged.discard()
            raise

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, as browsers show it."""
        return hashlib.sha256(self.der).digest().hex(":").upper()

    def crl(self) -> bytes:
        """An empty list of revoked certificates, DER: some clients (Schannel) refuse a leaf without one."""
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.certificate.subject)
        crl = builder.last_update(now - _DAY).next_update(now + 7 * _DAY).sign(self._key, hashes.SHA256())
        return crl.public_bytes(serialization.Encoding.DER)

    def leaf(self, host: str) -> x509.Certificate:
        """A certificate for this name or address."""
        now = datetime.datetime.now(datetime.UTC)
        common = [x509.NameAttribute(NameOID.COMMON_NAME, host)] if 0 < len(host) <= _NAME_CHARS else []
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name(common))
            .issuer_name(self.certificate.subject)
            .public_key(self._leaf_key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(min(now + _LEAF_DAYS * _DAY, self.certificate.not_valid_after_utc))
            .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=not common)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._leaf_key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(_distribution_points(), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def context_for(self, host: str) -> ssl.SSLContext:
        """For the server side of a handshake as `host`. The first call per host costs about 1 ms."""
        host = host.lower().rstrip(".")
        context = self._contexts.get(host)
        if context is not None:
            self._contexts.move_to_end(host)
            return context
        context = self._make_context(host)
        self._contexts[host] = context
        if len(self._contexts) > _CACHED_HOSTS:
            self._contexts.popitem(last=False)
        return context

    def _make_context(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(self.alpn)
        key = self._leaf_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        chain = self.leaf(host).public_bytes(serialization.Encoding.PEM) + self.pem
        with _unlinked_file(key + chain) as path:
            context.load_cert_chain(path)
        return context


def date_problem(certificate: x509.Certificate) -> str | None:
    """Why no client will trust it today; None when its dates are right."""
    now = datetime.datetime.now(datetime.UTC)
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > ends:
        return f"the CA expired on {ends:%Y-%m-%d}"
    if now < begins:
        return f"the CA is not valid before {begins:%Y-%m-%d %H:%M} UTC"
    return None


def _check_dates(certificate: x509.Certificate) -> None:
    problem = date_problem(certificate)
    if problem is not None:
        today = f"today is {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
        raise InvalidInput(f"{problem}, so no client would trust it; {today}", f"check the clock, or: {_NEW_CA}")


def _check_usage(certificate: x509.Certificate) -> None:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return
    if not usage.key_cert_sign:
        raise InvalidInput("the CA's key usage leaves out keyCertSign", "use a certificate that may sign others")


@contextmanager
def _unlinked_file(data: bytes) -> Iterator[str]:
    """`ssl` reads keys from files only; this one never has a name on a disk where Linux allows it."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("leaf", os.MFD_CLOEXEC)
        try:
            os.write(file, data)
            yield f"/proc/self/fd/{file}"
        finally:
            os.close(file)
    else:
        with tempfile.NamedTemporaryFile() as named:  # mode 0600
            named.write(data)
            named.flush()
            yield named.name


def _make_key(key_type: KeyType) -> Key:
    if key_type == "ec":
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=4096 if key_type == "rsa4096" else 2048)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _distribution_points() -> x509.CRLDistributionPoints:
    url = x509.UniformResourceIdentifier(CRL_URL)
    return x509.CRLDistributionPoints([x509.DistributionPoint([url], None, None, None)])


def _key_usage(is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not is_ca,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )
