"""A key logs one browser in, once; the cookie outlives the hub, and its file opens nothing."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dari.console.login import KEY_LIFETIME_S, MAX_KEYS, MAX_SESSIONS, SESSION_LIFETIME_S, Logins


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logins(tmp_path: Path, clock: Clock) -> Logins:
    return Logins(tmp_path / "home" / "sessions.json", clock)


def test_a_key_is_changed_for_a_cookie_once(logins: Logins) -> None:
    key = logins.new_key()
    given = logins.redeem(key)
    assert given is not None
    session = logins.find(given.cookie)
    assert session is not None and session.accepts(given.page_key)
    assert not session.accepts("") and not session.accepts(given.cookie)
    assert logins.redeem(key) is None


def test_a_key_expires(logins: Logins, clock: Clock) -> None:
    key = logins.new_key()
    clock.now_s += KEY_LIFETIME_S + 1
    assert logins.redeem(key) is None


@pytest.mark.parametrize("guess", ["", "x", "../../etc/passwd", "\0", "가" * 1000])
def test_what_was_never_a_key_opens_nothing(logins: Logins, guess: str) -> None:
    logins.new_key()
    assert logins.redeem(guess) is None
    assert logins.find(guess) is None


def test_the_oldest_key_goes_when_there_are_many(logins: Logins) -> None:
    keys = [logins.new_key() for _ in range(MAX_KEYS + 1)]
    assert logins.redeem(keys[0]) is None
    assert logins.redeem(keys[1])


def cookie_of(logins: Logins) -> str:
    given = logins.redeem(logins.new_key())
    assert given is not None
    return given.cookie


def test_a_cookie_is_known_after_the_hub_is_started_again(logins: Logins, tmp_path: Path, clock: Clock) -> None:
    cookie = cookie_of(logins)
    assert cookie and Logins(tmp_path / "home" / "sessions.json", clock).find(cookie)


def test_the_file_holds_no_cookie_and_is_ours_alone(logins: Logins, tmp_path: Path) -> None:
    cookie = cookie_of(logins)
    file = tmp_path / "home" / "sessions.json"
    assert cookie and cookie not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_others_can_read_or_that_is_broken_logs_nobody_in(tmp_path: Path, logins: Logins) -> None:
    cookie = cookie_of(logins)
    file = tmp_path / "home" / "sessions.json"
    assert cookie
    file.chmod(0o644)
    assert Logins(file).find(cookie) is None
    file.chmod(0o600)
    file.write_bytes(b"\xff{")
    assert Logins(file).find(cookie) is None


def test_a_session_ends_with_its_time_and_with_a_log_out(logins: Logins, clock: Clock) -> None:
    ended: list[str] = []
    logins.on_end.append(ended.append)
    first, second = cookie_of(logins), cookie_of(logins)
    assert first and second
    session = logins.find(first)
    assert session
    logins.end(session.id)
    assert logins.find(first) is None and logins.find(second)
    clock.now_s += SESSION_LIFETIME_S + 1
    assert logins.find(second) is None
    logins.new_key()
    assert len(ended) == 2


def test_the_oldest_session_goes_when_there_are_many(logins: Logins, clock: Clock) -> None:
    cookies = []
    for _ in range(MAX_SESSIONS + 1):
        clock.now_s += 1
        cookies.append(cookie_of(logins))
    assert logins.find(cookies[0]) is None and logins.find(cookies[-1])
