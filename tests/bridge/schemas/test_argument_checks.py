"""Schemas of strangers: small ones are run at once, the rest where they can be stopped."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from dari.bridge.schemas.checker import UNBOUNDED, ArgumentValidator, SchemaWorker, WorkerStopped, cost_of, value_count
from dari.bridge.schemas.worker import BadSchema
from tests.support.heartbeat import Heartbeat
from tests.support.waiting import turn_until

# `allOf` is left early by the first that does not fit the value 3, the others by the first that does.
_LAST = {"allOf": {"type": "integer"}, "anyOf": {"type": "string"}, "oneOf": {"type": "string"}}


def levels(count: int, keyword: str = "allOf", width: int = 8) -> dict[str, Any]:
    """A few kilobytes that say `string` in `width**count` steps."""
    parts: dict[str, Any] = {
        f"l{at}": {keyword: [{"$ref": f"#/$defs/l{at + 1}"} for _ in range(width)]} for at in range(count)
    }
    return {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/l0"}},
        "$defs": {**parts, f"l{count}": _LAST[keyword]},
    }


TREE = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/node"}},
    "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}},
}


async def test_an_ordinary_schema_is_checked_at_once_and_starts_no_process() -> None:
    async with SchemaWorker() as worker:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        check = ArgumentValidator("add", schema, worker)
        assert check.complaints_now(b'{"a":1}') == []
        assert check.complaints_now(b'{"a":"x"}') == ['a: "x" is not of type "integer"']
        assert worker.pid is None


async def test_references_are_written_out_before_a_schema_is_run() -> None:
    assert cost_of(levels(3)) < 2_000 < cost_of(levels(5))
    assert cost_of(levels(40)) == UNBOUNDED
    assert cost_of(TREE) == UNBOUNDED
    assert cost_of({"$ref": "https://example.org/other"}) == UNBOUNDED
    assert cost_of({"properties": {"$ref": {"type": "string"}}}) < 10
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"not": deep}
    assert cost_of(deep) == UNBOUNDED
    assert value_count(b'{"a":[1,2,{"b":3}]}') >= 6


async def test_a_recursive_schema_is_checked_in_a_process_of_its_own() -> None:
    async with SchemaWorker() as worker:
        check = ArgumentValidator("walk", TREE, worker)
        wrong = b'{"node":{"child":{"n":"x"}}}'
        assert check.complaints_now(wrong) is None
        assert await check.complaints(wrong) == ['node.child.n: "x" is not of type "integer"']
        first = worker.pid
        assert await check.complaints(b'{"node":{"child":{"n":1}}}') == []
        assert worker.pid == first and worker.jobs == 2


async def test_a_worker_that_is_closed_while_its_process_is_made_leaves_none() -> None:
    worker = SchemaWorker()
    job = asyncio.create_task(worker.judge(json.dumps(TREE).encode(), b'{"node":{}}'))
    await turn_until(lambda: worker.jobs)
    await worker.close()
    with pytest.raises(WorkerStopped):
        await job
    assert worker.pid is None
    with pytest.raises(WorkerStopped):
        await worker.judge(json.dumps(TREE).encode(), b'{"node":{}}')
    assert worker.pid is None


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
async def test_forty_levels_of_eight_references_are_stopped_while_the_loop_goes_on(
    keyword: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with SchemaWorker() as worker:
        check = ArgumentValidator("trap", levels(40, keyword), worker)
        async with Heartbeat() as heartbeat:
            assert await check.complaints(b'{"x":3}') == []  # for the server to judge
        assert heartbeat.beats > 100
        assert "not checked any more" in caplog.text
        jobs = worker.jobs
        assert await check.complaints(b'{"x":3}') == [] and worker.jobs == jobs


async def test_a_schema_that_doubles_with_the_depth_of_its_value_is_stopped() -> None:
    async with SchemaWorker() as worker:
        doubling = {"anyOf": [{"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["c"]} for _ in range(4)]}
        check = ArgumentValidator("trap", {"$ref": "#/$defs/n", "$defs": {"n": doubling}}, worker)
        value: dict[str, Any] = {}
        for _ in range(60):
            value = {"c": value}
        assert await check.complaints(json.dumps(value).encode()) == []
        assert worker.pid is None


async def test_a_stopped_worker_is_gone_and_the_next_job_has_another() -> None:
    async with SchemaWorker() as worker:
        await worker.judge(json.dumps(TREE).encode(), b"{}")
        first = worker.pid
        assert first is not None
        with pytest.raises(WorkerStopped):
            await worker.judge(json.dumps(levels(40)).encode(), b'{"x":1}')
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        assert await worker.judge(json.dumps(TREE).encode(), b'{"node":1}') == ['node: 1 is not of type "object"']


async def test_a_pattern_takes_time_in_line_with_its_text() -> None:
    async with SchemaWorker() as worker:
        check = ArgumentValidator("trap", {"properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}, worker)
        text = json.dumps({"x": "a" * 50_000 + "!"}).encode()
        found = check.complaints_now(text)
        assert found is not None and len(found) == 1 and len(found[0]) < 1_000


async def test_a_schema_that_is_none_is_said_once_and_not_used(caplog: pytest.LogCaptureFixture) -> None:
    async with SchemaWorker() as worker:
        check = ArgumentValidator("odd", {"type": "nonsense"}, worker)
        assert check.complaints_now(b"{}") == [] == check.complaints_now(b"{}")
        assert caplog.text.count("tool=odd") == 1
        with pytest.raises(BadSchema):
            await worker.judge(b'{"type":"nonsense"}')


async def test_large_arguments_are_read_in_the_worker() -> None:
    async with SchemaWorker() as worker:
        check = ArgumentValidator("bulk", {"properties": {"x": {"items": {"type": "integer"}}}}, worker)
        many = json.dumps({"x": list(range(200_000))}).encode()
        assert check.complaints_now(many) is None
        assert await check.complaints(many) == []
        assert worker.jobs == 1
