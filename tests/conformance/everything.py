"""A server with every tool, resource and prompt that the conformance suite looks for.

It is made of the same parts as any command of ours and needs no token, so that the suite can talk to it:
`python -m tests.conformance.everything --http-port 0` prints its URL and serves until it is stopped. With
`--transport stdio` it is a server for the gateway to stand in front of.
"""

from __future__ import annotations

import argparse

from dari import log
from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from dari.runtime import run_to_exit
from dari.settings import ServeSettings
from dari.transport.supervisor import TransportSupervisor
from tests.conformance.fixtures.changes import ChangeTools
from tests.conformance.fixtures.prompts import add_prompts
from tests.conformance.fixtures.questions import QuestionTools, RoundTools
from tests.conformance.fixtures.resources import add_resources
from tests.conformance.fixtures.tools import ContentTools, json_schema_tool


def everything_server() -> Server:
    registry = Registry()
    for toolkit in (ContentTools(), QuestionTools(), RoundTools(), ChangeTools(registry)):
        registry.add_toolkit(toolkit)
    registry.add_tools(json_schema_tool())
    add_resources(registry)
    add_prompts(registry)
    info = Info(name="dari-everything", version="1", title="Dari's conformance server")
    return Server(registry, info, instructions="Fixtures for the conformance suite.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--transport", choices=("http", "stdio"), default="http")
    parser.add_argument("--http-port", type=int, default=0, help="default: any free one")
    parser.add_argument("--log", choices=log.LEVELS, default="warning")
    given = parser.parse_args()
    log.configure_logging(given.log)

    async def serve() -> int:
        settings = ServeSettings(transport=given.transport, http_port=given.http_port, token_path=None)
        return await TransportSupervisor(everything_server(), settings, announce=announce).run()

    return run_to_exit(serve)


def announce(url: str, token_path: str) -> None:
    # The suite's DNS rebinding scenario wants the name, not the address.
    print(url.replace("127.0.0.1", "localhost"), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
