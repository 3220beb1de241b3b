"""Suggestions for a name."""

from __future__ import annotations

import tracemalloc

from dari.bridge.search.fuzzy import nearest_names


def test_a_name_of_megabytes_leaves_nothing_behind() -> None:
    tracemalloc.start()
    try:
        for at in range(3):
            assert nearest_names(f"{at}x" * 1_000_000, ["read_file"]) == []
        held_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held_bytes < 1_000_000
