"""OAuth whose tokens outlive the process: loaded when a channel opens, renewed by one task of one process at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dari.bridge.config.profile import AuthSettings, HttpSettings, Profile
from dari.bridge.oauth.callback import NO_PROMPT, LoginPrompt
from dari.bridge.oauth.keychain import Keychain, KeyringBackend
from dari.bridge.oauth.store import Login, LoginStore, StoredLogin
from dari.errors import DariError, TimedOut
from dari.mcp.client.errors import Unauthorized
from dari.mcp.client.oauth import FLOW_TIMEOUT_S, HttpRefusal, OAuth

if TYPE_CHECKING:
    from dari.bridge.upstream.connect import MakeOAuth

UNATTENDED_TIMEOUT_S = 60.0
"""For a renewal that needs no person."""
_EXPIRY_MARGIN_S = 5.0


class PersistentOAuth(OAuth):
    """Tokens of one profile at one address. Without a person it renews what a login has left, and starts none."""

    def __init__(self, kept: StoredLogin, url: str, auth: AuthSettings, interact: LoginPrompt = NO_PROMPT) -> None:
        super().__init__(url.partition("?")[0], timeout_s=FLOW_TIMEOUT_S if interact.can_ask else UNATTENDED_TIMEOUT_S)
        self._kept = kept
        self._full_url = url
        self._auth = auth
        self._interact = interact

    async def load(self) -> None:
        try:
            login = await self._kept.load()
        except DariError:
            return  # reported when the server asks
        if login is not None:
            self.token = login.kept.access_token

    def _late(self) -> DariError:
        if self._interact.can_ask:
            return super()._late()
        return TimedOut(f"the token for {self._url} was not renewed within {self._timeout_s:g} s", "try again later")

    async def _obtain(self, refusal: HttpRefusal) -> str:
        async with self._kept.turn(self._timeout_s - _EXPIRY_MARGIN_S):
            login = await self._kept.load() or Login(profile=self._kept.profile, url=self._kept.url)
            if login.kept.access_token and f"Bearer {login.kept.access_token}" != refusal.authorization:
                return login.kept.access_token  # another process has renewed it
            self._check_is_oauth(login, refusal)
            if not self._can_start(login):
                raise login_required(self._kept, login)
            # Imported here: most servers are used for long without a refusal, and never with one.
            from dari.bridge.oauth.renewal import Renewal

            renewal = Renewal(self._kept, login, self._full_url, self._auth, self._interact)
            return await renewal.run(refusal)

    def _can_start(self, login: Login) -> bool:
        has_credentials = bool(self._auth.client_id and self._auth.client_secret)
        return bool(login.kept.refresh_token) or self._interact.can_ask or has_credentials

    def _check_is_oauth(self, login: Login, refusal: HttpRefusal) -> None:
        """A profile that names no auth gets OAuth only where the server offers it, or where a login exists."""
        challenge = refusal.headers.get(b"www-authenticate", b"")
        is_offered = self._auth.type == "oauth2" or login.saved_unix > 0 or b"resource_metadata" in challenge
        if not is_offered and not self._interact.can_ask:
            raise Unauthorized(
                f"{self._url} does not accept us (HTTP {refusal.status})",
                f"give it a key (apiKey of a profile, or --key); if it speaks OAuth: {self._kept.command}",
            )


def login_required(kept: StoredLogin, login: Login, reason: str = "") -> Unauthorized:
    """The error that only a person can help with."""
    hint = f"run: {kept.command}"
    if reason or login.saved_unix:
        because = f" ({reason})" if reason else ""
        return Unauthorized(f"the login of '{kept.profile}' at {kept.url} is not valid any more{because}", hint)
    return Unauthorized(f"{kept.url} requires a login (OAuth), and '{kept.profile}' has none yet", hint)


def oauth_for(
    profile: Profile,
    url: str,
    *,
    home: Path,
    keyring: KeyringBackend | Keychain | None = None,
    interact: LoginPrompt = NO_PROMPT,
) -> OAuth | None:
    """OAuth for a server that may ask for it; None for a profile with a token or a header.

    Without a person (`NO_PROMPT`) it uses and renews the tokens of `dari remote login`, or asks to run that. The
    SDK is imported when a token has to be renewed or a login starts, never before. `home` is the bridge's. Share one
    `Keychain` where many are made: it knows whether the system's keyring answers.
    """
    if not isinstance(profile.connection, HttpSettings) or profile.connection.auth.type not in ("oauth2", "none"):
        return None
    auth = profile.connection.auth
    keychain = keyring if isinstance(keyring, Keychain) else Keychain(keyring)
    has_profile = profile.source.layer != "argument"
    kept = LoginStore(home, keychain).login(profile.id, url, uses_keyring=auth.uses_keyring, has_profile=has_profile)
    return PersistentOAuth(kept, url, auth, interact)


def oauth_maker(home: Path) -> MakeOAuth:
    """`oauth_for` for all servers of one bridge, none of which may ask a person."""
    keychain = Keychain()

    def make_oauth(profile: Profile, url: str) -> OAuth | None:
        return oauth_for(profile, url, home=home, keyring=keychain)

    return make_oauth
