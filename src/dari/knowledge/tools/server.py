"""The MCP server of `kebab mcp` (design 004): tools and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from dari.core.registry import Registry
from dari.errors import DariError
from dari.knowledge.api import KnowledgeApi
from dari.knowledge.tools.toolkit import make_tools
from dari.mcp.server import Info, Server
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.core.audit.writer import RecordWriter
    from dari.knowledge.tools.ingest_guard import IngestGuard

CAPABILITIES = {"tools": {"listChanged": False}}
TOOLS_VARIABLE = "KEBAB_TOOLS"


def build_server(
    api: KnowledgeApi,
    call_log: RecordWriter | None = None,
    environ: Mapping[str, str] = os.environ,
    config: str | None = None,
) -> Server:
    """`initialize` declares tools and nothing else: no resources, prompts, logging or instructions."""
    registry = Registry()
    registry.call_log = None if call_log is None else lambda: call_log
    # The file is read when tools are first asked for: its reader takes longer to import than a handshake.
    registry.defer(lambda: make_tools(api, hub_guard(api), chosen_tools(environ, config)))
    return Server(registry, Info(name="kebab", version=VERSION), capabilities=CAPABILITIES)


def chosen_tools(environ: Mapping[str, str], config: str | None = None) -> Literal["default", "all"]:
    """What KEBAB_TOOLS says, else `[mcp] tools`. A configuration that cannot be read must not keep the server from
    saying so in its first result."""
    if named := environ.get(TOOLS_VARIABLE, ""):
        return "all" if named == "all" else "default"
    from dari.knowledge.config import load_settings

    try:
        return load_settings(config, environ).config.mcp.tools
    except (DariError, OSError):
        return "default"


def hub_guard(api: KnowledgeApi) -> Callable[[], IngestGuard]:
    """The guard that asks the queue of the hub, which is started when an approval is first needed."""

    def make() -> IngestGuard:
        from dari.core.hub_client import hub_approvals
        from dari.knowledge.tools.ingest_guard import IngestGuard

        return IngestGuard(api, hub_approvals())

    return make
