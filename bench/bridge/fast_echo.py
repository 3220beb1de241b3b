"""The upstream of all gateways: an MCP server on stdio that does nothing but `echo`; standard library only.

It reads what is there, answers all of it with one write, and so is never what limits a gateway. `--core` puts it beside
the load, so that a gateway has the other core for itself. `--tools` lists more tools than the one. Once the file of
`--until` is there it starts and never says a word. It speaks the handshake era only, as 18 of 28 real servers do.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

ECHO = {
    "name": "echo",
    "title": "Echo",
    "description": "Return the text that was given.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"title": "Text", "description": "What to return", "type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    "annotations": {
        "title": "Echo",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}


class Echo:
    def __init__(self, count: int) -> None:
        others = ({**ECHO, "name": f"echo_{number}", "title": f"Echo {number}"} for number in range(2, count + 1))
        self._tools = [ECHO, *others]

    def answer(self, line: bytes) -> bytes:
        """The reply as a line, or nothing for a notification."""
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            return b""
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        result = self._result(message["method"], message.get("params") or {})
        if result is None:
            reply["error"] = {"code": -32601, "message": f"no method {message['method']}"}
        else:
            reply["result"] = result
        return json.dumps(reply, separators=(",", ":")).encode() + b"\n"

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """None: there is no such method."""
        if method == "tools/call":
            return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        if method == "tools/list":
            return {"tools": self._tools}
        if method == "initialize":
            info = {"name": "fast-echo", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        return {} if method == "ping" else None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--core", type=int)
    parser.add_argument("--tools", type=int, default=1)
    parser.add_argument("--until", default="", metavar="FILE")
    given = parser.parse_args()
    if given.core is not None:
        os.sched_setaffinity(0, {given.core})
    server = Echo(given.tools)
    rest = b""
    while data := os.read(0, 1 << 20):
        *lines, rest = (rest + data).split(b"\n")
        if given.until and os.path.exists(given.until):
            continue
        replies = memoryview(b"".join(server.answer(line) for line in lines if line.strip()))
        while replies:
            replies = replies[os.write(1, replies) :]


if __name__ == "__main__":
    main()
