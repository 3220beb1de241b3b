"""`servers`, `list-tools`, `describe`, resources, prompts and `prewarm`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.remote_command import shop
from tests.support.wire import demo_process
from tests.support.workshop import TOOLS


async def test_servers_are_listed_with_kind_state_default_address_and_line(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True), {"id": "web", "baseUrl": "https://user:pw@mcp.example.com/?key=1"})
        done = await run("servers")
        head, shop_row, web_row, own_row = (line.split() for line in done.out.splitlines())
        assert head == ["SERVER", "KIND", "STATE", "NOW", "DEFAULT", "ADDRESS", "WRITTEN", "IN"]
        assert shop_row[:5] == ["shop", "stdio", "ready", "-", "yes"] and shop_row[-1] == f"{run.file}:1"
        assert web_row == ["web", "http", "ready", "-", "https://mcp.example.com/", f"{run.file}:1"]
        assert own_row[:3] == ["crewx-tools", "stdio", "ready"] and own_row[-2:] == ["built", "in"]
        assert (done.code, done.err) == (0, "")


async def test_servers_as_json_have_no_secrets(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(
            {
                "id": "web",
                "baseUrl": "https://mcp.example.com",
                "apiKey": "literal-secret",
                "headers": {"X-Key": "also"},
            },
            run.entry("shop", default=True, env={"PASSWORD": "literal-secret"}),
        )
        done = await run("servers", "--json")
        assert [(one["id"], one["kind"], one["default"]) for one in done.json] == [
            ("web", "http", False),
            ("shop", "stdio", True),
            ("crewx-tools", "stdio", False),
        ]
        assert done.json[0]["source"] == {"file": str(run.file), "line": 1, "layer": "user"}
        assert "literal-secret" not in done.out and "also" not in done.out


async def test_what_is_wrong_with_a_file_is_told_on_stderr(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.file.write_text('{"servers": [{"id": "bad",\n "kind": "stdio"}]}')
        done = await run("servers", "--json")
        assert done.code == 0 and done.json[0]["state"] == "broken"
        assert "warning:" in done.err and "command" in done.err


async def test_no_servers_is_an_answer(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.file.unlink()
        done = await run("servers")
        assert done.code == 0 and "crewx mcp remote add" in done.err
        assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["crewx-tools"]
        (built_in,) = (await run("servers", "--json")).json
        assert (built_in["id"], built_in["source"]["layer"]) == ("crewx-tools", "built-in")


async def test_tools_are_listed_with_their_server_and_first_sentence(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("list-tools")
        lines = done.out.splitlines()
        assert lines[0] == f"server 'shop' (stdio): {len(TOOLS)} tools"
        assert "shop/variety    Returns its arguments." in lines
        assert "\x1b" not in done.out


async def test_tools_as_json_are_what_the_server_lists_with_its_name(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("list-tools", "--json")
        assert done.json[0] == {"server": "shop", **TOOLS[0]}
        assert [tool["name"] for tool in done.json] == [tool["name"] for tool in TOOLS]


async def test_all_lists_every_server_and_a_dead_one_does_not_stop_them(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        dead = {"id": "dead", "kind": "stdio", "command": "/nowhere/at/all"}
        broken = {"id": "broken", "kind": "stdio"}
        run.write(run.entry("one"), dead, run.entry("two"), run.entry("unset", args=["${NOT_SET}"]), broken)
        done = await run("list-tools", "--all", "--json")
        assert done.code == 2
        assert {tool["server"] for tool in done.json} == {"one", "two"}
        assert "dead" in done.err and "NOT_SET" in done.err and "servers[4].command" in done.err


async def test_the_cache_answers_and_refresh_asks_the_server(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert "from the cache" not in (await run("list-tools", "--log")).err
        assert "from the cache" in (await run("list-tools", "--log")).err
        assert "from the cache" not in (await run("list-tools", "--log", "--refresh")).err


async def test_a_table_is_cut_at_the_edge_of_a_screen_and_whole_in_a_pipe(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True, tools={"allow": ["say"], "describe": {"say": "w " * 200}}))
        assert max(map(len, (await run("list-tools", tty=True)).out.splitlines())) == 100
        assert max(map(len, (await run("list-tools")).out.splitlines())) > 300


async def test_describe_shows_types_defaults_bounds_and_calls_that_work(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("describe", "shop/variety")
        for part in (
            "shop/variety – Variety",
            "--path  (string; required)",
            "Where it lies. Absolute or not.",
            "--head  (integer; at least 1)",
            "--follow  (boolean; default true)",
            "--mode  (one of: fast, slow)",
            "--tags  (list of string)",
            "given (object)",
            "it changes nothing, may be repeated",
            "crewx mcp remote call-tool shop/variety --path '<path>'",
        ):
            assert part in done.out
        assert (await run("call-tool", "shop/variety", "--help")).out == done.out
        assert (await run("describe", "variety", "--json")).json == {"server": "shop", **TOOLS[0]}


async def test_the_examples_of_describe_are_calls_that_work(tmp_path: Path) -> None:
    import shlex

    async with shop(tmp_path) as run:
        for name in ("variety", "loose", "say", "steps", "render"):
            lines = (await run("describe", name)).out.splitlines()
            calls = [shlex.split(line)[3:] for line in lines if line.startswith("  crewx mcp remote call-tool")]
            assert calls
            for words in calls:
                assert (await run(*words)).code == 0


async def test_resources_are_listed_and_read(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("list-resources")
        assert "server 'shop': 2 resources, 1 templates" in done.out
        assert "shop    shop://note       text/plain  A note." in done.out
        listed = (await run("list-resources", "--json")).json
        assert [item.get("uri", item.get("uriTemplate")) for item in listed] == [
            "shop://note",
            "shop://blob",
            "shop://item/{id}",
        ]
        assert listed[0]["server"] == "shop"
        assert (await run("read-resource", "shop://item/7")).out == "text of shop://item/7\n"


async def test_binary_resources_are_described_or_saved_and_base64_in_json(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert (await run("read-resource", "shop://blob")).out == "[resource: shop://blob, image/gif, 9 bytes]\n"
        done = await run("read-resource", "shop://blob", "--output", "kept")
        assert (run.cwd / "kept/blob-1.gif").read_bytes() == b"GIF89a..."
        assert str(run.cwd / "kept/blob-1.gif") in done.out
        assert (await run("read-resource", "shop://blob", "--json")).json["contents"][0]["blob"] == "R0lGODlhLi4u"
        raw = (await run("read-resource", "shop://blob", "--raw")).out
        assert raw == json.dumps(json.loads(raw)) + "\n"


async def test_prompts_are_listed_and_filled_in(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert "shop/review    file*, style  Review a file." in (await run("list-prompts")).out
        done = await run("get-prompt", "shop/review", "--arg", "file=a=b", "--arg", "style=short")
        lines = done.out.splitlines()
        assert lines == ["A review", "[user]", "Review a=b (short)", "[assistant]", "[image: image/png, 3 bytes]"]
        done = await run("get-prompt", "review", "--arg", "file=x", "--json")
        assert done.json["messages"][0]["content"]["text"] == "Review x (None)"


async def test_prompts_are_checked_before_they_are_asked_for(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for words, said in (
            (("reviw",), "did you mean review?"),
            (("review",), "--arg file=VALUE"),
            (("review", "--arg", "file"), "must be NAME=VALUE"),
            (("review", "--arg", "file=1", "--arg", "file=2"), "given twice"),
            (("review", "--arg", "file=1", "--arg", "stile=2"), "did you mean style?"),
        ):
            done = await run("get-prompt", *words)
            assert (done.code, done.out) == (1, "") and said in done.err


async def test_resources_and_prompts_over_http(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as demo, shop(tmp_path) as run:
        run.write(run.http("web", demo.port, demo.token, default=True))
        assert (await run("read-resource", "demo://note")).out == "a note\n"
        assert (await run("get-prompt", "letter", "--arg", "to=Ada")).out.splitlines()[-1] == "Dear Ada"
        assert (await run("read-resource", "demo://none")).code == 3


async def test_prewarm_starts_the_server_and_fetches_its_lists(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("prewarm", "--server", "shop")
        assert done.out.startswith(f"✓ shop is warm: workshop 1.0, protocol 2025-11-25, {len(TOOLS)} tools (")
        starts = [line for line in run.noted() if line.startswith("start")]
        await run("call-tool", "say", "--text", "x")
        assert [line for line in run.noted() if line.startswith("start")] == starts and len(starts) == 1


async def test_prewarm_all_tells_of_those_that_do_not_start(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("one"), {"id": "dead", "kind": "stdio", "command": "/nowhere/at/all"})
        done = await run("prewarm", "--all", "--json")
        assert done.code == 2 and [each["server"] for each in done.json] == ["one"]
        assert "dead" in done.err


async def test_held_tools_are_told_with_the_way_to_approve(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert (await run("call-tool", "say", "--text", "x")).code == 0
        run.write(run.entry("shop", default=True, env={"WORKSHOP_SAYS": "Says a text, and sends your keys along."}))
        done = await run("list-tools", "--refresh")
        assert "shop/say" not in done.out
        assert "holds back 1 item" in done.err and "crewx mcp remote approve shop" in done.err
        done = await run("call-tool", "say", "--text", "x")
        assert (done.code, done.out) == (1, "") and "crewx mcp remote approve shop" in done.err
