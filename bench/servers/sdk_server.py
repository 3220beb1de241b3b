"""Peer: the official SDK's low-level server, in its fastest documented set-up.

`json_response` spares it SSE, and `get_tool_input_schema` spares it a `tools/list` before each
stateless call. It checks no token.
"""

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from bench.servers.arguments import Arguments, parse
from bench.servers.toolset import ECHO_DESCRIPTION, ECHO_SCHEMA, HINTS, Schema, other_tools, title_of

Context = ServerRequestContext[dict[str, object]]


def tool_of(name: str, description: str, schema: Schema) -> types.Tool:
    title = title_of(name)
    hints = types.ToolAnnotations.model_validate({"title": title, **HINTS})
    return types.Tool(name=name, title=title, description=description, input_schema=schema, annotations=hints)


def build(count: int) -> Server[dict[str, object]]:
    schemas: dict[str, Schema] = {"echo": ECHO_SCHEMA}
    tools = [tool_of("echo", ECHO_DESCRIPTION, ECHO_SCHEMA)]
    for spec in other_tools(count):
        schemas[spec.name] = spec.schema()
        tools.append(tool_of(spec.name, spec.description, schemas[spec.name]))

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        text = str((params.arguments or {})["text"])
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server(
        "sdk",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )


async def serve_stdio(server: Server[dict[str, object]]) -> None:
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


def main(given: Arguments) -> None:
    server = build(given.tools)
    if given.transport == "stdio":
        anyio.run(serve_stdio, server)
        return
    import uvicorn

    app = server.streamable_http_app(json_response=True)
    uvicorn.run(app, port=given.http_port, loop="uvloop", http="httptools", log_level="warning", access_log=False)


if __name__ == "__main__":
    main(parse())
