"""An MCP server over stdio for the page of tools: every kind of schema, result and question, some of them hostile."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from typing import Any

Json = dict[str, Any]
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
BIDI = "safe\u202egnp.exe\u202c\u200bzero"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0").decode()
BIG_ROWS = 120_000

RICH: Json = {
    "type": "object",
    "required": ["name", "count", "shape"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 2, "description": f"Who it is for {MARKUP}"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "size": {"enum": ["small", "large"]},
        "loud": {"type": "boolean"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "apiKey": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "people": {
            "type": "array",
            "items": {"type": "object", "required": ["first"], "properties": {"first": {"type": "string"}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "tree": {"$ref": "#/$defs/tree"},
        "shape": {
            "oneOf": [
                {
                    "type": "object",
                    "required": ["kind", "r"],
                    "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
                },
                {
                    "type": "object",
                    "required": ["kind"],
                    "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
                },
            ]
        },
    },
    "$defs": {
        "tree": {"type": "object", "properties": {"value": {"type": "string"}, "left": {"$ref": "#/$defs/tree"}}}
    },
}
NONE: Json = {"type": "object", "properties": {}}


def deep() -> Json:
    schema: Json = {"type": "string"}
    for _ in range(40):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def wide() -> Json:
    return {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(7000)}}


TOOLS: list[Any] = [
    {"name": "rich", "title": "Rich form", "description": "Gives its arguments back", "inputSchema": RICH},
    {"name": "nothing", "description": "Takes nothing", "inputSchema": NONE, "annotations": {"readOnlyHint": True}},
    {"name": "remove_all", "inputSchema": NONE, "annotations": {"destructiveHint": True, "openWorldHint": True}},
    {"name": "big", "description": "Ten megabytes", "inputSchema": NONE},
    {"name": "rows", "description": "A table", "inputSchema": NONE},
    {"name": "media", "description": "Picture, sound, links", "inputSchema": NONE},
    {
        "name": "liar",
        "description": "Breaks its output schema",
        "inputSchema": NONE,
        "outputSchema": {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}},
    },
    {
        "name": "honest",
        "inputSchema": NONE,
        "outputSchema": {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}},
    },
    {"name": "fails", "inputSchema": NONE},
    {"name": "slow", "description": "Reports progress until it is cancelled", "inputSchema": NONE},
    {"name": "asks", "description": "Asks a person", "inputSchema": NONE},
    {"name": "asks_model", "description": "Asks a model", "inputSchema": NONE},
    {"name": "opens", "description": "Wants an address opened", "inputSchema": NONE},
    {
        "name": f"evil {MARKUP}",
        "title": BIDI,
        "description": f"{MARKUP}\n{BIDI}\n[x](javascript:alert(3))",
        "inputSchema": NONE,
    },
    {"name": "deep", "inputSchema": deep()},
    {"name": "wide", "inputSchema": wide()},
    {"name": "cyclic", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}},
    {"name": "한글_도구", "description": "터미널에서 파일을 찾습니다", "inputSchema": NONE},
    {"name": "bare"},
    {"description": "nobody can call this one"},
    "not even an object",
]
PROMPTS = [
    {
        "name": "greet",
        "description": f"Greets {MARKUP}",
        "arguments": [{"name": "who", "description": "Whom", "required": True}, {"name": "style"}],
    }
]
RESOURCES = [
    {"uri": "demo://counter", "name": "counter", "mimeType": "application/json", "description": "Counts its readers"},
    {"uri": "demo://picture", "name": "picture", "mimeType": "image/png"},
    {"uri": "demo://evil", "name": f"{MARKUP}{BIDI}", "mimeType": "text/html"},
]
TEMPLATES = [{"uriTemplate": "demo://note/{id}{?lang}", "name": "note", "description": "A note by its number"}]


class PlaygroundServer:
    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._answers: dict[str, tuple[threading.Event, list[Any]]] = {}
        self._cancelled: dict[Any, threading.Event] = {}
        self._reads = 0

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                event, answer = self._answers[message["id"]]
                answer.append(message.get("result", {"error": message.get("error")}))
                event.set()
            elif message["method"] == "notifications/cancelled":
                self._cancelled.setdefault(message["params"]["requestId"], threading.Event()).set()
            elif "id" in message:
                threading.Thread(target=self._reply, args=(message,), daemon=True).start()

    def _send(self, message: Json) -> None:
        with self._writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def _ask(self, method: str, params: Json) -> Any:
        id, event, answer = f"q{len(self._answers)}", threading.Event(), []
        self._answers[id] = event, answer
        self._send({"id": id, "method": method, "params": params})
        event.wait(60)
        return answer[0] if answer else None

    def _reply(self, message: Json) -> None:
        method, params = message["method"].replace("/", "_"), message.get("params", {})
        handle = getattr(self, f"_on_{method}", None)
        if handle is None:
            self._send({"id": message["id"], "error": {"code": -32601, "message": f"no {message['method']}"}})
            return
        result = handle(params, message["id"])
        if result is not None:
            self._send({"id": message["id"], "result": result})

    def _on_initialize(self, params: Json, id: Any) -> Json:
        offered = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "completions": {}}
        info = {"name": "playground", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": offered, "serverInfo": info}

    def _on_tools_list(self, params: Json, id: Any) -> Json:
        more = [{"name": f"more_{n}", "inputSchema": NONE} for n in range(int(os.environ.get("MORE_TOOLS", "0")))]
        return {"tools": [*TOOLS, *more]}

    def _on_prompts_list(self, params: Json, id: Any) -> Json:
        return {"prompts": PROMPTS}

    def _on_resources_list(self, params: Json, id: Any) -> Json:
        return {"resources": RESOURCES}

    def _on_resources_templates_list(self, params: Json, id: Any) -> Json:
        return {"resourceTemplates": TEMPLATES}

    def _on_resources_subscribe(self, params: Json, id: Any) -> Json:
        threading.Timer(0.3, self._tell, (params["uri"],)).start()
        return {}

    def _on_resources_unsubscribe(self, params: Json, id: Any) -> Json:
        return {}

    def _tell(self, uri: str) -> None:
        self._send({"method": "notifications/resources/updated", "params": {"uri": uri}})

    def _on_resources_read(self, params: Json, id: Any) -> Json:
        uri = params["uri"]
        if uri == "demo://counter":
            self._reads += 1
            content: Json = {"mimeType": "application/json", "text": json.dumps({"reads": self._reads})}
        elif uri == "demo://picture":
            content = {"mimeType": "image/png", "blob": PIXEL}
        else:
            content = {"mimeType": "text/html", "text": f"{uri} {MARKUP} {BIDI}"}
        return {"contents": [{"uri": uri, **content}]}

    def _on_completion_complete(self, params: Json, id: Any) -> Json:
        typed = params["argument"]["value"]
        values = [one for one in ("Ada", "Adele", "Bob") if one.startswith(typed)]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    def _on_prompts_get(self, params: Json, id: Any) -> Json:
        who = params.get("arguments", {}).get("who", "")
        asked = {"role": "user", "content": {"type": "text", "text": f"Greet {who} {MARKUP}"}}
        return {"messages": [asked, {"role": "assistant", "content": {"type": "text", "text": "Hello"}}]}

    def _on_tools_call(self, params: Json, id: Any) -> Json | None:
        name, arguments = params["name"], params.get("arguments", {})
        if name == "rich":
            return answer(json.dumps(arguments, ensure_ascii=False), arguments)
        if name == "big":
            rows = [{"n": n, "name": f"row {n}", "pad": "x" * 50} for n in range(BIG_ROWS)]
            return answer(json.dumps({"rows": rows}))
        if name == "rows":
            rows = [{"city": "Seoul", "n": 1}, {"city": MARKUP, "n": 2}]
            return answer(json.dumps({"rows": rows}), {"rows": rows})
        if name in ("liar", "honest"):
            value = {"total": "many" if name == "liar" else 3}
            return answer(json.dumps(value), value)
        if name == "media":
            link = {"type": "resource_link", "uri": "demo://counter", "name": f"link {MARKUP}"}
            content = {"uri": "demo://inside", "mimeType": "text/plain", "text": MARKUP}
            inside = {"type": "resource", "resource": content}
            picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
            sound = {"type": "audio", "data": SOUND, "mimeType": "audio/wav"}
            odd = {"type": "image", "data": "AAAA", "mimeType": "text/html"}
            return {"content": [picture, sound, link, inside, odd, {"type": "text", "text": "with media"}]}
        if name == "fails":
            return {"content": [{"type": "text", "text": f"it failed {MARKUP}"}], "isError": True}
        if name == "slow":
            return self._slow(params, id)
        return self._question(name)

    def _slow(self, params: Json, id: Any) -> Json | None:
        token = params.get("_meta", {}).get("progressToken")
        cancelled = self._cancelled.setdefault(id, threading.Event())
        for step in range(1, 600):
            if token is not None:
                progress = {"progressToken": token, "progress": min(step, 90), "total": 100, "message": f"step {step}"}
                self._send({"method": "notifications/progress", "params": progress})
            if cancelled.wait(0.1):
                return None
        return answer("done")

    def _question(self, name: str) -> Json:
        if name == "asks":
            fields = {"name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "default": 30}}
            schema = {"type": "object", "properties": fields, "required": ["name"]}
            asked = {"message": f"Who are you? {MARKUP}", "requestedSchema": schema}
            return answer(json.dumps(self._ask("elicitation/create", asked)))
        if name == "opens":
            url = {"mode": "url", "message": "Please look", "url": "https://example.com/<b>", "elicitationId": "e1"}
            return answer(json.dumps(self._ask("elicitation/create", url)))
        if name == "asks_model":
            said = {"role": "user", "content": {"type": "text", "text": f"Capital of Korea? {MARKUP}"}}
            return answer(json.dumps(self._ask("sampling/createMessage", {"messages": [said], "maxTokens": 100})))
        return answer(f"called {name}")


def answer(text: str, structured: Any = None) -> Json:
    result: Json = {"content": [{"type": "text", "text": text}]}
    if structured is not None:
        result["structuredContent"] = structured
    return result


if __name__ == "__main__":
    PlaygroundServer().serve()
