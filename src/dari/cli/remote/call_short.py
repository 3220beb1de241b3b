"""`call`: short for `call-tool`."""

from __future__ import annotations

from dari.cli.remote.call_tool import DESCRIPTION, HELP, add, run, split

__all__ = ["DESCRIPTION", "EXAMPLES", "HELP", "NAME", "add", "run", "split"]

NAME = "call"
EXAMPLES = (
    ("call fs.read_file path=notes.txt head=5", "arguments by name, of the types that the schema has"),
    ("""call 'fs.read_file(path: "my notes.txt", head: 5)'""", "the same as a program writes it"),
    ("call echo text=hi --stdio 'python my_server.py'", "a server that runs as long as this call"),
    ("call https://mcp.example.com/mcp.search query=proxies", "a server behind an address"),
)
