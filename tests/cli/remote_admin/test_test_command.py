"""`test`: every step of a try, for servers that work and for servers that fail in each way there is."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.cli.remote.main import run
from tests.bridge.children.heavy import heavy, most_at_once
from tests.support.child_servers import server
from tests.support.real_servers import broken_servers, installed, real_servers, write_profiles
from tests.support.remote_user import Person, Watcher
from tests.support.wire import demo_process


def child(id: str, body: str = "pass", before: str = "", **fields: Any) -> dict[str, Any]:
    command = server(body, before).command
    return {"id": id, "command": command[0], "args": list(command[1:]), "initTimeoutMs": 5000, **fields}


def listing(tools: str) -> str:
    """A body of `server` that answers tools/list with these."""
    return f"pass\n    elif message.get('method') == 'tools/list':\n        reply(message, {{'tools': {tools}}})"


def marks(told: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["status"] for step in told["steps"]}


def found(told: dict[str, Any], name: str) -> str:
    return next(f"{step['found']} {step['hint']}" for step in told["steps"] if step["name"] == name)


async def test_a_server_that_works_is_told_step_by_step(person: Person) -> None:
    person.write(person.lab())
    answer = await person.run("test", "lab")
    assert answer.code == 0
    words = [line.split()[:2] for line in answer.out.splitlines()[1:]]
    assert words == [
        ["ok", "profile"],
        ["ok", "program"],
        ["ok", "sandbox"],
        ["ok", "start"],
        ["ok", "agree"],
        ["ok", "tools/list"],
        ["ok", "schemas"],
    ]
    assert "handshake era, 2025-11-25, lab 1.2" in answer.out and "15 tools" in answer.out
    assert all(" ms " in line for line in answer.out.splitlines()[1:])


async def test_nothing_of_it_is_left_and_a_running_one_is_not_disturbed(person: Person) -> None:
    person.write(person.lab())
    async with person.bridge() as bridge:
        upstream = bridge.view(person.around()).upstream("lab")
        await upstream.start()
        pid = upstream.status().pid
        assert (await person.run("test", "lab", bridge=bridge)).code == 0
        assert {child.pid for child in bridge.children.running} == {pid}
    starts = [line for line in (person.root / "lab.log").read_text().splitlines() if line.startswith("start")]
    assert len(starts) == 2


async def test_walls_that_the_profile_asks_for_are_named(person: Person) -> None:
    tools = str(person.root)
    person.write(person.lab(allowedPaths=[tools], network="none", sandbox="auto"))
    answer = await person.run("test", "lab", "--json")
    (told,) = answer.json["servers"]
    assert "reads" in found(told, "sandbox") and "tcp" in found(told, "sandbox")


async def test_one_that_ends_at_once_is_told_with_its_exit_status_and_stderr(person: Person) -> None:
    body = "import sys; print('no database', file=sys.stderr); sys.exit(3)"
    person.write({"id": "dead", "command": sys.executable, "args": ["-c", body]})
    answer = await person.run("test", "dead")
    assert answer.code == 2
    assert "FAIL  agree" in answer.out and "exit status 3" in answer.out and "no database" in answer.out


async def test_one_that_says_nothing_is_given_up_after_its_init_timeout(person: Person) -> None:
    body = "import sys, time; print('thinking', file=sys.stderr, flush=True); time.sleep(600)"
    person.write({"id": "mute", "command": sys.executable, "args": ["-c", body], "initTimeoutMs": 700})
    answer = await person.run("test", "mute", "--json")
    (told,) = answer.json["servers"]
    assert answer.code == 2 and marks(told)["agree"] == "failed"
    assert "thinking" in found(told, "agree")


async def test_one_that_fails_to_list_is_told_with_what_it_wrote(person: Person) -> None:
    broken = """
        pass
    elif message.get("method") == "tools/list":
        print("the list is gone", file=sys.stderr, flush=True)
        send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "cannot list"}})
    """
    entry = child("s", "pass")
    entry["args"][-1] = entry["args"][-1].replace("        pass\n", broken.lstrip("\n").rstrip(" ") + "\n", 1)
    person.write(entry)
    answer = await person.run("test", "s", "--json")
    (told,) = answer.json["servers"]
    assert answer.code == 2 and marks(told)["tools/list"] == "failed"
    assert "cannot list" in found(told, "tools/list") and "the list is gone" in found(told, "tools/list")


async def test_schemas_that_are_none_are_named(person: Person) -> None:
    person.write(person.lab())
    person.shows({"name": "good"}, {"name": "bad", "inputSchema": {"type": "objekt"}})
    answer = await person.run("test", "lab", "--json")
    (told,) = answer.json["servers"]
    assert answer.code == 0 and marks(told)["schemas"] == "warning"
    assert "1 of 2 are not valid JSON Schema: bad.inputSchema" in found(told, "schemas")


async def test_noise_on_stdout_is_told(person: Person) -> None:
    entry = person.lab()
    entry["args"] = ["-c", f"print('hello from the banner', flush=True); exec(open({entry['args'][0]!r}).read())"]
    person.write(entry)
    answer = await person.run("test", "lab", "--json")
    (told,) = answer.json["servers"]
    assert marks(told)["tools/list"] == "warning" and "hello from the banner" in found(told, "tools/list")


@pytest.mark.parametrize(
    ("entry", "step", "fact"),
    [
        ({"command": "no-such-program-of-ours"}, "program", "not found on the child's PATH"),
        ({"command": "x", "env": {"A": "${NO_SUCH_VARIABLE}"}}, "profile", "NO_SUCH_VARIABLE"),
        ({"url": "http://no-such-host.invalid/mcp"}, "address", "no-such-host.invalid has no address"),
        ({"commando": "x"}, "profile", "commando"),
        ({"command": "x", "disabled": True}, "profile", "is disabled"),
    ],
)
async def test_what_fails_before_the_start_is_told_with_the_next_step(
    entry: dict[str, Any], step: str, fact: str, person: Person
) -> None:
    person.write({"id": "s", **entry})
    answer = await person.run("test", "s", "--json")
    (told,) = answer.json["servers"]
    assert answer.code == 2 and told["ok"] is False
    assert told["steps"][-1]["name"] == step and told["steps"][-1]["status"] == "failed"
    assert fact in told["steps"][-1]["found"] and told["steps"][-1]["hint"]


async def test_a_port_that_nobody_listens_on_is_a_failed_connection(person: Person) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    person.write({"id": "s", "url": f"http://127.0.0.1:{port}/mcp"})
    answer = await person.run("test", "s", "--json")
    (told,) = answer.json["servers"]
    assert answer.code == 2 and marks(told) == {"profile": "ok", "address": "ok", "connect": "failed"}
    assert "Connection refused" in found(told, "connect")


@pytest.mark.parametrize(("token", "code"), [("right", 0), ("wrong", 2)])
async def test_a_server_behind_an_address_is_tried_with_its_token(
    token: str, code: int, person: Person, tmp_path: Path
) -> None:
    async with demo_process(tmp_path) as demo:
        person.environ["TOKEN"] = demo.token if token == "right" else "x" * 20
        person.write({"id": "s", "url": f"http://127.0.0.1:{demo.port}/mcp", "apiKey": "${TOKEN}"})
        answer = await person.run("test", "s", "--json")
    (told,) = answer.json["servers"]
    assert answer.code == code
    assert marks(told)["connect"] == "ok"
    if token == "right":
        assert "stateless era, 2026-07-28" in found(told, "agree") and marks(told)["schemas"] == "ok"
    else:
        assert marks(told)["agree"] == "failed" and "401" in found(told, "agree")
    assert demo.token not in answer.out


async def test_a_dead_server_delays_no_other(person: Person) -> None:
    """The mute one would be waited for 15 s; the test's own limit is 20 s, and five of them come to 75."""
    mute = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"], "initTimeoutMs": 1500}
    person.write(person.lab(), *({"id": f"mute{number}", **mute} for number in range(5)))
    answer = await person.run("test", "--all")
    assert answer.code == 2 and "1 of 6 servers work" in answer.out
    assert answer.out.index("lab") < answer.out.index("mute0")  # told when it was done, not in the order of the file


