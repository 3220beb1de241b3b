"""The SDK's provider for one profile, and its view of what we keep. The SDK is imported by `load_sdk`, called first."""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from dari.bridge.config.profile import AuthSettings
from dari.bridge.oauth.store import Login
from dari.errors import Unavailable
from dari.installation import install_extra
from dari.version import VERSION

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

PLACEHOLDER_REDIRECT_URL = "http://127.0.0.1/callback"
Show = Callable[[str], Awaitable[None]]
Save = Callable[[Login], Awaitable[None]]


class SdkStorage:
    """The SDK's `TokenStorage` over one login. What it stores is saved before it is used."""

    def __init__(self, login: Login, auth: AuthSettings, save: Save) -> None:
        self.provider: OAuthClientProvider | None = None
        self._login = login
        self._auth = auth
        self._save = save

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        kept = self._login.kept
        if not kept.access_token and not kept.refresh_token:
            return None
        return OAuthToken(
            access_token=kept.access_token, refresh_token=kept.refresh_token or None, scope=self._login.scope or None
        )

    async def set_tokens(self, tokens: OAuthToken) -> None:
        login, kept = self._login, self._login.kept
        kept.access_token = tokens.access_token
        kept.refresh_token = tokens.refresh_token or ""
        login.scope = tokens.scope or ""
        login.expires_unix = None if tokens.expires_in is None else time.time() + int(tokens.expires_in)
        self._keep_metadata()
        await self._save(login)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        if self._auth.client_id:
            secret = self._auth.client_secret
            return OAuthClientInformationFull(
                client_id=self._auth.client_id,
                client_secret=secret.reveal() if secret is not None else None,
                token_endpoint_auth_method=_method(_methods(self._login)) if secret is not None else "none",
                issuer=self._login.issuer or None,  # another one that is announced later gets no secret
            )
        stored = self._login.kept.client
        ends = stored.get("client_secret_expires_at")
        if not stored or (isinstance(ends, int) and 0 < ends <= time.time()):
            return None
        return OAuthClientInformationFull.model_validate(stored)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._login.kept.client = client_info.model_dump(mode="json", exclude_none=True)
        await self._save(self._login)

    def _keep_metadata(self) -> None:
        if self.provider is None:
            return
        context = self.provider.context
        if context.oauth_metadata is not None:
            self._login.server = context.oauth_metadata.model_dump(mode="json", exclude_none=True)
            self._login.issuer = str(context.oauth_metadata.issuer)
        if context.protected_resource_metadata is not None:
            self._login.protected = context.protected_resource_metadata.model_dump(mode="json", exclude_none=True)


def code_provider(
    url: str,
    auth: AuthSettings,
    storage: SdkStorage,
    show: Show,
    take: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    """Authorization code with PKCE: a person allows the access in a browser."""
    from mcp.client.auth import OAuthClientProvider, OAuthFlowError
    from mcp.shared.auth import OAuthClientMetadata
    from mcp.shared.auth_utils import check_resource_allowed

    metadata = OAuthClientMetadata.model_validate(
        {
            "redirect_uris": [auth.redirect_url or PLACEHOLDER_REDIRECT_URL],
            "client_name": "Dari",
            "software_id": "dari",
            "software_version": VERSION,
            "token_endpoint_auth_method": "none",
            "scope": " ".join(auth.scopes) or None,
        }
    )

    async def check_resource(server_url: str, advertised: str | None) -> None:
        if advertised not in (None, auth.resource) and not check_resource_allowed(server_url, str(advertised)):
            raise OAuthFlowError(f"the server is the resource {advertised}, and not {auth.resource}")

    storage.provider = OAuthClientProvider(
        url.partition("?")[0],
        metadata,
        storage,
        show,
        take,
        client_metadata_url=auth.client_metadata_url,
        validate_resource_url=check_resource if auth.resource is not None else None,
    )
    return storage.provider


def credentials_provider(url: str, auth: AuthSettings, storage: SdkStorage, login: Login) -> OAuthClientProvider:
    """Client credentials: the profile's own id and secret are enough."""
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    assert auth.client_id and auth.client_secret is not None
    with warnings.catch_warnings():
        # Without an issuer the SDK warns. The first one is remembered, and another one gets no secret from us.
        warnings.simplefilter("ignore")
        storage.provider = ClientCredentialsOAuthProvider(
            url.partition("?")[0],
            storage,
            auth.client_id,
            auth.client_secret.reveal(),
            token_endpoint_auth_method=_method(_methods(login)),
            scope=" ".join(auth.scopes) or None,
            issuer=login.issuer or None,
        )
    return storage.provider


def prepare(provider: OAuthClientProvider, login: Login, *, is_refused: bool) -> None:
    """What the SDK forgets between processes: where tokens are refreshed, and that ours is worth nothing any more."""
    from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
    from pydantic import ValidationError

    context = provider.context
    if is_refused:
        context.token_expiry_time = 1.0
    try:
        if login.server:
            context.oauth_metadata = OAuthMetadata.model_validate(login.server)
        if login.protected:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(login.protected)
            context.auth_server_url = str(context.protected_resource_metadata.authorization_servers[0])
    except ValidationError:
        context.oauth_metadata = context.protected_resource_metadata = None


def use_redirect(provider: OAuthClientProvider, redirect_url: str, *, is_own_client: bool) -> None:
    """Come back to this address. A registration that names another one is worth nothing, unless it is the profile's."""
    from pydantic import AnyUrl

    context = provider.context
    context.client_metadata.redirect_uris = [AnyUrl(redirect_url)]
    client: Any = context.client_info
    if client is not None and not is_own_client:
        registered = [str(one) for one in client.redirect_uris or []]
        if client.client_id == context.client_metadata_url:
            return
        if redirect_url not in registered:
            context.client_info = None


def use_methods(provider: OAuthClientProvider, methods: list[str]) -> None:
    """Tell who we are in a way that this authorization server takes."""
    context = provider.context
    if context.client_info is not None and context.client_info.client_secret:
        context.client_info.token_endpoint_auth_method = _method(methods)
    elif context.client_info is None and "none" not in methods:
        context.client_metadata.token_endpoint_auth_method = _method(methods)


def _methods(login: Login) -> list[str]:
    methods = login.server.get("token_endpoint_auth_methods_supported")
    return methods if isinstance(methods, list) else []


def _method(methods: list[str]) -> Literal["client_secret_basic", "client_secret_post"]:
    """RFC 8414: a server that does not say takes `client_secret_basic`."""
    is_post_only = "client_secret_post" in methods and "client_secret_basic" not in methods
    return "client_secret_post" if is_post_only else "client_secret_basic"


async def load_sdk(url: str) -> None:
    """Import the SDK in a thread: it takes a second, in which others want to be served."""
    try:
        await asyncio.to_thread(_import_sdk)
    except ImportError:
        raise Unavailable(f"{url} asks for OAuth, which needs the official SDK", install_extra("oauth")) from None
    # It logs whole answers of token endpoints; the error that it raises has the reason.
    logger = logging.getLogger("mcp.client.auth")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _import_sdk() -> None:
    import mcp.client.auth.extensions.client_credentials  # noqa: F401
