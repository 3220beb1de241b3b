"""Synonyms for what tools do, read from `synonyms.txt` at the first query."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple

from dari.bridge.search.tokenizer import is_hangul, script_runs, stem

TermWeights = dict[str, float]
"""Words of tools, with what they count."""

_FIRST, _OTHER, _ALIKE = 1.0, 0.65, 0.45
_MAX_CHANGED = 3
"""Letters that a form may lose: `copy` and `copies`, `staged` and `staging`."""
_STRONG, _NORMAL, _WEAK = 1.6, 1.0, 0.3


class Expansion(NamedTuple):
    """What a word or phrase of a question asks for."""

    targets: TermWeights
    weight: float


class Synonyms(NamedTuple):
    alike: dict[str, tuple[str, ...]]
    """Stem → stems that mean the same."""
    kinds: dict[str, frozenset[str]]
    """Stem of a verb → the kinds of what it does."""
    phrases: dict[tuple[str, ...], Expansion]
    """Stems in a row → what they ask for."""
    single: dict[str, dict[str, Expansion]]
    """Stem → words of one goal each as they are written: `late` and `lat` have one stem and are two words."""
    longest_phrase: int
    korean: dict[str, Expansion]
    """Beginning of a Korean word, spaces left out → what it stands for."""
    longest_korean: int
    light: frozenset[str]
    """Words that most servers use for something; they say less than others."""
    weak: frozenset[str]
    nouns: frozenset[str]
    """Verbs that are nouns as well."""

    def widened(self, word: str, factor: float = 1.0) -> TermWeights:
        """A word with those that mean the same, which count less."""
        wide = dict.fromkeys(self.alike.get(word, ()), factor * _ALIKE)
        wide[word] = factor
        return wide

    def goal_of(self, run: str) -> Expansion | None:
        """What a single word asks for: the word as it is listed, else one that it is an ordinary form of."""
        listed = self.single.get(stem(run))
        if not listed:
            return None
        if run in listed:
            return listed[run]
        found: Expansion | None = None
        for word, goal in listed.items():
            if _is_form(run, word):
                found = _joined(found, goal)
        return found

    def groups(self, targets: TermWeights) -> list[TermWeights]:
        """Each word of a goal, widened: a tool that has several of them fits better."""
        return [self.widened(word, factor) for word, factor in targets.items()]


def stems(phrase: str) -> tuple[str, ...]:
    return tuple(stem(run) for run in script_runs(phrase))


@cache
def load_synonyms() -> Synonyms:
    text = resources.files(__package__).joinpath("synonyms.txt").read_text(encoding="utf-8")
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    korean, phrases = _korean(sections["korean"]), _phrases(sections["goals"])
    return Synonyms(
        alike=_groups(sections["groups"]),
        kinds=_kinds(sections["verbs"]),
        phrases=phrases,
        single=_single(sections["goals"]),
        longest_phrase=max(map(len, phrases)),
        korean=korean,
        longest_korean=max(map(len, korean)),
        light=_set(sections["light"]),
        weak=_set(sections["weak"]),
        nouns=_set(sections["nouns"]),
    )


def _set(lines: list[str]) -> frozenset[str]:
    return frozenset(stem(word.strip()) for line in lines for word in line.split(","))


def _groups(lines: list[str]) -> dict[str, tuple[str, ...]]:
    alike: dict[str, dict[str, None]] = {}
    for line in lines:
        group = [_target(word) for word in line.split()]
        for word in group:
            alike.setdefault(word, {}).update((other, None) for other in group if other != word)
    return {word: tuple(others) for word, others in alike.items()}


def _kinds(lines: list[str]) -> dict[str, frozenset[str]]:
    kinds: dict[str, set[str]] = {}
    for line in lines:
        kind, _, verbs = line.partition(":")
        for verb in verbs.split():
            kinds.setdefault(stem(verb), set()).add(kind)
    return {verb: frozenset(found) for verb, found in kinds.items()}


def _phrases(lines: list[str]) -> dict[tuple[str, ...], Expansion]:
    found: dict[tuple[str, ...], Expansion] = {}
    for line in lines:
        triggers, goal = _entry(line)
        for trigger in triggers:
            key = stems(trigger)
            found[key] = _joined(found.get(key), goal)
    return found


def _single(lines: list[str]) -> dict[str, dict[str, Expansion]]:
    found: dict[str, dict[str, Expansion]] = {}
    for line in lines:
        triggers, goal = _entry(line)
        for trigger in triggers:
            parts = script_runs(trigger)
            if len(parts) == 1:
                of_stem = found.setdefault(stem(parts[0]), {})
                of_stem[parts[0]] = _joined(of_stem.get(parts[0]), goal)
    return found


def _is_form(run: str, word: str) -> bool:
    """Whether two words of one stem are forms of one word: they differ by `s`, `ed` or `ing`, not by an `e`."""
    shorter, longer = sorted((run, word), key=len)
    kept = next(
        (at for at, (one, other) in enumerate(zip(shorter, longer, strict=False)) if one != other), len(shorter)
    )
    return len(shorter) - kept <= _MAX_CHANGED and longer[kept:] != "e"


def _korean(lines: list[str]) -> dict[str, Expansion]:
    found: dict[str, Expansion] = {}
    for line in lines:
        triggers, goal = _entry(line)
        for trigger in triggers:
            key = "".join(run for run in script_runs(trigger) if is_hangul(run))
            found[key] = _joined(found.get(key), goal)
    return found


def _joined(before: Expansion | None, goal: Expansion) -> Expansion:
    if before is None:
        return goal
    targets = {**goal.targets, **before.targets}
    return Expansion(
        {word: max(one.targets.get(word, 0.0) for one in (before, goal)) for word in targets}, before.weight
    )


def _entry(line: str) -> tuple[list[str], Expansion]:
    weight = {"!": _STRONG, "~": _WEAK}.get(line[0], _NORMAL)
    triggers, _, given = line.lstrip("!~").partition(" = ")
    targets: TermWeights = {}
    for at, one in enumerate(given.split()):
        word, _, factor = one.partition(":")
        targets[_target(word)] = float(factor) if factor else _OTHER if at else _FIRST
    return [trigger.strip() for trigger in triggers.split(",")], Expansion(targets, weight)


def _target(word: str) -> str:
    """Two words that make one name (`pull_request`) are looked for together."""
    return "_".join(stem(part) for part in word.split("_"))
