"""An MCP server for demonstrations: its tools stand in a JSON file, each of them answers. Stdlib only: FILE [more]."""

import json
import sys

HANDBOOK = """# Handbook of the desk

A ticket is answered within four hours. What blocks a checkout is `urgent`.

- refunds above 200 € go to a lead
- a closed ticket is reopened, never copied
"""
FILE_OF_TICKET = "tickets://ticket/{id}"
RESOURCES = [
    {"uri": "tickets://handbook", "name": "handbook", "title": "Handbook of the desk", "mimeType": "text/markdown",
     "description": "How tickets are answered here.", "size": len(HANDBOOK)},
    {"uri": "tickets://open.json", "name": "open.json", "title": "Open tickets", "mimeType": "application/json"},
]  # fmt: skip
TEMPLATE = {"uriTemplate": FILE_OF_TICKET, "name": "ticket", "title": "One ticket", "mimeType": "application/json"}
PROMPT = {
    "name": "triage",
    "title": "Triage a ticket",
    "description": "Reads a ticket and proposes who takes it.",
    "arguments": [
        {"name": "ticket", "description": "its number", "required": True},
        {"name": "tone", "description": "of the answer: short or friendly"},
    ],
}


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        info = {"name": "demo", "version": "1.4.0"}
        offers = {"tools": {}, "resources": {}, "prompts": {}} if has_more() else {"tools": {}}
        return {"protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": info}
    if method == "tools/list":
        with open(sys.argv[1]) as file:
            return {"tools": json.load(file)}
    if method == "tools/call":
        found = [{"id": 1000 + number, "title": f"{params['name']} {number}", "state": "open"} for number in range(5)]
        text = {"type": "text", "text": json.dumps(found)}
        return {"content": [text], "structuredContent": {"found": found, "total": len(found)}}
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": [TEMPLATE]}
    if method == "resources/read":
        is_text = params["uri"] == RESOURCES[0]["uri"]
        text = HANDBOOK if is_text else json.dumps({"id": 1042, "title": "Refund keeps the tax", "state": "open"})
        mime = "text/markdown" if is_text else "application/json"
        return {"contents": [{"uri": params["uri"], "mimeType": mime, "text": text}]}
    if method == "prompts/list":
        return {"prompts": [PROMPT]}
    if method == "prompts/get":
        text = f"Read ticket {params['arguments']['ticket']}. Say who should take it, and why, in two sentences."
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    return {}


def has_more() -> bool:
    """Resources and prompts, too."""
    return sys.argv[-1] == "more"


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()
