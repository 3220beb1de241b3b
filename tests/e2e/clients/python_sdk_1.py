"""List a stdio server's tools and make one failing call of each, with the Python SDK 1.x.

usage: python python_sdk_1.py COMMAND [ARGS...]; prints one JSON object: tool -> what the client returned.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client


async def main() -> None:
    command, *words = sys.argv[1:]
    server = StdioServerParameters(command=command, args=words, env=dict(os.environ))
    answers = {}
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        page = await session.list_tools()
        names = [tool.name for tool in page.tools]
        while page.nextCursor:
            page = await session.list_tools(page.nextCursor)
            names += [tool.name for tool in page.tools]
        for name in names:
            try:
                result = await session.call_tool(name, {"no_such_argument": 1})
                answers[name] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            except Exception as error:
                answers[name] = {"thrown": repr(error)}
    print(json.dumps(answers))


asyncio.run(main())
