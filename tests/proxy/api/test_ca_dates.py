"""A CA that no client would trust today is refused, and one that runs out soon comes with a warning."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dari.errors import InvalidInput
from dari.proxy.ca import CertificateAuthority
from tests.support.proxy_service import proxy

DAY = datetime.timedelta(days=1)


def written(folder: Path, first_day: float, last_day: float, *, signs: bool = True) -> tuple[str, str]:
    """A CA with these dates, counted from today; the paths of its certificate and key."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Dates CA")])
    usage = x509.KeyUsage(True, False, False, False, False, signs, signs, False, False)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + first_day * DAY)
        .not_valid_after(now + last_day * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    paths = folder / "ca.pem", folder / "ca.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize(
    ("first_day", "last_day", "word"), [(-10, -5, "expired on"), (5, 10, "not valid before"), (-1, -0.001, "expired")]
)
async def test_a_ca_with_wrong_dates_is_refused_with_the_fix(
    first_day: float, last_day: float, word: str, tmp_path: Path
) -> None:
    async with proxy(tmp_path) as rig:
        with pytest.raises(InvalidInput, match=word) as refused:
            await rig.service.settings.load_ca(*written(tmp_path / "ca", first_day, last_day))
        assert "crab_ca_generate" in refused.value.hint
        assert rig.runtime.authority is None and rig.runtime.configuration.ca_cert_path is None


async def test_a_ca_that_may_not_sign_is_refused(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        with pytest.raises(InvalidInput, match="keyCertSign"):
            await rig.service.settings.load_ca(*written(tmp_path / "ca", -1, 100, signs=False))


async def test_a_ca_that_ends_soon_is_loaded_with_a_warning_everywhere(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        loaded = await rig.service.settings.load_ca(*written(tmp_path / "ca", -1, 10))
        assert loaded.ok and "ends in 9 days" in loaded.warnings[0]
        assert (await rig.service.ca.status()).warnings == loaded.warnings
        (check,) = [one for one in (await rig.service.health.doctor()).checks if one.name == "ca"]
        assert check.status == "warning" and "9 days" in check.found and "crab_ca_generate" in check.hint
        assert (await rig.service.settings.load_ca(*written(tmp_path / "long", -1, 900))).warnings == ()


async def test_a_ca_that_expired_since_the_last_start_is_left_out_and_said(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        await rig.service.settings.load_ca(*written(tmp_path / "ca", -1, 10))
    written(tmp_path / "ca", -10, -5)
    async with proxy(tmp_path) as rig:
        assert rig.runtime._warming is not None
        await rig.runtime._warming
        status = await rig.service.ca.status()
        assert not status.loaded and "expired on" in status.warnings[0]
        notes = (await rig.service.control.info()).notes
        assert any("expired on" in note and "crab_ca_generate" in note for note in notes)


async def test_a_ca_that_expires_while_it_is_loaded_fails_the_doctor(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        await rig.service.settings.load_ca(*written(tmp_path / "ca", -1, 10))
        old = written(tmp_path / "old", -10, -5)
        certificate = x509.load_pem_x509_certificate(Path(old[0]).read_bytes())
        key = serialization.load_pem_private_key(Path(old[1]).read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        rig.runtime.trust(CertificateAuthority(certificate, key))
        (check,) = [one for one in (await rig.service.health.doctor()).checks if one.name == "ca"]
        assert check.status == "failed" and "expired on" in check.found
        assert "expired on" in (await rig.service.ca.status()).warnings[0]
