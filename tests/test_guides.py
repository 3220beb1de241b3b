"""What the guides show is what works: their code runs, their commands and links exist."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from jsonschema_rs import validator_for

from dari.app import build
from dari.core.tool import Tool
from dari.settings import ServeSettings
from tests.support.wire import ROOT, StreamWire, call, initialize

GUIDES = sorted((ROOT / "docs").rglob("*.md")) + sorted(ROOT.glob("*.md")) + sorted((ROOT / "bench").glob("*.md"))


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / "docs" / "guide" / name).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


async def test_the_toolkit_of_the_guide_serves_its_tools(tmp_path: Path) -> None:
    program = tmp_path / "weather.py"
    complete = blocks("toolkits.md", "python")[:2]  # what follows is the example of a daemon's tool
    program.write_text("\n".join(complete))
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin and process.stdout
    wire = StreamWire(process.stdout, process.stdin)
    await wire.ask(initialize())
    warm = await wire.ask(call("weather_now", 1, city="Seoul"))
    unknown = await wire.ask(call("weather_now", 2, city="Oslo"))
    process.stdin.close()
    assert await process.wait() == 0
    assert warm["result"]["structuredContent"] == {"city": "Seoul", "degrees": 11.5}
    assert unknown["result"]["_meta"]["dari/error"]["hint"] == "known: Seoul"


async def test_the_shell_script_of_the_guide_gets_two_replies(tmp_path: Path) -> None:
    script = next(block for block in blocks("connect.md", "sh") if block.startswith("printf"))
    bin_folder = Path(sys.executable).parent
    env = {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "DARI_HOME": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        script,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    stop = await asyncio.create_subprocess_exec(str(bin_folder / "dari"), "remote", "daemon", "stop", env=env)
    assert await stop.wait() == 0
    replies = {reply["id"]: reply for reply in map(json.loads, output.splitlines())}
    assert replies[1]["result"]["serverInfo"]["name"] == "dari"
    assert replies[2]["result"]["structuredContent"]["dari"]


@cache
def _tools() -> dict[str, Tool]:
    nowhere = Path(os.sep, "nowhere")
    return build(ServeSettings(token_path=nowhere / "token", socket_path=nowhere / "socket")).registry.tools


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_tool_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"`((?:crab|crux|dari)_[a-z_0-9]+)[` ]", page.read_text()))
    assert named <= _tools().keys()


def test_the_calls_of_the_recipes_are_ones_that_the_tools_take() -> None:
    text = (ROOT / "docs/guide/proxy-recipes.md").read_text() + (ROOT / "docs/guide/troubleshooting.md").read_text()
    calls = re.findall(r"`(crab_[a-z_]+) (\{.*?\})`", text)
    assert len(calls) > 25
    tools = _tools()
    for name, arguments in calls:
        problems = [
            error.message for error in validator_for(tools[name].input_schema).iter_errors(json.loads(arguments))
        ]
        assert problems == [], (name, arguments)
