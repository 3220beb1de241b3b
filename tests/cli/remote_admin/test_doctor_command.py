"""`doctor`: each thing that can be wrong is found and told with the next step, and nothing is started."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dari.bridge.upstream.caller import Caller
from dari.errors import DariError
from tests.support.remote_user import Person, put


async def checks(person: Person, **more: Any) -> dict[str, list[dict[str, str]]]:
    answer = await person.run("doctor", "--json", **more)
    told: dict[str, list[dict[str, str]]] = {}
    for check in answer.json["checks"]:
        told.setdefault(check["name"], []).append(check)
    worst = "failed" if any(one["status"] == "failed" for each in told.values() for one in each) else ""
    assert answer.code == (1 if worst else 0)
    return told


def only(told: list[dict[str, str]], status: str) -> list[str]:
    return [f"{one['found']} {one['hint']}" for one in told if one["status"] == status]


async def test_a_fresh_machine_has_nothing_wrong_that_needs_a_person(person: Person) -> None:
    answer = await person.run("doctor")
    assert answer.code == 0 and "FAIL" not in answer.out
    for name in ("file", "servers", "daemon", "sandbox", "program", "library", "keyring", "held", "approvals", "audit"):
        assert f"  {name:<9} " in answer.out
    assert "dari remote add, or dari remote import" in answer.out


async def test_files_are_told_with_layer_mode_and_what_is_wrong(person: Person) -> None:
    person.write(person.lab(), {"id": "odd", "commando": "x"}, mode=0o600)
    person.write({"id": "theirs", "command": "x"}, path=person.project_file)
    told = await checks(person)
    (failed,) = only(told["file"], "failed")
    assert "(user, mode 0600): 1 server, 1 broken" in failed and "commando" in failed
    (warned,) = only(told["file"], "warning")
    assert "not trusted" in warned and f"dari remote trust {person.project_file}" in warned
    put(person.user_file, "{")
    (failed,) = only((await checks(person))["file"], "failed")
    assert "mcp.json:1:2" in failed and "correct the file" in failed


async def test_keys_that_others_may_read_are_told(person: Person) -> None:
    person.write({"id": "s", "command": "sh", "env": {"API_KEY": "hunter22"}}, mode=0o644)
    (warned,) = only((await checks(person))["file"], "warning")
    assert "mode 0644" in warned and "chmod 600" in warned and "hunter22" not in warned


async def test_servers_that_could_not_start_are_told_without_starting_any(person: Person) -> None:
    person.write(
        person.lab(),
        {"id": "gone", "command": "no-such-program-of-ours"},
        {"id": "unset", "url": "https://h/${NO_SUCH_VARIABLE}"},
        {"id": "off", "command": "x", "disabled": True},
    )
    told = (await checks(person))["servers"]
    failed = only(told, "failed")
    assert any("gone" in one and "not found" in one for one in failed)
    assert any("unset" in one and "set NO_SUCH_VARIABLE" in one for one in failed)
    assert len(failed) == 2 and told[0]["found"] == "3 ready, 1 disabled"
    assert not (person.root / "lab.log").exists()


async def test_a_launcher_that_a_server_needs_and_is_missing_is_a_failure(person: Person) -> None:
    person.environ["PATH"] = str(person.root)
    assert only((await checks(person))["program"], "failed") == []
    person.write({"id": "s", "command": "npx", "args": ["x"]})
    (failed,) = only((await checks(person))["program"], "failed")
    assert "npx" in failed and "install Node.js" in failed


async def test_what_is_held_and_what_waits_is_told(person: Person) -> None:
    person.write(person.lab(tools={"confirm": ["greet"]}))
    person.shows({"name": "greet"}, {"name": "add"})
    async with person.bridge() as bridge:
        upstream = bridge.view(person.around()).upstream("lab")
        await upstream.start()
        person.shows({"name": "greet"}, {"name": "add", "description": "more"})
        await upstream.tools(fresh=True)
        asked = asyncio.Event()
        bridge.approvals.subscribe(lambda change: asked.set())
        call = asyncio.create_task(upstream.call_tool("greet", b"{}", Caller("me")))
        await asked.wait()
        told = await checks(person, bridge=bridge)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    assert "dari remote approve lab" in only(told["held"], "warning")[0]
    assert "lab/greet" in only(told["approvals"], "warning")[0]


@pytest.mark.parametrize(
    ("restart", "state"), [({"maxRestarts": 0}, "crash-loop"), ("never", "stopped"), ({"backoffMs": 60_000}, "backoff")]
)
async def test_a_server_that_does_not_come_up_is_told_with_its_error(restart: Any, state: str, person: Person) -> None:
    person.write({"id": "dead", "command": "false", "restart": restart})
    async with person.bridge() as bridge:
        upstream = bridge.view(person.around()).upstream("dead")
        with pytest.raises(DariError):
            await upstream.start()
        (warned,) = only((await checks(person, bridge=bridge))["servers"], "warning")
    assert f"dead is in state {state}: " in warned and "exit status 1" in warned and "dari remote test dead" in warned


async def test_an_audit_log_that_somebody_changed_is_a_failure(person: Person) -> None:
    async with person.bridge() as bridge:
        assert bridge.audit is not None
        bridge.audit.call("lab", "greet", "ok")
    (log,) = (person.state / "audit").glob("*.jsonl")
    assert only((await checks(person))["audit"], "failed") == []
    log.write_text(log.read_text().replace('"greet"', '"grete"'))
    (failed,) = only((await checks(person))["audit"], "failed")
    assert f"{log.name}:3" in failed and "dari audit verify" in failed


async def test_the_daemon_is_told_from_a_command_that_runs_by_itself(person: Person) -> None:
    """A terminal that is not this process's own belongs to a client of the daemon."""
    (daemon,) = (await checks(person))["daemon"]
    assert daemon["found"].startswith("runs (pid ")
