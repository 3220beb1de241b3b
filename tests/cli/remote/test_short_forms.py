"""What users of mcporter type: `key=value`, `server.tool`, `server.tool(…)`, ad-hoc servers, `call` and `list`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.remote_command import WORKSHOP, shop
from tests.support.wire import demo_process

STDIO = f"{shlex.quote(sys.executable)} {shlex.quote(str(WORKSHOP))}"


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("path=a.txt", "head=5"), {"path": "a.txt", "head": 5}),
        (("path=a=b", "follow=false"), {"path": "a=b", "follow": False}),
        (("path=7", "ratio=1.5", "maybe=null"), {"path": "7", "ratio": 1.5, "maybe": None}),
        (('path:="x"', 'range:={"from": 1}'), {"path": "x", "range": {"from": 1}}),
        (("path:a.txt", "head:5"), {"path": "a.txt", "head": 5}),
        (("path:", "a.txt", "head:", "5"), {"path": "a.txt", "head": 5}),
        (("path=x", "tags=a", "tags=b", "sizes=[1,2]"), {"path": "x", "tags": ["a", "b"], "sizes": [1, 2]}),
        (("path=x", "range.from=1", "agent-id=me"), {"path": "x", "range": {"from": 1}, "agentId": "me"}),
        (("--path", "x", "head=2"), {"path": "x", "head": 2}),
        (("path=", "output=o"), {"path": "", "output": "o"}),
    ],
)
async def test_key_and_value_are_read_by_the_schema(tmp_path: Path, words: tuple[str, ...], given: Any) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "shop/variety", *words, "--json")
        assert done.code == 0, done.err
        assert done.json["structuredContent"]["given"] == given


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("path=x", "head=many"), "got 'many'"),
        (("pth=x",), "did you mean path?"),
        (("path:={broken",), "path:= needs JSON"),
        (("lonely",), "path=lonely"),
        (("path=x", "path=y"), "given twice"),
    ],
)
async def test_a_wrong_pair_is_a_usage_error_that_names_it(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "variety", *words)
        assert done.code == 1 and said in done.err, done.err


async def test_a_dot_stands_for_the_slash_where_a_server_is_named(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("first", default=True), run.entry("my.second"))
        for address, server in (("first.say", "first"), ("my.second.say", "my.second"), ("my.second/say", "my.second")):
            done = await run("call-tool", address, "text=x")
            assert done.code == 0 and done.out.startswith(f"✓ {server}/say "), done.err
        done = await run("describe", "my.second.say")
        assert done.code == 0 and done.out.startswith("my.second/say")
        done = await run("call-tool", "nobody.say", "text=x")
        assert done.code == 1 and "no tool 'nobody.say'" in done.err


@pytest.mark.parametrize(
    ("expression", "given"),
    [
        ("""shop.variety(path: "a b", head: 3)""", {"path": "a b", "head": 3}),
        ("""variety(path='it', tags=["x", "y"], follow: false)""", {"path": "it", "tags": ["x", "y"], "follow": False}),
        ("""shop/variety("first", 2)""", {"path": "first", "head": 2}),
        ("""shop.variety(path: a.txt, range: {"from": 1})""", {"path": "a.txt", "range": {"from": 1}}),
    ],
)
async def test_a_call_is_written_as_in_a_program(tmp_path: Path, expression: str, given: Any) -> None:
    async with shop(tmp_path) as run:
        done = await run("call", expression, "--json")
        assert done.code == 0, done.err
        assert done.json["structuredContent"]["given"] == given


@pytest.mark.parametrize(
    "expression", ["shop.variety(path: ", "variety(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)"]
)
async def test_a_call_that_cannot_be_read_is_a_usage_error(tmp_path: Path, expression: str) -> None:
    async with shop(tmp_path) as run:
        done = await run("call", expression)
        assert done.code == 1 and "hint:" in done.err


async def test_call_and_list_are_short_forms(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert (await run("list")).out == (await run("servers")).out
        assert (await run("list", "shop")).out == (await run("list-tools", "--server", "shop")).out
        assert (await run("list-tools", "shop", "--json")).json[0]["server"] == "shop"
        assert (await run("list", "--json")).json == (await run("servers", "--json")).json
        done = await run("call", "shop.say", "text=hello", "--raw")
        assert json.loads(done.out)["content"][0]["text"] == "hello"
        assert (await run("list", "nobody")).code == 1
        done = await run("list", "--help")
        assert done.code == 0 and "crewx mcp remote list" in done.out


async def test_a_command_that_is_typed_is_a_server_for_one_call_and_ends_with_it(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        log = run.root / "adhoc.log"
        run.environ["WORKSHOP_LOG"] = str(log)
        done = await run(
            "call", "say", "--stdio", f"env WORKSHOP_LOG={shlex.quote(str(log))} {STDIO}", "text=hi", "--raw"
        )
        assert done.code == 0, done.err
        assert json.loads(done.out)["content"][0]["text"] == "hi"
        done = await run("list", "--stdio", f"env WORKSHOP_LOG={shlex.quote(str(log))} {STDIO}", "--json")
        assert {"say", "variety"} <= {tool["name"] for tool in done.json}
        assert [line.split()[0] for line in log.read_text().splitlines()].count("start") == 2
        assert (await run("list-tools", "--stdio", "'unclosed")).code == 1
        assert (await run("list-tools", "--stdio", "")).code == 1
        assert (await run("list-tools", "--stdio", STDIO, "--server", "shop")).code == 1
        done = await run("list-tools", "--stdio", "no-such-program-anywhere")
        assert done.code == 2, done.err


async def test_an_address_is_a_server(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as demo, shop(tmp_path) as run:
        url, key = f"http://127.0.0.1:{demo.port}", ("--key", demo.token)
        for words in (("--http", url), (url,), (f"{url}/mcp",)):
            done = await run("list", *words, *key, "--json")
            assert done.code == 0, done.err
            assert "demo_echo" in {tool["name"] for tool in done.json}
        for words in (("demo_echo", "--http", url), (f"{url}/mcp.demo_echo",)):
            done = await run("call", *words, *key, "text=hi", "--json")
            assert done.code == 0, done.err


async def test_an_address_after_the_name_is_added(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("add", "prod", "https://mcp.example.com/mcp")
        assert done.code == 0, done.err
        assert "https://mcp.example.com/mcp" in (await run("servers")).out
        done = await run("add", "other", "npx", "some-server")
        assert done.code == 1 and "add other -- npx some-server" in done.err
        done = await run("add", "twice", "https://a.example/mcp", "--url", "https://b.example/mcp")
        assert done.code == 1
