"""An MCP server for demonstrations: its tools stand in a JSON file, and each of them answers. Stdlib only: FILE."""

import json
import sys


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        info = {"name": "demo", "version": "1.4.0"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        with open(sys.argv[1]) as file:
            return {"tools": json.load(file)}
    if method == "tools/call":
        found = [{"id": 1000 + number, "title": f"{params['name']} {number}", "state": "open"} for number in range(5)]
        text = {"type": "text", "text": json.dumps(found)}
        return {"content": [text], "structuredContent": {"found": found, "total": len(found)}}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()
