from __future__ import annotations

from datetime import datetime

import pytest

from dari.codetools.diff.comparison import parse_time
from dari.errors import InvalidInput

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("since", "ago_s"),
    [
        *[("2 hours ago", 7200), ("1 minute ago", 60), ("30 min ago", 1800), ("an hour ago", 3600), ("3d ago", 259200)],
        *[("  2   Hours  AGO ", 7200), ("2 weeks", 1209600), ("10s ago", 10)],
    ],
)
def test_words_are_a_time_before_now(since: str, ago_s: float) -> None:
    assert parse_time(since, NOW) == NOW - ago_s


def test_iso_times_have_an_offset_or_are_local() -> None:
    assert parse_time("2026-01-31T12:00:00Z", NOW) == 1769860800.0
    assert parse_time("2026-01-31T13:00:00+01:00", NOW) == 1769860800.0
    assert parse_time("2026-01-31 12:00", NOW) == datetime(2026, 1, 31, 12).timestamp()
    assert parse_time("2026-01-31", NOW) == datetime(2026, 1, 31).timestamp()


def test_today_and_yesterday_begin_at_midnight() -> None:
    today, yesterday = parse_time("today", NOW), parse_time("yesterday", NOW)
    assert today is not None and yesterday is not None
    assert yesterday < today <= NOW
    assert datetime.fromtimestamp(today).hour == 0


@pytest.mark.parametrize(
    "since", ["HEAD", "main", "2", "v1.2", "5d", "h", "hour", "deadbeef", "2026", "ago", "session"]
)
def test_names_of_commits_are_not_times(since: str) -> None:
    assert parse_time(since, NOW) is None


@pytest.mark.parametrize("since", ["2026-13-01", "2026-02-30T10:00", "2026-01-01T25:00"])
def test_a_date_that_does_not_exist_is_refused(since: str) -> None:
    with pytest.raises(InvalidInput):
        parse_time(since, NOW)
