"""@xterm/headless, which knows nothing of our engine, shows the same for streams that nobody wrote by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from tests.terminal.conformance.differences import KNOWN, explain
from tests.terminal.conformance.differential import Outcome, compare, judge, minimise, still_differs
from tests.terminal.conformance.oracle import Oracle, OracleMissing, Screen, oracle
from tests.terminal.conformance.streams import Stream, generate

SEEDS = range(200)
RED = "\x1b[31m"
pytestmark = pytest.mark.xdist_group("xterm")


@pytest.fixture(scope="module")
def xterm() -> Iterator[Oracle]:
    try:
        with oracle() as found:
            yield found
    except OracleMissing as error:
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(str(error))
        pytest.skip(f"THE DIFFERENTIAL RUN DID NOT HAPPEN: {error}")


def test_generated_streams_look_the_same_or_differ_in_a_known_way(xterm: Oracle) -> None:
    outcome = compare(xterm, SEEDS)
    assert not outcome.new, "\n".join(str(minimise(xterm, found)) for found in outcome.new[:3])
    assert outcome.equal >= 0.85 * outcome.streams, "the list of known differences explains too much"


def test_every_known_difference_is_still_one(xterm: Oracle) -> None:
    for known in KNOWN:
        found = still_differs(xterm, known)
        assert found, f"{known.name!r} is no longer true: take it out of the list"
        assert explain(known.example, found), f"{known.name!r} does not explain its own example"


def test_what_nobody_explained_is_found_and_made_short(xterm: Oracle) -> None:
    class Colourless(Oracle):
        """A terminal that does not know red."""

        def __init__(self) -> None:
            pass

        def show(self, streams: Sequence[Stream]) -> list[Screen]:
            return xterm.show([Stream(tuple(step for step in one.steps if step != RED)) for one in streams])

    stream = Stream(("some text", "\r\n", RED, "more", "\x1b[0m", "\r\n", "last"))
    outcome = Outcome()
    judge(outcome, 7, stream, Colourless().show([stream])[0])
    assert "seed 7: style differ" in str(outcome.new[0])
    short = minimise(Colourless(), outcome.new[0]).stream.steps
    assert (short[0], len(short)) == (RED, 2)


def test_a_seed_makes_the_same_stream_everywhere() -> None:
    assert generate(11) == generate(11)
    assert len({generate(seed).steps for seed in range(50)}) == 50
    first = generate(3)
    assert str(first).startswith("20×6: ")
