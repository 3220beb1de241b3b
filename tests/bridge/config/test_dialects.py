"""`mcpServers` of Claude and Cursor and `servers` of VS Code, as they are copied from their documentation."""

from __future__ import annotations

import pytest

from tests.support.bridge_config import World, contents, http, stdio

CLAUDE = """{
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"]
    },
    "api-server": {
      "type": "sse",
      "url": "${API_BASE_URL:-https://api.example.com}/mcp",
      "headers": { "Authorization": "Bearer ${API_KEY}" }
    },
    "github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/", "headersHelper": "get-headers.sh" }
  }
}"""

VSCODE = """{
  // what a person is asked for
  "inputs": [
    { "type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true },
  ],
  "servers": {
    "perplexity": {
      "type": "stdio", "command": "npx", "args": ["-y", "server-perplexity-ask"],
      "env": { "PERPLEXITY_API_KEY": "${input:perplexity-key}", "RETRIES": 3, "PROXY": null },
      "envFile": "${workspaceFolder}/.env"
    },
    "context7": { "type": "http", "url": "https://mcp.context7.com/mcp", "gallery": true },
    "myServer": {
      "type": "stdio", "command": "npx", "sandboxEnabled": true,
      "sandbox": { "filesystem": { "allowWrite": ["${workspaceFolder}"] } },
      "dev": { "watch": "src/**/*.ts" }
    },
  },
}"""


def test_a_claude_file_is_read_verbatim() -> None:
    found = contents(CLAUDE)
    assert (found.broken, found.problems) == ((), ())
    files, api, github = found.profiles
    assert stdio(files).args[-1] == "/Users/me/Desktop"
    assert (api.kind, http(api).headers["Authorization"].reveal()) == ("sse", "Bearer ${API_KEY}")
    assert (http(github).flavour, http(github).url) == ("http", "https://api.githubcopilot.com/mcp/")
    assert "runs a command, which is never done" in github.notes[0]


def test_a_vs_code_file_is_read_verbatim(world: World) -> None:
    world.user(VSCODE)
    (world.cwd / ".env").write_text("FROM_FILE=1\n")
    catalog = world.load()
    assert catalog.problems == ()
    assert world.states() == {"perplexity": "ready", "context7": "ready", "myServer": "ready"}
    found = stdio(world.resolve("perplexity", **{"perplexity-key": "pplx-1234"}).profile)
    assert {name: value.reveal() for name, value in found.env.items()} == {
        "FROM_FILE": "1",
        "PERPLEXITY_API_KEY": "pplx-1234",
        "RETRIES": "3",
    }
    notes = catalog.find("myServer").profile.notes  # type: ignore[union-attr]
    assert len(notes) == 2 and "sandbox" in notes[1]


def test_http_in_vs_code_may_turn_out_to_be_sse_as_it_does_there() -> None:
    assert http(contents(VSCODE).profiles[1]).flavour == "auto"


@pytest.mark.parametrize(
    ("entry", "kind", "flavour"),
    [
        ('{"url": "http://h/mcp"}', "http", "auto"),
        ('{"type": "streamable-http", "url": "http://h/mcp"}', "http", "http"),
        ('{"transport": "streamableHttp", "url": "http://h/mcp"}', "http", "http"),
        ('{"httpUrl": "http://h/mcp"}', "http", "http"),
        ('{"serverUrl": "http://h/mcp"}', "http", "auto"),
        ('{"transport": "sse", "url": "http://h/sse"}', "sse", "sse"),
    ],
)
def test_an_address_is_known_by_all_its_names(entry: str, kind: str, flavour: str) -> None:
    (found,) = contents(f'{{"mcpServers": {{"s": {entry}}}}}').profiles
    assert (found.kind, http(found).flavour) == (kind, flavour)


def test_fields_of_other_programs_are_noted_and_a_typo_is_refused() -> None:
    found = contents(
        """{"mcpServers": {
          "a": {"command": "x", "alwaysAllow": ["read"], "autoApprove": [], "fancyNewThing": 1},
          "b": {"command": "x", "agrs": ["-y"]},
          "c": {"command": "x", "timeout": 5000, "includeTools": ["a"], "excludeTools": ["b"], "disabledTools": ["c"]}
        }}"""
    )
    a, c = found.profiles
    assert [note.split("'")[1] for note in a.notes] == ["alwaysAllow", "autoApprove", "fancyNewThing"]
    assert found.broken[0].message == "/somewhere/mcp.json:3: mcpServers.b.agrs: unknown field"
    assert found.broken[0].hint == "did you mean 'args'?"
    assert (c.timeout_ms, c.tools.allow, c.tools.deny) == (5000, ("a",), ("b", "c"))


@pytest.mark.parametrize(
    "oauth",
    [
        '"oauth": {"clientId": "id", "callbackPort": 8080, "scopes": "read write", "authServerMetadataUrl": "https://m"}',
        '"oauth": {"enabled": true, "clientId": "id", "clientSecret": "${S}", "scopes": ["read", "write"]}',
        '"auth": {"CLIENT_ID": "id", "CLIENT_SECRET": "${S}", "scopes": ["read", "write"]}',
    ],
    ids=["Claude Code", "Gemini", "Cursor"],
)
def test_oauth_is_read_as_each_program_writes_it(oauth: str) -> None:
    (found,) = contents(f'{{"mcpServers": {{"s": {{"url": "https://h/mcp", {oauth}}}}}}}').profiles
    auth = http(found).auth
    assert (auth.type, auth.client_id, auth.scopes) == ("oauth2", "id", ("read", "write"))


def test_an_input_that_would_run_a_command_is_refused() -> None:
    found = contents('{"inputs": [{"type": "command", "id": "x", "command": "ext.ask"}]}')
    assert found.inputs == ()
    assert "would run a command" in found.problems[0]
