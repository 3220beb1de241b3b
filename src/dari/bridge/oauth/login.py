"""What is kept of one login: the tokens, the client we are there, and what the authorization server says of itself."""

from __future__ import annotations

import hashlib
import re
import time
from typing import Any, Literal

from msgspec import Struct, field

FORMAT = 1
JsonObject = dict[str, Any]
Grant = Literal["code", "client_credentials"]
Place = Literal["file", "keyring"]


class Secrets(Struct, omit_defaults=True):
    """The part that nobody may read."""

    access_token: str = ""
    refresh_token: str = ""
    client: JsonObject = field(default_factory=dict)
    """Our registration (RFC 7591), with its secret if it has one."""

    def __repr__(self) -> str:
        return "Secrets(…)"


class Login(Struct, kw_only=True, omit_defaults=True):
    """One login of one profile at one address. `secrets` is None while they lie in the keyring."""

    format: int = FORMAT
    profile: str
    url: str
    """Without query: a key may stand there."""
    place: Place = "file"
    grant: Grant = "code"
    expires_unix: float | None = None
    scope: str = ""
    issuer: str = ""
    saved_unix: float = 0.0
    has_tokens: bool = False
    can_refresh: bool = False
    server: JsonObject = field(default_factory=dict)
    """The authorization server's metadata (RFC 8414): a refresh in another process needs its token endpoint."""
    protected: JsonObject = field(default_factory=dict)
    """The resource's metadata (RFC 9728)."""
    secrets: Secrets | None = None

    @property
    def kept(self) -> Secrets:
        if self.secrets is None:
            self.secrets = Secrets()
        return self.secrets

    def drop_tokens(self) -> None:
        """They are worth nothing any more; the registration stays."""
        self.kept.access_token = self.kept.refresh_token = ""
        self.expires_unix = None

    def is_expired(self, now_unix: float | None = None) -> bool:
        return self.expires_unix is not None and self.expires_unix <= (time.time() if now_unix is None else now_unix)


def file_name(profile: str, url: str) -> str:
    """One name per profile and address; readable, and no path whatever the profile is called."""
    digest = hashlib.sha256(f"{profile}\0{url}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', profile)[:40]}-{digest}"
