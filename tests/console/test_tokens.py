"""Tools for tokens and for connecting clients: what a person copies is whole, what is only looked at is masked."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import cast, get_args

import pytest

from dari.console.backends import ConsoleBackends
from dari.console.console import GRANT
from dari.console.tools.connect import Client, ConnectTools
from dari.console.tools.tokens import TokenTools
from dari.core.audit.log import AuditLog
from dari.core.audit.query import query
from dari.core.registry import Registry
from dari.core.scopes import MCP_GRANT
from dari.mcp.server import Info, Server
from dari.transport.client_tokens import TokenStore
from dari.transport.token_service import TokenService
from tests.support.wire import Json, MemoryWire, call, initialize

URL = "http://127.0.0.1:3847/mcp"


def backends(folder: Path, audit: AuditLog | None = None) -> ConsoleBackends:
    (folder / "mcp.token").touch(mode=0o600)
    (folder / "mcp.token").write_text("shared-secret\n")
    service = TokenService(TokenStore(folder / "tokens.json"), folder / "mcp.token", lambda: audit)
    return cast(ConsoleBackends, SimpleNamespace(tokens=service, url=lambda: URL))


class Page:
    """A client of a server with these tools only; principal `app` unless the test says otherwise."""

    def __init__(self, given: ConsoleBackends) -> None:
        registry = Registry()
        registry.add_toolkit(TokenTools(given))
        registry.add_toolkit(ConnectTools(given))
        self.wire = MemoryWire(Server(registry, Info("test", "1")))
        self.wire.grant = GRANT

    async def call(self, tool: str, **arguments: object) -> Json:
        if not self.wire.session.version:
            await self.wire.ask(initialize())
        return dict((await self.wire.ask(call(tool, **arguments)))["result"])


async def test_a_person_makes_shows_rotates_and_revokes_a_token(tmp_path: Path) -> None:
    page = Page(backends(tmp_path))
    made = (await page.call("dari_tokens_create", name="cursor", read_only=True))["structuredContent"]
    assert made["secret"].startswith("dtk_") and made["scopes"] == ["read"]
    assert (await page.call("dari_tokens_show", name="cursor"))["structuredContent"]["secret"] == made["secret"]
    new = (await page.call("dari_tokens_rotate", name="cursor"))["structuredContent"]["secret"]
    assert new != made["secret"]
    listed = await page.call("dari_tokens_list")
    assert [each["name"] for each in listed["structuredContent"]["entries"]] == ["shared", "cursor"]
    assert new not in json.dumps(listed) and "shared-secret" not in json.dumps(listed)
    await page.call("dari_tokens_revoke", name="cursor")
    assert len((await page.call("dari_tokens_list"))["structuredContent"]["entries"]) == 1


@pytest.mark.parametrize("tool", ["list", "create", "show", "rotate", "revoke"])
async def test_the_scopes_of_an_agent_open_none_of_it(tmp_path: Path, tool: str) -> None:
    page = Page(backends(tmp_path))
    page.wire.grant = MCP_GRANT
    arguments = {} if tool == "list" else {"name": "shared"}
    answer = await page.call(f"dari_tokens_{tool}", **arguments)
    assert answer["isError"] is True
    assert "insufficient scope" in json.dumps(answer) and "shared-secret" not in json.dumps(answer)


@pytest.mark.parametrize("client", get_args(Client))
async def test_a_client_is_told_of_the_hub_with_the_real_address_path_and_token(tmp_path: Path, client: str) -> None:
    page = Page(backends(tmp_path))
    secret = (await page.call("dari_tokens_create", name="mine"))["structuredContent"]["secret"]
    shown = (await page.call("dari_connect", client=client, token="mine"))["structuredContent"]
    assert shown["is_masked"] and secret not in json.dumps(shown)
    whole = (await page.call("dari_connect", client=client, token="mine", with_secret=True))["structuredContent"]
    assert [form["transport"] for form in whole["forms"]] == (
        ["stdio"] if client == "claude-desktop" else ["http", "stdio"]
    )
    for form in whole["forms"]:
        text = form["text"]
        assert secret in text
        assert (URL in text and f"Bearer {secret}" in text) == (form["transport"] == "http")
        assert ("DARI_CLIENT_TOKEN" in text and "mcp" in text) == (form["transport"] == "stdio")
        if form["language"] == "json":
            assert json.loads(text)
        elif form["language"] == "toml":
            assert tomllib.loads(text)["mcp_servers"]["dari"]
        assert (form["path"] == "") == (form["language"] == "sh")


async def test_the_shared_token_is_not_written_where_it_says_nothing(tmp_path: Path) -> None:
    page = Page(backends(tmp_path))
    whole = (await page.call("dari_connect", client="vscode", with_secret=True))["structuredContent"]
    assert ["shared-secret" in form["text"] for form in whole["forms"]] == [True, False]


async def test_writing_a_secret_out_is_recorded(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit", batch_s=0.001)
    page = Page(backends(tmp_path, audit))
    await page.call("dari_connect", client="cursor")
    await page.call("dari_connect", client="cursor", with_secret=True)
    audit.close()
    events = [record.detail.get("event") for record in query(audit.directory, limit=50) if record.kind == "decision"]
    assert events == ["token shown"]
