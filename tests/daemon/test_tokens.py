from __future__ import annotations

import base64
import hmac
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.daemon.errors import DaemonError, ErrorCode
from dari.daemon.tokens import APP, CLI, DEFAULT_PRINCIPALS, MCP, Principal, Tokens, make_token, read_token
from dari.errors import Failed, InvalidInput

KEY = b"k" * 32


def issued(run_dir: Path) -> Tokens:
    tokens = Tokens(run_dir)
    tokens.write()
    return tokens


def auth_failed(tokens: Tokens, token: str) -> bool:
    with pytest.raises(DaemonError) as refused:
        tokens.verify(token)
    return refused.value.ipc_code == ErrorCode.AUTH_FAILED and refused.value.message.startswith("token verify failed")


def test_the_principals_are_those_of_design_000() -> None:
    assert {(p.name, p.token_file, p.scopes) for p in DEFAULT_PRINCIPALS} == {
        ("app", "app.token", ("read", "rules.write", "control", "admin")),
        ("cli", "cli.token", ("read", "rules.write", "control", "admin")),
        ("mcp", "mcp.token", ("read", "rules.write", "control")),
    }


def test_every_principal_gets_a_0600_file_that_verifies(tmp_path: Path) -> None:
    tokens = issued(tmp_path)
    for principal in DEFAULT_PRINCIPALS:
        path = tmp_path / principal.token_file
        claims = tokens.verify(read_token(path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (claims.aud, claims.scopes) == (principal.name, principal.scopes)


def test_a_token_is_two_unpadded_parts_with_the_four_claims() -> None:
    payload, signature = make_token(KEY, MCP).split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert "=" not in payload + signature
    assert len(signature) == 43
    assert set(claims) == {"aud", "scopes", "iat", "jti"}
    assert isinstance(claims["iat"], int)
    assert make_token(KEY, MCP) != make_token(KEY, MCP)


def test_a_newline_after_the_token_is_no_part_of_it(tmp_path: Path) -> None:
    tokens = issued(tmp_path)
    path = tmp_path / "cli.token"
    path.write_text(path.read_text() + "\n")
    assert tokens.verify(read_token(path)).aud == "cli"


def test_a_token_of_another_start_is_refused(tmp_path: Path) -> None:
    issued(tmp_path)
    token = read_token(tmp_path / "cli.token")
    assert auth_failed(issued(tmp_path), token)


def test_every_changed_character_is_noticed(tmp_path: Path) -> None:
    tokens = issued(tmp_path)
    token = read_token(tmp_path / "cli.token")
    for index, character in enumerate(token):
        other = "A" if character != "A" else "B"
        assert auth_failed(tokens, token[:index] + other + token[index + 1 :])


@pytest.mark.parametrize(
    "token",
    ["", ".", "a", "a.", ".a", "a.b.c", "a=.b", "a b.c", "é.é", "\0.\0", "A" * 5 + "." + "A" * 43, "x" * 5000 + ".y"],
)
def test_malformed_tokens_are_refused(token: str, tmp_path: Path) -> None:
    assert auth_failed(Tokens(tmp_path), token)


def test_a_second_spelling_of_the_same_bytes_is_refused(tmp_path: Path) -> None:
    tokens = issued(tmp_path)
    token = read_token(tmp_path / "cli.token")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # 32 bytes leave two spare bits in the last character: the next letter decodes to the same signature.
    twin = token[:-1] + alphabet[alphabet.index(token[-1]) + 1]
    assert auth_failed(tokens, twin)
    assert auth_failed(tokens, token + "=")


@given(st.text(max_size=200) | st.from_regex(r"[\w-]{0,60}\.[\w-]{0,60}", fullmatch=True))
def test_no_text_makes_verification_raise_anything_else(token: str) -> None:
    assert auth_failed(Tokens(Path("/nowhere")), token)


@pytest.mark.parametrize("payload", [b"[]", b"{}", b"\xff", b'{"aud":1,"scopes":[],"iat":1,"jti":""}', b"nul"])
def test_a_signed_payload_that_is_no_claim_is_refused(payload: bytes, tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    tokens._key = KEY
    parts = (payload, hmac.digest(KEY, payload, "sha256"))
    token = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
    assert auth_failed(tokens, token)


def test_an_audience_that_this_daemon_does_not_serve_is_refused(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, (MCP,))
    tokens._key = KEY
    assert tokens.verify(make_token(KEY, MCP)).aud == "mcp"
    assert auth_failed(tokens, make_token(KEY, APP))


def test_a_rotation_replaces_key_and_files_and_counts_up(tmp_path: Path) -> None:
    tokens = issued(tmp_path)
    old, epoch = read_token(tmp_path / "cli.token"), tokens.epoch
    tokens.rotate()
    assert tokens.epoch == epoch + 1
    assert auth_failed(tokens, old)
    assert tokens.verify(read_token(tmp_path / "cli.token")).aud == "cli"


def test_a_rotation_that_cannot_write_changes_nothing(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, (CLI, Principal("blocked", ("read",))))
    tokens.write()
    (tmp_path / "blocked.token").unlink()
    (tmp_path / "blocked.token").mkdir()
    with pytest.raises(Failed):
        tokens.rotate()
    assert tokens.epoch == 1
    assert tokens.verify(read_token(tmp_path / "cli.token")).aud == "cli"


def test_only_token_files_that_are_still_ours_are_removed(tmp_path: Path) -> None:
    first = issued(tmp_path)
    issued(tmp_path)
    (tmp_path / "app.token").unlink()
    first.remove()
    assert sorted(os.listdir(tmp_path)) == ["cli.token", "mcp.token"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a.b", "a b"])
def test_a_principals_name_is_a_plain_word(name: str) -> None:
    with pytest.raises(InvalidInput):
        Principal(name, ())
