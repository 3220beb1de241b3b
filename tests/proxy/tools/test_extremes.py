"""Odd values end in an answer or in a refusal that names them, never in a bug."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.proxy.tools.test_catalogue import ALL
from tests.support.proxy_tools import Crab, Refused, crab

NUMBERS = (0, 1, -1, 2**31, 2**63, 2**64, 10**30, 10**400)
TEXTS = ("", " ", "\x00", "\n", "a" * 100_000, "\u2028", "../..", "http://", "99999999999999999999", "-1", "é", "*")
# What a tool cannot do without; what it is given is then made extreme, one argument at a time.
NEEDED: dict[str, Any] = {
    "string": "http://one.test/",
    "integer": 200,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}
# These would wait, or open a port of this machine.
LEFT_OUT = {"crab_breakpoints_wait", "crab_engine_set_listen_addr", "crab_engine_set_transparent"}
NAMES = [name for name, tool in ALL.items() if tool.input_schema["properties"] and name not in LEFT_OUT]


def needed(name: str) -> dict[str, Any]:
    schema = ALL[name].input_schema
    properties = schema["properties"]
    made = {
        key: properties[key].get("enum", [NEEDED[properties[key]["type"]]])[0] for key in schema.get("required", ())
    }
    if "timeout_s" in properties:
        made["timeout_s"] = 0.01
    if name == "crab_rules_add":
        made |= {"kind": "allow"}
    return made


async def told(tools: Crab, name: str, arguments: dict[str, Any]) -> None:
    try:
        await tools.call(name.removeprefix("crab_"), **arguments)
    except Refused as refused:
        shown = (name, {key: str(value)[:40] for key, value in arguments.items()}, refused.message[:200])
        assert "bug" not in refused.hint, shown
        assert "internal error" not in refused.message, shown


@pytest.mark.parametrize("name", NAMES)
async def test_extreme_arguments_are_no_bug(name: str, tmp_path: Path) -> None:
    properties = ALL[name].input_schema["properties"]
    async with crab(tmp_path, starts=True) as tools:
        for key, schema in properties.items():
            kinds = {part.get("type") for part in (schema, *schema.get("anyOf", ()))}
            values: list[Any] = []
            if kinds & {"integer", "number"}:
                values += NUMBERS
            if "string" in kinds and "enum" not in schema:
                values += TEXTS
            for value in values:
                if key != "timeout_s" or not 0.1 < value <= 300:
                    await told(tools, name, {**needed(name), key: value})
