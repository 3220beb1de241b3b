"""Names as every client and model takes them."""

from __future__ import annotations

import re

import pytest

from dari.bridge.gateway.selection import expose, fit

FITTING = re.compile(r"[A-Za-z0-9_-]{1,64}")


def shown(server: str, *names: str, taken: tuple[str, ...] = (), naming: str = "prefixed") -> list[str]:
    return list(expose(server, names, taken, separator="__", naming=naming).values())  # type: ignore[arg-type]


def test_the_server_stands_in_front() -> None:
    assert shown("lab", "add", "greet") == ["lab__add", "lab__greet"]


@pytest.mark.parametrize("name", ["", "a.b", "a b", "ä", "x" * 200, "a/b:c", "툴", "\ud800"])
def test_every_name_fits_every_client(name: str) -> None:
    assert FITTING.fullmatch(fit(name))
    assert FITTING.fullmatch(shown("my server.1", name)[0])


def test_a_long_name_is_cut_the_same_way_each_time_and_differs_from_its_neighbour() -> None:
    first, second = "x" * 100 + "1", "x" * 100 + "2"
    assert fit(first) == fit(first)
    assert fit(first) != fit(second)
    assert len(fit(first)) == 64


def test_two_names_that_fit_alike_are_told_apart_and_the_one_that_fits_keeps_its_name() -> None:
    assert shown("s", "a.b", "a_b")[1] == "s__a_b"
    assert re.fullmatch(r"s__a_b_[0-9a-f]{8}", shown("s", "a.b", "a_b")[0])
    assert shown("s", "a.b", "a_b") == shown("s", "a.b", "a_b")


def test_a_name_that_is_taken_gets_the_server_in_front_then_a_hash() -> None:
    assert shown("s", "ping", taken=("ping",), naming="plain") == ["s__ping"]
    (hashed,) = shown("s", "ping", taken=("ping", "s__ping"), naming="plain")
    assert re.fullmatch(r"s__ping_[0-9a-f]{8}", hashed)


def test_one_server_alone_keeps_its_names_as_they_are() -> None:
    assert shown("s", "a.b", naming="verbatim") == ["a.b"]


def test_the_order_of_the_list_is_kept() -> None:
    assert shown("s", "z.z", "a", "m") == ["s__z_z", "s__a", "s__m"]
