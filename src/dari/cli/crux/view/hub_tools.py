"""The hub's tools for the palette of `crux attach`: an MCP client on the hub's socket that does not block the view."""

from __future__ import annotations

import json
from _socket import MSG_DONTWAIT
from typing import Any

from dari.cli.mcp.hub import Hub, HubRefused
from dari.errors import Unavailable
from dari.version import VERSION

READ_BYTES = 1 << 18
MAX_PAGES = 200


class HubTools:
    """Connected when it is made, and started where no hub runs. Poll `fileno`, then call `read`.

    `tools` is None until they are listed. `result` is the answer to the last call, None while it runs.
    """

    def __init__(self) -> None:
        try:
            opened = Hub({"mode": "full"}).open(starts=True)
        except HubRefused as refused:
            raise Unavailable(refused.message, refused.hint) from None
        if opened is None:
            raise Unavailable("no hub runs", "start it: dari remote daemon start")
        self._socket, self._rest = opened
        self._count = self._calling = self._pages = 0
        self._listed: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] | None = None
        self.result: tuple[str, bool] | None = None
        """Its text, and whether it is an error."""
        client = {"name": "crux attach", "version": VERSION}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self._send({"method": "notifications/initialized"})
        self._ask("tools/list", {})

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def call(self, tool: str, arguments: dict[str, Any]) -> None:
        self.result = None
        self._calling = self._ask("tools/call", {"name": tool, "arguments": arguments})

    def cancel(self) -> None:
        if self._calling:
            self._send({"method": "notifications/cancelled", "params": {"requestId": self._calling}})
            self._calling = 0

    def read(self) -> None:
        """Take what has come; Unavailable when the hub has hung up."""
        try:
            data = self._socket.recv(READ_BYTES, MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            raise Unavailable("the hub has ended", "open the palette again")
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if "id" in message:
                answer = {"result": {}} if message["method"] == "ping" else {"error": _NOT_HERE}
                self._send({"id": message["id"], **answer})
        elif message.get("id") == self._calling:
            self._calling, self.result = 0, _text_of(message)
        elif "tools" in (result := message.get("result", {})):
            self._listed += result["tools"]
            self._pages += 1
            if result.get("nextCursor") and self._pages < MAX_PAGES:
                self._ask("tools/list", {"cursor": result["nextCursor"]})
            else:
                self.tools = self._listed
        elif "error" in message and self.tools is None:
            raise Unavailable(str(message["error"].get("message", "the hub refused")), "dari doctor")

    def _ask(self, method: str, params: dict[str, Any]) -> int:
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        return self._count

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        except OSError:
            raise Unavailable("the hub has ended", "open the palette again") from None


_NOT_HERE = {"code": -32601, "message": "crux attach does not answer this"}


def _text_of(message: dict[str, Any]) -> tuple[str, bool]:
    if "error" in message:
        error = message["error"]
        hint = (error.get("data") or {}).get("hint", "") if isinstance(error.get("data"), dict) else ""
        return "\n".join(filter(None, (str(error.get("message", "")), hint))), True
    result = message["result"]
    blocks = result.get("content") or []
    texts = [str(one["text"]) if one.get("type") == "text" else f"[{one.get('type')}]" for one in blocks]
    if not texts and "structuredContent" in result:
        texts = [json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)]
    return "\n".join(texts), bool(result.get("isError"))