async def test_all_leaves_out_the_disabled_and_tells_of_the_untrusted(person: Person) -> None:
    person.write(person.lab(), {"id": "off", "command": "x", "disabled": True})
    person.write({"id": "theirs", "command": "x"}, path=person.project_file)
    answer = await person.run("test", "--all", "--json")
    told = {one["id"]: one for one in answer.json["servers"]}
    assert answer.code == 2 and set(told) == {"lab", "theirs"}
    assert told["lab"]["ok"] and "not trusted" in found(told["theirs"], "profile")


@pytest.mark.parametrize("words", [(), ("lab", "--all"), ("lba",)])
async def test_wrong_words_are_refused_before_anything_starts(words: tuple[str, ...], person: Person) -> None:
    person.write(person.lab())
    answer = await person.run("test", *words)
    assert answer.code == 1 and "hint:" in answer.err
    assert not (person.root / "lab.log").exists()


async def test_what_the_server_says_cannot_drive_the_terminal_and_secrets_do_not_show(person: Person) -> None:
    body = "import os, sys; print('\\x1b[2J', os.environ['PASSWORD'], file=sys.stderr); sys.exit(1)"
    person.environ["HIDDEN"] = "hunter22"
    person.write({"id": "s", "command": sys.executable, "args": ["-c", body], "env": {"PASSWORD": "${HIDDEN}"}})
    answer = await person.run("test", "s")
    assert answer.code == 2
    assert "\x1b" not in answer.out and "hunter22" not in answer.out and "<secret>" in answer.out


