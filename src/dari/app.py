"""The composition root: makes each part once. The only file that knows every part."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dari import paths
from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from dari.settings import ServeSettings
from dari.system.service import SystemService
from dari.system.tools import DariTools
from dari.terminal.paths import CruxPaths
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.gateway.endpoints import GatewayEndpoints
    from dari.bridge.service import Bridge
    from dari.console.console import WebConsole
    from dari.core.approval_service import ApprovalService
    from dari.core.audit.writer import RecordWriter
    from dari.core.tool import Tool
    from dari.daemon.client import DaemonClient
    from dari.knowledge.api import KnowledgeApi
    from dari.process.children import Children
    from dari.proxy.api.service import ProxyService
    from dari.terminal.service import TerminalService

DEFAULT_PORT = 3847
INSTRUCTIONS = (
    "Dari gives you a workbench on this machine. Call dari_doctor when something does not answer as expected: "
    "every check comes with the next step. The crab_* tools drive an HTTP(S) debugging proxy: crab_proxy_start, "
    "crab_env_snippet for the program to watch, then crab_traffic_search. The crux_* tools drive terminal panes that "
    "live on between calls: crux_execute_command runs a command in a shell and has its exit code and output; "
    "crux_send_keys and crux_wait_for_output drive programs that ask. The kebab_* tools search the person's own "
    "documents and answer from them with citations: kebab_search, then kebab_ask. The crewx_tools_* tools work in the "
    "repository that your client has open: search, symbols, check, and writers that show a diff first."
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


def build(settings: ServeSettings, call_log: RecordWriter | None = None, cwd: Path | None = None) -> Server:
    """The server with every toolkit that is built in; its calls are recorded in `call_log`. `cwd` is the folder of the
    one client that it serves."""
    registry = Registry()
    registry.call_log = None if call_log is None else lambda: call_log
    Toolkits(settings).add_to(registry, cwd=cwd)
    server = _make_server(registry, is_strict=settings.protocol == "strict")
    _report_ended_sessions(server)
    return server


def empty_server(settings: ServeSettings) -> Server:
    """What a listener needs whose requests another process answers: our name, and how strict we are."""
    return _make_server(Registry(), is_strict=settings.protocol == "strict")


def build_endpoints(settings: ServeSettings, bridge: Bridge) -> GatewayEndpoints:
    """The hub's servers over HTTP: everything at one address, and each set and each server at its own."""
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.gateway.endpoints import GatewayEndpoints, ServerOptions
    from dari.bridge.gateway.selection import ServerSelection

    options = ServerOptions(
        instructions=INSTRUCTIONS,
        is_strict=settings.protocol == "strict",
        add_built_ins=Toolkits(settings, lambda: bridge.approval_service).add_to,
        approvals=bridge.approvals,
        call_log=lambda: bridge.audit,
    )
    view = bridge.view(ClientEnvironment.of_process())
    return GatewayEndpoints(
        view, options, ServerSelection(profile=settings.profile, server=settings.server, mode=settings.mode)
    )


def build_console(
    settings: ServeSettings, bridge: Bridge, endpoints: GatewayEndpoints, url: Callable[[], str]
) -> WebConsole:
    """The web console over everything that the hub has."""
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.gateway.endpoints import GatewayEndpoint, ServerOptions
    from dari.bridge.gateway.selection import ServerSelection
    from dari.console.backends import ConsoleBackends
    from dari.console.client_activity import ClientActivity
    from dari.console.console import WebConsole
    from dari.console.crab_endpoint import CrabEndpoint
    from dari.console.login import Logins
    from dari.transport.token_service import TokenService

    view = bridge.view(ClientEnvironment.of_process())
    toolkits = Toolkits(settings, lambda: bridge.approval_service, "app")
    children = new_children()
    proxy = cache(lambda starts: proxy_service(proxy_client("app", starts=starts)))
    backends = ConsoleBackends(
        settings=settings,
        bridge=bridge,
        view=view,
        endpoints=endpoints,
        logins=Logins(paths.home() / "console-sessions.json"),
        url=url,
        proxy=proxy,
        terminal=cache(lambda starts: terminal_service(terminal_client(CruxPaths(), "app", starts=starts))),
        knowledge=cache(lambda starts: knowledge_api("app", starts=starts)),
        children=children,
        tokens=TokenService.of_home(lambda: bridge.audit, settings.token_path),
        activity=ClientActivity(lambda: bridge.audit, lambda: (*endpoints.servers, *bridge.client_servers)),
        crab_endpoint=CrabEndpoint(children, proxy, url),
    )

    def make_endpoint() -> GatewayEndpoint:
        def add_built_ins(registry: Registry) -> None:
            toolkits.add_to(registry, {**os.environ, "KEBAB_TOOLS": "all"})

        options = ServerOptions(
            instructions=INSTRUCTIONS,
            add_built_ins=add_built_ins,
            approvals=bridge.approvals,
            call_log=lambda: bridge.audit,
        )
        return GatewayEndpoint(view, ServerSelection(mode="full"), options)

    return WebConsole(backends, make_endpoint)


