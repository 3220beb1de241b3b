"""`dari proxy mcp start | stop | status`: the MCP server of the proxy over HTTP, in the background."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dari.cli.ports import add_allow_uid, warn_port_moved
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.mcp_process import McpProcess, Record
from dari.cli.proxy.options import Commands, group, leaf
from dari.cli.proxy.output import Output, pairs
from dari.settings import ServeSettings

_MCP = """
dari proxy mcp start                 http://127.0.0.1:3847/mcp, or the next free port up to 3857
dari proxy mcp start --port 4000     this port or none
dari proxy mcp                       is it on? endpoint and token file
dari proxy mcp stop
claude mcp add --transport http crab "$(dari proxy mcp --json | jq -r .url)" \\
    --header "Authorization: Bearer $(cat "$(dari proxy mcp --json | jq -r .token_path)")"
"""


def add_mcp(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "mcp", help, _MCP)
    parser = leaf(words, "start", _start, "serve agents over HTTP until it is stopped", _MCP)
    parser.add_argument("--port", type=int, help="default: 3847, or the next free one up to 3857")
    add_allow_uid(parser)
    leaf(words, "stop", _stop, "end the server that start started", _MCP, starts=False)
    leaf(words, "status", _status, "whether it serves, and where", _MCP, starts=False)


async def _start(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    await crab.start()
    server = McpProcess(crab.place)
    record, is_new = await server.start(_command(arguments, crab))
    _tell(out, record, "The MCP server listens" if is_new else "The MCP server runs already")
    settings = ServeSettings(http_port=arguments.port)
    warn_port_moved("crab", settings, record.url, record.token_path, renew="dari proxy stop --daemon, then start again")
    if not is_new and arguments.port is not None and f":{arguments.port}/" not in record.url:
        out.warn(
            [f"it keeps its port; to move it: dari proxy mcp stop && dari proxy mcp start --port {arguments.port}"]
        )
    return 0


async def _stop(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    ended = await McpProcess(crab.place).stop()
    said = "The MCP server is stopped" if ended else "Nothing to stop: the MCP server does not run"
    out.show({"status": "stopped", "was_running": ended is not None}, [said])
    return 0


async def _status(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    record = McpProcess(crab.place).running()
    if record is None:
        out.show({"status": "stopped"}, ["stopped (dari proxy mcp start)"])
    else:
        _tell(out, record, "The MCP server runs")
    return 0


def _tell(out: Output, record: Record, said: str) -> None:
    payload: dict[str, Any] = {"status": "running", "url": record.url, "token_path": record.token_path}
    lines = pairs({"  endpoint": record.url, "  token file": record.token_path, "  pid": record.pid})
    out.show({**payload, "pid": record.pid, "log_path": record.log_path}, [said, *lines])


def _command(arguments: argparse.Namespace, crab: Crab) -> list[str]:
    place = crab.place
    command = [sys.executable, "-m", "dari.cli.crab_mcp", "--transport", "http"]
    given = (("--http-port", arguments.port), ("--run-dir", place.run_dir), ("--socket", place.socket))
    for name, value in given:
        if value is not None:
            command += [name, str(value if name == "--http-port" else value.absolute())]
    for uid in arguments.allow_uid:
        command += ["--allow-uid", uid]
    return command
