"""One tool in the index: its words by field, with their weights, and what kind of action it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from dari.bridge.search.synonyms import load_synonyms
from dari.bridge.search.tokenizer import tokenize

JsonObject = dict[str, Any]

MAX_DESCRIPTION_WORDS = 300
"""Some descriptions are manuals; what a tool is for stands in front."""
MAX_TEXT_CHARS = 3000
MAX_SUMMARY_CHARS = 200
_MIN_TOOLS_THAT_SHARE, _SHARE = 4, 0.7


class _Field(NamedTuple):
    weight: float
    usual_words: float
    """Longer fields count less per word, as in BM25F, by a fixed length: no tool's score hangs on the others'."""
    length_share: float


_NAME = _Field(5.4, 3, 0.45)
_TITLE = _Field(2.3, 3, 0.45)
_FIRST = _Field(1.75, 10, 0.65)
_REST = _Field(0.18, 40, 0.75)
_ARGUMENTS = _Field(0.8, 4, 0.8)
_VALUES = _Field(0.3, 30, 0.6)
_SERVER = _Field(2.7, 1, 0.2)
_ABOUT = _Field(0.3, 30, 0.75)


class IndexedTool:
    __slots__ = ("server", "name", "tool", "counts", "name_words", "first_word")

    def __init__(self, server: str, tool: JsonObject, shared: frozenset[str], about: Sequence[str]) -> None:
        """`shared`: words that stand in the name of most tools of the server, and name that server only."""
        self.server = server
        self.name = str(tool.get("name", ""))
        self.tool = tool
        self.counts: dict[str, float] = {}
        own = bare_name(server, self.name)
        properties = properties_of(tool)
        first, rest = _sentences(text_of(tool, "description"))
        name = tokenize(own)
        named = [word for word in name if word not in shared] or name
        first_words = tokenize(first)
        self.name_words = tuple(named)
        self.first_word = first_words[0] if first_words else ""
        self._count(_NAME, [*named, *_pairs(named)])
        self._count(_TITLE, tokenize(title_of(tool)))
        self._count(_FIRST, first_words)
        self._count(_REST, tokenize(rest[:MAX_TEXT_CHARS])[:MAX_DESCRIPTION_WORDS])
        self._count(_ARGUMENTS, tokenize(" ".join(map(str, properties))))
        self._count(
            _VALUES,
            tokenize(" ".join(map(_argument_text, properties.values()))[:MAX_TEXT_CHARS])[:MAX_DESCRIPTION_WORDS],
        )
        self._count(_SERVER, {*tokenize(server), *(word for word in name if word in shared)})
        self._count(_ABOUT, about)

    def _count(self, one: _Field, found: Iterable[str]) -> None:
        counted = Counter(found)
        if counted:
            length = sum(counted.values())
            weight = one.weight / (1 - one.length_share + one.length_share * length / one.usual_words)
            counts = self.counts
            for word, times in counted.items():
                # The fourth time says little that the first three did not.
                counts[word] = counts.get(word, 0.0) + weight * (times if times < 3 else 3)

    def spellings(self) -> set[str]:
        lowered = self.name.lower()
        return {lowered, bare_name(self.server, lowered)}


def bare_name(server: str, name: str) -> str:
    """The name without the server in front."""
    for given in (server, server.lower()):
        if given and name.startswith(given) and name != given:
            return name[len(given) :].lstrip("_-./:")
    return name


def shared_words(server: str, tools: Sequence[JsonObject]) -> frozenset[str]:
    """Words of most names of a server (`slack_…`, `browser_…`): they tell the server, not the tool."""
    if len(tools) < _MIN_TOOLS_THAT_SHARE:
        return frozenset()
    counted = Counter(word for tool in tools for word in set(tokenize(bare_name(server, str(tool.get("name", ""))))))
    return frozenset(word for word, times in counted.items() if times >= len(tools) * _SHARE)


def _pairs(named: Sequence[str]) -> list[str]:
    return [f"{one}_{other}" for one, other in pairwise(named)]


def _sentences(description: str) -> tuple[str, str]:
    """The first sentence, and the rest."""
    text = description.strip()
    ends = [at for at in (text.find(". "), text.find(".\n"), text.find("\n\n")) if at > 0]
    end = min(ends, default=len(text))
    return text[: end + 1], text[end + 1 :]


def summary_of(description: str) -> str:
    """The first sentence, or as much of it as fits."""
    first = description.strip().split("\n\n")[0].replace("\n", " ")
    end = first.find(". ")
    sentence = first[: end + 1] if 0 <= end < MAX_SUMMARY_CHARS else first
    return sentence if len(sentence) <= MAX_SUMMARY_CHARS else sentence[: MAX_SUMMARY_CHARS - 1] + "…"


def properties_of(tool: JsonObject) -> JsonObject:
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _argument_text(argument: object) -> str:
    """What an argument says of itself: its description and the values to choose from."""
    if not isinstance(argument, dict):
        return ""
    choices = argument.get("enum")
    return " ".join((text_of(argument, "description"), *map(str, choices if isinstance(choices, list) else ())))


def text_of(tool: JsonObject, field: str) -> str:
    value = tool.get(field)
    return value if isinstance(value, str) else ""


def title_of(tool: JsonObject) -> str:
    annotations = tool.get("annotations")
    return text_of(tool, "title") or (text_of(annotations, "title") if isinstance(annotations, dict) else "")


READ_ACTIONS = frozenset(("read", "list", "search"))
"""Kinds that change nothing."""
_KIND_FITS, _KIND_NEAR, _KIND_DIFFERS = 1.25, 1.0, 0.7
_NEAR = {
    "read": ("list", "search", "convert", "run"),
    "list": ("read", "search"),
    "search": ("read", "list", "convert", "run"),
    "create": ("send", "update", "convert"),
    "update": ("create",),
    "send": ("create",),
    "run": ("create", "read"),
    "convert": ("create", "read"),
    "delete": ("stop",),
    "stop": ("delete", "update"),
}


def tool_actions(entry: IndexedTool) -> frozenset[str]:
    """What a tool does: by the first verb of its name, else by the first word of its description.

    A word that is a noun as well (`list`, `file`) is a verb only where a name begins with it.
    """
    known, nouns = load_synonyms().kinds, load_synonyms().nouns
    verbs = [known.get(word) if word not in nouns else None for word in (*entry.name_words, "")]
    for kinds, others in pairwise(verbs):
        if kinds:
            return kinds | (others or frozenset())  # `search_and_replace` does both
    first = entry.name_words[0] if entry.name_words else ""
    return known.get(first) or known.get(entry.first_word, frozenset())


def action_fit(kinds: frozenset[str], wanted: frozenset[str]) -> float:
    """What the score of a tool is multiplied by."""
    if not kinds:
        return _KIND_NEAR
    if kinds & wanted:
        return _KIND_FITS
    return _KIND_NEAR if any(near in kinds for kind in wanted for near in _NEAR.get(kind, ())) else _KIND_DIFFERS
