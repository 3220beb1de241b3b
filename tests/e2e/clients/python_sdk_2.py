"""List a stdio server's tools and make one failing call of each, with the Python SDK 2.x.

usage: python python_sdk_2.py COMMAND [ARGS...]; prints one JSON object: tool -> what the client returned.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters, stdio_client


async def main() -> None:
    command, *words = sys.argv[1:]
    server = StdioServerParameters(command=command, args=words, env=dict(os.environ))
    answers = {}
    async with Client(stdio_client(server)) as client:
        page = await client.list_tools()
        names = [tool.name for tool in page.tools]
        while page.next_cursor:
            page = await client.list_tools(cursor=page.next_cursor)
            names += [tool.name for tool in page.tools]
        for name in names:
            try:
                result = await client.call_tool(name, {"no_such_argument": 1})
                answers[name] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            except Exception as error:
                answers[name] = {"thrown": repr(error)}
    print(json.dumps(answers))


asyncio.run(main())
