"""Renew a login: by its refresh token, else by a person or by the client's secret."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from dari.bridge.config.profile import AuthSettings
from dari.bridge.config.secret import Mask
from dari.bridge.oauth.callback import CallbackListener, LoginPrompt, wait_for_response
from dari.bridge.oauth.metadata_override import MetadataOverride
from dari.bridge.oauth.persistent import login_required
from dari.bridge.oauth.provider import (
    SdkStorage,
    code_provider,
    credentials_provider,
    load_sdk,
    prepare,
    use_methods,
    use_redirect,
)
from dari.bridge.oauth.store import Login, StoredLogin
from dari.errors import DariError, Unavailable
from dari.mcp.client.errors import Unauthorized
from dari.mcp.client.oauth import HttpRefusal, run_flow
from dari.text.redact import redact_text

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult

_MAX_REASON_CHARS = 300
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CLIENT_UNKNOWN = ("invalid_client", "unauthorized_client")


class Renewal:
    """Run it once, while the login is held. The SDK does the protocol; its storage is the login."""

    def __init__(self, kept: StoredLogin, login: Login, url: str, auth: AuthSettings, interact: LoginPrompt) -> None:
        self._kept = kept
        self._login = login
        self._url = url
        self._auth = auth
        self._interact = interact
        self._directions = MetadataOverride(auth, url)
        self._listener: CallbackListener | None = None
        self._state = ""

    async def run(self, refusal: HttpRefusal) -> str:
        """The new access token; it is saved already."""
        await load_sdk(self._kept.url)
        provider = self._provider()
        prepare(provider, self._login, is_refused=refusal.status == 401)
        self._directions.on_methods = lambda methods: use_methods(provider, methods)

        async def begin() -> None:
            await self._begin(provider, refusal)

        with_directions = self._directions.refusal(refusal)
        try:
            return await run_flow(self._url, provider, with_directions, send=self._directions.send, begin=begin)
        except (DariError, TimeoutError):
            raise
        except Exception as error:
            if self._directions.last_error in _CLIENT_UNKNOWN:
                self._login.kept.client = {}
                await self._kept.save(self._login)
            # Not `from error`: what the SDK says may quote a token, and a traceback would show it.
            said = redact_text(self._mask()(str(error).partition("\n")[0])).text[:_MAX_REASON_CHARS]
            hint = f"try again: {self._kept.command}"
            raise Unauthorized(f"authorization for {self._kept.url} failed: {said}", hint) from None
        finally:
            await self._stop_listening()

    @property
    def _needs_nobody(self) -> bool:
        return self._login.grant == "client_credentials"

    def _provider(self) -> OAuthClientProvider:
        login, auth = self._login, self._auth
        storage = SdkStorage(login, auth, self._kept.save)
        has_credentials = bool(auth.client_id and auth.client_secret)
        if has_credentials and not self._interact.can_ask and not login.kept.refresh_token:
            login.grant = "client_credentials"
            return credentials_provider(self._url, auth, storage, login)
        login.grant = "code"
        return code_provider(self._url, auth, storage, self._show, self._take)

    async def _begin(self, provider: OAuthClientProvider, refusal: HttpRefusal) -> None:
        """No token that we have helps. Ask a person, if there is one."""
        status, reason = self._directions.last_status, self._directions.last_error
        if status == 429 or status >= 500:
            # The login is not worth less because its server is ill just now.
            raise Unavailable(
                f"the token for {self._kept.url} could not be renewed: its authorization server answered HTTP {status}",
                "try again later",
            )
        if status:  # a refresh was refused
            self._login.drop_tokens()
            if reason in _CLIENT_UNKNOWN:
                self._login.kept.client = {}
                provider.context.client_info = None
            await self._kept.save(self._login)
        if self._needs_nobody:
            return
        if self._interact.can_ask:
            await self._listen(provider)
        elif refusal.status == 403:
            raise Unauthorized(
                f"{self._kept.url} wants more rights than the login of '{self._kept.profile}' has",
                f"run: {self._kept.command} --again",
            )
        else:
            raise login_required(self._kept, self._login, reason)

    async def _listen(self, provider: OAuthClientProvider) -> None:
        """Be ready for the browser's return, at the address that is registered if that can be."""
        auth, is_own_client = self._auth, bool(self._auth.client_id)
        wanted = auth.redirect_url or ""
        if not wanted and auth.callback_port:
            wanted = f"http://localhost:{auth.callback_port}/callback"  # as Claude Code, whose field it is
        if wanted and urlsplit(wanted).hostname not in _LOOPBACK:
            use_redirect(provider, wanted, is_own_client=is_own_client)
            return  # the person pastes where they ended up
        registered = self._login.kept.client.get("redirect_uris") or [""]
        for candidate in [wanted] if wanted else [str(registered[0]), ""]:
            listener = CallbackListener(candidate)
            try:
                await listener.open()
            except Unavailable:
                if candidate == wanted:
                    raise
                continue  # the port of the last time is taken: register another one
            self._listener = listener
            break
        assert self._listener is not None
        use_redirect(provider, self._listener.redirect_url, is_own_client=is_own_client)

    async def _show(self, url: str) -> None:
        url = self._directions.authorization_url(url)
        query = parse_qs(urlsplit(url).query)
        self._state = query.get("state", [""])[0]
        if self._listener is not None:
            self._listener.expect(self._state)
        await self._interact.show(url, query.get("redirect_uri", [""])[0])

    async def _take(self) -> AuthorizationCodeResult:
        from mcp.shared.auth import AuthorizationCodeResult

        answer = await wait_for_response(self._listener, self._interact, self._state)
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    async def _stop_listening(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()

    def _mask(self) -> Mask:
        kept, given = self._login.kept, self._auth.client_secret
        client_secret = str(kept.client.get("client_secret", ""))
        known = [kept.access_token, kept.refresh_token, client_secret, given.reveal() if given is not None else ""]
        return Mask(known)
