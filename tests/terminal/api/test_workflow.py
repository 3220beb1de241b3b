"""Steps across panes: the design's example, order, groups, failures and clean-up, with real servers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dari.errors import NotFound
from dari.terminal.api.workflow import WorkflowStep
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import client_in
from tests.support.waiting import until

DESIGN = json.loads(
    """
    {
      "steps": [
        { "pane": "backend", "command": "cargo run", "wait_for": "Listening on 0.0.0.0:8080" },
        { "pane": "frontend", "command": "npm run dev", "wait_for": "ready in" },
        { "pane": "test", "command": "cargo test --test e2e" }
      ]
    }
    """
)
CARGO = """#!/bin/sh
if [ "$1" = run ]; then
  echo "   Compiling backend v0.1.0"; touch backend.up; echo "Listening on 0.0.0.0:8080"
  trap 'touch backend.ended; exit 0' INT TERM
  while :; do sleep 0.05; done
fi
[ -e backend.up ] && [ -e frontend.up ] && echo "test result: ok. 1 passed" && exit 0
exit 101
"""
NPM = """#!/bin/sh
[ -e backend.up ] || exit 9
touch frontend.up; echo "  VITE v5.0.0  ready in 120 ms"
while :; do sleep 0.05; done
"""


def project(home: Path, patch: pytest.MonkeyPatch, **programs: str) -> None:
    patch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    (home / "bin").mkdir()
    for name, text in programs.items():
        (home / "bin" / name).write_text(text)
        (home / "bin" / name).chmod(0o755)


def outcome(result: dict[str, Any]) -> list[str]:
    return [step["status"] for step in result["steps"]]


async def test_the_designs_example_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, monkeypatch, cargo=CARGO, npm=NPM)
    async with client_in(tmp_path) as client:
        done = await client.call("crux_coordinate_panes", **DESIGN)
        assert outcome(done) == ["ready", "ready", "done"]
        assert (done["success"], done["status"]) == (True, "done")
        first, second, third = done["steps"]
        assert first["matched"] == "Listening on 0.0.0.0:8080"
        assert second["matched"].strip() == "VITE v5.0.0  ready in 120 ms"
        assert (third["exit_code"], third["output"]) == (0, "test result: ok. 1 passed")
        panes = (await client.call("crux_list_panes"))["panes"]
        assert {pane["name"] for pane in panes} == {"backend", "frontend", "test"}
        assert sorted(done["opened"]) == sorted(pane["id"] for pane in panes)
        running = await client.call("crux_wait_command", command_id=first["command_id"], timeout_ms=0)
        assert running["status"] == "running"


async def test_a_step_that_fails_skips_the_rest_and_ends_what_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, monkeypatch, cargo=CARGO, npm="#!/bin/sh\necho broken; exit 3\n")
    async with client_in(tmp_path) as client:
        done = await client.call("crux_coordinate_panes", **DESIGN)
        assert outcome(done) == ["ready", "failed", "skipped"]
        assert (done["success"], done["status"]) == (False, "aborted")
        assert (done["steps"][1]["exit_code"], done["steps"][1]["output"]) == (3, "broken")
        assert "ready in" in done["steps"][1]["reason"]
        assert done["steps"][0]["clean_up"] == "ended"
        await until((tmp_path / "backend.ended").exists)


async def test_without_clean_up_what_was_started_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, monkeypatch, cargo=CARGO, npm="#!/bin/sh\nexit 3\n")
    async with client_in(tmp_path) as client:
        done = await client.call("crux_coordinate_panes", **DESIGN, clean_up=False)
        assert outcome(done) == ["ready", "failed", "skipped"]
        left = await client.call("crux_wait_command", command_id=done["steps"][0]["command_id"], timeout_ms=0)
        assert left["status"] == "running"


async def test_steps_of_one_group_run_at_the_same_time(tmp_path: Path) -> None:
    meet = "touch {0}; until test -e {1}; do sleep 0.02; done; echo met"
    async with client_in(tmp_path) as client:
        done = await client.call(
            "crux_coordinate_panes",
            steps=[
                {"pane": "one", "command": meet.format("a", "b"), "group": "both"},
                {"pane": "two", "command": meet.format("b", "a"), "group": "both"},
                {"pane": "one", "command": "ls a b"},
            ],
        )
        assert outcome(done) == ["done", "done", "done"]
        assert [step["output"] for step in done["steps"][:2]] == ["met", "met"]


async def test_a_step_without_an_end_times_out_and_a_stubborn_program_is_ended_with_its_pane(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        done = await client.call(
            "crux_coordinate_panes",
            steps=[{"pane": "stubborn", "command": "trap '' INT; while :; do sleep 0.1; done", "timeout_ms": 300}],
        )
        (step,) = done["steps"]
        assert (step["status"], step["clean_up"]) == ("timeout", "closed")
        assert (await client.call("crux_list_panes"))["panes"] == []


async def test_a_failure_that_is_allowed_does_not_stop_the_steps(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        steps = [{"pane": "one", "command": "false", "allow_failure": True}, {"pane": "one", "command": "echo next"}]
        done = await client.call("crux_coordinate_panes", steps=steps)
        assert (outcome(done), done["success"]) == (["failed", "done"], True)


async def test_a_text_that_ends_with_its_command_counts(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        done = await client.call(
            "crux_coordinate_panes", steps=[{"pane": "p", "command": "printf 'port 80%s' 81", "wait_for": "port 8081"}]
        )
        assert outcome(done) == ["ready"]


async def test_the_echo_of_the_command_is_not_what_is_waited_for(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        step = {"pane": "p", "command": "sleep 0.2 # ready in", "wait_for": "ready in"}
        done = await client.call("crux_coordinate_panes", steps=[step])
        assert outcome(done) == ["failed"]


async def test_a_dangerous_step_is_asked_about_before_the_first_one_runs(tmp_path: Path) -> None:
    steps = [
        {"pane": "a", "command": "touch first"},
        {"pane": "a", "command": "rm first"},
        {"pane": "b", "command": "sudo -n true"},
    ]
    async with client_in(tmp_path) as client:
        error = (await client.call("crux_coordinate_panes", steps=steps))["error"]
        assert error["name"] == "needs_approval"
        assert "rm first" in error["message"]
        assert "sudo -n true" in error["message"]
        assert not (tmp_path / "first").exists()
        denied = await client.call("crux_coordinate_panes", steps=[*steps, {"pane": "c", "command": "rm -rf /"}])
        assert denied["error"]["name"] == "denied"
    async with client_in(tmp_path, answer={"action": "accept", "content": {"run": True}}) as client:
        done = await client.call("crux_coordinate_panes", steps=steps[:2])
        assert outcome(done) == ["done", "done"]
        assert len(client.questions) == 1


async def test_a_caller_that_leaves_ends_what_it_started(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        script = "sh -c 'trap \"touch ended; exit\" INT; touch begun; while :; do sleep 0.05; done'"
        api = house.service.workflow
        call = asyncio.create_task(api.coordinate([WorkflowStep(pane="w", command=script, timeout_ms=60_000)]))
        await until((tmp_path / "begun").exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (tmp_path / "ended").exists()


async def test_an_unknown_id_is_not_found_and_nothing_runs(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        steps = [WorkflowStep(pane="a", command="touch ran"), WorkflowStep(pane="77", command="true")]
        with pytest.raises(NotFound) as refused:
            await house.service.workflow.coordinate(steps)
        assert "crux_list_panes" in refused.value.hint
        assert not (tmp_path / "ran").exists()
        assert not house.multiplexer.panes


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [{"pane": "a"}],
        [{"pane": "a", "command": "true", "timeout_ms": 0}],
        [{"pane": "a", "command": "true", "wait_for": "(", "regex": True}],
        [{"pane": "a", "command": "true", "group": "g"}, {"pane": "a", "command": "true", "group": "g"}],
        [{"pane": "a", "command": "true", "wait": "x"}],
    ],
)
async def test_steps_that_make_no_sense_are_refused(steps: list[Any], tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        assert (await client.call("crux_coordinate_panes", steps=steps))["error"]["name"] == "invalid_input"
