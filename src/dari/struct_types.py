"""Types that msgspec reads into, for more than one thread.

msgspec 0.22 learns the fields of a struct at its first use, and shows what it has so far to every other thread: two
that read the same new type at the same time end the process with SIGSEGV. So each type goes through `ready` before its
first use: `msgspec.json.decode(data, type=ready(Claim))`. After that msgspec may be used from any thread.
"""

from __future__ import annotations

from _thread import RLock
from typing import TypeVar

import msgspec

T = TypeVar("T")

_known: set[object] = set()
_learning = RLock()


def ready(kind: T) -> T:
    """The same type, which msgspec knows whole by now."""
    try:
        if kind in _known:
            return kind
    except TypeError:  # a type whose notes cannot be hashed is asked for each time
        _learn(kind)
        return kind
    _learn(kind)
    _known.add(kind)
    return kind


def _learn(kind: object) -> None:
    with _learning:
        try:
            msgspec.json.Decoder(kind)
        except TypeError:
            pass  # nothing that JSON can be read into: who uses it is told so
