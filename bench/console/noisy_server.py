"""An MCP server over HTTP for the Inspector: whoever listens gets so many log messages each second. PORT PER_SECOND."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PER_S = float(sys.argv[2])
TOOLS = [{"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(20)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message or "method" not in message:
            self._send(202, b"")
            return
        method, result = message["method"], {}
        if method == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"logging": {}, "tools": {}},
                "serverInfo": {"name": "noisy", "version": "1"},
            }
        elif method == "tools/list":
            result = {"tools": TOOLS}
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if method == "server/discover":
            reply = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}
        self._send(200, json.dumps(reply).encode())

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        number = 0
        try:
            while True:
                number += 1
                data = {"request": number, "path": f"/api/items/{number}", "status": 200}
                params = {"level": "info", "logger": "bench", "data": data}
                message = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
                self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")
                time.sleep(1 / PER_S)
        except OSError:
            return

    def do_DELETE(self) -> None:
        self._send(200, b"")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", "bench")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
