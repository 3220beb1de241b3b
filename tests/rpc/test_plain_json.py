"""What commands send and read is the JSON of the standard library, to the letter."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.rpc import plain_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_it_writes_and_reads_what_the_package_json_does(value: object) -> None:
    text = plain_json.dumps(value)
    assert text == json.dumps(value, ensure_ascii=False)
    assert plain_json.loads(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()) == json.loads(
        text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    )


@pytest.mark.parametrize("text", [b"", b"{", b"{} {}", b"NaN", b'{"a":}', b"nul"])
def test_what_is_not_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        plain_json.loads(text)
