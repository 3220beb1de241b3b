"""`json.dumps` and `json.loads` of the standard library's C code alone.

The package `json` imports `re` for its pure-Python side, which is a third of what a command costs. An interpreter
without that C code uses the package.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from typing import Any

make_encoder: Any = None
make_scanner: Any = None
try:
    from _json import encode_basestring, make_encoder, make_scanner
except ImportError:  # not CPython
    pass


def dumps(value: Any) -> str:
    if make_encoder is None:
        import json

        return json.dumps(value, ensure_ascii=False)
    encode = make_encoder(None, _refuse, encode_basestring, None, ": ", ", ", False, False, True)
    return "".join(encode(value, 0))


def loads(text: bytes) -> Any:
    """Any JSON value; ValueError when it is not JSON."""
    if make_scanner is None:
        import json

        return json.loads(text)
    decoded = text.decode().strip(" \t\r\n")
    try:
        value, end = make_scanner(_Context())(decoded, 0)
    except (StopIteration, SystemError):  # CPython 3.11 sets no exception where `json.decoder` is not imported
        raise ValueError("no JSON value") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(decoded):
        raise ValueError("more than one JSON value")
    return value


class _Context:
    """What the scanner asks a decoder for."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012

    @staticmethod
    def parse_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is not JSON")
