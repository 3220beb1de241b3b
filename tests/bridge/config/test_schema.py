"""The published schema agrees with the reader: on the examples of the designs, on every field, on what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from dari.bridge.config.jsonc import parse
from dari.bridge.config.loader import SERVER_FIELDS
from dari.bridge.config.schema import profile_schema, schema_text
from tests.bridge.config import test_design_001, test_dialects, test_extensions
from tests.support.bridge_config import contents

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema_rs.Draft202012Validator(profile_schema())


def test_it_is_a_schema() -> None:
    jsonschema_rs.meta.validate(json.loads(schema_text()))


def entries() -> list[dict[str, Any]]:
    cases = [*test_design_001.FIELDS, *test_extensions.FIELDS]
    return [case.values[0] for case in cases]


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: json.dumps(entry)[:60])
def test_what_the_reader_takes_the_schema_takes(validator: Any, entry: dict[str, Any]) -> None:
    document = {"servers": [{"id": "s", **entry}]}
    assert [error.message for error in validator.iter_errors(document)] == []


@pytest.mark.parametrize("text", [test_dialects.CLAUDE, test_dialects.VSCODE], ids=["Claude", "VS Code"])
def test_files_of_other_programs_are_valid(validator: Any, text: str) -> None:
    assert validator.is_valid(parse(text, "f").plain())


@pytest.mark.parametrize(
    "name", ["claude_desktop_config.json", "dot_mcp.json", "cursor_mcp.json", "windsurf_mcp_config.json"]
)
def test_the_samples_are_valid(validator: Any, name: str) -> None:
    assert validator.is_valid(parse((SAMPLES / name).read_text(), name).plain())


@pytest.mark.parametrize(
    "document",
    [
        {"servers": [{"baseUrl": "http://h"}]},
        {"servers": [{"id": "s", "timeoutMS": 1}]},
        {"servers": [{"id": "s", "timeoutMs": "1"}]},
        {"servers": [{"id": "s", "timeoutMs": 0}]},
        {"servers": [{"id": "s", "command": "x", "restart": {"policy": "sometimes"}}]},
        {"servers": [{"id": "s", "command": "x", "allowedPaths": [{"mode": "ro"}]}]},
        {"servers": [{"id": "s", "command": "x", "tools": {"alow": []}}]},
        {"servers": [{"id": "s", "command": "x", "sandbox": "maybe"}]},
        {"mcpServers": {"s": {"command": 1}}},
        {"mcpServers": []},
        {"profiles": {"dev": {"mode": "code"}}},
        {"gateway": {"prefix": "maybe"}},
        {"gateway": {"separator": "way too long"}},
        {"defaults": {"sandbox": "enforced"}},
        {"imports": ["emacs"]},
        {"inputs": [{"type": "promptString"}]},
    ],
    ids=json.dumps,
)
def test_what_is_wrong_is_wrong_for_both(validator: Any, document: dict[str, Any]) -> None:
    assert not validator.is_valid(document)
    found = contents(document)
    assert found.broken or found.problems


def test_every_field_of_a_server_stands_in_it_and_nothing_else() -> None:
    schema: Any = profile_schema()
    assert set(schema["$defs"]["ServerEntry"]["properties"]) == set(SERVER_FIELDS)


def test_every_reference_leads_somewhere() -> None:
    schema: Any = profile_schema()
    for name in re.findall(r'"#/\$defs/(\w+)"', schema_text()):
        assert name in schema["$defs"]
