"""A ranked index of all tools of all servers, for models that ask instead of reading hundreds of schemas.

BM25 over name, title, description and arguments, each with its weight; a word that no tool has is taken for a
slip of the nearest ones that exist. Equal scores sort by name, so the same question gets the same answer.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from dari.bridge.finding.spelling import distance, nearest, trigrams
from dari.bridge.finding.synonyms import SYNONYMS
from dari.bridge.finding.words import words
from dari.errors import NotFound

JsonObject = dict[str, Any]

_NAME, _TITLE, _ARGUMENT, _SERVER, _TEXT, _VALUE = 4.0, 2.5, 1.0, 1.0, 1.0, 0.4
_K, _B = 1.2, 0.6
_PREFIX, _SLIP = 0.6, (1.0, 0.7, 0.45)
_NAMED = 100.0
"""Who writes the name of a tool means that tool."""
_DESCRIPTION_WORDS = 300
"""Some descriptions are manuals; what a tool is for stands in front."""
_QUERY_WORDS = 32
_EXPANSIONS = 12
_SUMMARY_CHARS = 200


class Found(Struct, frozen=True, kw_only=True):
    """A tool in short: enough to choose by, a hundredth of its schema."""

    name: str
    server: str
    title: str = ""
    summary: str
    arguments: list[str]
    """Names; those that are required end with `*`."""
    score: float


class _Entry:
    __slots__ = ("server", "name", "tool", "counts", "length")

    def __init__(self, server: str, tool: JsonObject) -> None:
        self.server = server
        self.name = str(tool.get("name", ""))
        self.tool = tool
        self.counts: dict[str, float] = {}
        properties = _properties(tool)
        description = words(_text(tool, "description"))[:_DESCRIPTION_WORDS]
        for weight, found in (
            (_NAME, words(self.name)),
            (_TITLE, words(_title(tool))),
            (_TEXT, description),
            (_ARGUMENT, words(" ".join(map(str, properties)))),
            (_VALUE, words(" ".join(map(_said, properties.values())))[:_DESCRIPTION_WORDS]),
            (_SERVER, words(server)),
        ):
            for word in found:
                self.counts[word] = self.counts.get(word, 0.0) + weight
        self.length = sum(self.counts.values())

    def spelled(self) -> set[str]:
        lowered = self.name.lower()
        return {lowered, lowered.removeprefix(self.server.lower()).lstrip("_-./:")}


class ToolIndex:
    """`put` what a server shows under the names a model calls; `find` and `describe` what it asks for."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._of_server: dict[str, list[str]] = {}
        self._postings: dict[str, dict[str, float]] = {}
        self._named: dict[str, list[str]] = {}
        """Names by how a person may write them: in lower case, with and without the server in front."""
        self._grams: dict[str, set[str]] = {}
        self._vocabulary: list[str] | None = None
        self._norms: dict[str, float] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, server: str, tools: Iterable[JsonObject]) -> None:
        """Replace everything that is known of one server; the others are not touched."""
        self.remove(server)
        names = self._of_server[server] = []
        for tool in tools:
            entry = _Entry(server, tool)
            if entry.name in self._entries:
                continue  # the first of one name is the one that is called
            self._entries[entry.name] = entry
            names.append(entry.name)
            for spelled in entry.spelled():
                self._named.setdefault(spelled, []).append(entry.name)
            for word, weight in entry.counts.items():
                posting = self._postings.get(word)
                if posting is None:
                    posting = self._postings[word] = {}
                    for gram in trigrams(word):
                        self._grams.setdefault(gram, set()).add(word)
                posting[entry.name] = weight
        self._vocabulary = self._norms = None

    def remove(self, server: str) -> None:
        for name in self._of_server.pop(server, ()):
            entry = self._entries.pop(name)
            for spelled in entry.spelled():
                self._named[spelled].remove(name)
                if not self._named[spelled]:
                    del self._named[spelled]
            for word in entry.counts:
                posting = self._postings[word]
                del posting[name]
                if not posting:
                    del self._postings[word]
                    for gram in trigrams(word):
                        self._grams[gram].discard(word)
                        if not self._grams[gram]:
                            del self._grams[gram]
        self._vocabulary = self._norms = None

    def find(self, query: str, limit: int = 10, server: str | None = None) -> list[Found]:
        """The tools that fit best, best first. A question without any word lists tools by name."""
        asked = list(dict.fromkeys(words(query)))[:_QUERY_WORDS]
        if not asked:
            names = sorted(name for name, entry in self._entries.items() if server in (None, entry.server))
            return [self._found(name, 0.0) for name in names[:limit]]
        scores = self._scores(asked)
        for name in self._named.get(query.strip().lower(), ()):
            scores[name] = scores.get(name, 0.0) + _NAMED
        ranked = (
            (-round(score, 6), name)
            for name, score in scores.items()
            if server is None or self._entries[name].server == server
        )
        return [self._found(name, -score) for score, name in heapq.nsmallest(limit, ranked)]

    def describe(self, name: str) -> JsonObject:
        """The tool as its server shows it, schema and all."""
        entry = self._entries.get(name)
        if entry is None:
            raise NotFound(f"there is no tool {name!r}", self.suggestion(name))
        return entry.tool

    def suggestion(self, name: str) -> str:
        """A hint for who named a tool that is not there."""
        likely = nearest(name, self._entries)
        return f"did you mean {' or '.join(likely)}?" if likely else "look for it with find_tools"

    def _scores(self, asked: list[str]) -> dict[str, float]:
        norms = self._normed()
        total = len(self._entries)
        scores: dict[str, float] = {}
        hits: Counter[str] = Counter()
        for word in asked:
            best: dict[str, float] = {}
            for other, factor in self._expanded(word):
                posting = self._postings[other]
                rarity = math.log(1 + (total - len(posting) + 0.5) / (len(posting) + 0.5)) * factor * (_K + 1)
                for name, weight in posting.items():
                    score = rarity * weight / (weight + norms[name])
                    if score > best.get(name, 0.0):
                        best[name] = score
            for name, score in best.items():
                scores[name] = scores.get(name, 0.0) + score
            hits.update(best.keys())
        # Two of three words count for more than one of them twice.
        return {name: score * (0.3 + 0.7 * hits[name] / len(asked)) for name, score in scores.items()}

    def _normed(self) -> dict[str, float]:
        if self._norms is None:
            mean = sum(entry.length for entry in self._entries.values()) / max(1, len(self._entries)) or 1.0
            self._norms = {name: _K * (1 - _B + _B * entry.length / mean) for name, entry in self._entries.items()}
        return self._norms

    def _expanded(self, word: str) -> list[tuple[str, float]]:
        """The words of the index that a word of the question stands for, with what they count."""
        found: dict[str, float] = {}
        if word in self._postings:
            found[word] = 1.0
        for other, factor in SYNONYMS.get(word, ()):
            if other in self._postings:
                found.setdefault(other, factor)
        if len(word) >= 3 and word.isascii():
            for other in self._beginning_with(word):
                found.setdefault(other, _PREFIX)
        if not found and len(word) >= 4:
            found = self._slips(word)
        return list(found.items())

    def _beginning_with(self, word: str) -> list[str]:
        if self._vocabulary is None:
            self._vocabulary = sorted(self._postings)
        start = bisect_left(self._vocabulary, word)
        return [other for other in self._vocabulary[start : start + _EXPANSIONS] if other.startswith(word)]

    def _slips(self, word: str) -> dict[str, float]:
        """Words at most two letters away, one for short ones."""
        allowed = 2 if len(word) >= 6 else 1
        shared: Counter[str] = Counter()
        for gram in sorted(trigrams(word)):
            shared.update(self._grams.get(gram, ()))
        likely = heapq.nsmallest(40, ((-count, other) for other, count in shared.items()))
        found = {other: distance(word, other, allowed) for _, other in likely}
        near = sorted((apart, other) for other, apart in found.items() if apart <= allowed)
        return {other: _SLIP[apart] for apart, other in near[:_EXPANSIONS]}

    def _found(self, name: str, score: float) -> Found:
        entry = self._entries[name]
        schema = entry.tool.get("inputSchema")
        schema = schema if isinstance(schema, dict) else {}
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        return Found(
            name=name,
            server=entry.server,
            title=_title(entry.tool),
            summary=_summary(_text(entry.tool, "description")),
            arguments=[f"{each}*" if each in required else str(each) for each in _properties(entry.tool)],
            score=round(score, 3),
        )


def _properties(tool: JsonObject) -> JsonObject:
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _said(argument: object) -> str:
    """What an argument says of itself: its description and the values to choose from."""
    if not isinstance(argument, dict):
        return ""
    choices = argument.get("enum")
    return " ".join((_text(argument, "description"), *map(str, choices if isinstance(choices, list) else ())))


def _text(tool: JsonObject, field: str) -> str:
    value = tool.get(field)
    return value if isinstance(value, str) else ""


def _title(tool: JsonObject) -> str:
    annotations = tool.get("annotations")
    return _text(tool, "title") or (_text(annotations, "title") if isinstance(annotations, dict) else "")


def _summary(description: str) -> str:
    """The first sentence, or as much of it as fits."""
    first = description.strip().split("\n\n")[0].replace("\n", " ")
    end = first.find(". ")
    sentence = first[: end + 1] if 0 <= end < _SUMMARY_CHARS else first
    return sentence if len(sentence) <= _SUMMARY_CHARS else sentence[: _SUMMARY_CHARS - 1] + "…"
