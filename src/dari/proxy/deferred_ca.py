"""A CA that is named but not read yet: reading it imports 60 ms of cryptography, which a start need not wait for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dari.errors import InvalidInput
from dari.paths import read_regular

if TYPE_CHECKING:
    from dari.proxy.ca import CertificateAuthority


_MAX_BYTES = 1024 * 1024


class DeferredAuthority:
    """Behaves like the authority in its files, which it reads when it is first asked for something."""

    def __init__(self, certificate_file: Path, key_file: Path) -> None:
        """Raises InvalidInput for files that are not there, or that are plainly something else."""
        self._files = certificate_file, key_file
        for file, word in ((certificate_file, b"CERTIFICATE"), (key_file, b"PRIVATE KEY")):
            try:
                data = read_regular(file, _MAX_BYTES)
            except OSError as error:
                raise InvalidInput(f"cannot read {file}: {error.strerror}", "check both paths") from error
            if b"-----BEGIN " not in data or word not in data:
                raise InvalidInput(f"{file} is no PEM file with a {word.decode().lower()}", "load the CA again")

    @cached_property
    def loaded(self) -> CertificateAuthority:
        from dari.proxy.ca import CertificateAuthority

        return CertificateAuthority.load(*self._files)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loaded, name)


def deferred(certificate_file: Path, key_file: Path) -> CertificateAuthority:
    return cast("CertificateAuthority", DeferredAuthority(certificate_file, key_file))
