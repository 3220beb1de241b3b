"""The composition root: makes each part once. The only file that knows every part."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dari import paths
from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from dari.settings import ServeSettings
from dari.system.service import SystemService
from dari.system.tools import SystemTools
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.core.tool import Tool
    from dari.ipc.client import DaemonClient

DEFAULT_PORT = 3847
INSTRUCTIONS = (
    "Dari gives you a workbench on this machine. Call dari_doctor when something does not answer as expected: "
    "every check comes with the next step. The crab_* tools drive an HTTP(S) debugging proxy: crab_proxy_start, "
    "crab_env_snippet for the program to watch, then crab_traffic_search."
)
CRAB_INSTRUCTIONS = (
    "An HTTP(S) debugging proxy. crab_proxy_start starts it; crab_env_snippet has the variables that make a program "
    "use it. To read HTTPS: crab_ca_generate once, then crab_rules_add_allow with the host. crab_traffic_tail and "
    "crab_traffic_search show requests newest first, crab_traffic_wait waits for one, crab_traffic_body has a whole "
    "body; secrets are hidden. Rules change answers at once (crab_rules_add); crab_rules_test says what they would do "
    "with a URL and why not. Errors carry a hint: the next step."
)
CRAB_CORE_INSTRUCTIONS = (
    "An HTTP(S) debugging proxy. crab_proxy_start starts it (crab_engine_config_get has its address); point a "
    "program's HTTP_PROXY and HTTPS_PROXY at it. To read HTTPS: crab_engine_load_ca, then crab_rules_add_allow with "
    "the host. crab_traffic_tail shows requests, newest first, crab_traffic_get one of them; secrets are hidden. Rules "
    "change answers at once. Errors carry a hint: the next step."
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
    registry.defer(lambda: proxy_tools(proxy_client()))
    info = Info(name="dari", version=VERSION, title="Dari")
    return Server(registry, info, instructions=INSTRUCTIONS, strict=settings.protocol == "strict")


def build_crab(client: DaemonClient, settings: ServeSettings, which: Literal["core", "all"] = "all") -> Server:
    """The server of design 000: the proxy's tools and nothing else."""
    registry = Registry()
    registry.defer(lambda: proxy_tools(client, which))
    info = Info(name="crab-mcp", version=VERSION, title="Crab proxy")
    instructions = CRAB_INSTRUCTIONS if which == "all" else CRAB_CORE_INSTRUCTIONS
    return Server(registry, info, instructions=instructions, strict=settings.protocol == "strict")


def proxy_client() -> DaemonClient:
    """Calls to crabd in its usual place; whoever calls first starts it."""
    from dari.proxy.daemon import Place, client

    return client(Place(), "mcp")


def proxy_tools(client: DaemonClient, which: Literal["core", "all"] = "all") -> Iterable[Tool]:
    from dari.proxy.service import remote_service
    from dari.proxy.tools import ProxyTools

    return ProxyTools(remote_service(client)).tools(which)
