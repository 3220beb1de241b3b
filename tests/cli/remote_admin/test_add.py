"""`add`: what is written where, what is warned of, what is refused before anything is written."""

from __future__ import annotations

import json
import stat
import sys

import pytest

from tests.support.remote_user import LAB, Person, put


async def test_a_command_is_written_to_the_persons_own_private_file(person: Person) -> None:
    answer = await person.run("add", "time", "--", "uvx", "mcp-server-time", "--local-timezone", "UTC")
    assert (answer.code, answer.out) == (0, f"added 'time' to {person.user_file}\n")
    assert person.servers() == {"time": {"command": "uvx", "args": ["mcp-server-time", "--local-timezone", "UTC"]}}
    assert stat.S_IMODE(person.user_file.stat().st_mode) == 0o600
    assert "dari remote test time" in answer.err


async def test_every_option_of_a_command_ends_up_in_its_field(person: Person) -> None:
    (person.cwd / "notes").mkdir()
    words = ["--env", "LEVEL=a=b", "--cwd", "sub/..", "--allow", "notes", "--allow", "/usr:ro", "--allow", "~/x:rw"]
    words += ["--allow", "${PWD}", "--network", "loopback", "--sandbox", "enforce", "--default"]
    assert (await person.run("add", "files", *words, "--", "server", "--network")).code == 0
    assert person.servers()["files"] == {
        "command": "server",
        "args": ["--network"],
        "env": {"LEVEL": "a=b"},
        "cwd": str(person.cwd),
        "allowedPaths": [
            {"path": str(person.cwd / "notes"), "mode": "rw"},
            {"path": "/usr", "mode": "ro"},
            {"path": str(person.home / "x"), "mode": "rw"},
            {"path": "${PWD}", "mode": "rw"},
        ],
        "network": "loopback",
        "sandbox": "enforce",
        "default": True,
    }


async def test_an_address_is_written_with_its_key_and_headers(person: Person) -> None:
    words = ["--url", "https://mcp.example.com/mcp", "--key", "${CREWX_MCP_KEY}", "--header", "X-Team: blue: sky"]
    answer = await person.run("add", "prod", *words, program="crewx mcp remote")
    assert answer.code == 0 and "warning" not in answer.err
    assert "crewx mcp remote test prod" in answer.err
    assert person.servers()["prod"] == {
        "url": "https://mcp.example.com/mcp",
        "apiKey": "${CREWX_MCP_KEY}",
        "headers": {"X-Team": "blue: sky"},
    }


async def test_a_projects_file_that_add_makes_is_trusted(person: Person) -> None:
    answer = await person.run("add", "time", "--project", "--", "uvx", "mcp-server-time")
    assert answer.out == f"added 'time' to {person.project_file}\n"
    assert "trust" not in answer.err
    assert [one.state for one in (await listed(person))] == ["ready"]


async def test_a_projects_file_of_somebody_else_stays_untrusted_and_says_so(person: Person) -> None:
    person.write({"id": "theirs", "command": "x"}, path=person.project_file)
    answer = await person.run("add", "mine", "--project", "--", "uvx", "mine")
    assert "is not trusted, so nothing in it runs: dari remote trust" in answer.err
    assert {one.state for one in await listed(person)} == {"untrusted"}


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--env", "API_TOKEN=sk-1234567890", "--", "x"], "env.API_TOKEN"),
        (["--url", "https://h/mcp", "--key", "sk-1234567890"], "apiKey"),
        (["--url", "https://h/mcp", "--header", "Authorization: Bearer abcdefgh"], "headers.Authorization"),
        (["--url", "https://user:hunter22@h/mcp"], "url"),
        (["--", "x", "--api-key", "sk-1234567890abcdef"], "args"),
    ],
)
async def test_a_secret_in_the_clear_is_written_with_a_warning_that_names_better_ways(
    words: list[str], field: str, person: Person
) -> None:
    answer = await person.run("add", "s", *words)
    assert answer.code == 0
    assert f"{field} of 's' stands in {person.user_file} in the clear" in answer.err
    assert "${NAME}" in answer.err and "${keyring:service/name}" in answer.err
    assert "1234567890" not in answer.out + answer.err and "hunter22" not in answer.out + answer.err


async def test_a_secret_that_is_referred_to_gives_no_warning(person: Person) -> None:
    words = ["--env", "API_TOKEN=${API_TOKEN}", "--env", "DB_PASSWORD=${keyring:db/me}", "--", "x", "--key", "${K}"]
    assert "warning" not in (await person.run("add", "s", *words)).err


