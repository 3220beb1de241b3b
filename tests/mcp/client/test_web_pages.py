"""A web page where MCP was expected is named as what it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.remote_command import shop

PAGE = b"<!DOCTYPE html>\n<html><head>\n<title>Welcome to\n Acme &amp; Co</title></head><body>hi</body></html>"


@asynccontextmanager
async def site(status: str, content_type: str, body: bytes) -> AsyncIterator[int]:
    """Answers everything in the same way."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            lines = (
                f"HTTP/1.1 {status}",
                f"content-type: {content_type}",
                f"content-length: {len(body)}",
                "connection: close",
            )
            writer.write("\r\n".join((*lines, "", "")).encode() + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("path", ["", "/", "/mcp", "/docs/index.html"])
@pytest.mark.parametrize(
    ("status", "content_type"),
    [
        ("200 OK", "text/html; charset=utf-8"),
        ("200 OK", "text/plain"),
        ("404 Not Found", "text/html"),
        ("200 OK", "application/json"),
    ],
)
async def test_a_page_is_exit_code_2_with_its_title(tmp_path: Path, path: str, status: str, content_type: str) -> None:
    async with site(status, content_type, PAGE) as port, shop(tmp_path) as run:
        done = await run("list-tools", "--endpoint", f"http://127.0.0.1:{port}{path}")
        assert done.code == 2, done.err
        assert "web page" in done.err and "Welcome to Acme & Co" in done.err and "<html" not in done.err
        if path == "/docs/index.html":
            assert f"http://127.0.0.1:{port}/mcp" in done.err


async def test_text_that_is_no_json_is_exit_code_2_with_its_beginning(tmp_path: Path) -> None:
    async with site("200 OK", "text/plain", b"It works!\n") as port, shop(tmp_path) as run:
        done = await run("call-tool", "x", "--endpoint", f"http://127.0.0.1:{port}/mcp")
        assert done.code == 2 and "It works!" in done.err
