"""What people ask for, and the tool that is right: over 800 questions over the tools of 53 public servers and ours.

They were written in rounds, each measured before the finder was changed for it: `questions.tsv` says with what result,
which is the fairest guess of how other questions fare. A third, chosen by a hash of the text, was not looked at while
the finder was tuned. Who wrote a round wrote entries of the lexicon later, so that this third is not wholly unseen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dari.app import Toolkits
from dari.bridge.gateway.search_mode import OWN_ABOUT
from dari.bridge.search.index import ToolIndex
from dari.core.registry import Registry
from dari.settings import ServeSettings

_DATA = Path(__file__).parent / "data"


class Question(NamedTuple):
    language: str
    right: frozenset[str]
    """Names of tools as a model calls them; any of them is right."""
    text: str
    round: int

    @property
    def is_held_out(self) -> bool:
        return hashlib.sha256(self.text.encode()).digest()[0] % 3 == 0


class Accuracy(NamedTuple):
    asked: int
    first: int
    """Questions whose right tool came first."""
    among_three: int

    def __str__(self) -> str:
        share = [f"{100 * count / max(1, self.asked):5.1f} %" for count in (self.first, self.among_three)]
        return f"{self.asked:4d} questions   first {share[0]}   among three {share[1]}"


def named(server: str, tool: str) -> str:
    return tool if server == "dari" else f"{server}__{tool}"


@cache
def questions() -> tuple[Question, ...]:
    lines = (_DATA / "questions.tsv").read_text(encoding="utf-8").splitlines()
    found: list[Question] = []
    round_number = 0
    for line in filter(None, lines):
        if line.startswith("#"):
            round_number += 1
            continue
        language, right, text = line.split("\t")
        tools = frozenset(named(*one.split("/", 1)) for one in right.split())
        found.append(Question(language, tools, text, round_number))
    return tuple(found)


@cache
def recorded() -> dict[str, tuple[str | Mapping[str, str], list[dict[str, Any]]]]:
    """Server → what it says of itself, and its tools under the names that the gateway gives them."""
    lines = (_DATA / "servers.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[str, tuple[str | Mapping[str, str], list[dict[str, Any]]]] = {}
    for one in map(json.loads, lines):
        tools = [{**tool, "name": named(one["server"], tool["name"])} for tool in one["tools"]]
        found[one["server"]] = (one["about"], tools)
    registry = Registry()
    Toolkits(ServeSettings(token_path=_DATA / "unused")).add_to(registry)
    found["dari"] = (OWN_ABOUT, [tool.listing() for tool in registry.tools.values()])
    return found


def built_index() -> ToolIndex:
    index = ToolIndex()
    for server, (about, tools) in recorded().items():
        index.put(server, tools, about)
    return index


def place_of(index: ToolIndex, question: Question, most: int = 10) -> int:
    """Where the first right tool stands, from 1; `most` + 1 where it is further down."""
    names = [found.name for found in index.find(question.text, most)]
    return next((at for at, name in enumerate(names, 1) if name in question.right), most + 1)


def accuracy(index: ToolIndex, asked: Iterable[Question]) -> Accuracy:
    places = [place_of(index, one) for one in asked]
    return Accuracy(len(places), sum(at == 1 for at in places), sum(at <= 3 for at in places))


def accuracies(index: ToolIndex) -> dict[tuple[str, str], Accuracy]:
    """By part (tuned, held-out) and language."""
    return {
        (part, language): accuracy(
            index, [one for one in questions() if one.language == language and one.is_held_out == (part == "held-out")]
        )
        for part in ("tuned", "held-out")
        for language in ("en", "ko")
    }
