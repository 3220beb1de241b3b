"""The bearer token: a 0600 file, made when missing, refused when others can read it, followed when it changes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dari.errors import Failed
from dari.paths import write_private
from dari.transport import token_file, token_watch
from dari.transport.token_file import TokenFile, make_token
from tests.support.transports import Rig, logged, running
from tests.support.wire import initialize


async def status_with(rig: Rig, token: str) -> int:
    return (await (await rig.http()).post(initialize(), Authorization=f"Bearer {token}")).status


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is looked at on every request, not every half second."""
    monkeypatch.setattr(token_file, "_RECHECK_S", -1.0)


def test_a_missing_token_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "token"
    TokenFile(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(path.read_text().strip()) >= 43


def test_two_token_files_differ(tmp_path: Path) -> None:
    TokenFile(tmp_path / "a")
    TokenFile(tmp_path / "b")
    assert (tmp_path / "a").read_text() != (tmp_path / "b").read_text()


def test_a_token_file_that_exists_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("  secret\n")
    path.chmod(0o600)
    assert TokenFile(path).accepts(b"Bearer secret", 0)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o602, 0o644])
def test_a_token_file_that_others_reach_is_refused_at_start(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text("secret\n")
    path.chmod(mode)
    with pytest.raises(Failed) as caught:
        TokenFile(path)
    assert str(path) in caught.value.message
    assert caught.value.hint == f"chmod 600 {path}"


@pytest.mark.parametrize("kind", ["empty", "blank", "directory"])
def test_a_token_file_that_holds_no_token_is_refused_at_start(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "token"
    if kind == "directory":
        path.mkdir(mode=0o700)
    else:
        path.touch(mode=0o600)
        path.write_text("" if kind == "empty" else " \n")
    with pytest.raises(Failed) as caught:
        TokenFile(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "content", ["root:x:0:0::/root:/bin/sh\nbin:x:1:1::/bin:/bin/sh\n", "two words", "비밀", "x" * 70_000]
)
def test_a_file_of_somebody_else_is_not_taken_for_a_token_nor_its_mode_questioned(tmp_path: Path, content: str) -> None:
    path = tmp_path / "passwd"
    path.write_text(content)
    path.chmod(0o644)
    with pytest.raises(Failed) as caught:
        TokenFile(path)
    assert "must hold a token" in caught.value.message and "chmod" not in caught.value.hint


def test_a_fifo_in_place_of_a_token_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token", 0o600)
    with pytest.raises(Failed) as caught:
        TokenFile(tmp_path / "token")
    assert str(tmp_path / "token") in caught.value.message


def test_a_token_file_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failed) as caught:
        TokenFile(tmp_path / "file" / "token")
    assert str(tmp_path / "file") in caught.value.message


@pytest.mark.parametrize("scheme", [b"Bearer ", b"bearer ", b"BEARER  "])
def test_the_scheme_may_be_written_in_any_case(tmp_path: Path, scheme: bytes) -> None:
    token = TokenFile(tmp_path / "token")
    secret = (tmp_path / "token").read_bytes().strip()
    assert token.accepts(scheme + secret, 0)
    assert not token.accepts(scheme + secret + b"x", 0)
    assert not token.accepts(scheme + secret[:-1], 0)
    assert not token.accepts(b"Basic " + secret, 0)


def test_a_changed_file_is_noticed_within_half_a_second(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = TokenFile(path)
    assert not token.accepts(b"Bearer new", 100.0)
    path.write_text("new\n")
    assert not token.accepts(b"Bearer new", 100.4)
    assert token.accepts(b"Bearer new", 100.6)


async def test_a_rotated_token_replaces_the_old_one(tmp_path: Path, no_delay: None) -> None:
    path = tmp_path / "token"
    async with running(token_path=path) as rig:
        old = rig.token
        assert await status_with(rig, old) == 200
        path.write_text("new-secret\n")
        assert await status_with(rig, old) == 401
        assert await status_with(rig, "new-secret") == 200


async def test_a_new_token_counts_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file was gone for a moment, as between two daemons."""
    monkeypatch.setattr(token_file, "_RECHECK_S", 600.0)
    monkeypatch.setattr(token_watch, "POLL_S", 600.0)
    path = tmp_path / "token"
    async with running(token_path=path) as rig:
        assert await status_with(rig, rig.token) == 200
        path.unlink()
        assert await status_with(rig, "wrong") == 401
        write_private(path, b"new-secret\n")
        assert await status_with(rig, "new-secret") == 200


async def test_without_its_file_no_token_is_good(tmp_path: Path, no_delay: None) -> None:
    path = tmp_path / "token"
    async with running(token_path=path) as rig:
        old = rig.token
        path.unlink()
        wire = await rig.http()
        assert (await wire.post(initialize(), Authorization=f"Bearer {old}")).status == 401
        assert (await wire.post(initialize(), Authorization="Bearer ")).status == 401


async def test_a_rotated_file_that_others_can_read_is_not_trusted(tmp_path: Path, no_delay: None) -> None:
    path = tmp_path / "token"
    async with running(token_path=path) as rig:
        path.write_text("leaked\n")
        path.chmod(0o644)
        with logged() as lines:
            assert [await status_with(rig, "leaked") for _ in range(3)] == [401, 401, 401]
        assert len([line for line in lines if "transport=http" in line and "chmod 600" in line]) == 1
        path.chmod(0o600)
        path.write_text("mended\n")
        assert await status_with(rig, "mended") == 200


def test_a_token_never_begins_with_a_dash_which_a_command_takes_for_an_option() -> None:
    assert not any(make_token().startswith("-") for _ in range(2000))


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.chmod(0o644), lambda path: path.write_text("\n")])
def test_a_token_file_that_counts_no_more_ends_what_it_opened_once(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    token, ended = TokenFile(tmp_path / "mcp.token"), []
    token.on_rotated = lambda: ended.append(token.path.name)
    token.refresh()
    assert not ended
    secret = token.path.read_bytes()
    spoil(token.path)
    token.refresh()
    token.refresh()
    assert ended == ["mcp.token"]
    token.path.unlink(missing_ok=True)
    write_private(token.path, secret)
    token.refresh()
    assert ended == ["mcp.token"]
    write_private(token.path, b"another\n")
    token.refresh()
    assert len(ended) == 2
