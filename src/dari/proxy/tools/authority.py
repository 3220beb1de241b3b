"""The certificate authority that decrypts HTTPS."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.core.tool import tool
from dari.proxy.authority import CaStatus, KeyType
from dari.proxy.service import ProxyService


class AuthorityTools:
    prefix = "crab"

    def __init__(self, proxy: ProxyService) -> None:
        self._authority = proxy.authority

    @tool(scope="control", destructive=True, idempotent=False)
    async def ca_generate(
        self,
        name: Annotated[str, Meta(description="name that people see in a certificate store")] = "Crab Proxy CA",
        days: Annotated[int, Meta(ge=1, le=36500, description="days until it ends")] = 3650,
        key_type: Annotated[KeyType, Meta(description="rsa2048 for clients that know no elliptic curves")] = "ec",
        replace: Annotated[bool, Meta(description="make a new one although clients trust the old")] = False,
    ) -> CaStatus:
        """Make a CA and decrypt with it from now on; returns its path, fingerprint and how clients trust it."""
        return await self._authority.generate(name, days, key_type, replace)

    @tool()
    async def ca_status(self) -> CaStatus:
        """Tell whether a CA is loaded, its path, fingerprint and end, and how clients come to trust it."""
        return await self._authority.status()
