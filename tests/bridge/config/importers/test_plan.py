"""Import from other programs, on files as they are found on people's machines (see samples/)."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.config.importers.formats import LARGE_FILE_BYTES
from dari.bridge.config.importers.plan import ImportCandidate
from dari.bridge.config.importers.sources import PROGRAMS, source_files
from dari.bridge.config.jsonc import parse
from dari.bridge.config.locations import ClientEnvironment
from tests.support.bridge_config import World, http, put, stdio

SAMPLES = Path(__file__).parents[1] / "samples"
HOME = {
    "claude-desktop": {".config/Claude/claude_desktop_config.json": "claude_desktop_config.json"},
    "claude-code": {".claude.json": "claude.json"},
    "cursor": {".cursor/mcp.json": "cursor_mcp.json"},
    "vscode": {
        ".config/Code/User/mcp.json": "vscode_mcp.json",
        ".config/Code/User/settings.json": "vscode_settings.json",
    },
    "codex": {".codex/config.toml": "codex_config.toml"},
    "gemini": {".gemini/settings.json": "gemini_settings.json"},
    "windsurf": {".codeium/windsurf/mcp_config.json": "windsurf_mcp_config.json"},
    "opencode": {".config/opencode/opencode.json": "opencode.json"},
}


def sample(world: World, name: str) -> str:
    return (SAMPLES / name).read_text().replace("@PROJECT@", str(world.cwd))


def give(world: World, program: str) -> None:
    for path, name in HOME[program].items():
        put(world.home / path, sample(world, name))


def planned(world: World, program: str) -> dict[str, ImportCandidate]:
    give(world, program)
    return {one.id: one for one in world.book.plan_import([program]).candidates}  # type: ignore[list-item]


def test_claude_desktop(world: World) -> None:
    found = planned(world, "claude-desktop")
    assert [one.status for one in found.values()] == ["new", "new"]
    assert found["github"].entry["env"] == {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_exampleexampleexample"}
    assert found["filesystem"].source.line == 3


def test_claude_code_with_its_projects(world: World) -> None:
    found = planned(world, "claude-code")
    assert found["sentry"].entry == {"type": "http", "url": "https://mcp.sentry.dev/mcp"}
    assert found["postgres"].entry["disabled"] is True
    assert found["playwright"].entry["command"] == "playwright-of-this-project"  # its local scope wins
    assert found["push"].status == "broken" and "type: invalid enum value" in found["push"].reason
    assert [note.split("'")[1] for note in found["dynamic"].notes] == ["headersHelper", "alwaysLoad"]
    assert "other" not in found
    plan = world.book.plan_import(["claude-code"])
    assert plan.notes == ("claude-code: servers of 1 other projects are left out: /elsewhere",)


def test_the_project_file_of_claude_code(world: World) -> None:
    put(world.cwd / ".mcp.json", sample(world, "dot_mcp.json"))
    found = {one.id: one for one in world.book.plan_import(["claude-code"]).candidates}
    assert found["api-server"].entry["url"] == "${API_BASE_URL:-https://api.example.com}/mcp"
    assert found["local"].entry["cwd"] == str(world.cwd)  # `./tools/server.py` goes on to mean the project's


def test_cursor(world: World) -> None:
    found = planned(world, "cursor")
    assert [one.status for one in found.values()] == ["new", "new", "new"]
    assert found["crm"].entry["auth"] == {
        "CLIENT_ID": "${env:MCP_CLIENT_ID}",
        "CLIENT_SECRET": "${env:MCP_CLIENT_SECRET}",
        "scopes": ["read"],
    }


def test_vs_code_with_inputs_and_old_settings(world: World) -> None:
    found = planned(world, "vscode")
    assert {id: one.status for id, one in found.items()} == {
        "perplexity": "new",
        "context7": "new",
        "boxed": "new",
        "socket": "broken",
        "time": "new",
    }
    assert found["context7"].entry == {"url": "https://mcp.context7.com/mcp"}  # tried as HTTP, then as SSE
    assert [note.split("'")[1] for note in found["boxed"].notes] == ["sandboxEnabled", "sandbox", "dev"]
    world.book.run_import(world.book.plan_import(["vscode"]))
    written = json.loads(world.user_file.read_text())
    assert [one["id"] for one in written["inputs"]] == ["perplexity-key"]
    env = stdio(world.resolve("perplexity", **{"perplexity-key": "pplx"}).profile).env
    assert env["PERPLEXITY_API_KEY"].reveal() == "pplx"


def test_the_workspace_of_a_vs_code_project_becomes_its_path(world: World) -> None:
    put(world.cwd / ".vscode/mcp.json", sample(world, "vscode_mcp.json"))
    found = {one.id: one for one in world.book.plan_import(["vscode"]).candidates}
    assert found["perplexity"].entry["args"] == ["-y", "server-perplexity-ask", f"{world.cwd}/data"]


def test_codex(world: World) -> None:
    found = planned(world, "codex")
    assert found["context7"].entry == {
        "command": "npx",
        "args": ["-y", "@upstash/context7-mcp"],
        "inheritEnv": ["LOCAL_TOKEN"],
        "initTimeoutMs": 20000,
        "timeoutMs": 45500,
        "env": {"MY_ENV_VAR": "MY_ENV_VALUE", "TEMPLATE": "$${NOT_EXPANDED_BY_CODEX}"},
    }
    assert found["figma"].entry == {
        "url": "https://mcp.figma.com/mcp",
        "apiKey": "${FIGMA_OAUTH_TOKEN}",
        "headers": {"X-Figma-Region": "us-east-1", "X-Team": "${FIGMA_TEAM}"},
    }
    assert found["figma"].notes == ("'required' is not carried over: it is not known here",)
    assert found["chrome_devtools"].entry == {
        "command": "chrome-devtools-mcp",
        "cwd": "/srv/chrome",
        "disabled": True,
        "tools": {"allow": ["open", "screenshot"], "deny": ["screenshot"], "confirm": ["*"]},
    }
    assert found["with dots.and blanks"].entry == {"command": "x", "tools": {"confirm": ["open"]}}
    assert [one.source.line for one in found.values()] == [4, 15, 22, 30]


def test_gemini(world: World) -> None:
    found = planned(world, "gemini")
    python = found["pythonTools"]
    assert python.entry["env"] == {"DATABASE_URL": "${DB_CONNECTION_STRING}", "API_KEY": "${EXTERNAL_API_KEY}"}
    assert python.notes == ("'trust' is not carried over: use tools.confirm for what needs a yes",)
    assert (found["sse"].entry["type"], found["github"].entry["type"]) == ("sse", "http")
    assert found["github"].entry["headers"] == {"Authorization": "Bearer ${PAT}"}
    assert found["experimental"].entry["disabled"] is True
    assert "authProviderType" in found["google"].notes[0]


def test_windsurf(world: World) -> None:
    found = planned(world, "windsurf")
    assert found["userjot"].entry["serverUrl"] == "https://api.userjot.com/v1/mcp"
    assert (found["git"].entry["disabled"], found["git"].entry["disabledTools"]) == (True, ["push"])
    assert "alwaysAllow" in found["auto"].notes[0]


def test_opencode(world: World) -> None:
    found = planned(world, "opencode")
    assert found["everything"].entry == {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-everything"],
        "env": {"KEY": "${env:MY_KEY}"},
        "enabled": True,
        "timeout": 5000,
    }
    assert found["remote"].entry["headers"] == {"X": "${file:~/.key}"}


@pytest.mark.parametrize("path", ["./keys/k", "keys/k"])
def test_a_file_that_opencode_names_is_beside_its_own_configuration(world: World, path: str) -> None:
    folder = world.home / ".config/opencode"
    put(folder / "keys/k", "secret")
    put(folder / "opencode.json", json.dumps({"mcp": {"r": {"url": "http://h", "headers": {"X": f"{{file:{path}}}"}}}}))
    world.book.run_import(world.book.plan_import(["opencode"]))
    assert http(world.resolve("r").profile).headers["X"].reveal() == "secret"


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_imported_is_what_was_shown(world: World, program: Any) -> None:
    give(world, program)
    plan = world.book.plan_import([program])
    assert not world.user_file.exists()
    names = world.book.run_import(plan)
    assert names == tuple(one.id for one in plan.of("new")) and names
    assert stat.S_IMODE(world.user_file.stat().st_mode) == 0o600
    assert {one.id for one in world.load().listed} == set(names)
    assert all(one.state in ("ready", "disabled") for one in world.load().listed)
    assert world.book.run_import(world.book.plan_import([program])) == ()
    again = world.book.plan_import([program])
    assert {one.status for one in again.candidates} <= {"duplicate", "broken"}


def test_all_programs_at_once_skip_what_is_the_same_and_ask_about_the_rest(world: World) -> None:
    for program in PROGRAMS:
        give(world, program)
    plan = world.book.plan_import()
    assert [(one.program, one.id) for one in plan.of("duplicate")] == [("windsurf", "userjot")]
    assert [(one.program, one.id) for one in plan.of("conflict")] == [("codex", "context7"), ("gemini", "github")]
    names = world.book.run_import(plan, takes_conflicts=True)
    assert "github-gemini" in names
    assert "broken" not in world.states().values()


def test_the_same_server_under_another_name_is_a_duplicate(world: World) -> None:
    world.user({"mcpServers": {"my-sentry": {"url": "https://mcp.sentry.dev/mcp"}}})
    found = planned(world, "claude-code")
    assert (found["sentry"].status, found["sentry"].reason) == ("duplicate", "is the same server as 'my-sentry'")


def test_a_name_that_is_taken_is_a_conflict_with_a_free_name(world: World) -> None:
    world.user({"mcpServers": {"sentry": {"command": "mine"}, "sentry-claude-code": {"command": "also mine"}}})
    found = planned(world, "claude-code")["sentry"]
    assert (found.status, found.free_id) == ("conflict", "sentry-claude-code-2")


def test_files_that_cannot_be_read_are_told_and_cost_no_other(world: World) -> None:
    put(world.home / ".cursor/mcp.json", "{ nope")
    put(world.home / ".codex/config.toml", "= broken")
    put(world.home / ".gemini/settings.json", "[]")
    (world.home / ".codeium/windsurf/mcp_config.json").mkdir(parents=True)
    give(world, "claude-desktop")
    plan = world.book.plan_import()
    assert len(plan.of("new")) == 2
    assert [note.split(":")[0] for note in plan.notes] == ["cursor", "codex", "gemini", "windsurf"]


def test_no_secret_of_another_program_is_shown(world: World) -> None:
    give(world, "claude-desktop")
    plan = world.book.plan_import()
    assert "ghp_example" not in repr(plan)
    assert [one.address for one in plan.candidates] == ["npx", "docker"]
    world.user({"imports": ["claude-desktop"]})
    assert "ghp_example" not in repr(world.load())


@pytest.mark.parametrize(
    ("platform", "desktop", "code"),
    [
        ("linux", ".config/Claude/claude_desktop_config.json", ".config/Code/User/mcp.json"),
        (
            "darwin",
            "Library/Application Support/Claude/claude_desktop_config.json",
            "Library/Application Support/Code/User/mcp.json",
        ),
    ],
)
def test_files_are_looked_for_where_the_platform_keeps_them(platform: str, desktop: str, code: str) -> None:
    around = ClientEnvironment(Path("/h"), Path("/p"), {}, platform)
    assert [str(found.path) for found in source_files("claude-desktop", around)] == [f"/h/{desktop}"]
    assert f"/h/{code}" in [str(found.path) for found in source_files("vscode", around)]


def test_variables_that_move_their_homes_are_followed() -> None:
    around = ClientEnvironment(Path("/h"), Path("/p"), {"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/k"}, "linux")
    assert Path("/c/config.toml") in [found.path for found in source_files("codex", around)]
    assert Path("/k/.claude.json") in [found.path for found in source_files("claude-code", around)]


def test_a_projects_file_of_another_program_runs_nothing_until_it_is_trusted(world: World) -> None:
    path = put(world.cwd / ".mcp.json", '{"mcpServers": {"evil": {"command": "rm"}}}')
    world.user({"imports": ["claude-code"]})
    assert world.states() == {"evil": "untrusted"}
    world.book.trust(path)
    assert world.states() == {"evil": "ready"}


def test_a_server_that_only_an_untrusted_project_names_can_still_be_imported(world: World) -> None:
    world.project({"mcpServers": {"sentry": {"url": "https://mcp.sentry.dev/mcp"}}})
    assert planned(world, "claude-code")["sentry"].status == "new"


def test_the_program_that_is_named_first_wins(world: World) -> None:
    put(world.home / ".cursor/mcp.json", '{"mcpServers": {"fs": {"command": "from-cursor"}}}')
    put(world.home / ".codex/config.toml", '[mcp_servers.fs]\ncommand = "from-codex"\n')
    for first, second in (("cursor", "codex"), ("codex", "cursor")):
        world.user({"imports": [first, second]})
        assert world.load().find("fs").source.program == first


def test_a_long_claude_file_is_read_fast_and_with_its_lines(world: World) -> None:
    text = sample(world, "claude.json").replace('"hello"', '"%s"' % ("hello " * 60000))
    put(world.home / ".claude.json", text)
    found = {one.id: one for one in world.book.plan_import(["claude-code"]).candidates}
    short = planned(world, "claude-code")
    assert len(text) > LARGE_FILE_BYTES
    assert {id: (one.entry, one.status) for id, one in found.items()} == {
        id: (one.entry, one.status) for id, one in short.items()
    }
    assert found["sentry"].source.line == short["sentry"].source.line == 6


def test_an_untrusted_project_cannot_import_anything(world: World) -> None:
    give(world, "claude-desktop")
    world.project({"imports": ["claude-desktop"]})
    assert world.states() == {}
    world.book.trust()
    assert world.states() == {"filesystem": "ready", "github": "ready"}


def test_the_samples_are_what_their_programs_write() -> None:
    """A sample that lost its comments or trailing commas would no longer test them."""
    for name in ("vscode_mcp.json", "vscode_settings.json", "cursor_mcp.json"):
        text = (SAMPLES / name).read_text()
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
        assert parse(text, name).plain()


@pytest.mark.parametrize("time", ["inf", "nan", "1e308", "'soon'"])
def test_a_time_of_codex_that_is_none_is_left_out_and_the_server_is_not(world: World, time: str) -> None:
    text = f"[mcp_servers.a]\ncommand = 'x'\nstartup_timeout_sec = {time}\ntool_timeout_sec = {time}\n"
    put(world.home / ".codex/config.toml", text)
    (one,) = world.book.plan_import(["codex"]).candidates
    assert (one.status, one.entry) == ("new", {"command": "x"})
    assert [note.partition(":")[0] for note in one.notes] == [
        "'startup_timeout_sec' is not carried over",
        "'tool_timeout_sec' is not carried over",
    ]


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 3000])
def test_toml_that_python_cannot_read_is_a_note_on_its_file_alone(world: World, value: str) -> None:
    put(world.home / ".codex/config.toml", f"x = {value}\n")
    give(world, "cursor")
    plan = world.book.plan_import(["codex", "cursor"])
    assert plan.notes[0].startswith("codex: ") and plan.of("new")
