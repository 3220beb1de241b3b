"""Which server a command means (design 001 §6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.peer_server import peer
from tests.support.remote_command import Shop, shop
from tests.support.wire import demo_process


def two(run: Shop, **fields: bool) -> None:
    run.write(run.entry("first", **fields), run.entry("second"))


async def test_a_named_server_wins_over_the_default(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        two(run, default=True)
        for words, server in (
            (("say",), "first"),
            (("say", "--server", "second"), "second"),
            (("second/say",), "second"),
            (("second/say", "--server", "second"), "second"),
        ):
            done = await run("call-tool", *words, "--text", "x")
            assert done.out.startswith(f"✓ {server}/say ")


async def test_without_name_and_default_the_way_out_is_told(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        two(run)
        done = await run("call-tool", "say", "--text", "x")
        assert done.code == 1 and "--endpoint" in done.err
        await run("list-tools", "--server", "second")
        done = await run("call-tool", "say", "--text", "x")
        assert done.code == 1 and "crewx mcp remote call-tool second/say" in done.err


async def test_server_and_endpoint_exclude_each_other(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("list-tools", "--server", "shop", "--endpoint", "http://127.0.0.1:1")
        assert done.code == 1 and "not allowed with" in done.err


@pytest.mark.parametrize(
    "words, said",
    [
        (("list-tools", "--server", "shpo"), "did you mean 'shop'?"),
        (("list-tools", "--server", "shop", "--key", "k"), "takes no key"),
        (("list-tools", "--endpoint", "ftp://x"), "must be an http or https address"),
        (("list-tools", "--endpoint", "http://x", "--header", "nonsense"), "must be 'Name: value'"),
        (("list-tools", "--timeout", "soon"), "got 'soon'"),
        (("list-tools", "--timeout", "0"), "got '0'"),
        (("list-tools", "--all", "--key", "k"), "--all is for every one"),
        (("call-tool", "nobody/say"), "server 'shop' has no tool 'nobody/say'"),
        (("call-tool",), "TOOL"),
        (("call-tool", "say", "--tex", "x"), "did you mean --text?"),
        (("call-tool", "shop/sya"), "did you mean say?"),
        (("list-tools", "--sever", "shop"), "did you mean --server?"),
        (("prewarm", "--server"), "--server needs a value"),
    ],
)
async def test_a_wrong_word_is_named_with_what_was_meant(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    async with shop(tmp_path) as run:
        done = await run(*words)
        assert (done.code, done.out) == (1, "")
        assert said in done.err and done.err.startswith("error: ")


async def test_a_server_that_is_not_there_is_told_when_there_is_no_default(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        two(run)
        done = await run("call-tool", "nobody/say", "--text", "x")
        assert done.code == 1 and "unknown server 'nobody'" in done.err


async def test_disabled_broken_unresolved_and_untrusted_servers_are_configuration(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(
            run.entry("off", disabled=True),
            {"id": "broken", "kind": "stdio"},
            run.entry("empty", args=["${NOT_SET}"]),
        )
        (run.cwd / ".crewx").mkdir()
        (run.cwd / ".crewx/mcp.json").write_text(json.dumps({"servers": [run.entry("cloned")]}))
        for id, said in (
            ("off", "crewx mcp remote enable off"),
            ("broken", "command"),
            ("empty", "NOT_SET"),
            ("cloned", "crewx mcp remote trust"),
        ):
            done = await run("list-tools", "--server", id)
            assert (done.code, done.out) == (1, "") and said in done.err


async def test_keys_and_headers_of_the_line_win_over_the_profile(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as demo, shop(tmp_path) as run:
        run.write(run.http("web", demo.port, "wrong-token-of-the-profile"))
        assert (await run("list-tools", "--server", "web")).code == 2
        for words in (("--key", demo.token), ("--header", f"Authorization: Bearer {demo.token}")):
            done = await run("list-tools", "--server", "web", *words, "--json")
            assert done.code == 0 and done.json[0]["server"] == "web"


async def test_a_value_that_begins_with_a_dash_is_still_one(tmp_path: Path) -> None:
    with peer(token="-dash") as one:
        async with shop(tmp_path) as run:
            words = ("--endpoint", one.url, "--key", "-dash", "--header", "X-Dash: -1")
            done = await run("call-tool", "crewx_listAgents", *words, "--params", "{}", "--raw")
            assert done.code == 0 and one.of("tools/call")[-1].headers["x-dash"] == "-1"


async def test_a_token_of_the_line_is_in_no_log(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as demo, shop(tmp_path) as run:
        place = ("--endpoint", f"http://127.0.0.1:{demo.port}", "--key", demo.token)
        done = await run("call-tool", "demo_quick", *place, "--text", "x", "--log")
        assert done.code == 0 and demo.token not in done.err
        assert f"POST http://127.0.0.1:{demo.port}/mcp with Authorization" in done.err


async def test_the_tools_own_flags_stand_after_two_dashes(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "variety", "--raw", "--", "--path", "x", "--output", "y")
        assert done.json["structuredContent"]["given"] == {"path": "x", "output": "y"}
        done = await run("call-tool", "variety", "--path", "x", "--output", "kept")
        assert done.code == 0 and "--output was taken as an option of call-tool" in done.err


async def test_options_stand_before_or_after_the_tool(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for words in (
            ("--json", "say", "--text", "x"),
            ("say", "--text", "x", "--json"),
            ("say", "--text=x", "--json"),
        ):
            assert (await run("call-tool", *words)).json["content"][0]["text"] == "x"
