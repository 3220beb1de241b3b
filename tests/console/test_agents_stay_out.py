"""A console that an agent could open would let it approve its own calls: links, browsers and hubs of agents."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.console.test_access import Door, get, open_door
from tests.support.real_clients import DARI

# A host of an agent: it has started an MCP server of ours, and now does something else.
HOST = """
import subprocess, sys, urllib.request, urllib.error
server = subprocess.Popen([sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n'); server.stdin.flush(); server.stdout.readline()
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_): return None
try:
    opener = urllib.request.build_opener(Stay, urllib.request.ProxyHandler({}))
    if sys.argv[2] == "get":
        try:
            reply = opener.open(sys.argv[3])
        except urllib.error.HTTPError as error:
            reply = error
        print(reply.status, reply.headers.get("set-cookie"), reply.read().decode())
    else:
        print(subprocess.run(sys.argv[3:], capture_output=True, text=True))
finally:
    server.stdin.close(); server.wait()
"""


async def as_agent(door: Door, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOST, str(DARI), *words),
        env={"PATH": "/usr/bin:/bin", "HOME": str(door.home), "DARI_HOME": str(door.home / "dari")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_an_agents_program_cannot_use_a_link_and_the_person_still_can(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        link = await door.link()
        said = await as_agent(door, "get", link)
        assert said.startswith("403 None") and "started an MCP server of ours" in said
        assert (await get(link)).status_code == 303
        assert await refusals(door) == ["logging in to the console"]


async def refusals(door: Door) -> list[str]:
    """What was refused to agents, as `dari audit` shows it."""
    process = await asyncio.create_subprocess_exec(
        *(str(DARI), "audit", "--outcome", "denied", "--json"),
        env={"PATH": "/usr/bin:/bin", "HOME": str(door.home), "DARI_HOME": str(door.home / "dari")},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return [json.loads(line)["detail"]["what"] for line in out.splitlines()]


OPEN = """
import base64, socket, sys
_, _, host, port, cookie, page_key = sys.argv
host = f"{host}:{port}"
sock = socket.create_connection(host.split(":"))
sock.sendall("\\r\\n".join([
    "GET /live HTTP/1.1", f"Host: {host}", f"Origin: http://{host}", f"Cookie: {cookie}", "Connection: Upgrade",
    "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
    f"Sec-WebSocket-Protocol: dari, {page_key}", "", ""]).encode())
print(sock.recv(4096).decode().splitlines()[0])
"""


async def test_an_agents_program_cannot_use_the_secrets_of_a_page(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        login = await door.log_in()
        host, port = door.base.removeprefix("http://").split(":")
        said = await as_agent(door, "run", sys.executable, "-c", OPEN, "-", host, port, login.cookie, login.page_key)
        assert "403" in said and "101" not in said
        assert "protocolVersion" in await door.open(login)
        assert await refusals(door) == ["opening the console"]


async def test_an_agent_gets_no_link_of_its_own(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        said = await as_agent(door, "run", str(DARI), "console", "--print")
        assert "login?key" not in said and "is for a person" in said


async def test_a_hub_that_an_agent_starts_prints_no_link(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        other = tmp_path / "other"
        other.mkdir()
        words = ("timeout", "--signal=INT", "6", str(DARI), "up", "--http-port", "0", "--socket", str(other / "s.sock"))
        said = await as_agent(door, "run", "env", f"DARI_HOME={other}", *words)
        assert "Dari is up at" in said and "login?key" not in said
        assert "dari console" in said
