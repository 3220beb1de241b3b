from __future__ import annotations

import asyncio

import pytest

from dari.bridge.limits.fallback import FallbackAddresses
from dari.errors import Failed, Unavailable
from tests.support.fake_clock import FakeClock, settled

FIRST, SECOND = "https://a.example", "https://b.example"


class Net:
    """Two addresses, of which some are down."""

    def __init__(self, *down: str) -> None:
        self.down = set(down)
        self.tried: list[str] = []

    async def get(self, url: str) -> str:
        self.tried.append(url)
        if url in self.down:
            raise ConnectionRefusedError(f"{url} refused")
        return url


async def test_the_call_that_finds_the_first_address_down_is_answered_by_the_second() -> None:
    net = Net(FIRST)
    switched: list[str] = []
    addresses = FallbackAddresses(FIRST, SECOND, clock=FakeClock(), on_switch=switched.append)
    assert await addresses.run(net.get) == SECOND
    assert await addresses.run(net.get) == SECOND
    assert net.tried == [FIRST, SECOND, SECOND]
    assert (addresses.current, switched) == (SECOND, [SECOND])


async def test_calls_return_to_the_first_address_when_it_is_back() -> None:
    clock, net = FakeClock(), Net(FIRST)
    addresses = FallbackAddresses(FIRST, SECOND, recover_s=60, clock=clock)
    await addresses.run(net.get)
    clock.advance(60)
    assert await addresses.run(net.get) == SECOND  # tried, still down
    net.down.clear()
    assert await addresses.run(net.get) == SECOND  # not asked before its time
    clock.advance(60)
    assert await addresses.run(net.get) == FIRST
    assert addresses.current == FIRST


async def test_only_one_call_tries_the_first_address_again() -> None:
    clock, net = FakeClock(), Net(FIRST)
    addresses = FallbackAddresses(FIRST, SECOND, recover_s=60, clock=clock)
    await addresses.run(net.get)
    clock.advance(60)
    hold = asyncio.Event()

    async def slow(url: str) -> str:
        if url == FIRST:
            await hold.wait()
        return url

    tasks = [asyncio.create_task(addresses.run(slow)) for _ in range(3)]
    await settled()
    hold.set()
    assert sorted(await asyncio.gather(*tasks)) == [FIRST, SECOND, SECOND]


async def test_when_both_are_down_the_error_names_both() -> None:
    addresses = FallbackAddresses(FIRST, SECOND, clock=FakeClock())
    with pytest.raises(Unavailable, match=rf"{FIRST}.*{SECOND}"):
        await addresses.run(Net(FIRST, SECOND).get)


async def test_when_the_fallback_goes_away_the_first_address_is_tried_before_its_time() -> None:
    net = Net(FIRST)
    addresses = FallbackAddresses(FIRST, SECOND, recover_s=60, clock=FakeClock())
    await addresses.run(net.get)
    net.down = {SECOND}
    assert await addresses.run(net.get) == FIRST
    assert await addresses.run(net.get) == FIRST
    assert net.tried == [FIRST, SECOND, SECOND, FIRST, FIRST]
    net.down = {FIRST, SECOND}
    for _ in range(2):
        with pytest.raises(Unavailable):
            await addresses.run(net.get)


async def test_an_error_from_the_server_itself_is_no_reason_to_go_elsewhere() -> None:
    tried: list[str] = []

    async def failing(url: str) -> str:
        tried.append(url)
        raise Failed("no such row")

    addresses = FallbackAddresses(FIRST, SECOND, clock=FakeClock())
    for _ in range(2):
        with pytest.raises(Failed):
            await addresses.run(failing)
    assert tried == [FIRST, FIRST]


async def test_a_lost_connection_is_not_sent_twice_for_the_request_may_have_been_worked_on() -> None:
    tried: list[str] = []

    async def reset(url: str) -> str:
        tried.append(url)
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await FallbackAddresses(FIRST, SECOND, clock=FakeClock()).run(reset)
    assert tried == [FIRST]


async def test_without_a_fallback_errors_come_as_they_are() -> None:
    with pytest.raises(ConnectionRefusedError):
        await FallbackAddresses(FIRST, clock=FakeClock()).run(Net(FIRST).get)


async def test_a_cancelled_probe_leaves_the_way_free_for_the_next() -> None:
    clock, net = FakeClock(), Net(FIRST)
    addresses = FallbackAddresses(FIRST, SECOND, recover_s=60, clock=clock)
    await addresses.run(net.get)
    clock.advance(60)
    never = asyncio.Event()

    async def stuck(url: str) -> str:
        await never.wait()
        return url

    probe = asyncio.create_task(addresses.run(stuck))
    await settled()
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    net.down.clear()
    assert await addresses.run(net.get) == FIRST
