"""Arguments of the 32 tools, row by row of the reference: required, typed, in range, null as absent, clamped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dari.proxy.ca import CertificateAuthority
from tests.proxy.tools.reference import TOOLS, Argument, Row
from tests.support.proxy_tools import Crab, Refused, crab

# What is no value of a type. 1.0 is an integer, as JSON Schema has it; "1" is not.
WRONG: dict[str, list[Any]] = {
    "string": [1, True, ["a"], {}],
    "integer": ["1", 1.5, True, [1]],
    "boolean": ["true", 1, 0, []],
    "array": ["a", {"a": 1}, [1], [None], True],
    "object": ["{}", [], 1, True],
}


async def works(crab: Crab, name: str, row: Row, directory: Path) -> dict[str, Any]:
    """Arguments that succeed, with what they name made first."""
    if name == "crab_engine_load_ca":
        authority = CertificateAuthority.generate()
        paths = directory / "ca.pem", directory / "ca.key"
        authority.save(*paths)
        return {"cert_path": str(paths[0]), "key_path": str(paths[1])}
    if name == "crab_rules_add_map_local_file":
        (directory / "body.json").write_text("{}")
        return {"matcher": "http://one.test/", "file_path": str(directory / "body.json")}
    if name == "crab_traffic_get":
        await crab.call("proxy_start")
        await crab.call("rules_add_map_local_text", matcher="http://one.test/", text="hi")
        return {"request_id": (await crab.call("traffic_compose", url="http://one.test/"))["request_id"]}
    return dict(row.works)


def wrong_values(argument: Argument) -> Iterator[Any]:
    # A number is taken for an id: it stands for its digits.
    yield from (value for value in WRONG[argument.type] if not (argument.name == "request_id" and value == 1))
    if argument.choices:
        yield "neither"
    if argument.least is not None:
        yield -1 if argument.is_clamped else argument.least - 1
    if argument.most is not None and not argument.is_clamped:
        yield argument.most + 1


async def refusal(crab: Crab, name: str, arguments: dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await crab.call(name.removeprefix("crab_"), **arguments)
    return caught.value


@pytest.mark.parametrize("name", TOOLS)
async def test_a_tool_takes_what_the_reference_allows_and_names_what_it_does_not(name: str, tmp_path: Path) -> None:
    row = TOOLS[name]
    async with crab(tmp_path) as tools:
        good = await works(tools, name, row, tmp_path)
        result = await tools.call(name.removeprefix("crab_"), **good)
        assert set(row.result) <= set(result)

        unknown = await refusal(tools, name, {**good, "surprise": 1})
        assert (unknown.code, unknown.message) == (-32602, "Invalid params: unknown argument 'surprise'")
        assert unknown.hint
        for argument in row.arguments:
            if argument.required:
                without = {key: value for key, value in good.items() if key != argument.name}
                for arguments in (without, {**good, argument.name: None}):
                    missing = await refusal(tools, name, arguments)
                    assert missing.code == -32602
                    assert f"argument '{argument.name}' is " in missing.message
            for value in wrong_values(argument):
                wrong = await refusal(tools, name, {**good, argument.name: value})
                assert wrong.code == -32602, (argument.name, value)
                assert f"argument '{argument.name}" in wrong.message, (argument.name, value)


@pytest.mark.parametrize("name", [name for name, row in TOOLS.items() if any(not a.required for a in row.arguments)])
async def test_null_counts_as_absent(name: str, tmp_path: Path) -> None:
    row = TOOLS[name]
    async with crab(tmp_path) as tools:
        good = await works(tools, name, row, tmp_path)
        nulls = {argument.name: None for argument in row.arguments if not argument.required}
        plain, nulled = [await tools.call(name.removeprefix("crab_"), **given) for given in (good, {**nulls, **good})]
        assert {**nulled, "removed": 0} == {**plain, "removed": 0}


async def test_a_mistake_beside_a_null_is_the_one_that_is_told(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        wrong = await refusal(tools, "crab_traffic_tail", {"after_seq": None, "max_entries": "many"})
    assert wrong.message == "Invalid params: argument 'max_entries' is \"many\": expected int, got str"


@pytest.mark.parametrize(
    ("name", "argument"), [(name, a.name) for name, row in TOOLS.items() for a in row.arguments if a.is_clamped]
)
async def test_a_limit_above_the_largest_counts_as_the_largest(name: str, argument: str, tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        good = await works(tools, name, TOOLS[name], tmp_path)
        for value in (5000, 10**30):
            assert await tools.call(name.removeprefix("crab_"), **{**good, argument: value})


async def test_a_limit_of_0_returns_nothing(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        await works(tools, "crab_traffic_get", TOOLS["crab_traffic_get"], tmp_path)
        assert (await tools.call("traffic_tail"))["entry_count"] == 1
        assert (await tools.call("traffic_tail", limit=0))["entries"] == []
        assert (await tools.call("traffic_tail", max_entries=0))["entries"] == []
        assert (await tools.call("logs_tail", limit=0))["records"] == []


@pytest.mark.parametrize("code", [0, 5, 99])
@pytest.mark.parametrize("tool", ["rules_add_status_rewrite", "rules_remove_status_rewrite"])
async def test_a_status_to_look_for_is_minus_one_or_a_status(code: int, tool: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"matcher": "/", "to_status_code": 500, "from_status_code": code}
    async with crab(tmp_path) as tools:
        wrong = await refusal(tools, f"crab_{tool}", arguments)
        assert wrong.message == f"Invalid params: argument 'from_status_code' is {code}: expected -1 or 100 to 599"
        assert (await tools.call(tool, **{**arguments, "from_status_code": -1}))["ok"] is True
