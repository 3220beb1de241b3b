"""Ports: the default one moves aside when it is taken, one that was named never does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import dari.transport.bind as bind_module
from dari.errors import InvalidInput
from dari.transport.bind import BindFailed, bind
from tests.support.transports import start_process


def free_range(size: int) -> int:
    """The first of so many ports in a row that are all free now.

    Below the range the system hands out by itself, and from another place in every process: tests of other
    workers look at the same time.
    """
    start = os.getpid() * size * 7 % 16_000
    for step in range(0, 16_000, size):
        first = 12_000 + (start + step) % 16_000
        with ExitStack() as held:
            try:
                for port in range(first, first + size):
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first
    raise AssertionError("no free ports")


@pytest.fixture
def default_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """Moves the default range to where nothing runs, with its eleven ports."""
    first = free_range(11)
    monkeypatch.setattr(bind_module, "DEFAULT_PORT", first)
    monkeypatch.setattr(bind_module, "LAST_FALLBACK", first + 10)
    return first


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """Ports appended here are in use until the test ends."""
    with ExitStack() as held:

        class Taken(list[int]):
            def append(self, port: int) -> None:
                held.enter_context(socket.create_server(("127.0.0.1", port)))

        yield Taken()


def test_the_default_range_is_3847_to_3857() -> None:
    assert (bind_module.DEFAULT_PORT, bind_module.LAST_FALLBACK) == (3847, 3857)


def test_the_default_port_is_used_when_it_is_free(default_port: int) -> None:
    with bind("127.0.0.1", None) as listener:
        assert listener.getsockname() == ("127.0.0.1", default_port)


@pytest.mark.parametrize("count", [1, 2, 10])
def test_a_taken_default_port_moves_to_the_next_free_one(default_port: int, taken: list[int], count: int) -> None:
    for number in range(count):
        taken.append(default_port + number)
    with bind("127.0.0.1", None) as listener:
        assert listener.getsockname()[1] == default_port + count


def test_when_all_ports_are_taken_the_message_names_them(default_port: int, taken: list[int]) -> None:
    for number in range(11):
        taken.append(default_port + number)
    with pytest.raises(BindFailed) as caught:
        bind("127.0.0.1", None)
    assert caught.value.message == f"ports {default_port} to {default_port + 10} on 127.0.0.1 are all in use"
    assert "--http-port" in caught.value.hint
    assert caught.value.exit_code == 1


def test_a_port_that_was_named_is_never_moved(default_port: int, taken: list[int]) -> None:
    taken.append(default_port)
    with pytest.raises(BindFailed) as caught:
        bind("127.0.0.1", default_port)
    assert caught.value.message == f"port {default_port} on 127.0.0.1 is in use"
    assert "--http-port" in caught.value.hint


def test_port_0_is_any_free_one() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert listener.getsockname()[1] > 1023


@pytest.mark.parametrize("address", ["not an address", "256.1.1.1.1", "", "a" * 300, "127.0.0.1:80"])
def test_what_is_no_address_is_refused_by_name(address: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        bind(address, 0)
    assert repr(address) in caught.value.message


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(BindFailed, match=r"203\.0\.113\.1:0"):
        bind("203.0.113.1", 0)


async def test_a_taken_port_ends_the_command_with_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        options = ("--transport", "http", "--http-port", str(port), "--token-path", str(tmp_path / "token"))
        process = await start_process(tmp_path, "-m", "dari", "mcp", *options, stderr=-1)
        _, log = await process.communicate()
    assert process.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use\nhint: " in log.decode()
    assert "Traceback" not in log.decode()


async def test_an_address_that_is_none_ends_the_command_with_1(tmp_path: Path) -> None:
    options = ("--transport", "both", "--http-bind", "nowhere.invalid", "--token-path", str(tmp_path / "token"))
    process = await start_process(tmp_path, "-m", "dari", "mcp", *options, stderr=-1)
    _, log = await process.communicate()
    assert process.returncode == 1
    assert "--http-bind must be an address of this machine, got 'nowhere.invalid'\nhint: " in log.decode()
