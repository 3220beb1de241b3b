"""How often the intent is right on the labelled outputs, in numbers that a reader can check."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from dari.terminal.output_parsers import detect_intent
from dari.terminal.output_parsers.intent_rules import load_rules
from tests.terminal.output_parsers.labelled import all_samples

AT_LEAST = 0.95
ROOT = Path(__file__).parents[3]


def test_the_labels_are_intents_and_every_intent_has_samples() -> None:
    counts = Counter(sample.intent for sample in all_samples())
    assert set(counts) == {intent.name for intent in load_rules()}
    assert min(counts.values()) >= 4, counts
    assert sum(counts.values()) >= 120


def test_most_samples_were_really_printed_by_their_tool_and_a_third_was_held_back() -> None:
    samples = all_samples()
    assert {sample.source for sample in samples} == {"run", "known"}
    assert sum(sample.source == "run" for sample in samples) > len(samples) / 2
    assert sum(sample.group != "first" for sample in samples) >= len(samples) / 3


def test_the_samples_name_no_folder_of_the_machine_they_were_made_on() -> None:
    for sample in all_samples():
        assert not any(place in sample.output for place in ("/tmp/term", "/tmp/cc", "/root", str(ROOT))), sample.name


def test_nearly_all_samples_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    right: dict[str, Counter[str]] = defaultdict(Counter)
    total: dict[str, Counter[str]] = defaultdict(Counter)
    misses: list[str] = []
    for sample in all_samples():
        found = detect_intent(sample.command, sample.output, sample.exit_code)
        is_right = found.intent == sample.intent
        for key in (sample.intent, f"set: {sample.group}", f"source: {sample.source}", "whole"):
            total[key]["all"] += 1
            right[key]["all"] += is_right
        if not is_right:
            misses.append(f"  {sample.name}: {sample.intent}, read as {found.intent} ({found.confidence})")
    table = [f"{'':24} right  of"]
    for key in sorted(total, key=lambda key: (key == "whole", ":" in key, key)):
        table.append(
            f"{key:24} {right[key]['all']:5} {total[key]['all']:3}  {right[key]['all'] / total[key]['all']:.3f}"
        )
    with capsys.disabled():
        print("\n" + "\n".join(table + misses))
    assert right["whole"]["all"] / total["whole"]["all"] >= AT_LEAST, misses
    for intent in load_rules():
        assert right[intent.name]["all"] / total[intent.name]["all"] >= 0.75, (intent.name, misses)