async def test_real_servers_work_and_real_broken_ones_say_why(person: Person) -> None:
    """One from npm and one from PyPI that work, one that never answers, one that ends at its start; all at once."""
    there = installed()
    works = real_servers(person.root / "real", there, "postgresql://nobody@127.0.0.1:9/none")
    good = {id: works[id] for id in ("filesystem", "time")}
    bad = broken_servers(person.root, there, init_timeout_ms=3000)
    write_profiles(person.user_file, [*good.values(), *bad.values()], defaults={"initTimeoutMs": 15_000})
    answer = await person.run("test", "--all", "--json")
    told = {one["id"]: one for one in answer.json["servers"]}
    assert answer.code == 2 and {id for id, one in told.items() if one["ok"]} == set(good), answer.out
    for id, real in good.items():
        assert f"{real.era} era, {real.version}" in found(told[id], "agree")
        assert marks(told[id])["schemas"] == "ok"
    assert marks(told["hanging"])["agree"] == marks(told["crashing"])["agree"] == "failed"
    assert "exit status" in found(told["crashing"], "agree") and "stderr" in found(told["crashing"], "agree")


async def test_an_interrupted_try_leaves_nothing_running(person: Person) -> None:
    person.write({"id": "mute", "command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]})
    screen = Watcher()
    async with person.bridge() as bridge:
        trying = asyncio.create_task(run("dari remote", ["test", "mute"], screen, bridge, person.around()))
        await screen.sees("start")
        (child,) = bridge.children.running
        trying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trying
        await child.gone()
        assert bridge.children.running == frozenset()


async def test_many_servers_are_tried_in_turns_and_each_time_counts_from_its_turn(
    person: Person, tmp_path: Path
) -> None:
    many = [heavy(f"heavy{number}", tmp_path) for number in range(12)]
    person.write(*many)
    async with person.bridge() as bridge:
        at_once = bridge.start_queue.max_at_once
    answer = await person.run("test", "--all")
    assert (answer.code, answer.out.splitlines()[-1]) == (0, "12 of 12 servers work")
    assert most_at_once(tmp_path) <= at_once
