"""What commands send and read is the JSON of the standard library, to the letter."""

from __future__ import annotations

import json
import subprocess
import sys

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


BROKEN = [b"", b"{", b"{} {}", b"NaN", b'{"a":}', b"nul", b'{"a":"b', b'"\\u12"', b'"\n"', b"\xff", b"[" * 100_000]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_not_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        plain_json.loads(text)


def test_it_is_a_value_error_also_where_nobody_has_imported_the_package_json() -> None:
    """The C code looks for the package's exception among the imported modules, and without it sets none at all."""
    code = (
        "import sys\nfrom dari.rpc import plain_json\nassert 'json.decoder' not in sys.modules\n"
        f"for text in {BROKEN[:-1]!r}:\n"
        "    try: plain_json.loads(text)\n"
        "    except ValueError: continue\n"
        "    raise SystemExit(f'{text!r} was read')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
