"""Talk to an MCP server. `dari.transport.connect` makes a client from a command, a URL or a socket."""

from dari.mcp.client.client import Client
from dari.mcp.client.errors import RemoteError

__all__ = ["Client", "RemoteError"]
