"""The composition root: makes each part once. The only file that knows every part."""

from __future__ import annotations

from pathlib import Path

from dari import paths
from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from dari.settings import ServeSettings
from dari.system.service import SystemService
from dari.system.tools import SystemTools
from dari.version import VERSION

DEFAULT_PORT = 3847
INSTRUCTIONS = (
    "Dari gives you a workbench on this machine. Call dari_doctor when something does not answer as expected: "
    "every check comes with the next step."
)


def token_path() -> Path:
    """The bearer token of the HTTP endpoint."""
    return paths.home() / "mcp.token"


def socket_path() -> Path:
    """The hub's Unix socket."""
    return paths.runtime_path("hub") / "mcp.sock"


def build(settings: ServeSettings) -> Server:
    """The server with every toolkit that is built in."""
    registry = Registry()
    system = SystemService(
        token_path=settings.token_path or token_path(),
        socket_path=settings.socket_path or socket_path(),
        http_port=settings.http_port or DEFAULT_PORT,
    )
    registry.add_toolkit(SystemTools(system))
    info = Info(name="dari", version=VERSION, title="Dari")
    return Server(registry, info, instructions=INSTRUCTIONS, strict=settings.protocol == "strict")
