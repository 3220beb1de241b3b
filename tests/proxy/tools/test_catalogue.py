"""What `tools/list` says: the 32 tools of the reference to the letter, and the newer ones in the same style."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dari.core.tool import Tool
from dari.proxy.api.service import remote_service
from dari.proxy.daemon import CrabPaths, crabd_client
from dari.proxy.tools import ProxyTools
from tests.proxy.tools.reference import READ_ONLY, TOOLS, Argument

NEW = {
    "crab_proxy_info",
    "crab_capture_start",
    "crab_capture_stop",
    "crab_capture_status",
    "crab_env_snippet",
    "crab_logs_clear",
    "crab_traffic_search",
    "crab_traffic_wait",
    "crab_traffic_summary",
    "crab_traffic_show",
    "crab_traffic_body",
    "crab_traffic_diff",
    "crab_traffic_replay",
    "crab_traffic_compose",
    "crab_traffic_as_curl",
    "crab_traffic_as_python",
    "crab_traffic_export_har",
    "crab_traffic_import_har",
    "crab_rules_list",
    "crab_rules_add",
    "crab_rules_update",
    "crab_rules_move",
    "crab_rules_remove",
    "crab_rules_test",
    "crab_rules_mock",
    "crab_ca_generate",
    "crab_ca_status",
    "crab_engine_set_throttle_preset",
    "crab_engine_set_upstream",
    "crab_engine_set_policy",
    "crab_breakpoints_list",
    "crab_breakpoints_wait",
    "crab_breakpoints_resume",
}


def tools(which: Any = "all") -> dict[str, Tool]:
    """No daemon is needed to say what there is."""
    service = remote_service(crabd_client(CrabPaths(Path("nowhere")), "mcp", starts=False))
    return {tool.name: tool for tool in ProxyTools(service).tools(which)}


ALL = tools()


def test_the_core_is_the_32_tools_in_the_order_of_the_original() -> None:
    assert list(tools("core")) == list(TOOLS)
    assert len(TOOLS) == 32


def test_all_tools_are_the_core_and_the_newer_ones() -> None:
    assert list(ALL)[:32] == list(TOOLS)
    assert set(list(ALL)[32:]) == NEW


def shown(argument: Argument) -> dict[str, Any]:
    """The part of an argument's schema that the reference fixes."""
    expected: dict[str, Any] = {"type": argument.type}
    if argument.type == "array":
        expected["items"] = {"type": "string"}
    if argument.choices:
        expected["enum"] = list(argument.choices)
    for key, value in (("minimum", argument.least), ("maximum", argument.most), ("default", argument.default)):
        if value is not None:
            expected[key] = value
    return expected


@pytest.mark.parametrize("name", TOOLS)
def test_the_schema_of_a_core_tool_is_that_of_the_reference(name: str) -> None:
    schema, row = ALL[name].input_schema, TOOLS[name]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == [argument.name for argument in row.arguments]
    assert schema.get("required", []) == [argument.name for argument in row.arguments if argument.required]
    for argument in row.arguments:
        found = {key: value for key, value in schema["properties"][argument.name].items() if key != "description"}
        assert found == shown(argument), argument.name


@pytest.mark.parametrize("name", TOOLS)
def test_a_core_tool_has_the_scope_of_its_method(name: str) -> None:
    assert ALL[name].scope == TOOLS[name].scope
    assert ALL[name].annotations["readOnlyHint"] is (name in READ_ONLY)


@pytest.mark.parametrize("name", [name for name in TOOLS if name != "crab_rpc"])
def test_the_output_schema_names_the_members_of_the_reference(name: str) -> None:
    output = ALL[name].output_schema
    assert output is not None
    assert set(TOOLS[name].result) <= set(output["properties"])


@pytest.mark.parametrize("name", ALL)
def test_a_tool_is_described_for_a_model(name: str) -> None:
    tool = ALL[name]
    assert 20 < len(tool.description) < 125
    assert tool.description[0].isupper()
    assert tool.input_schema["additionalProperties"] is False
    assert tool.annotations["readOnlyHint"] is (tool.scope == "read" and name != "crab_rpc")
    assert not (tool.annotations["readOnlyHint"] and tool.annotations["destructiveHint"])


@pytest.mark.parametrize(
    "name", ["crab_rules_clear", "crab_rules_remove", "crab_logs_clear", "crab_proxy_stop", "crab_traffic_replay"]
)
def test_what_removes_or_sends_something_is_marked_destructive(name: str) -> None:
    assert ALL[name].annotations["destructiveHint"] is True


@pytest.mark.parametrize("name", ["crab_traffic_replay", "crab_traffic_compose", "crab_rpc"])
def test_what_reaches_the_network_is_marked_open_world(name: str) -> None:
    assert ALL[name].annotations["openWorldHint"] is True


def test_the_lists_stay_small_for_a_model() -> None:
    """What a client hands to its model: name, description and arguments; four bytes are about a token."""

    def tokens(which: Any) -> int:
        parts = [(tool.name, tool.description, tool.input_schema) for tool in tools(which).values()]
        return len(json.dumps(parts, separators=(",", ":"))) // 4

    assert tokens("core") < 3_000
    assert tokens("all") < 7_500


@pytest.mark.parametrize("name", ALL)
def test_an_argument_is_never_shown_as_null_nor_titled(name: str) -> None:
    text = json.dumps(ALL[name].input_schema)
    assert '"null"' not in text
    assert '"title"' not in text
