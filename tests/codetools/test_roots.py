"""Which folders a client works in, over our server in memory, in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dari.codetools.roots import client_roots, fixed_roots, path_of_uri
from dari.codetools.session import FindRoots
from dari.core.context import Context
from dari.core.registry import Registry
from dari.core.tool import tool, typed_tool
from dari.mcp.client import Client
from dari.mcp.server import Info, Server
from tests.support.mcp_client import MemoryChannel


@asynccontextmanager
async def asking(
    find: FindRoots, roots: Sequence[str] | None, protocol: str
) -> AsyncIterator[tuple[Client, list[int]]]:
    """A client with these roots, and how often it was asked for them."""
    asked: list[int] = []

    @tool()
    async def roots_tool(context: Context) -> str:
        """Name the folders."""
        return " ".join(str(path) for path in await find(context))

    async def on_roots() -> list[str]:
        asked.append(1)
        return list(roots or ())

    registry = Registry()
    registry.add_tools(typed_tool(roots_tool))
    channel = MemoryChannel(Server(registry, Info(name="test", version="1")))
    given = {} if roots is None else {"on_roots": on_roots}
    async with asyncio.timeout(20), Client(channel, mode=protocol, **given) as client:
        yield client, asked


async def folders(client: Client) -> str:
    result = await client.call_tool("roots_tool", {})
    return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.mark.parametrize("protocol", ["handshake", "stateless"])
async def test_a_clients_roots_are_its_folders(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "a b").mkdir()
    uris = [(tmp_path / "a b").as_uri(), "file:///not/there", "https://example.com/x"]
    async with asking(client_roots(None), uris, protocol) as (client, _):
        assert await folders(client) == str(tmp_path / "a b")


async def test_roots_are_asked_for_once_until_the_client_says_that_they_changed(tmp_path: Path) -> None:
    async with asking(client_roots(None), [tmp_path.as_uri()], "handshake") as (client, asked):
        await folders(client)
        await folders(client)
        assert len(asked) == 1
        client.roots_changed()
        await folders(client)
        assert len(asked) == 2


async def test_a_client_without_roots_works_in_its_own_folder(tmp_path: Path) -> None:
    async with asking(client_roots(tmp_path), None, "handshake") as (client, _):
        assert await folders(client) == str(tmp_path)


async def test_a_stateless_client_with_a_folder_is_not_asked(tmp_path: Path) -> None:
    async with asking(client_roots(tmp_path), ["file:///"], "stateless") as (client, asked):
        assert await folders(client) == str(tmp_path) and not asked


async def test_a_client_that_names_no_folder_gets_the_next_step(tmp_path: Path) -> None:
    async with asking(client_roots(None), None, "handshake") as (client, _):
        assert "names no folder" in await folders(client)


async def test_folders_that_a_person_named_are_the_only_ones(tmp_path: Path) -> None:
    async with asking(fixed_roots([tmp_path]), ["file:///"], "handshake") as (client, asked):
        assert await folders(client) == str(tmp_path) and not asked


@pytest.mark.parametrize(
    "uri, path",
    [
        ("file:///a/b%20c", "/a/b c"),
        ("file://localhost/a", "/a"),
        ("file://elsewhere/a", None),
        ("file:relative", None),
        ("http://a/b", None),
        ("file:///a%00b", None),
        ("file://[/a", None),
        ("", None),
    ],
)
def test_only_file_uris_of_this_machine_are_folders(uri: str, path: str | None) -> None:
    found = path_of_uri(uri)
    assert (None if found is None else str(found)) == path
