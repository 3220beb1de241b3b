"""Issue "What it must show" 1: every tool, with good input and with bad, answers the same through every transport."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from tests.support.terminal_clients import McpConnection, Terminal

TRANSPORTS = ("socket", "bridge", "http", "http on unix", "hub")
CHANGING = {
    *("pid", "tty", "duration_ms", "elapsed_ms", "mark", "size_bytes", "saved_unix", "taken_unix", "copied_unix"),
    *("capture_id", "context_id", "total"),
}
"""Other each time that they are asked for."""
NUMBERED = {"id", "pane_id", "command_id", "window_id", "tab_id", "focused", "from_pane", "panes", "opened", "resource"}
"""Counted on from call to call."""

# Tool: calls that work, on the pane `connection`, with the command `echo one; false` last; PANE, COMMAND … are of it.
GOOD: dict[str, list[dict[str, Any]]] = {
    "crux_create_pane": [{"direction": "vertical", "cwd": "/", "name": "made", "pane_id": "PANE"}],
    "crux_close_pane": [{"pane_id": "NEW"}],
    "crux_focus_pane": [{"pane_id": "PANE"}],
    "crux_list_panes": [{}],
    "crux_resize_pane": [{"pane_id": "PANE", "cols": 81, "rows": 21}],
    "crux_execute_command": [
        {"pane_id": "PANE", "command": "echo one; echo 한글 >&2; (exit 7)"},
        {"command": "seq 1 500", "max_tokens": 50},
        {"command": "sleep 600", "timeout_ms": 1},
    ],
    "crux_send_keys": [{"keys": "C-u"}],
    "crux_send_text": [{"text": "echo typed"}],
    "crux_get_output": [{"lines": 3}],
    "crux_wait_for_output": [
        {"pattern": "^(o)ne$", "mark": 0},
        {"pattern": "never printed", "timeout_ms": 1, "regex": False},
    ],
    "crux_get_current_directory": [{}],
    "crux_get_running_process": [{"pane_id": "PANE"}],
    "crux_get_pane_state": [{}],
    "crux_get_selection": [{}],
    "crux_get_scrollback": [{"offset": 0, "limit": 2}],
    "crux_screenshot_pane": [{}, {"structured": False}],
    "crux_get_raw_text": [{}],
    "crux_get_formatted_output": [{"lines": 4}],
    "crux_save_session": [{"name": "connections"}],
    "crux_restore_session": [{"session_id": "kept"}],
    "crux_wait_command": [{"command_id": "COMMAND"}],
    "crux_interrupt_command": [{"command_id": "COMMAND"}],
    "crux_get_command_output": [{"command_id": "COMMAND"}],
    "crux_set_selection": [{"start_row": 0, "start_col": 2, "end_row": 0, "end_col": 6}],
    "crux_list_sessions": [{}],
    "crux_parse_output_structured": [{}, {"command_id": "COMMAND", "hint": "table"}],
    "crux_detect_intent": [{}],
    "crux_capture_pane": [{}],
    "crux_list_captures": [{}],
    "crux_visual_diff": [{"before": "CAPTURE", "after": "CAPTURE"}],
    "crux_type_with_ime": [{"text": "gksrmf", "preedit": True}],
    "crux_clipboard_context": [{"limit": 1}],
    "crux_clipboard_copy": [{"text": "copied"}],
    "crux_paste_smart": [{"text": "https://example.org/?a=1&b=2"}],
    "crux_load_workspace": [{"name": "agent-team-3", "run": False}],
    "crux_list_workspaces": [{}],
    "crux_coordinate_panes": [{"steps": [{"pane": "PANE", "command": "echo step"}]}],
    "crux_stream_output": [{"command": "printf 'a\\nb\\n'"}],
    "crux_inject_context": [{"env": {"A": "1"}, "expires_after_commands": 9}],
    "crux_remove_context": [{"context_id": "CONTEXT"}],
    "crux_list_contexts": [{"pane_id": "PANE"}],
    "crux_create_snapshot": [{"name": "connections"}],
    "crux_restore_snapshot": [{"snapshot_id": "kept"}],
    "crux_list_snapshots": [{}],
}
# Calls that are refused: by the schema, by the tool, by the policy.
BAD: dict[str, list[dict[str, Any]]] = {
    "crux_create_pane": [{"direction": "left"}, {"cwd": "/no/such"}, {"command": "sudo id"}],
    "crux_focus_pane": [{}],
    "crux_list_panes": [{"all": True}],
    "crux_resize_pane": [{"cols": 0, "rows": 10}, {"cols": 10}, {"cols": "10", "rows": 10}],
    "crux_execute_command": [
        {},
        {"command": 5},
        {"command": "true", "timeout_ms": -1},
        {"command": "true", "max_tokens": 0},
        {"command": "rm -rf /"},
        {"command": "sudo id"},
        {"command": "echo 'open"},
    ],
    "crux_send_keys": [{"keys": ""}],
    "crux_send_text": [{"text": "rm x\n"}, {"text": "x" * 1_000_001}],
    "crux_get_output": [{"lines": -3}, {"lines": 0}],
    "crux_wait_for_output": [{"pattern": "("}, {"pattern": ""}, {"pattern": "x", "timeout_ms": -1}],
    "crux_get_scrollback": [{"offset": -1}, {"limit": 0}],
    "crux_screenshot_pane": [{"history_rows": -1}],
    "crux_save_session": [{"name": "../x"}],
    "crux_restore_session": [{"session_id": "no such"}, {"session_id": "none"}],
    "crux_wait_command": [{"command_id": "foo"}],
    "crux_interrupt_command": [{"command_id": "1:cmd-99999"}],
    "crux_get_command_output": [{"command_id": "COMMAND", "offset": -1}],
    "crux_set_selection": [{"start_row": 0}],
    "crux_parse_output_structured": [{"offset": -4}, {"max_tokens": 0}],
    "crux_detect_intent": [{"command_id": "COMMAND", "limit": 3}],
    "crux_capture_pane": [{"history_rows": -1}],
    "crux_visual_diff": [{"before": "none"}, {"command": "true", "before": "CAPTURE"}],
    "crux_type_with_ime": [{"text": ""}, {"text": "a", "language": "klingon"}],
    "crux_clipboard_context": [{"limit": 0}],
    "crux_clipboard_copy": [{"text": ""}],
    "crux_paste_smart": [{"clip_id": "none"}, {"text": "a", "form": "x"}],
    "crux_load_workspace": [{"name": "none"}, {"name": "full-stack", "cwd": "/no/such"}],
    "crux_coordinate_panes": [{"steps": []}, {"steps": [{"pane": "a"}]}, {"steps": [{"pane": "a", "wait": "x"}]}],
    "crux_stream_output": [{"until": "("}, {"timeout_ms": 0}],
    "crux_inject_context": [{}, {"env": {"A-B": "1"}}],
    "crux_remove_context": [{"context_id": "none"}],
    "crux_create_snapshot": [{"name": "a/b"}],
    "crux_restore_snapshot": [{"snapshot_id": "none"}],
}


@pytest.fixture(scope="module")
def connections(crux: Terminal) -> Iterator[dict[str, McpConnection]]:
    """A session through each; all on the panes of one daemon."""
    made = {name: crux.connection(name) for name in TRANSPORTS}
    try:
        for connection in made.values():
            connection.start()
        yield made
    finally:
        for connection in made.values():
            connection.close()


@pytest.fixture(scope="module")
def client(line: Any) -> Iterator[Any]:
    """A client with a pane `connection` for the whole module."""
    pane = line.call("crux_create_pane", name="connection", cwd="/usr")
    yield line
    line.call("crux_close_pane", pane_id=pane["id"])
    line.call("crux_focus_pane", pane_id=line.main)


@pytest.fixture(scope="module")
def schemas(connections: dict[str, McpConnection]) -> dict[str, Any]:
    listed = connections["socket"].ask("tools/list")["result"]["tools"]
    return {tool["name"]: tool.get("outputSchema") for tool in listed}


def test_every_transport_lists_the_same_tools(connections: dict[str, McpConnection]) -> None:
    lists = {}
    for name, connection in connections.items():
        tools = connection.ask("tools/list")["result"]["tools"]
        lists[name] = [tool for tool in tools if tool["name"].startswith("crux_")]
    assert sorted(tool["name"] for tool in lists["socket"]) == sorted(GOOD)
    for name in TRANSPORTS[1:]:
        assert lists[name] == lists["socket"], name


@pytest.mark.parametrize("tool", GOOD)
def test_every_transport_gives_the_same_results(
    tool: str, client: Any, connections: dict[str, McpConnection], schemas: dict[str, Any]
) -> None:
    schema = schemas[tool]
    check = jsonschema_rs.validator_for(schema) if schema else None
    if "restore" in tool or "list" in tool:
        client.call("crux_save_session", name="kept")
        client.call("crux_create_snapshot", name="kept")
    for given in GOOD[tool]:
        answers = {}
        for name, connection in connections.items():
            result = connection.result(tool, **_filled(client, given))
            assert not result.get("isError"), (name, result)
            if check is not None:
                check.validate(result["structuredContent"])
            answers[name] = _alike(result["structuredContent"])
            assert [part["type"] for part in result["content"]][:1] == ["text" if schema else "image"]
            _tidy(client)
        for name in TRANSPORTS[1:]:
            assert answers[name] == answers["socket"], name


@pytest.mark.parametrize("tool", BAD)
def test_every_transport_gives_the_same_errors(tool: str, client: Any, connections: dict[str, McpConnection]) -> None:
    filled = _filled(client, {"command_id": "COMMAND", "before": "CAPTURE"})
    for given in BAD[tool]:
        given = {
            name: filled.get(name, value) if value in ("COMMAND", "CAPTURE") else value for name, value in given.items()
        }
        errors = {name: _error(connection.result(tool, **given)) for name, connection in connections.items()}
        assert errors["socket"]["hint"] and errors["socket"]["message"], given
        for name in TRANSPORTS[1:]:
            assert _without_ids(errors[name]) == _without_ids(errors["socket"]), name


def _without_ids(error: dict[str, Any]) -> dict[str, Any]:
    """Every call that waits for a person has an approval of its own."""
    return {
        key: re.sub(r"(approval |approve …)[0-9a-f]+", r"\1ID", value) if isinstance(value, str) else value
        for key, value in error.items()
    }


def test_every_transport_tells_of_steps_and_output_as_they_come(
    client: Any, connections: dict[str, McpConnection]
) -> None:
    told: dict[str, list[Any]] = {}
    steps = [{"pane": "connection", "command": "echo up; sleep 0.05", "wait_for": "up"}]
    for name, connection in connections.items():
        connection.notes.clear()
        for number, (tool, given) in enumerate(
            [
                ("crux_coordinate_panes", {"steps": steps}),
                ("crux_stream_output", {"pane_id": "connection", "command": "echo streamed; false"}),
            ]
        ):
            _filled(client, {})
            meta = {"progressToken": number}
            connection.ask("tools/call", name=tool, arguments=given, _meta=meta)
        heard = [note["params"] for note in connection.notes if note["method"] == "notifications/progress"]
        told[name] = [(each["progressToken"], each["progress"], each["message"]) for each in heard]
    assert [message for _, _, message in told["socket"]][:2] == [
        "step 1 of 1: connection started echo up; sleep 0.05",
        "step 1 of 1: connection ready: up",
    ]
    assert len(told["socket"]) == 4
    for name in TRANSPORTS[1:]:
        assert told[name] == told["socket"], name


@pytest.mark.parametrize("version", ["2024-11-05"])
def test_every_transport_speaks_older_versions_alike(version: str, crux: Terminal) -> None:
    replies = {}
    for name in TRANSPORTS:
        with crux.client(name, version=version) as connection:
            replies[name] = [
                connection.ask("tools/call", name="crux_get_output", arguments=given)
                for given in ({"pane_id": "404"}, {"lines": 0}, {"lins": 1})
            ]
    for name in TRANSPORTS[1:]:
        assert replies[name] == replies["socket"], name


@pytest.mark.parametrize("name", ["hub", "bridge", "http"])
def test_prompts_and_pane_texts_are_offered_by_every_transport(
    name: str, client: Any, connections: dict[str, McpConnection]
) -> None:
    connection = connections[name]
    for method, key in (("prompts/list", "prompts"), ("resources/templates/list", "resourceTemplates")):
        ours = client.ask(method)["result"][key]
        assert [each for each in connection.ask(method)["result"][key] if each in ours] == ours
    uri = f"crux://pane/{client.main}/state"
    state = [one.ask("resources/read", uri=uri)["result"]["contents"] for one in (client, connection)]
    assert state[0] == state[1]
    given = {"name": "pane-overview", "arguments": {}}
    assert connection.ask("prompts/get", **given)["result"] == client.ask("prompts/get", **given)["result"]


def _filled(client: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The same state for each call: the pane `connection` focused at its prompt, its last command `echo one; false`."""
    client.call("crux_focus_pane", pane_id="connection")
    done = client.call("crux_execute_command", command="clear; echo one; false")
    made = {"COMMAND": done["command_id"], "PANE": done["pane_id"]}
    text = str(given)
    if "NEW" in text:
        made["NEW"] = client.call("crux_create_pane", focus=False)["id"]
    if "CAPTURE" in text:
        made["CAPTURE"] = client.call("crux_capture_pane")["capture_id"]
    if "CONTEXT" in text:
        made["CONTEXT"] = client.call("crux_inject_context", env={"A": "1"})["context_id"]
    if "steps" in given:
        return {"steps": [{**step, "pane": made.get(step["pane"], step["pane"])} for step in given["steps"]]}
    return {name: made.get(value, value) if isinstance(value, str) else value for name, value in given.items()}


