"""The composition root: makes each part once. The only file that knows every part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dari import paths
from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from dari.settings import ServeSettings
from dari.system.service import SystemService
from dari.system.tools import DariTools
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.bridge.gateway.endpoints import GatewayEndpoints
    from dari.bridge.gateway.late_relay import LateRelay
    from dari.bridge.service import Bridge
    from dari.core.tool import Tool
    from dari.daemon.client import DaemonClient
    from dari.terminal.service import TerminalService

DEFAULT_PORT = 3847
INSTRUCTIONS = (
    "Dari gives you a workbench on this machine. Call dari_doctor when something does not answer as expected: "
    "every check comes with the next step. The crab_* tools drive an HTTP(S) debugging proxy: crab_proxy_start, "
    "crab_env_snippet for the program to watch, then crab_traffic_search. The crux_* tools drive terminal panes that "
    "live on between calls: crux_execute_command runs a command in a shell and has its exit code and output; "
    "crux_send_keys and crux_wait_for_output drive programs that ask."
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


def further_tokens() -> dict[str, Path]:
    """The token files of our other HTTP listeners in their usual places."""
    from dari.proxy.daemon import CrabPaths
    from dari.terminal.paths import CruxPaths

    return {"crab-mcp": CrabPaths().token("mcp"), "cruxd": CruxPaths.of_environment().http_token}


def build(settings: ServeSettings) -> Server:
    """The server with every toolkit that is built in."""
    registry = Registry()
    add_built_ins(registry, settings)
    info = Info(name="dari", version=VERSION, title="Dari")
    return Server(registry, info, instructions=INSTRUCTIONS, strict=settings.protocol == "strict")


def add_built_ins(registry: Registry, settings: ServeSettings) -> None:
    """The tools that are ours."""
    system = SystemService(
        token_path=settings.token_path or token_path(),
        socket_path=settings.socket_path or socket_path(),
        http_port=settings.http_port or DEFAULT_PORT,
        further_tokens=further_tokens,
    )
    registry.add_toolkit(DariTools(system))
    registry.defer(lambda: proxy_tools(proxy_client()))
    terminal = cache(lambda: terminal_service(terminal_client()))
    registry.defer(lambda: terminal_tools(terminal()))
    add_terminal_offers(registry, terminal)
    follow_panes(registry)


def build_fronts(settings: ServeSettings, bridge: Bridge) -> GatewayEndpoints:
    """The hub's servers: everything at one address, and each set and each server at its own."""
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.gateway.endpoints import GatewayEndpoints, ServerOptions
    from dari.bridge.gateway.selection import ServerSelection

    manner = ServerOptions(
        instructions=INSTRUCTIONS,
        is_strict=settings.protocol == "strict",
        add_built_ins=lambda registry: add_built_ins(registry, settings),
        approvals=bridge.approvals,
    )
    view = bridge.view(ClientEnvironment.of_process())
    return GatewayEndpoints(
        view, manner, ServerSelection(profile=settings.profile, server=settings.server, mode=settings.mode)
    )


def build_relayed(settings: ServeSettings) -> tuple[Server, LateRelay]:
    """The server of `dari mcp`: our own tools, and what the bridge's daemon offers from where we stand.

    The daemon is started by whoever needs it, and by nobody when no server is named. The relay has to be started.
    """
    from dari.bridge.gateway.late_relay import LateRelay
    from dari.bridge.gateway.selection import OWN, SelectedServers, ServerSelection, select_servers

    choice = ServerSelection(profile=settings.profile, server=settings.server, mode=settings.mode)
    meant = SelectedServers(("*",), choice.mode or "full")
    texts = _profile_texts()
    # To read them as what they are takes longer than a handshake; a file without the word cannot ask for it.
    if choice.profile or choice.server or (choice.mode is None and any(b"search" in text for text in texts)):
        from dari.bridge.config.service import ConfigService

        meant = select_servers(ConfigService().load(), choice)
    registry = Registry()
    if meant.has(OWN):
        add_built_ins(registry, settings)
    shown = registry
    if meant.mode == "search":
        from dari.bridge.gateway.search_mode import search_registry

        shown = search_registry(registry)
    info = Info(name="dari", version=VERSION, title="Dari")
    server = Server(shown, info, instructions=INSTRUCTIONS, strict=settings.protocol == "strict")
    relay = LateRelay(registry, choice, on_log=server.log_to_sessions)
    if not texts:
        relay.expect_nothing()
    return server, relay


def _profile_texts() -> list[bytes]:
    """The files that may name servers, those that are there."""
    from dari.bridge.config.locations import ClientEnvironment

    texts = []
    for place in ClientEnvironment.of_process().places():
        try:
            texts.append(place.path.read_bytes())
        except OSError:
            continue
    return texts


def build_crab(client: DaemonClient, settings: ServeSettings, which: Literal["core", "all"] = "all") -> Server:
    """The server of design 000: the proxy's tools and nothing else."""
    registry = Registry()
    registry.defer(lambda: proxy_tools(client, which))
    info = Info(name="crab-mcp", version=VERSION, title="Crab proxy")
    instructions = CRAB_INSTRUCTIONS if which == "all" else CRAB_CORE_INSTRUCTIONS
    return Server(registry, info, instructions=instructions, strict=settings.protocol == "strict")


def proxy_client() -> DaemonClient:
    """Calls to crabd in its usual place; whoever calls first starts it."""
    from dari.proxy.daemon import CrabPaths, crabd_client

    return crabd_client(CrabPaths(), "mcp")


def proxy_tools(client: DaemonClient, which: Literal["core", "all"] = "all") -> Iterable[Tool]:
    from dari.proxy.api.service import remote_service
    from dari.proxy.tools import ProxyTools

    return ProxyTools(remote_service(client)).tools(which)


def terminal_client(*, starts: bool = True) -> DaemonClient:
    """Calls to cruxd in its usual place; with `starts`, the first call starts it."""
    from dari.terminal.daemon import cruxd_client
    from dari.terminal.paths import CruxPaths

    return cruxd_client(CruxPaths.of_environment(), "mcp", starts=starts)


def terminal_service(client: DaemonClient) -> TerminalService:
    from dari.terminal.service import remote_service

    return remote_service(client)


def terminal_tools(terminal: TerminalService) -> Iterable[Tool]:
    from dari.terminal.tools.toolkit import TerminalTools

    return TerminalTools(terminal).tools()


def add_terminal_offers(registry: Registry, terminal: Callable[[], TerminalService]) -> None:
    """Prompts, and a template for each of a pane's two texts; a daemon is started by who asks one for something."""
    from dari.terminal.tools.prompts import add_prompts
    from dari.terminal.tools.resources import PaneTexts

    add_prompts(registry, terminal)
    PaneTexts(terminal).add_templates(registry)


def follow_panes(registry: Registry) -> None:
    """The resources of the panes that there are, listed and subscribed to without starting a daemon."""
    from dari.daemon.unix_socket import answers
    from dari.terminal.paths import CruxPaths
    from dari.terminal.tools.resources import FollowedResources

    terminal = cache(lambda: terminal_service(terminal_client(starts=False)))
    FollowedResources(registry, terminal, lambda: answers(CruxPaths.of_environment().socket))
