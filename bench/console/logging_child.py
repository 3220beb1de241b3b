"""An MCP server over stdio that logs: PER_SECOND messages each second, once its client is there."""

import json
import sys
import threading
import time

_lock = threading.Lock()


def send(message: dict[str, object]) -> None:
    with _lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def log(per_s: float) -> None:
    number = 0
    while True:
        number += 1
        params = {"level": "info", "logger": "bench", "data": f"GET /api/items/{number}?page={number % 50} 200"}
        send({"method": "notifications/message", "params": params})
        time.sleep(1 / per_s)


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"logging": {}},
            "serverInfo": {"name": "bench", "version": "1"},
        }
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        send({"id": request["id"], "result": answer(request["method"], request.get("params", {}))})
    elif request.get("method") == "notifications/initialized":
        threading.Thread(target=log, args=(float(sys.argv[1]),), daemon=True).start()
