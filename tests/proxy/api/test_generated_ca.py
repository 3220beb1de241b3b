"""A CA is made once, whoever asks for it at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dari.errors import Conflict
from dari.proxy.ca import CertificateAuthority
from tests.support.proxy_service import proxy


async def test_of_two_that_find_no_ca_one_makes_it_and_the_other_hears_of_it(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        made = await asyncio.gather(rig.service.ca.generate(), rig.service.ca.generate(), return_exceptions=True)
        refused = [one for one in made if isinstance(one, Conflict)]
        (kept,) = (one for one in made if not isinstance(one, BaseException))
        assert len(refused) == 1
        assert kept.sha256 == (await rig.service.ca.status()).sha256
        assert CertificateAuthority.load(*rig.runtime.files.ca).fingerprint == kept.sha256
