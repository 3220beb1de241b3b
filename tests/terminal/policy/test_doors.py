"""Who may come in, and what a program in a pane may ask of the terminal."""

from __future__ import annotations

import asyncio
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from dari.terminal import daemon
from dari.terminal.daemon import CruxOptions
from dari.terminal.engine.engine import Engine, make_engine
from dari.terminal.paths import CruxPaths
from tests.support.terminal_tools import client_in

INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"x","version":"1"}}}'
)


async def _post(port: int, **headers: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join(
        [
            "POST /mcp HTTP/1.1",
            f"Host: {headers.pop('host', f'127.0.0.1:{port}')}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(INITIALIZE)}",
            *[line for line in lines if not line.startswith("host")],
        ]
    )
    writer.write(f"{head}\r\n\r\n{INITIALIZE}".encode())
    status = await asyncio.wait_for(reader.readline(), 15)
    writer.transport.abort()
    return int(status.split()[1])


async def test_the_sockets_are_ours_alone_and_http_wants_a_token_and_a_known_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRUX_CONFIG", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    place = CruxPaths(tmp_path / "crux" / "mcp.sock")
    told: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
    options = CruxOptions(http_port=0, announce=lambda url, token: told.set_result((url, token)))
    serving = asyncio.create_task(daemon.serve(place, options))
    try:
        async with asyncio.timeout(30):
            await asyncio.wait({told, serving}, return_when=asyncio.FIRST_COMPLETED)
        url, token_path = told.result()
        token = Path(token_path).read_text().strip()
        port = int(url.split(":")[2].split("/")[0])
        assert url.startswith("http://127.0.0.1:")
        assert await _post(port) == 401
        assert await _post(port, Authorization="Bearer wrong") == 401
        assert await _post(port, Authorization=f"Bearer {token}") == 200
        assert await _post(port, Authorization=f"Bearer {token}", Origin="https://evil.example") == 403
        assert await _post(port, Authorization=f"Bearer {token}", host="evil.example") in (400, 403, 421)
        with pytest.raises(OSError):  # nobody listens on another address of this machine
            socket.create_connection(("127.0.0.2", port), 2)
        for path in (place.mcp_socket, place.socket, Path(token_path), place.token("cli")):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert stat.S_IMODE(place.run_dir.stat().st_mode) == 0o700
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


@pytest.mark.parametrize("prefer", ["ghostty", "bittty"])
def test_a_program_may_write_the_clipboard_and_read_neither_it_nor_the_title(prefer: str) -> None:
    engine: Engine = make_engine(80, 24, prefer=prefer)  # type: ignore[arg-type]
    replies: list[bytes] = []
    clips: list[bytes] = []
    engine.on_reply = replies.append
    engine.on_clipboard = clips.append
    engine.feed(b"\x1b]2;secret\x07\x1b]52;c;c2VjcmV0\x07")
    engine.feed(b"\x1b]52;c;?\x07\x1b]52;p;?\x1b\\\x1b[20t\x1b[21t\x1b]l\x07\x1b]4;1;?\x07\x1bP+q544e\x1b\\\x05")
    assert clips == [b"secret"]
    told = b"".join(replies)
    assert b"secret" not in told and b"c2VjcmV0" not in told and b"\x1b]52" not in told


async def test_the_rate_is_that_of_crux_toml_and_the_error_says_when_to_come_back(tmp_path: Path) -> None:
    from dari.terminal.policy.config import Security

    security = Security(calls_per_second=1, calls_at_once=3)
    async with client_in(tmp_path, security=security, rate=None) as client:
        answers = [await client.call("crux_list_panes") for _ in range(4)]
        assert ["error" in answer for answer in answers] == [False, False, False, True]
        error = answers[-1]["error"]
        assert error["name"] == "unavailable" and "try again in" in error["hint"] and "crux.toml" in error["hint"]
