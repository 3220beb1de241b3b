"""A hub with something to see on every page: servers, traffic, panes, notes, calls of two agents, approvals."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from tests.support.console_hub import Agent, ConsoleHub

Json = dict[str, Any]
FLOWS = 260
SERVER = Path(__file__).with_name("console_demo_server.py")
KEBAB = Path(sys.executable).with_name("kebab")
TOOLS = {
    "tickets": ("search_tickets", "create_ticket", "comment_ticket", "close_ticket"),
    "calendar": ("list_events", "create_event", "find_free_time"),
    "design": ("get_file", "list_components", "export_node"),
}
NOTES = {
    "runbooks/backups.md": """# Backups

## Schedule

Backups are made every night at 02:30 by the job `nightly_dump` and kept for 35 days.

## Restore

Run `restore_dump --latest`. A restore of the orders database takes about 12 minutes.
""",
    "runbooks/deploy.md": """# Deploys

A deploy starts when a tag is pushed. The canary takes five percent of the traffic for ten minutes; errors above 0.5 %
roll it back.

## Roll back

Run `deploy rollback --to previous`.
""",
    "api/payments.md": """# Payments

Every charge carries an idempotency key. A webhook is retried for three days with growing pauses.

| code | meaning |
|---|---|
| 402 | the card was declined |
| 409 | the key was used for another charge |
""",
    "보안/비밀번호.md": """# 보안 정책

비밀번호는 90일마다 바꿔야 한다. 관리자는 이중 인증을 쓴다. 백업 암호화 키는 금고에 보관한다.
""",
}
SCRIPT = """\
import sys, time
names = ["checkout", "coupons", "inventory", "payments", "refunds", "search", "sessions", "shipping"]
print("\\x1b[1m============ test session starts ============\\x1b[0m")
for number, name in enumerate(names):
    bad = name == "refunds"
    mark = "\\x1b[31mF" if bad else "\\x1b[32m."
    print(f"tests/test_{name}.py {mark * (6 + number)}\\x1b[0m   [{(number + 1) * 100 // len(names):3d}%]")
print("\\x1b[31;1mFAILED\\x1b[0m tests/test_refunds.py::test_a_partial_refund_keeps_the_tax - 1190 != 1000")
print("\\x1b[31m1 failed\\x1b[0m, \\x1b[32m75 passed\\x1b[0m in 3.41s")
sys.exit(1)
"""


@asynccontextmanager
async def demonstration(hub: ConsoleHub) -> AsyncIterator[None]:
    """`hub` is not started yet; when the block is entered, it runs and has all of it. The two agents stay."""
    _write_servers(hub)
    _write_notes(hub)
    project = _write_project(hub)
    await hub.start()
    async with hub.agent("claude-code") as claude, hub.agent("codex") as codex:
        await _ingest(hub)
        await _make_traffic(hub, claude)
        await _work_in_panes(claude, codex, project)
        await _search(claude, codex)
        yield


def _write_servers(hub: ConsoleHub) -> None:
    entries: Json = {}
    for name, tools in TOOLS.items():
        path = hub.home / f"{name}.json"
        path.write_text(json.dumps([_tool(each) for each in tools]))
        more = ["more"] if name == "tickets" else []
        entries[name] = {"command": sys.executable, "args": [str(SERVER), str(path), *more]}
    entries["warehouse"] = {"command": "warehouse-mcp", "args": ["--region", "eu-west-1"]}
    hub.write_servers(**entries)


def _tool(name: str) -> Json:
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "words to look for"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
            "is_open": {"type": "boolean", "description": "only those that are open"},
        },
        "required": ["query"],
    }
    reads = name.startswith(("search", "list", "get", "find", "export"))
    words = name.replace("_", " ").capitalize()
    return {
        "name": name,
        "description": f"{words}; returns what was found or changed.",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": reads, "destructiveHint": not reads},
    }


def _write_notes(hub: ConsoleHub) -> None:
    from tests.support.knowledge_base import write_config

    for name, text in NOTES.items():
        path = hub.home / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    write_config(hub.dari_home / "kebab" / "config.toml", hub.home / "notes", hub.home / "knowledge")


def _write_project(hub: ConsoleHub) -> Path:
    project = hub.home / "shop"
    (project / "dist").mkdir(parents=True)
    (project / "tests.py").write_text(SCRIPT)
    for name in ("README.md", "pyproject.toml", "shop.py"):
        (project / name).write_text(f"{name} of the shop\n")
    return project


async def _ingest(hub: ConsoleHub) -> None:
    words = (str(KEBAB), "ingest", str(hub.home / "notes"))
    process = await asyncio.create_subprocess_exec(
        *words, env=hub.environ, cwd=hub.home, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()


async def _make_traffic(hub: ConsoleHub, agent: Agent) -> None:
    """Most of it from a HAR with names of other machines; some really through the proxy."""
    har = hub.home / "yesterday.har"
    har.write_text(json.dumps(make_har()))
    await agent.call("crab_traffic_import_har", path=str(har))
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await agent.call("crab_engine_set_listen_addr", listen_addr="127.0.0.1:0")
        await agent.call("crab_rules_add_allow", matcher=f"127.0.0.1:{port}")
        await agent.call("crab_rules_add_status_rewrite", matcher="/api/checkout", to_status_code=503)
        await agent.call("crab_proxy_start")
        proxy = f"http://{(await agent.call('crab_proxy_info'))['address']}"
        async with httpx.AsyncClient(proxy=proxy, trust_env=False) as client:
            for path in ("products", "cart", "checkout", "orders/1042", "profile", "products?q=lamp"):
                await client.get(f"http://127.0.0.1:{port}/api/{path}")


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            body = json.dumps({"items": [{"id": n, "name": f"lamp {n}", "price": 19.9 + n} for n in range(6)]}).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        pass  # the proxy keeps its connection until it or we end
    finally:
        writer.close()


def make_har(count: int = FLOWS) -> Json:
    """Requests of a shop's page over the last ten minutes, the same at every run but for the clock."""
    dice = random.Random(13)
    kinds = [
        ("GET", "https://api.shop.example/v1/products?page={n}", "application/json", 30),
        ("GET", "https://cdn.shop.example/images/{n}.webp", "image/webp", 22),
        ("POST", "https://api.shop.example/v1/cart", "application/json", 12),
        ("GET", "https://api.shop.example/v1/orders/{n}", "application/json", 12),
        ("POST", "https://payments.example/charges", "application/json", 6),
        ("GET", "https://auth.shop.example/session", "application/json", 8),
        ("PUT", "https://api.shop.example/v1/profile", "application/json", 4),
        ("GET", "https://search.shop.example/suggest?q=lamp{n}", "application/json", 10),
    ]
    weights = [kind[3] for kind in kinds]
    entries = []
    for number in range(count):
        method, url, media, _ = dice.choices(kinds, weights)[0]
        status = dice.choices([200, 201, 304, 401, 404, 429, 500], [70, 8, 8, 3, 5, 2, 4])[0]
        wait_ms = dice.lognormvariate(4.0, 0.7)
        began = time.time() - 600 + number * 600 / count
        entries.append(_entry(method, url.format(n=dice.randrange(1, 900)), media, status, wait_ms, began, dice))
    return {"log": {"version": "1.2", "creator": {"name": "demo", "version": "1"}, "entries": entries}}


