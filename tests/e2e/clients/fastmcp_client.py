"""List a stdio server's tools and make one failing call of each, with FastMCP's client.

usage: python fastmcp_client.py COMMAND [ARGS...]; prints one JSON object: tool -> what the client returned.
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main() -> None:
    command, *words = sys.argv[1:]
    answers = {}
    async with Client(StdioTransport(command=command, args=words, env=dict(os.environ))) as client:
        for name in [tool.name for tool in await client.list_tools()]:
            try:
                result = await client.call_tool_mcp(name, {"no_such_argument": 1})
                answers[name] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            except Exception as error:
                answers[name] = {"thrown": repr(error)}
    print(json.dumps(answers))


asyncio.run(main())