def _tidy(client: Any) -> None:
    """What the call opened, typed or started is gone before the next connection calls."""
    seen: set[str] = set()
    for pane in client.call("crux_list_panes")["panes"]:
        if pane["id"] != client.main and (pane["name"] != "connection" or "connection" in seen):
            client.call("crux_close_pane", pane_id=pane["id"])
        seen.add(pane["name"])
    for context in client.call("crux_list_contexts")["contexts"]:
        client.call("crux_remove_context", context_id=context["context_id"])
    state = client.call("crux_get_pane_state", pane_id="connection")
    if state["running_command_id"]:
        client.call("crux_interrupt_command", command_id=state["running_command_id"])


def _alike(value: Any, name: str = "") -> Any:
    if name in CHANGING or (name in NUMBERED and not isinstance(value, list)):
        return type(value).__name__
    if isinstance(value, dict):
        return {key: _alike(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_alike(each, name if name in NUMBERED and isinstance(each, str) else "") for each in value]
    return value


def _error(result: dict[str, Any]) -> dict[str, Any]:
    assert result.get("isError"), result
    error = dict(result["_meta"]["dari/error"])
    text = result["content"][0]["text"]
    assert error["message"] in text and error["hint"] in text
    return {key: _without_question(each) for key, each in error.items()}


def _without_question(value: Any) -> Any:
    """Questions for `crux approvals` are numbered."""
    return re.sub(r"\b(question |approve |deny )[0-9a-f]{6}", r"\1…", value) if isinstance(value, str) else value
