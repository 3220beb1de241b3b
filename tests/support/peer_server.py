"""A small HTTP MCP server of the handshake era that remembers every request it got: a peer as design 001 has them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Json = dict[str, Any]


class Seen(NamedTuple):
    """One request: the JSON-RPC method, its params, the headers in lower case, and which connection it came on."""

    method: str
    params: Json
    headers: dict[str, str]
    connection: int


def agents(given: Json) -> Json:
    return {"content": [{"type": "text", "text": "claude, gemini"}], "success": True}


def query(given: Json) -> Json:
    return {"content": [{"type": "text", "text": f"{given['agentId']}: {given['query']}"}], "agent": given["agentId"]}


class Peer:
    """`token`: who does not bear it gets 401. `status`: everybody gets this instead of an answer."""

    def __init__(self, token: str = "", status: int = 0) -> None:
        self.token = token
        self.status = status
        self.seen: list[Seen] = []
        self.url = ""
        self.tools: dict[str, Callable[[Json], Json]] = {"crewx_listAgents": agents, "crewx_queryAgent": query}

    def of(self, method: str) -> list[Seen]:
        return [one for one in self.seen if one.method == method]

    def answer(self, message: Json) -> Json | None:
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message:
            return None
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            about = {"name": "peer", "version": "1"}
            return {
                **reply,
                "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about},
            }
        if method == "tools/list":
            schema = {"type": "object"}
            listed = [{"name": name, "description": f"{name}.", "inputSchema": schema} for name in self.tools]
            return {**reply, "result": {"tools": listed}}
        if method == "tools/call" and params.get("name") == "crewx_listAgents" and params["arguments"].get("fails"):
            return {**reply, "error": {"code": -32050, "message": "no agents today", "data": {"why": "holiday"}}}
        if method == "tools/call":
            return {**reply, "result": self.tools[params["name"]](params["arguments"])}
        return {**reply, "error": {"code": -32601, "message": "Method not found"}}


class PeerServer(ThreadingHTTPServer):
    """Its connections end with it: a client that kept one is not answered by the peer of an earlier test."""

    daemon_threads = False  # they are waited for

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        for connection in list(self._connections):
            with suppress(OSError):  # it has just ended
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()


@contextmanager
def peer(**settings: Any) -> Iterator[Peer]:
    one = Peer(**settings)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            one.seen.append(
                Seen(message.get("method", ""), message.get("params") or {}, headers, self.client_address[1])
            )
            if one.status or (one.token and headers.get("authorization") != f"Bearer {one.token}"):
                self._reply(one.status or 401, b"no")
            elif (answer := one.answer(message)) is None:
                self._reply(202, b"")
            else:
                self._reply(200, json.dumps(answer).encode(), "application/json")

        def do_GET(self) -> None:
            self._reply(405, b"")

        do_DELETE = do_GET

        def _reply(self, status: int, body: bytes, kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = PeerServer(Handler)
    one.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
