"""All tools of the proxy, by family, and which of them are the 32 of design 000.

system        ping, version, daemon_doctor, rpc
control       proxy_*, capture_*, env_snippet
settings      engine_*
authority     ca_*
rules         rules_dump, rules_list_*, rules_clear, rules_add_*, rules_remove_*: the original's four kinds
rules_by_id   rules_list, _add, _update, _move, _remove, _test, _mock: every kind
traffic       logs_*, traffic_tail, _get, _search, _wait, _summary, _show, _body, _diff
replay        traffic_replay, _compose, _as_curl, _as_python
har           traffic_export_har, traffic_import_har
breakpoints   breakpoints_*
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dari.core.context import Context
from dari.core.model_schema import simplify_tool
from dari.core.tool import Tool, tools_of
from dari.daemon.caller_scopes import limit_scopes
from dari.proxy.api.service import ProxyService
from dari.proxy.tools.breakpoints import BreakpointTools
from dari.proxy.tools.control import ControlTools, DaemonTools
from dari.proxy.tools.rules import RuleByIdTools, RuleTools
from dari.proxy.tools.settings import AuthorityTools, SettingsTools
from dari.proxy.tools.traffic import HarTools, ReplayTools, TrafficTools

ToolSet = Literal["core", "all"]

FAMILIES = (
    DaemonTools,
    ControlTools,
    SettingsTools,
    TrafficTools,
    ReplayTools,
    HarTools,
    RuleTools,
    RuleByIdTools,
    AuthorityTools,
    BreakpointTools,
)
CORE = (
    "crab_ping",
    "crab_version",
    "crab_proxy_status",
    "crab_proxy_start",
    "crab_proxy_stop",
    "crab_daemon_doctor",
    "crab_engine_config_get",
    "crab_engine_set_listen_addr",
    "crab_engine_set_inspect_enabled",
    "crab_engine_set_throttle",
    "crab_engine_set_client_allowlist",
    "crab_engine_set_transparent",
    "crab_engine_load_ca",
    "crab_logs_tail",
    "crab_traffic_tail",
    "crab_traffic_get",
    "crab_rules_dump",
    "crab_rules_list_allow",
    "crab_rules_list_map_local",
    "crab_rules_list_map_remote",
    "crab_rules_list_status_rewrite",
    "crab_rules_clear",
    "crab_rules_add_allow",
    "crab_rules_remove_allow",
    "crab_rules_add_map_local_text",
    "crab_rules_add_map_local_file",
    "crab_rules_remove_map_local",
    "crab_rules_add_map_remote",
    "crab_rules_remove_map_remote",
    "crab_rules_add_status_rewrite",
    "crab_rules_remove_status_rewrite",
    "crab_rpc",
)
"""The tools of design 000, in the order in which the original lists them."""


class ProxyTools:
    """Tools named `crab_<method>`; each is thin: take arguments, ask the service, return a value."""

    def __init__(self, proxy: ProxyService) -> None:
        self._proxy = proxy

    def tools(self, which: ToolSet = "all") -> list[Tool]:
        """The 32 of the design first, then those that came later, family by family."""
        # The service behind it has hidden the secrets (`proxy.api.service`); a page of traffic is not searched twice.
        made = {
            tool.name: _for_caller(simplify_tool(tool))
            for family in FAMILIES
            for tool in tools_of(family(self._proxy), output="as_is")
        }
        core = [made.pop(name) for name in CORE]
        return core if which == "core" else [*core, *made.values()]


def _for_caller(tool: Tool) -> Tool:
    """The tool, with the caller's scopes in force below it; a daemon has them from its own session."""

    async def served(value: Any, scopes: frozenset[str]) -> Any:
        with limit_scopes(scopes):
            return await value

    def run(arguments: bytes | msgspec.Raw, context: Context, /) -> Any:
        value = tool.run(arguments, context)
        return served(value, context.grant.scopes) if tool.is_async else value

    return msgspec.structs.replace(tool, run=run)
