"""Join the ways in which dialects write credentials into one `AuthSettings`."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET

from dari.bridge.config.errors import FieldProblem
from dari.bridge.config.profile import AuthSettings, AuthType
from dari.bridge.config.schema import AuthEntry, ServerEntry
from dari.bridge.config.secret import Secret


def build_auth(entry: ServerEntry) -> tuple[AuthSettings, dict[str, str]]:
    """The auth of an HTTP server, and headers that AgentHub keeps inside of it."""
    given: list[tuple[str, AuthEntry]] = []
    if isinstance(entry.auth, AuthEntry):
        given.append(("auth", entry.auth))
    if isinstance(entry.oauth, AuthEntry):
        given.append(("oauth", entry.oauth))
    if entry.hub_auth_config is not None:
        given.append(("auth_config", entry.hub_auth_config))
    if len(given) > 1:
        raise FieldProblem((given[1][0],), f"contradicts '{given[0][0]}'", "keep one of the two")
    if not given:
        if entry.oauth is True:
            return AuthSettings(type="oauth2"), {}
        return (AuthSettings(type="bearer", token=Secret(entry.api_key)) if entry.api_key else AuthSettings()), {}
    field, part = given[0]
    auth = _auth(field, part, entry.api_key)
    return auth, part.headers


def _auth(field: str, part: AuthEntry, api_key: str | None) -> AuthSettings:
    named = part.type if part.type is not UNSET else part.hub_auth_type
    kind: AuthType | Literal["api_key"] = named if named is not UNSET else _auth_type(field, part, api_key)
    if kind == "none" or not part.enabled:
        return AuthSettings()
    if kind == "oauth2":
        if api_key:
            raise FieldProblem((field,), "oauth2 contradicts 'apiKey'", "keep one of the two")
        return _oauth(part)
    if part.headers and kind == "header" and part.token is UNSET:
        return AuthSettings()  # AgentHub's type `header`: the headers say it all
    if kind == "api_key":
        name, prefix, token = part.hub_api_key_header, part.hub_api_key_prefix, part.hub_api_key
        kind = "header"
    else:
        name = part.header if part.header is not UNSET else "Authorization"
        prefix = part.prefix if part.prefix is not UNSET else ""
        token = (part.token if part.token is not UNSET else "") or part.hub_api_key or api_key or ""
    if not token:
        raise FieldProblem((field, "token"), "is missing", "write it as ${NAME} or ${keyring:service/name}")
    return AuthSettings(type=kind, token=Secret(token), header=name, prefix=prefix)


def _auth_type(field: str, part: AuthEntry, api_key: str | None) -> AuthType | Literal["api_key"]:
    """The type of an entry that names none."""
    if part.token is not UNSET or api_key:
        return "header" if part.header is not UNSET else "bearer"
    if part.hub_api_key:
        return "api_key"
    if part.headers:
        return "header"
    names = (part.client_id, part.CLIENT_ID, part.client_metadata_url, part.hub_oauth2_client_id)
    return "oauth2" if field == "oauth" or any(names) or part.scopes or part.auth_server_metadata_url else "none"


def _oauth(part: AuthEntry) -> AuthSettings:
    secret = part.client_secret or part.CLIENT_SECRET or part.hub_oauth2_client_secret
    scopes = part.scopes or part.hub_oauth2_scopes
    return AuthSettings(
        type="oauth2",
        client_id=part.client_id or part.CLIENT_ID or part.hub_oauth2_client_id,
        client_secret=Secret(secret) if secret else None,
        client_metadata_url=part.client_metadata_url,
        authorization_url=part.authorization_url or part.hub_oauth2_authorize_url,
        token_url=part.token_url or part.hub_oauth2_token_url,
        metadata_url=part.auth_server_metadata_url,
        resource=part.resource,
        redirect_url=part.redirect_uri,
        callback_port=part.callback_port,
        scopes=tuple(scopes.split()) if isinstance(scopes, str) else tuple(scopes),
        allows_private=part.allow_private,
        uses_keyring=part.keyring,
    )
