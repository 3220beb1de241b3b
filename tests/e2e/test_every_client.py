"""Six clients list every tool that `dari mcp` offers and read one failing call of each (the Inspector: of each kind).

A client may throw a failed result away (the TypeScript SDK v1 did so for 89 of 111 tools, when the error object was in
`structuredContent`), so the clients themselves are run, from npm and PyPI, each as a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.real_clients import DARI
from tests.support.wire import ROOT, Json

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

CLIENTS = Path(__file__).with_name("clients")
PARTS = ("crab_", "crux_", "dari_")
AT_ONCE = 4


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "DARI_NPM_DIR") if name in os.environ}
    ours = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "DARI_BRIDGE_IDLE_S": "1"}  # the hub ends after its client
    return {**ours, "MCP_INSPECTOR_SECRET_STORE": "memory", **kept}


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_the_typescript_sdk_reads_an_error_of_every_tool(version: str, env: dict[str, str]) -> None:
    check(await run([node(), str(CLIENTS / "typescript.mjs"), version, str(DARI), "mcp"], env))


async def test_the_python_sdk_1_reads_an_error_of_every_tool(env: dict[str, str]) -> None:
    check(await run([venv("sdk1"), str(CLIENTS / "python_sdk_1.py"), str(DARI), "mcp"], env))


async def test_the_python_sdk_2_reads_an_error_of_every_tool(env: dict[str, str]) -> None:
    check(await run([sys.executable, str(CLIENTS / "python_sdk_2.py"), str(DARI), "mcp"], env))


async def test_fastmcp_reads_an_error_of_every_tool(env: dict[str, str]) -> None:
    check(await run([venv("fastmcp"), str(CLIENTS / "fastmcp_client.py"), str(DARI), "mcp"], env))


async def test_the_inspector_reads_an_error_of_every_kind_of_tool(env: dict[str, str]) -> None:
    program = "node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js"
    mcpdo = [node(), needed("DARI_NPM_DIR", "DARI_NO_NODE", program)]
    connected = [*mcpdo, "--format", "json", "--connection", "dari"]
    turns = asyncio.Semaphore(AT_ONCE)

    async def fail(name: str) -> Json:
        async with turns:
            return await run([*connected, "tools/call", name, "no_such_argument:=1"], env)

    # It gives a server no variable but the usual ones, and the hub would stay.
    idle = f"DARI_BRIDGE_IDLE_S={env['DARI_BRIDGE_IDLE_S']}"
    await run([*connected, "connect", "--", "/usr/bin/env", idle, str(DARI), "mcp"], env)
    try:
        names = one_of_each_kind((await run([*connected, "tools/list"], env))["tools"])
        check(dict(zip(names, await asyncio.gather(*map(fail, names)), strict=True)))
    finally:
        await run([*mcpdo, "--format", "json", "daemon", "stop"], env)


def one_of_each_kind(tools: list[Json]) -> list[str]:
    """Of each part one tool that declares its result and one that does not: the Inspector's command is a process for
    each call, half a second of a processor. The SDK that it is made of reads an error of every tool above."""
    kinds = {(tool["name"].partition("_")[0], "outputSchema" in tool): tool["name"] for tool in tools}
    return sorted(kinds.values())


def check(answers: Json) -> None:
    assert all(any(name.startswith(part) for name in answers) for part in PARTS), list(answers)
    unread = {name: answer for name, answer in answers.items() if not is_readable(answer)}
    assert not unread


def is_readable(answer: Json) -> bool:
    text = " ".join(block.get("text", "") for block in answer.get("content", []))
    if '"error.v1"' in text:  # every failure of a kebab tool is this object (design 004)
        told = json.loads(text)
        return (
            answer.get("isError") is True and told["code"] == "invalid_input" and "no_such_argument" in told["message"]
        )
    error = answer.get("_meta", {}).get("dari/error", {})
    is_told = "no_such_argument" in text and "hint:" in text and error.get("name") == "invalid_input"
    return answer.get("isError") is True and is_told and "structuredContent" not in answer


async def run(words: list[str], env: dict[str, str]) -> Json:
    """What a client printed, as JSON."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, cwd=ROOT, env=env, stdout=pipe, stderr=pipe)
    try:
        output, errors = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    assert output, f"{words[:3]} printed nothing (exit {process.returncode}):\n{errors.decode()}"
    return dict(json.loads(output))


def node() -> str:
    return needed("DARI_NODE", "DARI_NO_NODE", "")


def venv(name: str) -> str:
    return needed("DARI_CLIENTS_DIR", "DARI_NO_CLIENTS", f"{name}/bin/python")


def needed(variable: str, switch: str, below: str) -> str:
    """A program that `./dev test` installed; where it could not, a loud skip, which fails in CI."""
    if os.environ.get(switch) == "1":
        pytest.skip(f"{switch}=1: this client was not tried")
    path = Path(os.environ[variable], below)
    assert path.exists(), f"{path} is missing; ./dev test installs it"
    return str(path)
