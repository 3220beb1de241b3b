"""A slow link that is the same for everybody on it. Time is given, never read."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.throttle import PRESETS, FlowThrottle, Throttle, ThrottleSettings, preset


def throttle(**settings: object) -> Throttle:
    return Throttle(ThrottleSettings(enabled=True, **settings), random=Random(7))  # type: ignore[arg-type]


def sent_at(link: Throttle, n_pieces: int, piece_bytes: int, start_s: float = 0.0) -> float:
    """When one connection that sends piece after piece is done."""
    now_s = start_s
    for _ in range(n_pieces):
        now_s += link.take("downstream", piece_bytes, now_s)
    return now_s


@pytest.mark.parametrize(
    ("settings", "applies"),
    [
        (ThrottleSettings(enabled=False, latency_ms=100), False),
        (ThrottleSettings(enabled=True), False),
        (ThrottleSettings(enabled=True, latency_ms=1), True),
        (ThrottleSettings(enabled=True, downstream_bps=1), True),
        (ThrottleSettings(enabled=True, upstream_bps=1), True),
        (ThrottleSettings(enabled=True, latency_ms=1, only_selected_hosts=True), False),
        (ThrottleSettings(enabled=True, latency_ms=1, selected_hosts=("other.com",)), True),
        (ThrottleSettings(enabled=True, latency_ms=1, only_selected_hosts=True, selected_hosts=("other.com",)), False),
        (ThrottleSettings(enabled=True, latency_ms=1, only_selected_hosts=True, selected_hosts=("example.com",)), True),
    ],
)
def test_it_applies_when_enabled_with_a_limit_and_the_host_selected(settings: ThrottleSettings, applies: bool) -> None:
    assert Throttle(settings).applies("api.example.com:443") is applies
    assert (Throttle(settings).delay_s("api.example.com:443") > 0) is (applies and settings.latency_ms > 0)


@pytest.mark.parametrize(
    ("pattern", "authority", "selected"),
    [
        ("example.com", "EXAMPLE.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "a.example.com:8080", True),
        ("example.com:8080", "example.com:8080", True),
        ("example.com:8080", "example.com:443", False),
        ("[::1]", "[::1]:443", True),
        ("*", "anything", True),
        ("", "anything", False),
    ],
)
def test_hosts_are_selected_by_authority_pattern(pattern: str, authority: str, selected: bool) -> None:
    assert throttle(latency_ms=1, only_selected_hosts=True, selected_hosts=(pattern,)).applies(authority) is selected


def test_a_connection_alone_gets_the_rate() -> None:
    assert sent_at(throttle(downstream_bps=10_000), 100, 1000) == pytest.approx(10, rel=0.02)


def test_connections_share_the_rate() -> None:
    link = throttle(downstream_bps=10_000)
    waits = [link.take("downstream", 1000, 0.0) for _ in range(100)]
    assert waits == sorted(waits)
    assert max(waits) == pytest.approx(10, rel=0.02)


def test_directions_do_not_share() -> None:
    link = throttle(downstream_bps=1000, upstream_bps=1000)
    link.take("downstream", 100_000, 0.0)
    assert link.take("upstream", 10, 0.0) == 0


def test_an_idle_link_saves_up_no_more_than_a_short_burst() -> None:
    link = throttle(downstream_bps=10_000)
    link.take("downstream", 1, 0.0)
    assert link.take("downstream", 500, 3600.0) == 0
    assert link.take("downstream", 1000, 3600.0) == pytest.approx(0.1)


def test_a_direction_without_limit_never_waits() -> None:
    link = throttle(latency_ms=5)
    assert link.take("downstream", 10**9, 0.0) == link.take("upstream", 10**9, 0.0) == 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    link = throttle(downstream_bps=1000)
    first = link.take("downstream", 1000, 100.0)
    assert link.take("downstream", 0, 50.0) == pytest.approx(first)


def test_bytes_given_back_cost_the_others_nothing() -> None:
    link = throttle(downstream_bps=1000)
    link.take("downstream", 50, 0.0)
    link.take("downstream", 10_000, 0.0)
    link.give_back("downstream", 10_000)
    assert link.take("downstream", 100, 0.0) == pytest.approx(0.1)


def test_new_settings_count_from_the_next_piece_and_forget_debts() -> None:
    link = throttle(downstream_bps=10)
    assert link.take("downstream", 10_000, 0.0) > 900
    link.replace(ThrottleSettings(enabled=True, downstream_bps=1_000_000))
    assert link.take("downstream", 10_000, 0.0) == 0
    link.replace(ThrottleSettings(enabled=False, downstream_bps=10))
    assert link.take("downstream", 10_000, 0.0) == 0


def test_jitter_stays_in_its_range_and_is_repeatable() -> None:
    delays = [throttle(latency_ms=100, jitter_ms=30).delay_s("a.com") for _ in range(3)]
    assert len(set(delays)) == 1
    link = throttle(latency_ms=100, jitter_ms=30)
    many = [link.delay_s("a.com") for _ in range(200)]
    assert all(0.07 <= delay <= 0.13 for delay in many) and len(set(many)) > 100
    assert all(throttle(latency_ms=1, jitter_ms=500).delay_s("a.com") >= 0 for _ in range(20))


def test_pieces_last_about_a_tenth_of_a_second() -> None:
    link = throttle(downstream_bps=100_000, upstream_bps=100)
    assert link.piece_bytes("downstream") == 10_000
    assert link.piece_bytes("upstream") == 256
    assert throttle(latency_ms=1).piece_bytes("upstream") == 64 * 1024


@pytest.mark.parametrize("name", ["latency_ms", "jitter_ms", "downstream_bps", "upstream_bps"])
def test_a_negative_limit_is_refused_and_the_old_settings_stay(name: str) -> None:
    link = throttle(latency_ms=5)
    with pytest.raises(InvalidInput, match=name):
        link.replace(ThrottleSettings(enabled=True, **{name: -1}))  # type: ignore[arg-type]
    assert link.settings.latency_ms == 5


@given(
    st.integers(100, 10**7),
    st.lists(st.tuples(st.integers(1, 100_000), st.floats(0, 5)), min_size=1, max_size=50),
)
def test_no_load_gets_more_than_rate_and_burst(rate: int, load: list[tuple[int, float]]) -> None:
    link = throttle(downstream_bps=rate)
    now_s, total, done_s = 0.0, 0, 0.0
    for size, pause_s in load:
        now_s += pause_s
        done_s = max(done_s, now_s + link.take("downstream", size, now_s))
        total += size
        assert total <= rate * (done_s + 0.05) * 1.000001 + 1


def test_there_are_eleven_presets_with_the_numbers_of_the_reference() -> None:
    assert [(p.name, p.latency_ms, p.downstream_bps // 1024, p.upstream_bps // 1024) for p in PRESETS] == [
        ("56k modem", 500, 7, 4),
        ("ISDN-256", 200, 32, 16),
        ("ISDN-512", 140, 64, 32),
        ("ADSL-2M", 90, 256, 32),
        ("ADSL2-8M", 60, 1024, 128),
        ("ADSL2+16M", 45, 2048, 128),
        ("VDSL-32M", 35, 4096, 1024),
        ("Fibre-32M", 18, 4096, 4096),
        ("Fibre-100M", 12, 12800, 12800),
        ("3G", 120, 97, 41),
        ("4G", 60, 512, 256),
    ]


@pytest.mark.parametrize("name", ["ADSL2+16M", "adsl2+16m", "adsl2_16m", " ADSL2 16M "])
def test_a_preset_is_found_however_it_is_spelled(name: str) -> None:
    assert preset(name).latency_ms == 45


def test_an_unknown_preset_is_refused_with_the_list() -> None:
    with pytest.raises(InvalidInput) as refused:
        preset("5G")
    assert "5G" in refused.value.message and "Fibre-100M" in refused.value.hint


def test_a_preset_makes_settings() -> None:
    settings = ThrottleSettings.of_preset("3g", selected_hosts=("example.com",))
    assert settings.enabled and settings.downstream_bps == 97 * 1024
    assert Throttle(settings).applies("example.com") and not Throttle(settings).applies("other.com")


def test_the_engine_asks_about_flows_on_a_clock() -> None:
    now_s = [0.0]
    link = FlowThrottle(
        throttle(latency_ms=100, downstream_bps=1000, only_selected_hosts=True, selected_hosts=("a.com:80",)),
        lambda: now_s[0],
    )
    flow = Flow(1, "127.0.0.1:1", 0, "GET", "http", "a.com", "/")
    assert link.applies(flow) and link.delay_s(flow) == 0.1
    assert not link.applies(Flow(2, "127.0.0.1:1", 0, "GET", "https", "a.com", "/"))
    assert link.take(
        "downstream",
        1050,
    ) == pytest.approx(1)
    now_s[0] = 1.0
    assert link.take("downstream", 100) == pytest.approx(0.1)
    assert link.piece_bytes("downstream") == 256
