"""Errors say where: file, line, field. They never say what a secret is."""

from __future__ import annotations

import pytest

from tests.support.bridge_config import World, contents

BAD = """{
  "servers": [
    { "id": "good", "baseUrl": "http://h" },
    {
      "id": "late",
      "baseUrl": "http://h",
      "timeoutMS": 5
    },
    { "id": "deep", "command": "x",
      "tools": {
        "alow": ["*"]
      }
    },
    { "id": "good", "baseUrl": "http://other" },
    "nonsense",
    { "id": "also good", "command": "x" }
  ]
}"""


def test_one_bad_server_does_not_cost_the_others() -> None:
    found = contents(BAD)
    assert [profile.id for profile in found.profiles] == ["good", "also good"]
    assert [broken.id for broken in found.broken] == ["late", "deep", "good", "servers[4]"]


def test_an_error_names_file_line_field_and_what_was_meant() -> None:
    late, deep, twice, nonsense = contents(BAD).broken
    assert (late.message, late.hint) == (
        "/somewhere/mcp.json:7: servers[1].timeoutMS: unknown field",
        "did you mean 'timeoutMs'?",
    )
    assert (deep.message, deep.hint) == (
        "/somewhere/mcp.json:11: servers[2].tools.alow: unknown field",
        "did you mean 'allow'?",
    )
    assert "mcp.json:14: servers[3].id: the name 'good' is used already in line 3" in twice.message
    assert "mcp.json:15: servers[4]: must be an object" in nonsense.message


def test_a_name_that_stands_twice_is_told_and_the_first_counts(world: World) -> None:
    world.user('{"mcpServers": {\n"a": {"command": "1"},\n"a": {"command": "2"}}}')
    catalog = world.load()
    assert (catalog.find("a").source.line, catalog.find("a").profile.address) == (2, "1")  # type: ignore[union-attr]
    assert "mcp.json:3: mcpServers.a.id: the name 'a' is used already in line 2" in catalog.problems[0]


def test_a_field_unlike_any_other_gets_the_list_of_known_ones() -> None:
    (broken,) = contents({"servers": [{"id": "s", "baseUrl": "http://h", "zzz": 1}]}).broken
    assert broken.hint.startswith("known here: timeoutMs, ")


def test_a_mistyped_section_is_told() -> None:
    assert "did you mean 'mcpServers'?" in contents({"mcpServer": {}}).problems[0]
    assert "did you mean 'servers'?" in contents({"Servers": []}).problems[0]
    assert "version: is newer" in contents({"version": "3"}).problems[0]
    assert contents({"version": 2}).problems == ()


@pytest.mark.parametrize(
    ("text", "where", "fact"),
    [
        ('{\n  "servers": [\n    {"id": "a"\n  ]\n}', "4:3", "expected ',' or '}'"),
        ('{"servers": [}', "1:14", "a value is missing here"),
        ('{\n "a": nope}', "2:7", "a JSON value is expected here"),
        ('{"a": "x\n"}', "1:7", "this string has no end"),
        ('{"a" 1}', "1:6", "expected ':' behind \"a\""),
        ("{a: 1}", "1:2", "expected a name in double quotes"),
        ('{"a": 1} x', "1:10", "more text follows"),
        ("[" * 200, "1:102", "nested deeper than"),
        ("/* never closed", "1:1", "a JSON value is expected here"),
        ("", None, None),
        ("// only a comment\n{}", None, None),
    ],
)
def test_broken_json_is_told_with_its_place(text: str, where: str | None, fact: str | None) -> None:
    found = contents(text)
    assert found.is_readable == (where is None)
    if where and fact:
        assert found.problems[0].startswith(f"/somewhere/mcp.json:{where}: {fact}")


SECRET = "sk-live-0123456789"


@pytest.mark.parametrize(
    "entry",
    [
        {"baseUrl": "http://h", "apiKey": {"k": SECRET}},
        {"baseUrl": "http://h", "timeoutMs": SECRET},
        {"baseUrl": "http://h", "auth": {"type": SECRET}},
        {"baseUrl": f"{SECRET}"},
        {"baseUrl": f"http://h/?key={SECRET} x"},
        {"command": "x", "env": {"K": [SECRET]}},
        {"command": "x", "args": [{"a": SECRET}]},
        {"command": "x", "restart": SECRET},
        {"command": "x", "protocol": f"it's '{SECRET}'"},
        {"command": "x", "args": [f"--key={SECRET}\0"]},
        {"kind": SECRET},
    ],
)
def test_no_value_of_a_server_is_repeated_in_its_error(entry: dict[str, object]) -> None:
    found = contents({"servers": [{"id": "s", **entry}]})
    assert len(found.broken) == 1
    assert SECRET not in repr(found)


def test_a_profile_never_shows_its_secrets(world: World) -> None:
    world.environ["TOKEN"] = SECRET
    world.user(
        {
            "servers": [
                {
                    "id": "h",
                    "url": f"https://u:{SECRET}@h/{SECRET}?key={SECRET}",
                    "headers": {"X": SECRET},
                    "apiKey": SECRET,
                },
                {"id": "c", "command": "x", "args": ["--token", "${TOKEN}", SECRET], "env": {"K": SECRET}},
                {"id": "o", "url": "https://h", "auth": {"clientId": "i", "clientSecret": SECRET, "type": "oauth2"}},
            ]
        }
    )
    catalog = world.load()
    for id in ("h", "c", "o"):
        for shown in (repr(catalog), str(catalog.find(id)), repr(world.resolve(id)), catalog.find(id).profile):
            assert SECRET not in str(shown)
    address = catalog.find("h").profile.address  # type: ignore[union-attr]
    assert address.startswith("https://h/") and "key=" not in address and "u:" not in address


@pytest.mark.parametrize("size", [4 * 1024 * 1024 + 1])
def test_a_huge_file_is_refused(size: int) -> None:
    assert "more than" in contents(" " * size).problems[0]


def test_a_file_that_is_no_utf8_is_told(world: World) -> None:
    world.user("{}").write_bytes(b'{"servers": "\xff"}')
    assert "must be UTF-8 text (error at byte 13)" in world.load().problems[0]