async def test_what_a_readme_says_to_paste_is_taken_as_it_is(person: Person) -> None:
    pasted = {"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"]}, "b": {"url": "https://b/mcp"}}}
    answer = await person.run("add", "--json", json.dumps(pasted))
    assert answer.code == 0
    assert person.servers() == pasted["mcpServers"]


@pytest.mark.parametrize("form", ["text", "file", "stdin", "list", "named inside"])
async def test_one_entry_as_json_may_come_from_anywhere(form: str, person: Person) -> None:
    entry = {"command": "npx", "tools": {"deny": ["*"]}}
    put(person.cwd / "entry.json", entry)
    words = {
        "text": ["memory", "--json", json.dumps(entry)],
        "file": ["memory", "--json", "@entry.json"],
        "stdin": ["memory", "--json", "-"],
        "list": ["--json", json.dumps({"servers": [{"id": "memory", **entry}]})],
        "named inside": ["--json", json.dumps({"id": "memory", **entry})],
    }[form]
    assert (await person.run("add", *words, stdin=json.dumps(entry).encode())).code == 0
    assert person.servers() == {"memory": entry}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["s"], "a server is either a command or an address"),
        (["s", "--url", "https://h", "--", "x"], "a server is either a command or an address, not both"),
        (["--", "x"], "the server has no name"),
        (["s", "npx", "server"], "put -- before the command: add s -- npx server"),
        (["s", "--env", "hunter22", "--", "x"], "--env needs NAME=VALUE"),
        (["s", "--url", "https://h", "--header", "hunter22"], "--header needs 'NAME: VALUE'"),
        (["s", "--url", "https://h", "--env", "A=b"], "--env counts for a command only"),
        (["s", "--key", "k", "--", "x"], "--key counts for an address only"),
        (["s", "--url", "ftp://h"], "url"),
        (["a/b", "--", "x"], "'a/b'"),
        (["s", "--json", "{"], "--json must be JSON"),
        (["s", "--json", "[1]"], "--json must be a JSON object"),
        (["s", "--json", "{}", "--default"], "--json is the whole entry"),
        (["s", "--json", '{"commando": "x"}'], "commando"),
        (["s", "--json", '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}'], "--json holds 2 servers"),
        (["s", "--json", "@missing.json"], "cannot read missing.json"),
        (["s", "--user", "--project", "--", "x"], "not allowed with argument"),
        (["s", "--network", "some", "--", "x"], "--network must be one of"),
    ],
)
async def test_what_cannot_be_written_is_refused_with_1_and_nothing_is_written(
    words: list[str], complaint: str, person: Person
) -> None:
    answer = await person.run("add", *words)
    assert answer.code == 1
    assert complaint in answer.err and "hint:" in answer.err
    assert "hunter22" not in answer.err
    assert not person.user_file.exists()


async def test_a_name_in_use_is_overwritten_only_when_told(person: Person) -> None:
    await person.run("add", "s", "--", "one")
    refused = await person.run("add", "s", "--", "two")
    assert refused.code == 1 and "--replace" in refused.err
    assert person.servers()["s"]["command"] == "one"
    assert (await person.run("add", "s", "--replace", "--", "two")).code == 0
    assert person.servers()["s"] == {"command": "two"}


async def test_of_several_pasted_servers_all_are_written_or_none(person: Person) -> None:
    person.write({"id": "old", "command": "x"})
    before = person.user_file.read_bytes()
    pasted = '{"mcpServers": {"new": {"command": "a"}, "%s": {"command": "b"}}}'
    assert (await person.run("add", "--json", pasted % "old")).code == 1
    assert (await person.run("add", "--json", pasted % "a/b")).code == 1
    assert person.user_file.read_bytes() == before
    assert (await person.run("add", "--json", pasted % "newer")).code == 0
    assert set(person.servers()) == {"old", "new", "newer"}


async def test_a_name_that_a_stronger_file_has_is_told(person: Person) -> None:
    await person.run("add", "s", "--project", "--", "one")
    answer = await person.run("add", "s", "--", "two")
    assert answer.code == 0
    assert f"also stands in {person.project_file}:" in answer.err and "that one counts" in answer.err


async def test_with_test_the_server_is_tried_at_once(person: Person) -> None:
    works = await person.run("add", "lab", "--test", "--", sys.executable, str(LAB))
    assert works.code == 0 and "15 tools" in works.out
    fails = await person.run("add", "gone", "--test", "--", "no-such-program-of-ours")
    assert fails.code == 2 and "not found" in fails.out
    assert set(person.servers()) == {"lab", "gone"}


async def listed(person: Person) -> tuple[object, ...]:
    async with person.bridge() as bridge:
        return bridge.view(person.around()).catalog().listed  # type: ignore[no-any-return]
