"""OAuth for the HTTP servers of profiles: who gets it, and what to do where it does not help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dari.bridge.config.profile import HttpSettings, Profile
from dari.bridge.oauth.interact import NOBODY, Interact
from dari.bridge.oauth.kept import KeptOAuth
from dari.bridge.oauth.keychain import Backend, Keychain
from dari.bridge.oauth.store import LoginStore
from dari.mcp.client.oauth import OAuth

if TYPE_CHECKING:
    from dari.bridge.upstream.connect import MakeOAuth


def oauth_for(
    profile: Profile, url: str, *, home: Path, keyring: Backend | Keychain | None = None, interact: Interact = NOBODY
) -> OAuth | None:
    """OAuth for a server that may ask for it; None for one that is told by a token or a header who asks.

    Without a person (`NOBODY`) it uses and renews what `dari remote login` has left, and else says to run that. The
    SDK is imported when a token has to be renewed or a login starts, never before. `home` is the bridge's. Share one
    `Keychain` where many are made: it knows whether the system's keyring answers.
    """
    if not isinstance(profile.connection, HttpSettings) or profile.connection.auth.type not in ("oauth2", "none"):
        return None
    auth = profile.connection.auth
    keychain = keyring if isinstance(keyring, Keychain) else Keychain(keyring)
    has_profile = profile.source.layer != "argument"
    kept = LoginStore(home, keychain).login(profile.id, url, uses_keyring=auth.uses_keyring, has_profile=has_profile)
    return KeptOAuth(kept, url, auth, interact)


def oauth_maker(home: Path, keyring: Backend | Keychain | None = None) -> MakeOAuth:
    """`oauth_for` for all servers of one bridge, none of which may ask a person."""
    keychain = keyring if isinstance(keyring, Keychain) else Keychain(keyring)

    def make_oauth(profile: Profile, url: str) -> OAuth | None:
        return oauth_for(profile, url, home=home, keyring=keychain)

    return make_oauth