def servers_for_clients(
    bridge: Bridge,
) -> Callable[[ClientEnvironment, Mapping[str, Any]], AbstractAsyncContextManager[Server]]:
    """The server of each client on the hub's socket, made from the client's own folder, environment and options."""
    toolkits = Toolkits(ServeSettings(), lambda: bridge.approval_service)

    @asynccontextmanager
    async def make_server(client: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        is_strict = options.get("protocol") == "strict"

        def add_built_ins(registry: Registry) -> None:
            toolkits.add_to(registry, client.environ, client.cwd)

        if options.get("no_servers") is True:
            registry = Registry()
            registry.call_log = lambda: bridge.audit
            add_built_ins(registry)
            server = _make_server(registry, is_strict=is_strict)
            server.on_sessions_end(bridge.approvals.end_sessions)
            bridge.client_servers.add(server)
            try:
                yield server
            finally:
                server.close()
                registry.close()
            return
        from dari.bridge.gateway.endpoints import GatewayEndpoint, ServerOptions
        from dari.bridge.gateway.selection import read_selection

        served = ServerOptions(
            instructions=INSTRUCTIONS,
            is_strict=is_strict,
            add_built_ins=add_built_ins,
            approvals=bridge.approvals,
            call_log=lambda: bridge.audit,
        )
        endpoint = GatewayEndpoint(bridge.view(client), read_selection(options), served)
        bridge.client_servers.add(endpoint.server)
        endpoint.start()
        try:
            yield endpoint.server
        finally:
            await endpoint.close()

    return make_server


class Toolkits:
    """Our own tools, made once for each socket of a cruxd."""

    def __init__(
        self,
        settings: ServeSettings,
        approvals: Callable[[], ApprovalService] | None = None,
        principal: Literal["mcp", "app"] = "mcp",
    ) -> None:
        """`approvals` is the queue where it is in this process; `principal` is who calls the daemons."""
        self._settings = settings
        self._knowledge = KnowledgeOffers(approvals, principal)
        self._proxy = cache(lambda: tuple(proxy_tools(proxy_client(principal))))
        self._terminal = cache(lambda *place: terminal_service(terminal_client(CruxPaths(*place), principal)))
        self._running = cache(
            lambda *place: terminal_service(terminal_client(CruxPaths(*place), principal, starts=False))
        )
        self._children = cache(new_children)
        self._terminal_tools = cache(lambda *place: tuple(terminal_tools(self._terminal(*place))))

    def add_to(self, registry: Registry, environ: Mapping[str, str] = os.environ, cwd: Path | None = None) -> None:
        """Offer them to the clients of a registry; `environ` and `cwd` are the client's. Without `cwd` the code tools
        work in the folders that the client names."""
        place = environ.get("CRUX_SOCKET") or None, environ.get("CRUX_CONFIG") or None
        registry.add_toolkit(DariTools(self._system()))
        registry.defer(self._proxy)
        registry.defer(lambda: self._terminal_tools(*place))
        add_terminal_offers(registry, lambda: self._terminal(*place))
        self._follow_panes(registry, *place)
        registry.defer(lambda: self._knowledge.chosen_tools(environ.get("KEBAB_TOOLS", "")))
        self._knowledge.add_templates(registry)
        registry.defer(lambda: code_tools(self._children(), environ, cwd))

    def _system(self) -> SystemService:
        settings = self._settings
        return SystemService(
            token_path=settings.token_path or token_path(),
            socket_path=settings.socket_path or socket_path(),
            http_port=settings.http_port or DEFAULT_PORT,
            further_tokens=further_tokens,
        )

    def _follow_panes(self, registry: Registry, *place: str | None) -> None:
        """The resources of the panes that there are, listed and subscribed to without starting a daemon."""
        from dari.daemon.unix_socket import answers
        from dari.terminal.tools.resources import FollowedResources

        socket = CruxPaths(*place).socket
        followed = FollowedResources(registry, lambda: self._running(*place), lambda: answers(socket))
        registry.on_close.append(followed.close)


def _make_server(registry: Registry, *, is_strict: bool) -> Server:
    info = Info(name="dari", version=VERSION, title="Dari")
    return Server(registry, info, instructions=INSTRUCTIONS, strict=is_strict)


def _report_ended_sessions(server: Server) -> None:
    """The queue is the hub's, and this is another process: have it forget what it approved for sessions that end."""
    from dari.core.approval_service import EndedSessions
    from dari.core.hub_client import hub_approvals

    ended = EndedSessions(hub_approvals(starts=False))
    server.on_session_end.append(lambda session: ended.report(session.key))
    server.on_access_end.append(lambda grant: ended.report(grant.session_key(""), is_prefix=True))


def build_crab(
    client: DaemonClient,
    settings: ServeSettings,
    which: Literal["core", "all"] = "all",
    call_log: RecordWriter | None = None,
) -> Server:
    """The server of design 000: the proxy's tools and nothing else."""
    registry = Registry()
    registry.call_log = None if call_log is None else lambda: call_log
    registry.defer(lambda: proxy_tools(client, which))
    info = Info(name="crab-mcp", version=VERSION, title="Crab proxy")
    instructions = CRAB_INSTRUCTIONS if which == "all" else CRAB_CORE_INSTRUCTIONS
    return Server(registry, info, instructions=instructions, strict=settings.protocol == "strict")


def proxy_client(principal: str = "mcp", *, starts: bool = True) -> DaemonClient:
    """Calls to crabd at its default socket; with `starts`, the first call starts it."""
    from dari.proxy.daemon import CrabPaths, crabd_client

    return crabd_client(CrabPaths(), principal, starts=starts)


def proxy_service(client: DaemonClient) -> ProxyService:
    from dari.proxy.api.service import remote_service

    return remote_service(client)


def proxy_tools(client: DaemonClient, which: Literal["core", "all"] = "all") -> Iterable[Tool]:
    from dari.proxy.tools import ProxyTools

    return ProxyTools(proxy_service(client)).tools(which)


def terminal_client(place: CruxPaths, principal: str = "mcp", *, starts: bool = True) -> DaemonClient:
    """Calls to a cruxd; with `starts`, the first call starts it."""
    from dari.terminal.daemon import cruxd_client

    return cruxd_client(place, principal, starts=starts)


def terminal_service(client: DaemonClient) -> TerminalService:
    from dari.terminal.service import remote_service

    return remote_service(client)


def terminal_tools(terminal: TerminalService) -> Iterable[Tool]:
    from dari.terminal.tools.toolkit import TerminalTools

    return TerminalTools(terminal).tools()


class KnowledgeOffers:
    """`kebab_*` tools and `kebab://` resources over kebabd, which the first call starts."""

    def __init__(self, approvals: Callable[[], ApprovalService] | None, principal: str = "mcp") -> None:
        self._approvals = approvals
        self._api = cache(lambda: knowledge_api(principal))

    def chosen_tools(self, variable: str) -> tuple[Tool, ...]:
        """Those that the client's KEBAB_TOOLS names, else the file: the hub's, as kebabd is the hub's."""
        from dari.knowledge.tools.server import TOOLS_VARIABLE, chosen_tools

        return self._tools(chosen_tools({**os.environ, TOOLS_VARIABLE: variable}))

    @cache  # noqa: B019 (it lives as long as the hub)
    def _tools(self, which: Literal["default", "all"]) -> tuple[Tool, ...]:
        from dari.knowledge.tools.ingest_guard import IngestGuard
        from dari.knowledge.tools.server import hub_guard
        from dari.knowledge.tools.toolkit import make_tools

        api, approvals = self._api(), self._approvals
        guard = hub_guard(api) if approvals is None else lambda: IngestGuard(api, approvals())
        return tuple(make_tools(api, guard, which, "kebab"))

    def add_templates(self, registry: Registry) -> None:
        from dari.knowledge.tools.resources import add_templates

        add_templates(registry, self._api)


def knowledge_api(principal: str = "mcp", *, starts: bool = True) -> KnowledgeApi:
    """The knowledge base of the usual configuration, in kebabd."""
    from dari.daemon.stub import make_stub
    from dari.knowledge.api import KnowledgeApi
    from dari.knowledge.daemon import KebabPaths, kebabd_client

    return make_stub(KnowledgeApi, kebabd_client(KebabPaths(), principal, starts=starts))


def new_children() -> Children:
    """The programs that the code tools run; they end with this process."""
    from dari.process.children import Children

    return Children()


def code_tools(children: Children, environ: Mapping[str, str], cwd: Path | None) -> Iterable[Tool]:
    from dari.codetools.roots import client_roots
    from dari.codetools.session import CodeSession
    from dari.codetools.tools.toolkit import make_tools

    return make_tools(CodeSession(client_roots(cwd), environ, children, lasts=True))


def add_terminal_offers(registry: Registry, terminal: Callable[[], TerminalService]) -> None:
    """Prompts, and a template for each of a pane's two texts; a daemon is started by who asks one for something."""
    from dari.terminal.tools.prompts import add_prompts
    from dari.terminal.tools.resources import PaneTexts

    add_prompts(registry, terminal)
    PaneTexts(terminal).add_templates(registry)
