"""The CA from a caller's view: made, looked at, exported, replaced."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, InvalidInput, NotFound
from dari.proxy.state_files import saves

if TYPE_CHECKING:
    from dari.proxy.ca import CertificateAuthority
    from dari.proxy.runtime import ProxyRuntime

MAX_CA_DAYS = 36500
KeyType = Literal["ec", "rsa2048", "rsa4096"]
"""As in `dari.proxy.ca`, which a client of the daemon does not load."""


class CaStatus(Struct, frozen=True):
    """`install` says how clients come to trust it."""

    loaded: bool
    cert_path: str | None = None
    subject: str | None = None
    sha256: str | None = None
    key_type: str | None = None
    not_after: str | None = None
    days_left: int | None = None
    install: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Expired, not valid yet, or about to end."""


class CaExport(Struct, frozen=True):
    format: Literal["pem"]
    pem: str
    sha256: str


class CaApi:
    def __init__(self, runtime: ProxyRuntime) -> None:
        self._runtime = runtime
        self._generating = asyncio.Lock()

    @expose("ca.generate", "control")
    async def generate(
        self, name: str = "Crab Proxy CA", days: int = 3650, key_type: KeyType = "ec", replace: bool = False
    ) -> CaStatus:
        """Make a CA and sign with it at once. One that is loaded is replaced only when asked: clients trust it."""
        if not name.strip():
            raise InvalidInput("the name of the CA is empty", "give a name that people recognise")
        if not 1 <= days <= MAX_CA_DAYS:
            raise InvalidInput(f"days must be 1 to {MAX_CA_DAYS}", "3650 are ten years")
        async with self._generating:  # or two that find none would each make one, and clients trust the first
            return await self._generate(name, days, key_type, replace)

    async def _generate(self, name: str, days: int, key_type: KeyType, replace: bool) -> CaStatus:
        from dari.proxy.ca import CertificateAuthority

        runtime = self._runtime
        if runtime.authority is not None and not replace:
            raise Conflict(
                f"a CA is loaded already: {runtime.configuration.ca_cert_path}",
                "it works as it is; replace=true makes a new one, which every client must trust again",
            )
        authority = await asyncio.to_thread(CertificateAuthority.generate, name, days, key_type)
        certificate, key = runtime.files.ca
        with saves(certificate):
            staged = await asyncio.to_thread(authority.stage, certificate, key)
        try:
            await runtime.configure(ca_cert_path=str(certificate), ca_key_path=str(key))
        except BaseException:
            for file in staged:
                file.discard()
            raise
        with saves(certificate):
            for file in staged:
                file.commit()
        runtime.trust(authority)
        return await self.status()

    @expose("ca.status", "read")
    async def status(self) -> CaStatus:
        authority = self._runtime.authority
        path = self._runtime.configuration.ca_cert_path
        if authority is None:
            return CaStatus(
                False,
                path,
                install=("crab_ca_generate makes a CA; until then HTTPS passes through unread",),
                warnings=tuple(note for note in self._runtime.files.notes if note.startswith("the CA ")),
            )
        certificate = authority.certificate
        ends = certificate.not_valid_after_utc
        return CaStatus(
            loaded=True,
            cert_path=path,
            subject=certificate.subject.rfc4514_string(),
            sha256=authority.fingerprint,
            key_type=_key_type(authority),
            not_after=ends.isoformat(),
            days_left=authority.days_left,
            warnings=authority.warnings(),
            install=(
                "crab_env_snippet has the variables for programs started from a shell",
                "devices: http://crab-proxy.local/ through the proxy serves the certificate",
            ),
        )

    @expose("ca.export", "read")
    async def export(self) -> CaExport:
        """The certificate, which is public; the key stays where it is."""
        authority = self._runtime.authority
        if authority is None:
            raise NotFound("no CA is loaded", "crab_ca_generate makes one")
        return CaExport("pem", authority.pem.decode("ascii"), authority.fingerprint)


def _key_type(authority: CertificateAuthority) -> str:
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = authority.certificate.public_key()
    return f"rsa{key.key_size}" if isinstance(key, rsa.RSAPublicKey) else "ec"
