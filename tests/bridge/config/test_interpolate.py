"""References, filled in at the moment of use; what cannot be filled in names its field and never runs anything."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.config.service import ConfigService
from dari.errors import InvalidInput
from dari.installation import install_extra
from tests.support.bridge_config import World, http, put, stdio


def filled(world: World, text: str, **answers: str) -> str:
    """The text as the only argument of a child."""
    world.user({"servers": [{"id": "s", "command": "x", "args": [text]}], "inputs": [{"id": "known", "default": "d"}]})
    return stdio(world.resolve("s", **answers).profile).args[0]


def refused(world: World, text: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        filled(world, text)
    return caught.value


@pytest.fixture
def full(world: World) -> World:
    world.environ.update(A="1", EMPTY="", B="2", DARI_INPUT_FROM_ENV="asked", MULTI="x\ny")
    world.keyring["svc", "name"] = "ring"
    world.keyring["a/b", "c"] = "deep"
    put(world.user_file.with_name("key.txt"), "from file\n")
    put(world.home / "token", "from home")
    return world


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("${A}", "1"),
        ("<${A}-${B}>", "<1-2>"),
        ("${EMPTY}", ""),
        ("${EMPTY:-d}", "d"),
        ("${A:-d}", "1"),
        ("${NONE:-d}", "d"),
        ("${NONE:-}", ""),
        ("${NONE:-http://h:1/x}", "http://h:1/x"),
        ("${NONE:-${B}}", "2"),
        ("${NONE:-${ALSO:-${A}}}", "1"),
        ("${env:A}", "1"),
        ("${env:NONE:-d}", "d"),
        ("${file:key.txt}", "from file"),
        ("${file:~/token}", "from home"),
        ("${file:none.txt:-d}", "d"),
        ("${keyring:svc/name}", "ring"),
        ("${keyring:a/b/c}", "deep"),
        ("${keyring:svc/other:-d}", "d"),
        ("${input:from-env}", "asked"),
        ("${input:known}", "d"),
        ("$${A}", "${A}"),
        ("$${A} ${A}", "${A} 1"),
        ("$A $(date) `date` ${A}", "$A $(date) `date` 1"),
        ("${/}", "/"),
    ],
)
def test_a_reference_is_filled_in(full: World, text: str, value: str) -> None:
    assert filled(full, text) == value


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("${PWD}", "cwd"),
        ("${cwd}", "cwd"),
        ("${workspaceFolder}", "cwd"),
        ("${userHome}", "home"),
    ],
)
def test_folders_are_known_by_their_names(full: World, text: str, where: str) -> None:
    full.environ["PWD"] = "/not/this"
    assert filled(full, text) == str(getattr(full, where))


def test_the_name_of_the_workspace_is_known(full: World) -> None:
    assert filled(full, "${workspaceFolderBasename}") == "project"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("${NONE}", "the variable NONE is not set"),
        ("${env:NONE}", "the variable NONE is not set"),
        ("${not a name}", "a reference must name a variable"),
        ("${cmd:whoami}", "would run a command, which is never done"),
        ("${command:ext.pick}", "would run a command, which is never done"),
        ("${vault:x}", "${vault:…} is not a known reference"),
        ("${file:none.txt}", "none.txt does not exist"),
        ("${keyring:svc/none}", "the keyring has no 'svc/none'"),
        ("${keyring:svc}", "a keyring reference is"),
        ("${input:unknown}", "the input 'unknown' has no value"),
        ("${A", "a '${' has no '}'"),
        ("${N:-" * 8 + "x" + "}" * 8, "nested deeper"),
    ],
)
def test_what_cannot_be_filled_in_names_its_place(full: World, text: str, fact: str) -> None:
    error = refused(full, text)
    assert error.message.startswith(f"{full.user_file}:3: s: args.0: ")
    assert fact in error.message


def test_the_hint_for_a_missing_variable_says_how_to_set_it(full: World) -> None:
    assert refused(full, "${NONE}").hint == "set NONE, or write ${NONE:-default}"
    assert refused(full, "${input:api-key}").hint == "set DARI_INPUT_API_KEY"


@pytest.mark.parametrize(
    ("entry", "look"),
    [
        ({"command": "${V}"}, lambda p: stdio(p).command),
        ({"command": "x", "cwd": "/${V}"}, lambda p: stdio(p).cwd[1:]),
        ({"command": "x", "env": {"K": "${V}"}}, lambda p: stdio(p).env["K"].reveal()),
        ({"command": "x", "allowedPaths": ["/${V}"]}, lambda p: stdio(p).allowed_paths[0].path[1:]),
        ({"command": "x", "network": "${V}:1"}, lambda p: stdio(p).network.hosts[0][:-2]),
        ({"url": "http://${V}"}, lambda p: http(p).url[7:]),
        ({"url": "http://h", "fallbackUrl": "http://${V}"}, lambda p: http(p).fallback_url[7:]),
        ({"url": "http://h", "headers": {"H": "${V}"}}, lambda p: http(p).headers["H"].reveal()),
        ({"url": "http://h", "apiKey": "${V}"}, lambda p: http(p).auth.token.reveal()),
        ({"url": "http://h", "auth": {"type": "bearer", "token": "${V}"}}, lambda p: http(p).auth.token.reveal()),
        ({"url": "http://h", "oauth": {"clientSecret": "${V}"}}, lambda p: http(p).auth.client_secret.reveal()),
        ({"url": "http://h", "oauth": {"clientId": "${V}"}}, lambda p: http(p).auth.client_id),
    ],
)
def test_references_count_in_every_field_that_runs_or_is_sent(world: World, entry: dict[str, Any], look: Any) -> None:
    world.environ["V"] = "value"
    world.user({"mcpServers": {"s": entry}})
    assert look(world.resolve("s").profile) == "value"


@pytest.mark.parametrize(
    ("entry", "fact"),
    [
        ({"url": "${V}"}, "url: must be an http or https address"),
        ({"url": "http://h", "headers": {"H": "${V}"}}, "headers.H: a header is one line"),
    ],
)
def test_what_a_reference_brings_is_checked_again(world: World, entry: dict[str, Any], fact: str) -> None:
    world.environ["V"] = "ftp://x\r\nEvil: 1"
    world.user({"mcpServers": {"s": entry}})
    with pytest.raises(InvalidInput, match=fact) as caught:
        world.resolve("s")
    assert "Evil" not in caught.value.message


def test_secrets_that_were_filled_in_are_masked_everywhere(world: World) -> None:
    world.environ.update(GITHUB_TOKEN="ghp_secret/1", REGION="eu-west-1")
    world.keyring["svc", "k"] = 'ring"quoted'
    world.user(
        {
            "mcpServers": {
                "s": {
                    "command": "x",
                    "args": ["--region=${REGION}", "${keyring:svc/k}"],
                    "env": {"T": "${GITHUB_TOKEN}", "API_KEY": "literal-key", "MODE": "fast"},
                },
                "h": {"url": "http://h", "headers": {"Authorization": "Bearer inline-token"}},
            }
        }
    )
    mask = world.resolve("s").mask
    assert mask("ghp_secret/1 ghp_secret%2F1 literal-key") == "<secret> <secret> <secret>"
    assert mask('{"k": "ring\\"quoted"}') == '{"k": "<secret>"}'
    assert mask("fast in eu-west-1") == "fast in eu-west-1"
    assert world.resolve("h").mask("sent: Bearer inline-token; inline-token") == "sent: <secret>; <secret>"


def test_a_profile_that_is_only_listed_reads_no_secret(world: World) -> None:
    def never(service: str, name: str) -> str:
        raise AssertionError("the keyring was asked")

    world.user({"mcpServers": {"s": {"command": "x", "env": {"K": "${keyring:a/b}", "N": "${UNSET}"}}}})
    book = ConfigService(world.book.around, world.store, never)
    assert book.load().find("s").state == "ready"


def test_without_the_keyring_package_the_error_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    world.user({"mcpServers": {"s": {"command": "x", "args": ["${keyring:a/b}"]}}})
    book = ConfigService(world.book.around, world.store)
    with pytest.raises(InvalidInput, match="'keyring'") as caught:
        book.resolve(book.load().usable("s"))
    assert caught.value.hint == install_extra("keyring")


def test_a_keyring_that_fails_tells_nothing_of_its_entry(world: World) -> None:
    def locked(service: str, name: str) -> str:
        raise RuntimeError("entry holds hunter2")

    world.user({"mcpServers": {"s": {"command": "x", "args": ["${keyring:a/b}"]}}})
    book = ConfigService(world.book.around, world.store, locked)
    with pytest.raises(InvalidInput, match="RuntimeError") as caught:
        book.resolve(book.load().usable("s"))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("K=v", "v"),
        ("export K = v ", "v"),
        ("K='a b # c'", "a b # c"),
        ('K="a\\nb"', "a\nb"),
        ("K=a b # why", "a b"),
        ("K=a#b", "a#b"),
        ("K=", ""),
        ("# no\n\nK=v", "v"),
        ("K=${HOME}", "${HOME}"),
    ],
)
def test_a_dotenv_file_is_read_and_nothing_in_it_is_expanded(world: World, line: str, value: str) -> None:
    put(world.user_file.with_name(".env"), line + "\n")
    world.user({"mcpServers": {"s": {"command": "x", "envFile": ".env"}}})
    assert stdio(world.resolve("s").profile).env["K"].reveal() == value


def test_env_wins_over_the_env_file(world: World) -> None:
    put(world.cwd / "v.env", "A=file\nB=file\n")
    world.user({"mcpServers": {"s": {"command": "x", "envFile": "${PWD}/v.env", "env": {"A": "own"}}}})
    env = stdio(world.resolve("s").profile).env
    assert (env["A"].reveal(), env["B"].reveal()) == ("own", "file")


@pytest.mark.parametrize(("text", "fact"), [(None, "cannot be read"), ("A=1\nthis is secret\n", ".env:2 must be NAME")])
def test_a_bad_env_file_is_told_without_its_text(world: World, text: str | None, fact: str) -> None:
    if text is not None:
        put(world.user_file.with_name(".env"), text)
    world.user({"mcpServers": {"s": {"command": "x", "envFile": ".env"}}})
    with pytest.raises(InvalidInput, match=fact) as caught:
        world.resolve("s")
    assert "envFile" in caught.value.message and "this is secret" not in caught.value.message


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (Path.mkdir, "Is a directory"),
        (lambda path: path.write_bytes(b"\xff"), "no UTF-8 text"),
        (lambda path: (path.touch(), os.truncate(path, 1 << 40)), "it may have at most 1048576 bytes"),
    ],
    ids=["fifo", "device", "folder", "binary", "huge"],
)
@pytest.mark.parametrize("entry", [{"envFile": "odd"}, {"args": ["${file:odd}"]}], ids=["envFile", "reference"])
def test_what_is_no_file_of_text_is_refused_at_once(
    world: World, make: Callable[[Path], object], fact: str, entry: dict[str, Any]
) -> None:
    odd = world.user_file.with_name("odd")
    odd.parent.mkdir(parents=True, exist_ok=True)
    make(odd)
    world.user({"mcpServers": {"s": {"command": "x", **entry}}})
    with pytest.raises(InvalidInput, match=re.escape(f"{odd} cannot be read: {fact}")):
        world.resolve("s")


@pytest.mark.parametrize("entry", [{"command": "x", "envFile": "a\0"}, {"url": "http://h", "apiKey": "${file:a\0}"}])
def test_a_file_name_with_a_nul_is_told(world: World, entry: dict[str, Any]) -> None:
    world.user({"mcpServers": {"s": entry}})
    with pytest.raises(InvalidInput, match="cannot be read: embedded null byte"):
        world.resolve("s")


@pytest.mark.parametrize(("cwd", "below"), [(None, ""), (".", ""), ("sub", "sub"), ("./sub/../other", "other")])
def test_a_child_starts_in_the_project_unless_told_otherwise(world: World, cwd: str | None, below: str) -> None:
    entry = {"command": "x"} if cwd is None else {"command": "x", "cwd": cwd}
    world.project({"mcpServers": {"s": entry}})
    world.book.trust()
    assert stdio(world.resolve("s").profile).cwd == str(world.cwd / below).rstrip("/")
