"""RFC 8785 and what we add to it."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.core.jcs import canonical, digest
from dari.errors import InvalidInput

# Appendix B of RFC 8785: IEEE 754 bits and their text.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555555": "333333333.3333333",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}
# Beyond 2**53 a float and the whole number that its digits spell are one double, and so one text.
floats = st.floats(-(2.0**53), 2.0**53)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_are_written_as_in_the_appendix_of_the_rfc(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number).decode() == text


def test_the_example_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    assert canonical(value) == (
        b'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        b'"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_sort_by_utf_16_units_as_in_the_rfc() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    written = json.loads(canonical(dict.fromkeys(keys, 0)), object_pairs_hook=lambda pairs: [key for key, _ in pairs])
    assert written == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_whole_numbers_that_a_double_would_mix_up_stay_apart() -> None:
    assert canonical(2**53 + 1) == b"9007199254740993"
    assert digest(2**53 + 1) != digest(2**53)


def test_a_lone_surrogate_is_written_and_cannot_be_taken_for_its_own_escape() -> None:
    assert canonical("\ud800") == b'"\\ud800"'
    assert canonical("\\ud800") == b'"\\\\ud800"'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {1: 2}, object(), {"a": {2}}])
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        canonical(value)


def test_nesting_has_a_bottom() -> None:
    value: Any = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(InvalidInput):
        canonical(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_comes_back_from_its_text(number: float) -> None:
    assert float(canonical(number)) == number


@given(values)
@settings(deadline=None)
def test_the_text_is_json_for_the_same_value_and_its_own_text(value: Any) -> None:
    written = canonical(value)
    assert json.loads(written) == value
    assert canonical(json.loads(written)) == written


@given(st.dictionaries(st.text(), values, max_size=6), st.randoms())
@settings(deadline=None)
def test_the_order_of_keys_changes_nothing(value: dict[str, Any], random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)
    assert digest({key: value[key] for key in keys}) == digest(value)


@given(values, values)
@settings(deadline=None)
def test_different_values_have_different_texts(left: Any, right: Any) -> None:
    def typed(value: Any) -> Any:
        """Python takes True for 1; JSON does not. 1 and 1.0 are one number."""
        if isinstance(value, dict):
            return {key: typed(each) for key, each in value.items()}
        if isinstance(value, list):
            return [typed(each) for each in value]
        return ("bool", value) if isinstance(value, bool) else value

    assert (canonical(left) == canonical(right)) == (typed(left) == typed(right))
