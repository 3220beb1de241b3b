"""Our client under the official suite: `python -m tests.conformance.client <url>`.

The suite names the scenario in MCP_CONFORMANCE_SCENARIO, gives credentials or calls to make as JSON in
MCP_CONFORMANCE_CONTEXT, and takes exit code 0 for "the client thinks all went well".
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dari.core.context import Elicited
from dari.errors import DariError
from dari.mcp.client import Client
from dari.mcp.client.callbacks import Elicitation
from dari.mcp.client.oauth import OAuth
from dari.transport.client import http
from dari.transport.connect import connect

REDIRECT = "http://localhost:3000/callback"
CLIENT_ID_DOCUMENT = "https://conformance-test.local/client-metadata.json"

Context = dict[str, Any]
Scenario = Callable[[Client, Context], Awaitable[None]]


async def accept(question: Elicitation) -> Elicited:
    """An empty form: the client fills in the defaults."""
    return Elicited("accept", {})


async def confirm(question: Elicitation) -> Elicited:
    return Elicited("accept", {"confirmed": True})


# Scenarios without OAuth.


async def list_tools(client: Client, context: Context) -> None:
    await client.list_tools()


async def add_numbers(client: Client, context: Context) -> None:
    await client.list_tools()
    result = await client.call_tool("add_numbers", {"a": 5, "b": 3})
    result.raise_if_error()


async def reconnect(client: Client, context: Context) -> None:
    await client.list_tools()
    await client.call_tool("test_reconnection", {})


async def fill_in_defaults(client: Client, context: Context) -> None:
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults", {})


async def use_everything(client: Client, context: Context) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {})
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


async def make_given_calls(client: Client, context: Context) -> None:
    await client.list_tools()
    for call in context["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def call_valid_tools(client: Client, context: Context) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, dict.fromkeys(tool.input_schema.get("required", []), "x"))


async def answer_in_rounds(client: Client, context: Context) -> None:
    await client.list_tools()
    names = ("test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type")
    for name in names:
        await client.call_tool(name, {})


async def echo_schema(client: Client, context: Context) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


async def call_first_tool(client: Client, context: Context) -> None:
    """The OAuth scenarios look at how a token is got, not at what a tool returns."""
    for tool in (await client.list_tools())[:1]:
        await client.call_tool(tool.name, {})


SCENARIOS: dict[str, Scenario] = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "sse-retry": reconnect,
    "elicitation-sep1034-client-defaults": fill_in_defaults,
    "request-metadata": list_tools,
    "http-standard-headers": use_everything,
    "http-custom-headers": make_given_calls,
    "http-invalid-tool-headers": call_valid_tools,
    "json-schema-ref-no-deref": list_tools,
    "json-schema-2020-12-preservation": echo_schema,
    "sep-2322-client-request-state": answer_in_rounds,
}


# OAuth: the official SDK's providers, driven by our client.


class MemoryStorage:
    """What the SDK wants to remember."""

    def __init__(self) -> None:
        self._tokens: Any = None
        self._client: Any = None

    async def get_tokens(self) -> Any:
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> Any:
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        self._client = client_info


class Visitor:
    """The person with the browser: follows the link and says yes at once."""

    def __init__(self) -> None:
        self._answer: dict[str, list[str]] = {}

    async def visit(self, url: str) -> None:
        import httpx2

        async with httpx2.AsyncClient() as http:
            response = await http.get(url, follow_redirects=False)
        self._answer = parse_qs(urlsplit(response.headers["location"]).query)

    async def come_back(self) -> Any:
        from mcp.shared.auth import AuthorizationCodeResult

        def first(name: str) -> str | None:
            return self._answer.get(name, [None])[0]

        return AuthorizationCodeResult(code=first("code") or "", state=first("state"), iss=first("iss"))


async def authorization_code(url: str, context: Context) -> Any:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

    storage, visitor = MemoryStorage(), Visitor()
    if "client_id" in context:
        secret = context.get("client_secret")
        registered = OAuthClientInformationFull(
            client_id=context["client_id"],
            client_secret=secret,
            redirect_uris=[REDIRECT],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
        await storage.set_client_info(registered)
    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="dari",
            redirect_uris=[REDIRECT],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage=storage,
        redirect_handler=visitor.visit,
        callback_handler=visitor.come_back,
        client_metadata_url=CLIENT_ID_DOCUMENT,
    )


async def client_credentials(url: str, context: Context) -> Any:
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    return ClientCredentialsOAuthProvider(url, MemoryStorage(), context["client_id"], context["client_secret"])


async def signed_credentials(url: str, context: Context) -> Any:
    from mcp.client.auth.extensions.client_credentials import PrivateKeyJWTOAuthProvider, SignedJWTParameters

    name = context["client_id"]
    signed = SignedJWTParameters(
        issuer=name,
        subject=name,
        signing_key=context["private_key_pem"],
        signing_algorithm=context.get("signing_algorithm", "ES256"),
    )
    return PrivateKeyJWTOAuthProvider(url, MemoryStorage(), name, signed.create_assertion_provider())


async def identity_assertion(url: str, context: Context) -> Any:
    """An id token of the company's provider is exchanged there for one that the MCP server's own takes."""
    import httpx2
    from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider

    parts = urlsplit(url)
    async with httpx2.AsyncClient() as http:
        found = await http.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")
    issuer = found.json()["authorization_servers"][0]

    async def fetch(audience: str, resource: str) -> str:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": context["idp_id_token"],
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "audience": audience,
            "resource": resource,
            "client_id": context["idp_client_id"],
        }
        async with httpx2.AsyncClient() as http:
            answer = await http.post(context["idp_token_endpoint"], data=form)
        return str(answer.json()["access_token"])

    return IdentityAssertionOAuthProvider(
        url,
        MemoryStorage(),
        context["client_id"],
        context["client_secret"],
        issuer,
        fetch,
        token_endpoint_auth_method="client_secret_basic",
    )


PROVIDERS: dict[str, Callable[[str, Context], Awaitable[Any]]] = {
    "auth/client-credentials-basic": client_credentials,
    "auth/client-credentials-jwt": signed_credentials,
    "auth/enterprise-managed-authorization": identity_assertion,
}


async def run(scenario: str, url: str, context: Context) -> None:
    oauth = None
    if scenario.startswith("auth/"):
        make = PROVIDERS.get(scenario, authorization_code)
        oauth = OAuth(url, lambda: make(url, context))
    # The suite starts all its clients at once, and one of its servers asks through the session's stream alone.
    http.FOLLOW_S = 10.0
    on_elicit = confirm if scenario == "sep-2322-client-request-state" else accept
    # A probe may wait long for a core, and a time limit longer.
    async with connect(url, oauth=oauth, on_elicit=on_elicit, timeout_s=60, open_timeout_s=80, probe_s=60) as client:
        print(f"{scenario}: {client.era} {client.version}", file=sys.stderr)
        await SCENARIOS.get(scenario, call_first_tool)(client, context)


def preload() -> None:
    """What a scenario imports when it needs it, now."""
    import httpx2  # noqa: F401
    import mcp.client.auth
    import mcp.client.auth.extensions.client_credentials
    import mcp.client.auth.extensions.identity_assertion  # noqa: F401


def main() -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "auth/default")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    try:
        asyncio.run(run(scenario, sys.argv[-1], context))
    except DariError as error:
        print(f"{scenario}: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
