"""Who may connect, and which targets are private."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.errors import InvalidInput
from dari.proxy.access import ClientAllowlist, PrivateTargetPolicy, ProxyAccess, is_private


def test_a_list_that_is_off_lets_everybody_in() -> None:
    assert ClientAllowlist(False, ["10.0.0.1"]).passes("203.0.113.9")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_loopback_always_passes(peer: str) -> None:
    assert ClientAllowlist(True, []).passes(peer)


def test_other_peers_must_be_listed_exactly() -> None:
    gate = ClientAllowlist(True, ["192.168.1.7", " 2001:DB8::1 "])
    assert gate.passes("192.168.1.7") and gate.passes("2001:db8:0::1")
    assert not gate.passes("192.168.1.8") and not gate.passes("2001:db8::2")
    assert gate.ips == ("192.168.1.7", "2001:db8::1")


def test_ipv4_inside_ipv6_is_the_same_peer_both_ways() -> None:
    assert ClientAllowlist(True, ["192.168.1.7"]).passes("::ffff:192.168.1.7")
    assert ClientAllowlist(True, ["::ffff:192.168.1.7"]).passes("192.168.1.7")


@pytest.mark.parametrize("ip", ["", "localhost", "10.0.0.0/8", "1.2.3", "1.2.3.4:80", "[::1]"])
def test_what_is_no_ip_address_is_refused_in_the_original_words(ip: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ClientAllowlist(True, [ip])
    assert refused.value.message == f"invalid IP address: {ip}"


def test_a_peer_without_a_readable_address_does_not_pass() -> None:
    assert not ClientAllowlist(True).passes("unix")


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "app.localhost",
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "[::1]",
        "::ffff:10.0.0.1",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
    ],
)
def test_private_targets_are_recognised_in_every_spelling(host: str) -> None:
    assert is_private(host)


@pytest.mark.parametrize(
    "host",
    ["example.com", "93.184.216.34", "172.32.0.1", "2606:4700::1", "localhost.example.com", "10.example", "1.1", ""],
)
def test_public_targets_are_left_alone(host: str) -> None:
    assert not is_private(host)


def test_the_policy_is_off_until_asked_for() -> None:
    assert PrivateTargetPolicy().refusal("localhost") is None


def test_the_refusal_says_which_kind_of_target_it_was() -> None:
    policy = PrivateTargetPolicy(enabled=True)
    assert policy.refusal("10.0.0.1", is_connect=True) == "CONNECT target blocked by policy"
    assert policy.refusal("10.0.0.1") == "HTTP target blocked by policy"
    assert policy.refusal("example.com") is None


def test_a_name_that_resolves_to_a_private_address_is_refused() -> None:
    policy = PrivateTargetPolicy(enabled=True)
    assert policy.refusal("rebound.example", ["93.184.216.34", "127.0.0.1"]) is not None
    assert policy.refusal("example.com", ["93.184.216.34"]) is None


@given(st.text(max_size=30))
def test_no_host_makes_it_raise(host: str) -> None:
    is_private(host)
    ClientAllowlist(True).passes(host)


def test_a_gate_asks_both_and_can_be_changed_while_it_stands() -> None:
    gate = ProxyAccess()
    assert gate.admits("203.0.113.9") and gate.permits("127.0.0.1")
    gate.clients = ClientAllowlist(True, ["192.168.1.7"])
    gate.targets = PrivateTargetPolicy(True)
    assert not gate.admits("203.0.113.9") and gate.admits("192.168.1.7")
    assert not gate.permits("127.0.0.1") and gate.permits("93.184.216.34")
