"""A server of the handshake era with one tool for everything that a shell has to show. Stand-alone: stdlib only.

WORKSHOP_LOG    a file that gets a line for every start, call and answer
WORKSHOP_SAYS   the description of the tool `say`
"""

import base64
import json
import os
import sys
import threading
import time


def obj(properties: dict | None = None, *required: str, **more: object) -> dict:
    return {"type": "object", "properties": properties or {}, "required": list(required), **more}


VARIETY = {
    "path": {"type": "string", "description": "Where it lies. Absolute or not."},
    "head": {"type": "integer", "minimum": 1},
    "ratio": {"type": "number"},
    "follow": {"type": "boolean", "default": True},
    "tags": {"type": "array", "items": {"type": "string"}},
    "sizes": {"type": "array", "items": {"type": "integer"}},
    "mode": {"enum": ["fast", "slow"]},
    "range": {"$ref": "#/$defs/Range"},
    "agentId": {"type": "string"},
    "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "output": {"type": "string"},
    "anything": {},
}
SAYS = os.environ.get("WORKSHOP_SAYS", "Says a text.")
RANGE = {"type": "object", "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}}}
TOOLS = [
    {
        "name": "variety",
        "title": "Variety",
        "description": "Returns its arguments. It has one of every kind.",
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
        "inputSchema": obj(VARIETY, "path", additionalProperties=False, **{"$defs": {"Range": RANGE}}),
        "outputSchema": obj({"given": {"type": "object"}}, "given"),
    },
    {"name": "render", "description": "Clashes with us.", "inputSchema": obj({"output": {"type": "string"}}, "output")},
    {"name": "loose", "description": "Takes whatever it gets.", "inputSchema": {"type": "object"}},
    {"name": "say", "description": SAYS, "inputSchema": obj({"text": {"type": "string"}}, "text")},
    {"name": "gallery", "description": "Returns every kind of content.", "inputSchema": obj()},
    {"name": "evil", "description": "Returns text that drives a terminal.\x1b[31m", "inputSchema": obj()},
    {"name": "fail", "description": "Reports a failure.", "inputSchema": obj()},
    {"name": "refuse", "description": "Answers with a JSON-RPC error.", "inputSchema": obj()},
    {"name": "crewx", "description": "Returns what old CrewX servers return.", "inputSchema": obj()},
    {"name": "steps", "description": "Tells how far it is.", "inputSchema": obj({"steps": {"type": "integer"}})},
    {"name": "hang", "description": "Never answers.", "inputSchema": obj()},
    {"name": "cancelled", "description": "Answers when a call was cancelled.", "inputSchema": obj()},
    {"name": "form", "description": "Asks the person.", "inputSchema": obj()},
    {"name": "visit", "description": "Sends the person to a page.", "inputSchema": obj()},
    {"name": "roots", "description": "Asks for the client's folders.", "inputSchema": obj()},
    {"name": "think", "description": "Asks the client's model.", "inputSchema": obj()},
    {"name": "chat", "description": "Logs something.", "inputSchema": obj()},
    {"name": "drop", "description": "Is to be confirmed.", "inputSchema": obj({"token": {"type": "string"}})},
    {"name": "env", "description": "Shows its secret.", "inputSchema": obj()},
    {
        "name": "shaky",
        "description": "Answers the third call.",
        "annotations": {"idempotentHint": True},
        "inputSchema": obj(),
    },
    {"name": "die", "description": "Ends the process.", "inputSchema": obj()},
]
FORM = obj(
    {
        "name": {"type": "string", "title": "Your name", "description": "as on the door"},
        "age": {"type": "integer"},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "letters": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
        "agreed": {"type": "boolean", "default": False},
    },
    "name",
)
lock = threading.Lock()
answers: dict[str, dict] = {}
answered = threading.Condition()
has_cancelled = threading.Event()


def send(message: dict) -> None:
    with lock:
        sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def note(line: str) -> None:
    if path := os.environ.get("WORKSHOP_LOG"):
        with open(path, "a") as file:
            file.write(line + "\n")


def tell(method: str, **params: object) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params})


def ask(method: str, params: dict) -> dict:
    key = f"{method}-{time.monotonic_ns()}"
    send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
    with answered:
        answered.wait_for(lambda: key in answers, 40)
        return answers.get(key, {})


def text(said: str, **more: object) -> dict:
    return {"content": [{"type": "text", "text": said}], **more}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Refusal(Exception):
    pass


def variety(given: dict, params: dict) -> dict:
    return text(json.dumps({"given": given}), structuredContent={"given": given})


