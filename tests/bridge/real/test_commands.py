"""Real servers from the shell: by the daemon and in the process of the command, with the servers' own results."""

from __future__ import annotations

import json

import pytest

from tests.bridge.real.direct import Said
from tests.support.real_servers import IDS, RealServer, payload
from tests.support.real_servers_home import House

pytestmark = [pytest.mark.local_mcp, pytest.mark.e2e, pytest.mark.xdist_group("real servers"), pytest.mark.timeout(180)]


@pytest.mark.parametrize("name", IDS)
def test_the_daemon_lists_what_the_server_lists_and_calls_give_its_result(
    name: str, house: House, servers: dict[str, RealServer], said: dict[str, Said]
) -> None:
    server = servers[name]
    listed = house.remote("list-tools", "--server", name, "--json")
    assert listed.code == 0, listed.err
    assert {tool["name"]: tool for tool in listed.json} == {
        own: {"server": name, **tool} for own, tool in said[name].tools.items()
    }
    called = house.remote("call-tool", f"{name}/{server.tool}", "--raw", "--params", json.dumps(server.arguments))
    assert (called.code, called.err) == (0, "")
    assert payload(called.out) == said[name].answer


@pytest.mark.parametrize("name", ["everything", "filesystem", "postgres", "git"])
def test_without_a_daemon_the_result_is_the_same(name: str, house: House, servers: dict[str, RealServer]) -> None:
    server = servers[name]
    words = ("call-tool", server.tool, "--server", name, "--raw", "--params", json.dumps(server.arguments))
    called = house.remote(*words, in_process=True)
    assert (called.code, called.err) == (0, "")
    assert payload(called.out) == server.answer


def test_a_server_that_never_answers_ends_the_command_with_2_and_its_last_words(house: House) -> None:
    done = house.remote("list-tools", "--server", "hanging")
    assert (done.code, done.out) == (2, "")
    assert "did not answer within 3 s" in done.err
    assert "Stripe MCP Server running on stdio" in done.err


@pytest.mark.parametrize("in_process", [False, True], ids=["daemon", "in process"])
def test_a_server_that_ends_at_start_ends_the_command_with_2_and_its_last_words(house: House, in_process: bool) -> None:
    done = house.remote("call-tool", "crashing/query", "--params", "{}", in_process=in_process)
    assert (done.code, done.out) == (2, "")
    assert "exit status 1" in done.err
    assert "'Server' object has no attribute 'list_resources'" in done.err


def test_the_oldest_revision_is_shown_and_a_query_that_fails_is_the_servers_own_error(house: House) -> None:
    done = house.remote("call-tool", "postgres/query", "--raw", "--sql", "select nothing from nowhere")
    assert done.code == 3
    assert 'relation "nowhere" does not exist' in done.out + done.err
    status = house.remote("daemon", "status", "--json")
    (postgres,) = [one for one in status.json["servers"] if one["id"] == "postgres"]
    assert (postgres["state"], postgres["version"]) == ("ready", "2024-11-05")