def _entry(method: str, url: str, media: str, status: int, wait_ms: float, began: float, dice: random.Random) -> Json:
    body = json.dumps({"id": dice.randrange(10**6), "items": [{"sku": f"L-{n}", "price": 19.9 + n} for n in range(8)]})
    request: Json = {
        "method": method,
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "queryString": [],
        "headers": [{"name": "Accept", "value": "application/json"}, {"name": "User-Agent", "value": "shop/4.2"}],
        "headersSize": -1,
        "bodySize": 0,
    }
    if method in ("POST", "PUT"):
        request["postData"] = {"mimeType": "application/json", "text": json.dumps({"sku": "L-7", "count": 2})}
    return {
        "startedDateTime": datetime.fromtimestamp(began, UTC).isoformat(),
        "time": wait_ms + 8,
        "request": request,
        "response": {
            "status": status,
            "statusText": "",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": [{"name": "Content-Type", "value": media}],
            "content": {"size": len(body), "mimeType": media, "text": body if media.endswith("json") else ""},
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": len(body),
        },
        "cache": {},
        "timings": {"send": 1, "wait": wait_ms, "receive": 7},
    }


async def _work_in_panes(claude: Agent, codex: Agent, project: Path) -> None:
    tests = await claude.call("crux_create_pane", name="tests", cwd=str(project))
    server = await codex.call("crux_create_pane", name="server", cwd=str(project), focus=False)
    await claude.call("crux_execute_command", pane_id=tests["id"], command="ls -la --color=always")
    await claude.call("crux_execute_command", pane_id=tests["id"], command="python3 tests.py")
    await claude.call("crux_execute_command", pane_id=tests["id"], command="echo done && date +%F")
    lines = 'for n in 1 2 3 4 5 6; do echo "$(date +%T) GET /api/products 200 $((n * 7)) ms"; done'
    await codex.call("crux_execute_command", pane_id=server["id"], command=lines)
    await claude.fails("crux_execute_command", pane_id=tests["id"], command="rm -rf dist")
    await codex.fails("crux_execute_command", pane_id=server["id"], command="sudo systemctl restart shop")


async def _search(claude: Agent, codex: Agent) -> None:
    await claude.call("kebab_search", query="how long are backups kept")
    await codex.call("kebab_search", query="roll back a deploy")
    await claude.call("dari_doctor")
    for agent, tool, query in (
        (claude, "tickets__search_tickets", "refund"),
        (codex, "calendar__find_free_time", "review"),
        (claude, "design__list_components", "button"),
    ):
        await agent.call(tool, query=query)
