"""No bytes, sizes or snapshots bring the engine down; and if they did, it would be noticed and kept."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.terminal.conformance.fuzz import fails_in_child, fuzz, load, save, shorten, watch
from tests.terminal.conformance.mutations import Act, Round, make_round

SEED, ROUNDS = 20261116, 60


def test_sixty_rounds_of_odd_bytes_leave_it_standing() -> None:
    report = fuzz(SEED, rounds=ROUNDS)
    assert (report.failed_at, report.how) == (None, "")
    assert report.rounds == ROUNDS
    assert report.size > 100_000


DIES = """
import os, signal, struct, sys
with open(sys.argv[1], "r+b", buffering=0) as journal:
    for number in range(4):
        journal.seek(0)
        journal.write(struct.pack("<qqq", number, number, 10 * number))
    os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_a_crash_is_told_with_the_round_it_happened_in() -> None:
    report = watch([sys.executable, "-c", DIES])
    assert (report.failed_at, report.rounds) == (3, 3)
    assert report.how == "the process died of SIGSEGV"


def test_a_promise_that_is_broken_is_told_in_its_own_words() -> None:
    report = watch([sys.executable, "-c", "raise AssertionError('the cursor is nowhere')"])
    assert (report.failed_at, report.how) == (0, "AssertionError: the cursor is nowhere")


def test_a_failing_round_is_saved_and_cut_down_to_what_fails(tmp_path: Path) -> None:
    made = Round(20, 6, (Act("feed", b"before"), Act("resize", b"", 4, 3), Act("feed", b"some BAD bytes"), Act("read")))
    short = shorten(made, lambda attempt: any(b"BAD" in act.data for act in attempt.acts))
    assert short == Round(20, 6, (Act("feed", b"BAD"),))
    assert load(save(short, tmp_path, "round")) == short


def test_a_saved_round_is_played_again_in_a_process_of_its_own() -> None:
    assert not fails_in_child(make_round(1))
    assert fails_in_child(Round(0, 0, ()))  # no size of a terminal


def test_a_seed_makes_the_same_round_everywhere() -> None:
    assert make_round(5) == make_round(5)
    assert len({make_round(seed).acts for seed in range(30)}) == 30
