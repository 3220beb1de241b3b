"""The smallest MCP server there is, with a body of the test's choice."""

from __future__ import annotations

import sys
import textwrap

from dari.process.child import ChildSpec, StopTimeouts

SOURCE = """
import json, os, sys, time
def send(message):
    sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
def reply(message, result):
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})
def text(message, text):
    reply(message, {"content": [{"type": "text", "text": text}]})
BEFORE
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        info = {"name": "x", "version": "1"}
        reply(message, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
    elif message.get("method") == "tools/call":
        name = message["params"]["name"]
BODY
AFTER
"""


def server_source(body: str, before: str = "", after: str = "") -> str:
    """A program that answers `initialize`, then does `body` with each call."""
    source = SOURCE.replace("BODY", textwrap.indent(textwrap.dedent(body), " " * 8))
    return source.replace("BEFORE", textwrap.dedent(before)).replace("AFTER", textwrap.dedent(after))


def server(body: str = "text(message, name)", before: str = "", name: str = "demo") -> ChildSpec:
    patience = StopTimeouts(after_eof_s=1, after_term_s=0.1)
    return ChildSpec(name, (sys.executable, "-c", server_source(body, before)), patience=patience)
