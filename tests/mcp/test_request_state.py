"""`requestState` can be carried by a client, but not read into, changed, or used elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.mcp.client_requests import RequestState, StateSigner
from dari.mcp.error_mapping import RpcError

BOUND = ("mcp", "tools/call", "demo_greet")
SIGNER = StateSigner(b"k" * 32)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
memories = st.dictionaries(st.text(max_size=8), values, max_size=3)


def sealed(answers: dict[str, Any] | None = None, state: dict[str, Any] | None = None) -> str:
    return SIGNER.seal(RequestState(answers or {"who": {"action": "decline"}}, state or {"seen": True}), *BOUND)


@settings(deadline=None)
@given(memories, memories)
def test_what_was_sealed_is_what_is_opened(answers: dict[str, Any], state: dict[str, Any]) -> None:
    text = SIGNER.seal(RequestState(answers, state), *BOUND)
    opened = SIGNER.open(text, *BOUND)
    assert (opened.answers, opened.state) == (answers, state)
    assert text.isascii()
    assert not set(text) & set(' \t\r\n"\\')


@settings(deadline=None)
@given(st.data())
def test_no_changed_character_goes_unnoticed(data: st.DataObject) -> None:
    text = sealed()
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda c: c != text[place]))
    with pytest.raises(RpcError) as refused:
        SIGNER.open(text[:place] + other + text[place + 1 :], *BOUND)
    assert refused.value.code == -32602


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_other_text_is_refused_and_nothing_else_is_raised(text: str) -> None:
    with pytest.raises(RpcError):
        SIGNER.open(text, *BOUND)


@pytest.mark.parametrize("cut", [0, 1, 10, -1, -10])
def test_a_part_of_a_state_is_refused(cut: int) -> None:
    with pytest.raises(RpcError):
        SIGNER.open(sealed()[:cut], *BOUND)


@pytest.mark.parametrize(
    "bound",
    [
        ("other", "tools/call", "demo_greet"),
        ("mcp", "prompts/get", "demo_greet"),
        ("mcp", "tools/call", "demo_think"),
        ("mcp", "tools/call", ""),
        ("mcptools/call", "", "demo_greet"),
    ],
)
def test_a_state_belongs_to_one_principal_method_and_target(bound: tuple[str, str, str]) -> None:
    with pytest.raises(RpcError):
        SIGNER.open(sealed(), *bound)


def test_each_server_has_a_key_of_its_own() -> None:
    with pytest.raises(RpcError):
        StateSigner().open(StateSigner().seal(RequestState({}, {}), *BOUND), *BOUND)


def test_a_state_lives_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [1_000_000.0]
    monkeypatch.setattr("dari.mcp.client_requests.time.time", lambda: now_s[0])
    text = sealed()
    now_s[0] += 3599
    SIGNER.open(text, *BOUND)
    now_s[0] += 2
    with pytest.raises(RpcError):
        SIGNER.open(text, *BOUND)
