"""A server of the handshake era that does what its tests want. Stand-alone: `python lab.py`, stdlib only.

LAB_TOOLS   a JSON file with its tools; it is read at every tools/list
LAB_LOG     a file that gets a line for every start and every call
LAB_SAYS    the answer of `greet`
"""

import json
import os
import sys
import threading
import time

DEFAULT = [
    {"name": "greet", "description": "Says hello", "inputSchema": {"type": "object"}},
    {
        "name": "add",
        "description": "Adds two numbers",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
    *({"name": name, "inputSchema": {"type": "object"}} for name in ("fail", "refuse", "pid", "wait", "big", "env")),
    *({"name": name, "inputSchema": {"type": "object"}} for name in ("elicit", "roots", "log", "change", "hidden")),
    {"name": "die", "annotations": {"destructiveHint": True}, "inputSchema": {"type": "object"}},
    {"name": "die_once", "annotations": {"idempotentHint": True}, "inputSchema": {"type": "object"}},
]
lock = threading.Lock()
answers: dict[str, dict] = {}
answered = threading.Condition()


def send(message: dict) -> None:
    with lock:
        sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def note(line: str) -> None:
    if path := os.environ.get("LAB_LOG"):
        with open(path, "a") as file:
            file.write(line + "\n")


def tools() -> list:
    path = os.environ.get("LAB_TOOLS")
    if path and os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    return DEFAULT


def ask(method: str, params: dict) -> dict:
    key = f"{method}-{time.monotonic_ns()}"
    send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
    with answered:
        answered.wait_for(lambda: key in answers, 40)
        return answers.get(key, {})


def text(said: str, **more: object) -> dict:
    return {"content": [{"type": "text", "text": said}], **more}


def call(request_id: object, params: dict) -> None:
    name, given = params["name"], params.get("arguments") or {}
    note(f"call {name}")
    try:
        result = TOOLS[name](given, params)
    except Refusal as refusal:
        send({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32123, "message": str(refusal), "data": {"x": 1}}})
        return
    send({"jsonrpc": "2.0", "id": request_id, "result": result})


class Refusal(Exception):
    pass


def refuse(given: dict, params: dict) -> dict:
    raise Refusal("not today")


def die(given: dict, params: dict) -> dict:
    print("I cannot go on", file=sys.stderr, flush=True)
    os._exit(7)


def die_once(given: dict, params: dict) -> dict:
    marker = given["marker"]
    if os.path.exists(marker):
        return text("alive")
    open(marker, "w").close()
    os._exit(7)


def wait(given: dict, params: dict) -> dict:
    token = params.get("_meta", {}).get("progressToken")
    for step in range(given.get("steps", 1)):
        if token is not None:
            about = {"progressToken": token, "progress": step + 1, "total": given["steps"], "message": "on it"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": about})
        until = given.get("until")
        while until and not os.path.exists(until):
            time.sleep(0.01)
    return text("waited")


def log(given: dict, params: dict) -> dict:
    send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "warning", "data": "careful"}})
    return text("logged")


def change(given: dict, params: dict) -> dict:
    send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    return text("changed")


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS = {
    "greet": lambda given, params: text(os.environ.get("LAB_SAYS", "hello")),
    "add": lambda given, params: text(str(given["a"] + given["b"]), structuredContent={"sum": given["a"] + given["b"]}),
    "fail": lambda given, params: text("it did not work", isError=True),
    "fail_in_structure": lambda given, params: {
        "content": [],
        "isError": True,
        "structuredContent": {"reason": "no sum"},
        "_meta": {"lab": 1},
    },
    "refuse": refuse,
    "pid": lambda given, params: text(str(os.getpid())),
    "wait": wait,
    "big": lambda given, params: text("x" * given.get("bytes", 1000)),
    "env": lambda given, params: text(json.dumps(dict(os.environ))),
    "elicit": lambda given, params: text(
        json.dumps(ask("elicitation/create", {"message": "Who?", "requestedSchema": SCHEMA}))
    ),
    "roots": lambda given, params: text(json.dumps(ask("roots/list", {}))),
    "log": log,
    "change": change,
    "hidden": lambda given, params: text("plain\u200b\u202etext\x1b[2J"),
    "die": die,
    "die_once": die_once,
}


def serve() -> None:
    note(f"start {os.getpid()}")
    for line in sys.stdin:
        message = json.loads(line)
        method, request_id = message.get("method"), message.get("id")
        if method is None:
            with answered:
                answers[request_id] = message.get("result") or {"refused": message.get("error")}
                answered.notify_all()
        elif method == "initialize":
            capabilities = {
                "tools": {"listChanged": True},
                "logging": {},
                "resources": {"subscribe": True},
                "prompts": {},
            }
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": {"name": "lab", "version": "1.2"},
                "instructions": "Be kind to the lab.",
            }
            send({"jsonrpc": "2.0", "id": request_id, "result": result})
        elif method == "tools/list":
            send({"jsonrpc": "2.0", "id": request_id, "result": {"tools": tools()}})
        elif method == "tools/call":
            threading.Thread(target=call, args=(request_id, message["params"]), daemon=True).start()
        elif method == "resources/list":
            shown = [{"uri": "lab://one", "name": "one"}]
            send({"jsonrpc": "2.0", "id": request_id, "result": {"resources": shown}})
        elif method == "resources/templates/list":
            shown = [{"uriTemplate": "lab://item/{id}", "name": "items"}]
            send({"jsonrpc": "2.0", "id": request_id, "result": {"resourceTemplates": shown}})
        elif method == "resources/read":
            contents = [{"uri": message["params"]["uri"], "text": "contents", "odd": True}]
            send({"jsonrpc": "2.0", "id": request_id, "result": {"contents": contents, "more": 1}})
        elif method == "resources/subscribe" and message["params"]["uri"] != "lab://refused":
            send({"jsonrpc": "2.0", "id": request_id, "result": {}})
            updated = {"uri": message["params"]["uri"]}
            send({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": updated})
        elif method == "prompts/list":
            prompts = [{"name": "hi", "arguments": [{"name": "who", "required": True}]}]
            send({"jsonrpc": "2.0", "id": request_id, "result": {"prompts": prompts}})
        elif method == "prompts/get":
            who = message["params"].get("arguments", {}).get("who")
            said = [{"role": "user", "content": {"type": "text", "text": f"hi {who}"}}]
            send({"jsonrpc": "2.0", "id": request_id, "result": {"messages": said}})
        elif method == "notifications/cancelled":
            note(f"cancelled {message['params'].get('requestId')}")
        elif request_id is not None:
            send({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32601, "message": "unknown"}})


if __name__ == "__main__":
    serve()
