"""Peer: FastMCP, as its documentation shows it, with JSON replies instead of SSE. It checks no token."""

from fastmcp import FastMCP  # type: ignore[import-not-found, unused-ignore]

from bench.servers.arguments import Arguments, parse

mcp = FastMCP("fastmcp")


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
def echo(text: str) -> str:
    """Return the text that was given."""
    return text


def main(given: Arguments) -> None:
    if given.transport == "stdio":
        mcp.run("stdio", show_banner=False)
        return
    import uvicorn

    app = mcp.http_app(json_response=True)
    uvicorn.run(app, port=given.http_port, loop="uvloop", http="httptools", log_level="warning", access_log=False)


if __name__ == "__main__":
    main(parse())