def gallery(given: dict, params: dict) -> dict:
    return {
        "content": [
            {"type": "text", "text": "a picture, a sound"},
            {"type": "text", "text": '{"b":1,"a":[1,2]}'},
            {"type": "image", "data": b64(b"\x89PNG picture"), "mimeType": "image/png"},
            {"type": "audio", "data": b64(b"RIFF sound"), "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "shop://note", "text": "noted", "mimeType": "text/plain"}},
            {"type": "resource", "resource": {"uri": "shop://blob", "blob": b64(b"\0\1"), "mimeType": "image/gif"}},
            {"type": "resource_link", "uri": "shop://far", "name": "far", "description": "far away"},
            {"type": "hologram", "depth": 3},
        ]
    }


def refuse(given: dict, params: dict) -> dict:
    raise Refusal("not today")


def steps(given: dict, params: dict) -> dict:
    token = params.get("_meta", {}).get("progressToken")
    total = given.get("steps", 3)
    for step in range(1, total + 1):
        if token is not None:
            tell("notifications/progress", progressToken=token, progress=step, total=total, message=f"step {step}")
    return text("done")


def hang(given: dict, params: dict) -> dict:
    token = params.get("_meta", {}).get("progressToken")
    tell("notifications/progress", progressToken=token, progress=1, total=2, message="hanging")
    threading.Event().wait()
    return {}


def was_cancelled(given: dict, params: dict) -> dict:
    return text("yes" if has_cancelled.wait(30) else "no")


def form(given: dict, params: dict) -> dict:
    return text(json.dumps(ask("elicitation/create", {"message": "Who are you?", "requestedSchema": FORM})))


def visit(given: dict, params: dict) -> dict:
    asked = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "1"}
    return text(json.dumps(ask("elicitation/create", asked)))


def think(given: dict, params: dict) -> dict:
    message = {"role": "user", "content": {"type": "text", "text": "2+2"}}
    return text(json.dumps(ask("sampling/createMessage", {"messages": [message], "maxTokens": 5})))


def chat(given: dict, params: dict) -> dict:
    tell("notifications/message", level="warning", logger="shop", data=f"careful with {os.environ.get('SHOP_KEY')}")
    return text("said")


def die(given: dict, params: dict) -> dict:
    print("I cannot go on", file=sys.stderr, flush=True)
    os._exit(7)


shaky_calls: list[int] = []


def shaky(given: dict, params: dict) -> dict:
    shaky_calls.append(1)
    if len(shaky_calls) < 3:
        threading.Event().wait()
    return text("at last")


HANDLERS = {
    "variety": variety,
    "loose": variety,
    "render": variety,
    "say": lambda given, params: text(given["text"]),
    "gallery": gallery,
    "evil": lambda given, params: text("red \x1b[31m \x9d0;title\x07 \u202eback\u2069 \U000e0041 end"),
    "fail": lambda given, params: text("the disk is full", isError=True, structuredContent={"free": 0}),
    "refuse": refuse,
    "crewx": lambda given, params: text("ok", success=True, agent="@claude", taskId="t1"),
    "steps": steps,
    "hang": hang,
    "cancelled": was_cancelled,
    "form": form,
    "visit": visit,
    "roots": lambda given, params: text(json.dumps(ask("roots/list", {}))),
    "think": think,
    "chat": chat,
    "drop": lambda given, params: text("dropped"),
    "env": lambda given, params: text(os.environ.get("SHOP_KEY", "none")),
    "die": die,
    "shaky": shaky,
}


def call(request_id: object, params: dict) -> None:
    note(f"call {params['name']} {json.dumps(params.get('arguments'), sort_keys=True)}")
    try:
        result = HANDLERS[params["name"]](params.get("arguments") or {}, params)
    except Refusal as refusal:
        error = {"code": -32123, "message": str(refusal), "data": {"hint": "come tomorrow"}}
        send({"jsonrpc": "2.0", "id": request_id, "error": error})
        return
    send({"jsonrpc": "2.0", "id": request_id, "result": result})


def results(method: str, params: dict) -> dict | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}},
            "serverInfo": {"name": "workshop", "version": "1.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "resources/list":
        note_ = {"uri": "shop://note", "name": "note", "mimeType": "text/plain", "description": "A note. It is short."}
        return {"resources": [note_, {"uri": "shop://blob", "name": "blob", "mimeType": "image/gif"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "shop://item/{id}", "name": "item"}]}
    if method == "resources/read":
        uri = params["uri"]
        if uri == "shop://blob":
            return {"contents": [{"uri": uri, "blob": b64(b"GIF89a..."), "mimeType": "image/gif"}]}
        return {"contents": [{"uri": uri, "text": f"text of {uri}", "mimeType": "text/plain"}]}
    if method == "prompts/list":
        arguments = [{"name": "file", "required": True}, {"name": "style"}]
        return {"prompts": [{"name": "review", "description": "Review a file.", "arguments": arguments}]}
    if method == "prompts/get":
        given = params.get("arguments") or {}
        said = {"type": "text", "text": f"Review {given.get('file')} ({given.get('style')})"}
        image = {"type": "image", "data": b64(b"PNG"), "mimeType": "image/png"}
        messages = [{"role": "user", "content": said}, {"role": "assistant", "content": image}]
        return {"description": "A review", "messages": messages}
    return {} if method in ("ping", "logging/setLevel") else None


def serve() -> None:
    note(f"start {os.getpid()}")
    for line in sys.stdin:
        message = json.loads(line)
        method, request_id = message.get("method"), message.get("id")
        if method is None:
            note(f"answer {json.dumps(message.get('result') or message.get('error'), sort_keys=True)}")
            with answered:
                answers[request_id] = message.get("result") or {"refused": message.get("error")}
                answered.notify_all()
        elif method == "tools/call":
            threading.Thread(target=call, args=(request_id, message["params"]), daemon=True).start()
        elif method == "notifications/cancelled":
            has_cancelled.set()
        elif request_id is not None:
            result = results(method, message.get("params") or {})
            if result is None:
                send({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32601, "message": "unknown"}})
            else:
                send({"jsonrpc": "2.0", "id": request_id, "result": result})


if __name__ == "__main__":
    serve()
