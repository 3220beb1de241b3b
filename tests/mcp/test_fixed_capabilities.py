"""A server whose design fixes what it announces."""

from __future__ import annotations

from dari.core.registry import Registry
from dari.mcp.handlers.lifecycle import capabilities
from dari.mcp.server import Info, Server


def test_what_a_design_fixes_is_all_that_is_announced() -> None:
    fixed = {"tools": {"listChanged": False}}
    server = Server(Registry(), Info(name="x", version="1"), capabilities=fixed)
    assert capabilities(server, stateless=False) == capabilities(server, stateless=True) == fixed
