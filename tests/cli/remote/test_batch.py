"""`batch`: many calls from JSON lines, several at once, repeated where that does no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_result import CommandResult
from tests.support.remote_command import Shop, shop


def lines(*calls: dict[str, Any] | str) -> bytes:
    return "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in calls).encode()


def told(done: CommandResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.split("\n") if line]


def say(text: str, **more: Any) -> dict[str, Any]:
    return {"tool": "shop/say", "arguments": {"text": text}, **more}


async def test_results_come_in_the_order_of_the_lines_with_their_ids(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        calls = lines(
            say("a", id="one"), say("b"), "", {"server": "shop", "tool": "say", "arguments": {"text": "c"}, "id": 7}
        )
        done = await run("batch", "--parallel", "4", stdin=calls)
        results = told(done)
        assert done.code == 0, done.err
        assert [one["id"] for one in results] == ["one", 2, 7]
        assert [one["result"]["content"][0]["text"] for one in results] == ["a", "b", "c"]
        assert all(one["ok"] and one["attempts"] == 1 for one in results)


async def test_calls_are_read_from_a_file(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        (run.cwd / "calls.jsonl").write_bytes(lines(say("x"), {"tool": "shop.say", "arguments": {"text": "y"}}))
        done = await run("batch", "calls.jsonl")
        assert done.code == 0 and len(told(done)) == 2
        assert (await run("batch", "missing.jsonl")).code == 1


async def test_what_fails_is_told_in_its_line_and_by_the_exit_code(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        calls = lines(
            say("a"), {"tool": "shop/fail"}, {"tool": "shop/refuse"}, {"tool": "shop/nosuch"}, {"tool": "shop/say"}
        )
        done = await run("batch", stdin=calls)
        results = told(done)
        assert [one["ok"] for one in results] == [True, False, False, False, False]
        assert results[1]["result"]["isError"] is True
        assert [one.get("error", {}).get("exit_code") for one in results] == [None, None, 3, 1, 1]
        assert "hint" in results[3]["error"] and done.code == 3
        assert "4 of 5 calls failed" in done.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1"),
        ('["a"]', "line 1"),
        ('{"arguments": {}}', '"tool"'),
        ('{"tool": "shop/say", "arguments": 5}', '"arguments"'),
        ('{"tool": "shop/say", "args": {}}', "'args'"),
    ],
)
async def test_a_line_that_is_no_call_stops_everything_before_anything_is_sent(
    tmp_path: Path, line: str, said: str
) -> None:
    async with shop(tmp_path) as run:
        done = await run("batch", stdin=lines(line, say("never")))
        assert done.code == 1 and done.out == "" and said in done.err, done.err
        assert run.noted() == []


async def test_as_completed_prints_what_is_done_first(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        calls = lines({"tool": "shop/hang", "id": "slow"}, say("quick", id="fast"))
        done = await run("batch", "--parallel", "2", "--as-completed", "--timeout", "3000", stdin=calls)
        assert [one["id"] for one in told(done)] == ["fast", "slow"]
        assert done.code == 2 and told(done)[1]["error"]["exit_code"] == 2


async def test_no_more_than_the_given_number_run_at_once(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        calls = lines({"tool": "shop/hang"}, {"tool": "shop/hang"}, say("x"))
        done = await run("batch", "--parallel", "1", "--timeout", "500", stdin=calls)
        assert [one["ok"] for one in told(done)] == [False, False, True]
        assert (await run("batch", "--parallel", "0", stdin=b"")).code == 1
        assert (await run("batch", "--parallel", "65", stdin=b"")).code == 1


async def retried(run: Shop, tool: str, *, retries: int) -> dict[str, Any]:
    call = lines({"tool": f"shop/{tool}"})
    done = await run("batch", "--retries", str(retries), "--timeout", "2000", stdin=call)
    return told(done)[0]


async def test_only_tools_that_may_be_repeated_are(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        again = await retried(run, "shaky", retries=3)
        assert (again["ok"], again["attempts"]) == (True, 3)
        for tool in ("fail", "hang", "die"):
            once = await retried(run, tool, retries=3)
            assert (once["ok"], once["attempts"]) == (False, 1)


async def test_an_empty_batch_is_done(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("batch", stdin=b"\n")
        assert (done.code, done.out) == (0, "")


async def test_a_line_ends_at_its_line_feed_and_nowhere_else(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        text = "one\u2028two\u2029three\x85four"
        call = json.dumps(say(text), ensure_ascii=False)
        done = await run("batch", stdin=lines(call, f"{call}\r", "{"))
        assert done.code == 1 and "line 3" in done.err
        done = await run("batch", stdin=lines(call, f"{call}\r"))
        assert [one["result"]["content"][0]["text"] for one in told(done)] == [text, text]


@pytest.mark.parametrize("value", ["1e999", '"\\ud83d"', "9" * 5000])
@pytest.mark.parametrize("member", ['"id": %s', '"arguments": {"text": %s}'])
async def test_a_value_that_cannot_be_sent_or_printed_stops_everything_before_anything_is_sent(
    tmp_path: Path, member: str, value: str
) -> None:
    async with shop(tmp_path) as run:
        done = await run("batch", stdin=lines(say("never"), '{"tool": "shop/say", %s}' % (member % value)))
        assert (done.code, done.out) == (1, "") and "line 2" in done.err, done.err
        assert run.noted() == []
