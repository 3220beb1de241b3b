"""A ranked index of all tools of all servers, for models that ask instead of reading hundreds of schemas.

BM25F over name, title, description, arguments and server, each with its weight and its usual length. A question is
read first (see `question.py`): what it says becomes the words of tools, and what it wants done is compared with what a
tool does. Equal scores sort by name, so the same question gets the same answer.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from dari.bridge.search.fields import (
    READ_ACTIONS,
    IndexedTool,
    action_fit,
    properties_of,
    shared_words,
    summary_of,
    text_of,
    title_of,
    tool_actions,
)
from dari.bridge.search.fuzzy import edit_distance, nearest_names, trigrams
from dari.bridge.search.korean import QueryTerm, english_sounds, hangul_sounds
from dari.bridge.search.query import parse_query
from dari.bridge.search.synonyms import TermWeights, load_synonyms
from dari.bridge.search.tokenizer import is_hangul, root, tokenize
from dari.core.slices import sliced
from dari.errors import NotFound

JsonObject = dict[str, Any]

_BM25_K = 2.8
_PREFIX_KNOWN, _PREFIX_ONLY, _FAMILY, _SLIP = 0.15, 0.6, 0.5, (1.0, 0.75, 0.5)
_SOUND = (0.5, 0.7, 0.9)
"""By three, four or more consonants: short words sound like many others."""
_COVERED = 0.5
"""Which share of the score hangs on how much of the question a tool answers."""
_MENTIONED, _SURE = 1.35, 0.9
"""For tools of a server that the question names."""
_MORE = 0.4
"""What the further words of a goal add, for a tool that has more than one of them."""
_AGAIN = 0.6
"""What a word counts that two parts of a question stand for."""
_NAMED = 1000.0
"""A question that is the name of a tool asks for that tool."""
_NAME = 0.5
"""What a name counts that names no server."""
_THE_WEB = QueryTerm([{"web": 1.0, "web_search": 1.0, "internet": 0.6}, {"search": 0.7}], 0.6)
_POOR = 2.0
"""A question that no tool answers better is about the world: plumbers, proteins. The web may know."""
_EXPANSIONS = 12


class ToolMatch(Struct, frozen=True, kw_only=True):
    """A tool in short: enough to choose by, a hundredth of its schema."""

    name: str
    server: str
    title: str = ""
    summary: str
    arguments: list[str]
    """Names; those that are required end with `*`."""
    score: float
    input_schema: JsonObject | UnsetType = field(default=UNSET, name="inputSchema")
    """Only of the first few, and only where it is short."""


class ToolIndex:
    """`put` what a server shows under the names a model calls; `find` and `describe` what it asks for."""

    def __init__(self) -> None:
        self._entries: dict[str, IndexedTool] = {}
        self._of_server: dict[str, list[str]] = {}
        self._given: dict[str, tuple[list[JsonObject], str | Mapping[str, str]]] = {}
        self._postings: dict[str, dict[str, float]] = {}
        self._named: dict[str, list[str]] = {}
        """Names by how a person may write them: in lower case, with and without the server in front."""
        self._vocabulary: list[str] | None = None
        self._kinds: dict[str, frozenset[str]] = {}
        self._families: dict[str, list[str]] | None = None
        self._servers_by_word: dict[str, list[str]] | None = None
        self._sounds: dict[str, list[str]] | None = None
        self._grams: dict[str, list[str]] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def servers(self) -> set[str]:
        """Those that have tools here."""
        return {server for server, names in self._of_server.items() if names}

    def put(self, server: str, tools: Iterable[JsonObject], about: str | Mapping[str, str] = "") -> None:
        """Replace everything that is known of one server; the others are not touched.

        `about`: what the server is for, or what its tools are for by how their names begin.
        """
        for _ in self._putting(server, list(tools), about):
            pass

    async def put_in_slices(
        self, server: str, tools: Iterable[JsonObject], about: str | Mapping[str, str] = ""
    ) -> None:
        """`put` in slices, so that other tasks run meanwhile; do not search before it returns."""
        async for _ in sliced(self._putting(server, list(tools), about)):
            pass

    def _putting(self, server: str, given: list[JsonObject], about: str | Mapping[str, str]) -> Iterator[None]:
        """One step for each tool."""
        if self._given.get(server) == (given, about):
            return
        self.remove(server)
        names = self._of_server[server] = []
        shared = shared_words(server, given)
        abouts = {"": about} if isinstance(about, str) else about
        about_words = {begins: tokenize(text) for begins, text in abouts.items()}
        for tool in given:
            name = str(tool.get("name", ""))
            entry = IndexedTool(
                server,
                tool,
                shared,
                next((said for begins, said in about_words.items() if name.startswith(begins)), ()),
            )
            if entry.name in self._entries:
                continue  # the first of one name is the one that is called
            self._entries[entry.name] = entry
            names.append(entry.name)
            for spelled in entry.spellings():
                self._named.setdefault(spelled, []).append(entry.name)
            for word, weight in entry.counts.items():
                posting = self._postings.get(word)
                if posting is None:
                    posting = self._postings[word] = {}
                posting[entry.name] = weight
            self._forget_derived()
            yield
        self._given[server] = given, about

    def remove(self, server: str) -> None:
        self._given.pop(server, None)
        for name in self._of_server.pop(server, ()):
            entry = self._entries.pop(name)
            for spelled in entry.spellings():
                self._named[spelled].remove(name)
                if not self._named[spelled]:
                    del self._named[spelled]
            for word in entry.counts:
                posting = self._postings[word]
                del posting[name]
                if not posting:
                    del self._postings[word]
        self._forget_derived()

    def find(self, query: str, limit: int = 10, server: str | None = None) -> list[ToolMatch]:
        """The tools that fit best, best first. A question without any word lists tools by name."""
        question = parse_query(query)
        named = self._named.get(query.strip().lower(), ())
        if not question.parts and not named:
            names = sorted(name for name, entry in self._entries.items() if server in (None, entry.server))
            return [self._found(name, 0.0) for name in names[:limit]]
        scores = self._scores(question.parts)
        if question.kinds and question.kinds <= READ_ACTIONS and max(scores.values(), default=0.0) < _POOR:
            for name, score in self._scores([_THE_WEB]).items():
                scores[name] = scores.get(name, 0.0) + score
        if question.kinds:
            scores = {name: score * self._fit(name, question.kinds) for name, score in scores.items()}
        for name in named:
            scores[name] = scores.get(name, 0.0) + _NAMED
        ranked = (
            (-round(score, 6), name)
            for name, score in scores.items()
            if server is None or self._entries[name].server == server
        )
        best = self._without_twins(heapq.nsmallest(2 * limit, ranked))
        return [self._found(name, -score) for score, name in best[:limit]]

    def _without_twins(self, ranked: list[tuple[float, str]]) -> list[tuple[float, str]]:
        """Tools that a server offers under two names stand behind the others, but for the first of each."""
        seen: set[tuple[str, str]] = set()
        first: list[tuple[float, str]] = []
        again: list[tuple[float, str]] = []
        for one in ranked:
            entry = self._entries[one[1]]
            described = text_of(entry.tool, "description")
            key = entry.server, described or entry.name
            (again if key in seen else first).append(one)
            seen.add(key)
        return first + again

    def describe(self, name: str) -> JsonObject:
        """The tool as its server shows it, schema and all."""
        entry = self._entries.get(name)
        if entry is None:
            raise NotFound(f"unknown tool {name!r}", self.suggestion(name))
        return entry.tool

    def suggestion(self, name: str) -> str:
        """A hint for who named a tool that is not there."""
        likely = nearest_names(name, self._entries)
        return f"did you mean {' or '.join(likely)}?" if likely else "look for it with find_tools"

    # Ranking

    def _scores(self, asked: list[QueryTerm]) -> dict[str, float]:
        total = len(self._entries)
        scores: dict[str, float] = {}
        covered: dict[str, float] = {}
        whole = 0.0
        mentioned: set[str] = set()
        said: set[str] = set()
        for part in self._joined(asked):
            meant = self._mentioned(part)
            mentioned |= meant
            weight = part.weight * (_NAME if part.is_name and not meant else 1.0)
            best: dict[str, float] = {}
            more: dict[str, float] = {}
            for group in self._expanded(part):
                leads = [word for word, factor in group.items() if factor >= _SURE] or [
                    max(group, key=group.__getitem__)
                ]
                again = _AGAIN if any(word in said for word in leads) else 1.0
                said.update(leads)
                for name, score in self._group_scores(group, total).items():
                    score *= again
                    had = best.get(name)
                    if had is None:
                        best[name] = score
                    else:
                        best[name] = max(had, score)
                        more[name] = more.get(name, 0.0) + min(had, score)
            for name, score in more.items():
                best[name] += _MORE * score
            if not best:
                continue
            whole += weight
            for name, score in best.items():
                scores[name] = scores.get(name, 0.0) + score * weight
                covered[name] = covered.get(name, 0.0) + weight
        # Two of three words count for more than one of them twice.
        return {
            name: score
            * (1 - _COVERED + _COVERED * covered[name] / whole)
            * (_MENTIONED if self._entries[name].server in mentioned else 1.0)
            for name, score in scores.items()
        }

    def _mentioned(self, part: QueryTerm) -> set[str]:
        """Servers that a part of the question names."""
        words_of = self._server_words()
        return {
            server
            for group in part.groups
            for word, factor in group.items()
            if factor >= _SURE
            for server in words_of.get(word, ())
        }

    def _server_words(self) -> dict[str, list[str]]:
        if self._servers_by_word is None:
            self._servers_by_word = {}
            for server in self._of_server:
                for word in tokenize(server):
                    self._servers_by_word.setdefault(word, []).append(server)
        return self._servers_by_word

    def _group_scores(self, group: TermWeights, total: int) -> dict[str, float]:
        best: dict[str, float] = {}
        for word, factor in group.items():
            posting = self._postings[word]
            rarity = math.log(1 + (total - len(posting) + 0.5) / (len(posting) + 0.5)) * factor
            for name, weight in posting.items():
                score = rarity * weight / (weight + _BM25_K)
                if score > best.get(name, 0.0):
                    best[name] = score
        return best

    def _fit(self, name: str, wanted: frozenset[str]) -> float:
        kinds = self._kinds.get(name)
        if kinds is None:
            kinds = self._kinds[name] = tool_actions(self._entries[name])
        return action_fit(kinds, wanted)

    # Words of a question to words of the index

    def _joined(self, asked: list[QueryTerm]) -> list[QueryTerm]:
        """With two words that are one in the index: `screen shot`, `sequential thinking`."""
        joined = list(asked)
        for one, other in pairwise(asked):
            if one.word and other.word and (both := one.word + other.word) in self._postings:
                joined.append(QueryTerm([{both: 1.0}], 1.0))
        return joined

    def _expanded(self, part: QueryTerm) -> list[TermWeights]:
        """The words of the index that a part of the question stands for, with what they count."""
        groups = [{word: factor for word, factor in group.items() if word in self._postings} for group in part.groups]
        word = part.word
        if word:
            groups[0] = self._guessed(word, groups[0], any(groups))
        return [group for group in groups if group]

    def _guessed(self, word: str, found: TermWeights, is_understood: bool) -> TermWeights:
        """With words of the index that are another form of this one, begin like it, or sound like it."""
        if is_hangul(word):
            return found if found.get(word) else found | self._by_sound(word)
        if not word.isascii():
            return found
        is_known = word in self._postings
        for other in self._family(word) if len(word) >= 4 else ():
            found.setdefault(other, _FAMILY)
        for other in self._beginning_with(word) if len(word) >= 3 else ():
            found.setdefault(other, _PREFIX_KNOWN if is_known or is_understood else _PREFIX_ONLY)
        return found if found or is_understood or len(word) < 5 else self._slips(word)

    def _beginning_with(self, word: str) -> list[str]:
        if self._vocabulary is None:
            self._vocabulary = sorted(self._postings)
        start = bisect_left(self._vocabulary, word)
        return [other for other in self._vocabulary[start : start + _EXPANSIONS] if other.startswith(word)]

    def _family(self, word: str) -> list[str]:
        """Words with the same root: `translation` for `translate`."""
        if self._families is None:
            self._families = {}
            for other in self._postings:
                if other.isascii() and len(other) >= 5:
                    self._families.setdefault(root(other), []).append(other)
        return [other for other in self._families.get(root(word), ()) if other != word]

    def _by_sound(self, run: str) -> TermWeights:
        """English words that a Korean one may be written after."""
        if self._sounds is None:
            self._sounds = {}
            for word in self._postings:
                if word.isascii() and "_" not in word:
                    for heard in english_sounds(word):
                        self._sounds.setdefault(heard, []).append(word)
        heard = hangul_sounds(run)
        likely = self._sounds.get(heard, ()) or (self._sounds.get(heard[:-1], ()) if heard.endswith("s") else ())
        found: TermWeights = {}
        for word in likely if heard else ():
            found |= load_synonyms().widened(word, _SOUND[min(len(heard), 5) - 3])
        return {word: factor for word, factor in found.items() if word in self._postings}

    def _slips(self, word: str) -> TermWeights:
        """Words at most two letters away, one for short ones; and what those stand for."""
        if self._grams is None:
            self._grams = {}
            known = {key[0] for key in load_synonyms().phrases if len(key) == 1}
            for other in sorted(known.union(self._postings)):
                for gram in trigrams(other):
                    self._grams.setdefault(gram, []).append(other)
        allowed = 2 if len(word) >= 6 else 1
        shared: Counter[str] = Counter()
        for gram in sorted(trigrams(word)):
            shared.update(self._grams.get(gram, ()))
        likely = heapq.nsmallest(40, ((-count, other) for other, count in shared.items()))
        apart = {other: edit_distance(word, other, allowed) for _, other in likely}
        near = sorted((slips, other) for other, slips in apart.items() if slips <= allowed)[:_EXPANSIONS]
        found: TermWeights = {}
        for slips, other in near:
            goal = load_synonyms().phrases.get((other,))
            meant = [load_synonyms().widened(other), *(load_synonyms().groups(goal.targets) if goal else ())]
            for target, factor in (pair for group in meant for pair in group.items()):
                if target in self._postings and factor * _SLIP[slips] > found.get(target, 0.0):
                    found[target] = factor * _SLIP[slips]
        return found

    def _forget_derived(self) -> None:
        self._vocabulary = self._families = self._sounds = self._grams = self._servers_by_word = None
        self._kinds = {}

    def _found(self, name: str, score: float) -> ToolMatch:
        entry = self._entries[name]
        schema = entry.tool.get("inputSchema")
        schema = schema if isinstance(schema, dict) else {}
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        return ToolMatch(
            name=name,
            server=entry.server,
            title=title_of(entry.tool),
            summary=summary_of(text_of(entry.tool, "description")),
            arguments=[f"{each}*" if each in required else str(each) for each in properties_of(entry.tool)],
            score=round(score, 3),
        )
