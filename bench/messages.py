"""The JSON-RPC messages and HTTP requests that are sent, in both eras, and what a right reply is.

Every request has an id of eight digits: ids differ between calls in flight, and a reply has the same
length each time, so counting bytes shows a wrong reply among a million right ones.
"""

import json
from dataclasses import dataclass
from typing import Literal

from bench.errors import BenchError

Era = Literal["2025-11-25", "2026-07-28"]
HANDSHAKE: Era = "2025-11-25"
STATELESS: Era = "2026-07-28"
ERAS: tuple[Era, ...] = (HANDSHAKE, STATELESS)

FIRST_ID = 10_000_000
ECHO_TEXT = "The quick brown fox jumps over the lazy dog"
CLIENT_INFO = {"name": "dari-bench", "version": "1"}

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Call:
    """One request to repeat: a method with its params, and the name that goes into `Mcp-Name`."""

    method: str
    params: Json
    name: str = ""
    expected_tools: int = 0

    def message(self, era: Era, request_id: int = FIRST_ID) -> Json:
        params = dict(self.params)
        if era == STATELESS:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        return {"jsonrpc": "2.0", "id": request_id, "method": self.method, "params": params}

    def headers(self, era: Era) -> dict[str, str]:
        headers: dict[str, str] = {"MCP-Protocol-Version": era}
        if era == STATELESS:
            headers["Mcp-Method"] = self.method
            if self.name:
                headers["Mcp-Name"] = self.name
        return headers

    def check(self, who: str, reply: Json) -> None:
        """Raise unless `reply` is what a right server answers to this call."""
        result = reply.get("result")
        if not isinstance(result, dict) or reply.get("id") != FIRST_ID or result.get("isError"):
            raise BenchError(f"{who} answered {self.method} with {json.dumps(reply)[:400]}")
        found = len(result.get("tools", ())) if self.expected_tools else _text(result)
        wanted = self.expected_tools or ECHO_TEXT
        if found != wanted:
            raise BenchError(f"{who} answered {self.method} with {found!r} instead of {wanted!r}")


ECHO = Call("tools/call", {"name": "echo", "arguments": {"text": ECHO_TEXT}}, name="echo")
LIST = Call("tools/list", {}, expected_tools=32)


def initialize() -> Json:
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT_INFO}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def initialized() -> Json:
    return {"jsonrpc": "2.0", "method": "notifications/initialized"}


def encode(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def http_request(port: int, headers: dict[str, str], message: Json) -> bytes:
    body = encode(message)
    lines = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **headers,
        "Content-Length": str(len(body)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def _text(result: Json) -> object:
    content = result.get("content")
    block = content[0] if isinstance(content, list) and content else {}
    text = block.get("text") if isinstance(block, dict) else None
    # A server whose tools return structures renders them as JSON text: {"text": "The quick …"}.
    if isinstance(text, str) and text.startswith("{"):
        values = list(json.loads(text).values())
        return values[0] if values else text
    return text
