"""Tokens for people: listed without secrets, made, shown, replaced and taken away, each with a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.core.audit.log import AuditLog
from dari.core.audit.query import query
from dari.daemon.stub import iter_exposed
from dari.errors import Conflict, NotFound, Unavailable
from dari.transport.client_tokens import TokenStore
from dari.transport.token_service import TokenService


def service(folder: Path, audit: AuditLog | None = None) -> TokenService:
    return TokenService(TokenStore(folder / "tokens.json"), folder / "mcp.token", lambda: audit)


def shared(folder: Path) -> Path:
    path = folder / "mcp.token"
    path.touch(mode=0o600)
    path.write_text("first\n")
    return path


async def test_the_shared_token_is_listed_first_and_no_entry_has_a_secret(tmp_path: Path) -> None:
    shared(tmp_path)
    tokens = service(tmp_path)
    made = await tokens.create("cursor", read_only=True)
    listed = (await tokens.list_tokens()).entries
    assert [(each.name, each.is_shared) for each in listed] == [("shared", True), ("cursor", False)]
    assert listed[1].scopes == ["read"]
    assert listed[1].last_used_unix == 0.0
    assert made.secret not in str(listed)


async def test_a_secret_can_be_shown_again_and_a_new_one_takes_its_place(tmp_path: Path) -> None:
    tokens = service(tmp_path)
    made = await tokens.create("cursor")
    assert await tokens.show("cursor") == made
    new = await tokens.rotate("cursor")
    assert new.secret != made.secret
    assert await tokens.show("cursor") == new
    assert (await tokens.list_tokens()).entries[1].rotated_unix > 0


async def test_the_shared_token_is_rotated_in_its_file_and_never_revoked(tmp_path: Path) -> None:
    path, tokens = shared(tmp_path), service(tmp_path)
    assert (await tokens.show("shared")).secret == "first"
    new = (await tokens.rotate("shared")).secret
    assert path.read_text().strip() == new != "first"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(Conflict):
        await tokens.revoke("shared")


async def test_a_missing_shared_token_says_what_makes_one(tmp_path: Path) -> None:
    for verb in (service(tmp_path).show, service(tmp_path).rotate):
        with pytest.raises(NotFound) as caught:
            await verb("shared")
        assert "dari up" in caught.value.hint


async def test_every_change_and_every_look_at_a_secret_is_recorded_without_it(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit", batch_s=0.001)
    tokens = service(tmp_path, audit)
    secrets = [(await tokens.create("cursor", by="ann")).secret, (await tokens.show("cursor", by="ann")).secret]
    secrets.append((await tokens.rotate("cursor", by="ann")).secret)
    await tokens.revoke("cursor", by="ann")
    audit.close()
    records = [record for record in query(audit.directory, limit=100) if record.kind == "decision"]
    events = [(record.who, record.detail["event"], record.detail["client"]) for record in reversed(records)]
    assert events == [("ann", f"token {verb}", "cursor") for verb in ("created", "shown", "rotated", "revoked")]
    written = "".join(path.read_text() for path in audit.directory.glob("*.jsonl"))
    assert not any(secret in written for secret in secrets)


async def test_no_secret_is_given_out_that_cannot_be_recorded_and_one_can_be_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = AuditLog(tmp_path / "audit", batch_s=0.001)
    tokens = service(tmp_path, audit)
    made = await tokens.create("cursor")

    def full() -> None:
        raise Unavailable("the audit log cannot be written", "free disk space")

    monkeypatch.setattr(audit, "check", full)
    for refused in (tokens.create("codex"), tokens.show("cursor"), tokens.rotate("cursor")):
        with pytest.raises(Unavailable):
            await refused
    assert TokenStore(tmp_path / "tokens.json").get("cursor").secret == made.secret
    assert (await tokens.revoke("cursor")).name == "cursor"
    audit.close()


def test_only_the_list_is_for_everybody() -> None:
    marks = {mark.name: (mark.scope, mark.needs_person) for _, _, mark in iter_exposed(TokenService)}
    assert marks.pop("tokens.list") == ("read", False)
    assert set(marks) == {"tokens.create", "tokens.show", "tokens.rotate", "tokens.revoke"}
    assert set(marks.values()) == {("admin", True)}
