"""Turn a query in natural language into weighted search terms.

Each part of the question becomes one `Asked`: the words of tools it may stand for, and how much it says. What is data
in it (a path, an address, something in quotes, a number) tells what kind of thing is handled, and is not searched for.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from dari.bridge.search.fields import READ_ACTIONS
from dari.bridge.search.korean import CONTEXT_WEIGHT, GENERIC_WEIGHT, QueryTerm, korean_terms
from dari.bridge.search.sentence_patterns import load_patterns
from dari.bridge.search.synonyms import Synonyms, TermWeights, load_synonyms
from dari.bridge.search.tokenizer import is_hangul, is_stop_word, script_runs, stem

MAX_QUERY_CHARS = 1000
MAX_QUERY_TERMS = 48
_LIGHT, _QUOTED, _DATA, _CHATTER = 0.6, 0.35, 0.85, 0.15
_PHRASE, _LITERAL = 1.2, 0.6
"""What a known phrase counts, and the words that it is made of."""
_TOLD = 0.35
"""What the words of a message or a fact count: `tell them that …`, `note that …`."""
_SAYS_KIND = 0.4
_SEVERAL = 3
"""Paths in one question that ask for a tool that takes many."""
_URL = re.compile(
    r"https?://[!-~]+|\bwww\.[!-~]+|\b[\w-]+\.(?:com|org|net|io|dev|kr|ai)(?![A-Za-z0-9_])(?:/[!-~]*)?", re.IGNORECASE
)
"""Ends before Hangul: a particle follows an address, a path or a name without a space."""
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[A-Za-z0-9.]+")
_COORDINATES = re.compile(r"-?\d{1,3}\.\d+\s*,\s*-?\d{1,3}\.\d+")
_PATH = re.compile(
    r"(?:[~.]{0,2}/)?[\w./-]*\.(?P<ext>[A-Za-z][A-Za-z0-9]{1,4})(?![A-Za-z0-9_])|(?<!\w)[~.]{0,2}/[\w./-]+"
)
_OWNED = re.compile(r"(?<![\w/.~-])(?!and/|or/|read/|either/)[a-zA-Z][\w-]*/[a-zA-Z][\w-]*(?![\w/.])")
"""`owner/repository`, or a branch."""
_OWNED_SAYS = 0.5
_QUOTE = re.compile(r"[\"“‘'「](?=\S)([^\"”’'」\n]{1,200})[\"”’'」](?!\w)")
_CALLED = re.compile(r"(?<=\bcalled )\w+|(?<=\bnamed )\w+|(?<=\btitled )\w+|\b[A-Za-z_]\w*(?=(?:이)?라(?:는|고)\s)")
"""Names that somebody gives; they are not words of a tool."""
_PROPER = re.compile(r"(?<=[a-z,0-9가-힣] )[A-Z][a-z]{2,}\b")
"""Words with a capital letter inside a sentence."""
_PLACES = "in on at from of about with through across under inside within near via by for against"
_PREPOSITIONS = frozenset(_PLACES.split())
_KINDS_OF_FILES: dict[str, TermWeights] = {
    "excel": {"excel": 1.0, "workbook": 0.8, "sheet": 0.7, "spreadsheet": 0.8},
    "word": {"word": 0.8, "docx": 1.0, "document": 0.9},
    "slides": {"presentation": 1.0, "powerpoint": 0.9, "slid": 0.7},
    "image": {"imag": 0.8, "pictur": 0.6},
    "pdf": {"pdf": 1.0},
    "csv": {"csv": 1.0},
    "har": {"har": 1.0},
    "notebook": {"notebook": 1.0},
}
_PLACE_ON_EARTH: TermWeights = {"coordinat": 1.0, "latitud": 0.9, "longitud": 0.9, "geocod": 0.9, "location": 0.5}
_EXTENSIONS = {
    "xlsx": "excel", "xls": "excel", "xlsm": "excel", "docx": "word", "doc": "word", "pptx": "slides", "ppt": "slides",
    "png": "image", "jpg": "image", "jpeg": "image", "gif": "image", "webp": "image", "svg": "image", "pdf": "pdf",
    "csv": "csv", "tsv": "csv", "har": "har", "ipynb": "notebook",
}  # fmt: skip


class SearchQuery(NamedTuple):
    parts: list[QueryTerm]
    kinds: frozenset[str]
    """What is to be done: `read`, `create` …; empty where the question does not say."""


def parse_query(text: str) -> SearchQuery:
    """What a question asks for."""
    words = load_synonyms()
    text = unicodedata.normalize("NFKC", text[:MAX_QUERY_CHARS])
    rest, parts = _data(text)
    parts += [
        QueryTerm(words.groups(targets), 1.0) for pattern, targets in load_patterns().goals if pattern.search(text)
    ]
    formed = len(parts)
    quoted = " ".join(_QUOTE.findall(rest))
    rest = _QUOTE.sub(" ", rest)
    found = script_runs(rest)
    names = {word.lower() for word in _PROPER.findall(rest)}
    at, is_context = 0, False
    is_told = False
    telling = load_patterns().tells.search(rest) is not None
    while at < len(found) and len(parts) < MAX_QUERY_TERMS:
        if is_hangul(found[at]):
            end = at
            while end < len(found) and is_hangul(found[end]):
                end += 1
            parts += korean_terms(found[at:end], words)
            at = end
        else:
            count = len(parts)
            at += _english_part(found, at, parts, words)
            is_context = _is_context_after(found[at - 1], is_context)
            if found[at - 1] in names and len(parts) == count + 1 and parts[count].word:
                parts[count] = parts[count]._replace(is_name=True)
            is_told = is_told or (telling and found[at - 1] == "that")
            if is_context or is_told:
                share = _TOLD if is_told else CONTEXT_WEIGHT
                parts[count:] = [one._replace(weight=one.weight * share) for one in parts[count:]]
    kinds = _wanted(rest, parts[:formed], parts[formed:], words)
    for run in script_runs(quoted)[:8]:
        if not is_hangul(run) and not is_stop_word(run):
            parts.append(QueryTerm([{stem(run): 1.0}], _QUOTED))
    return SearchQuery(parts, kinds)


def _wanted(text: str, formed: list[QueryTerm], spoken: list[QueryTerm], words: Synonyms) -> frozenset[str]:
    """What is to be done: what the form of the sentence says, else its leading verb, which is the last in Korean."""
    kinds = {kind for part in formed for kind in _kinds(part, words, words.nouns)}
    kinds.update(kind for pattern, named in load_patterns().kinds if pattern.search(text) for kind in named)
    if "list" in kinds and load_patterns().kinds[0][0].search(text):
        kinds.discard("read")
    if load_patterns().orders.search(text):
        kinds -= READ_ACTIONS
    elif load_patterns().inquires.search(text):
        return frozenset(kinds & READ_ACTIONS or READ_ACTIONS)
    said = [found for part in spoken if part.weight >= _SAYS_KIND and (found := _kinds(part, words))]
    if said:
        kinds |= said[-1 if any(map(is_hangul, script_runs(text))) else 0]
    if not kinds and load_patterns().asks.search(text):
        return READ_ACTIONS
    return frozenset(kinds)


def _is_context_after(run: str, is_context: bool) -> bool:
    """Whether what follows tells where or with what something is done."""
    if run in _PREPOSITIONS:
        return True
    return is_context and run not in ("and", "to", "that", "which", "then")


def _kinds(part: QueryTerm, words: Synonyms, without: frozenset[str] = frozenset()) -> frozenset[str]:
    """What the first word of a part does, if it is a verb."""
    found = [word for group in part.groups for word, factor in group.items() if factor >= 0.9]
    return frozenset(kind for word in found[:2] if word not in without for kind in words.kinds.get(word, ()))


def _data(text: str) -> tuple[str, list[QueryTerm]]:
    """The text without what is data in it, and what that data tells."""
    parts: list[QueryTerm] = []

    def url(match: re.Match[str]) -> str:
        parts.append(
            QueryTerm(
                [{"url": 1.0, "web": 0.6, "pag": 0.5, "websit": 0.4}, {"fetch": 0.7, "scrap": 0.5, "navigat": 0.6}], 1.0
            )
        )
        return " "

    def mail(match: re.Match[str]) -> str:
        parts.append(QueryTerm([{"email": 1.0}], _DATA))
        return " "

    def path(match: re.Match[str]) -> str:
        extension = (match["ext"] or "").lower()
        kind = _EXTENSIONS.get(extension)
        if match["ext"] and not kind and (extension in ("js", "ts") and "/" not in match[0]):
            return match[0].replace(".", " ")  # next.js is a name
        if kind:
            parts.append(QueryTerm([_KINDS_OF_FILES[kind]], 0.9))
        handled: TermWeights = {"fil": 1.0, "path": 0.5} if extension else {"directory": 1.0, "fil": 0.8, "path": 0.6}
        parts.append(QueryTerm([handled], 0.5 if kind else _DATA))
        return " "

    text, pairs = _COORDINATES.subn(" ", _URL.sub(url, _MAIL.sub(mail, text)))
    if pairs:
        parts.append(
            QueryTerm([{"coordinat": 1.0, "latitud": 0.9, "longitud": 0.9, "geocod": 0.9, "location": 0.5}], _DATA)
        )
    if _OWNED.search(text):
        text = _OWNED.sub(" ", text)
        parts.append(QueryTerm([{"repository": 1.0, "branch": 0.6}], _OWNED_SAYS))
    text, before = _CALLED.sub(" ", text), len(parts)
    text = _PATH.sub(path, text)
    if len(parts) - before >= _SEVERAL:
        parts.append(QueryTerm([{"multipl": 1.0, "batch": 0.8, "many": 0.5}], _DATA))
    return text, parts


def _english_part(found: list[str], at: int, parts: list[QueryTerm], words: Synonyms) -> int:
    """Add what the longest known phrase at `at` asks for, else the word; returns how many words that were."""
    taken = 1
    upto = at
    while upto < len(found) and upto - at < words.longest_phrase and not is_hangul(found[upto]):
        upto += 1
    row = tuple(stem(run) for run in found[at:upto])
    for length in range(len(row), 0, -1):
        goal = words.phrases.get(row[:length]) if length > 1 else words.goal_of(found[at])
        if goal is None:
            continue
        if length > 1:
            parts.append(QueryTerm(words.groups(goal.targets), goal.weight * _PHRASE))
            # The words themselves may be a tool's as well.
            for run in found[at : at + length]:
                if not is_stop_word(run) and stem(run) not in words.weak and stem(run) not in goal.targets:
                    parts.append(QueryTerm([words.widened(stem(run))], _LITERAL))
            return length
        groups = words.groups({row[0]: 1.0, **goal.targets})
        parts.append(QueryTerm(groups, goal.weight * _weight(row[0], words), row[0]))
        return 1
    run, word = found[at], row[0]
    if is_stop_word(run) or run.isdigit() or len(run) == 1:
        return taken
    if word in words.weak:
        parts.append(QueryTerm([{word: 1.0}], _CHATTER))
    else:
        parts.append(QueryTerm([words.widened(word)], _weight(word, words), word))
    return taken


def _weight(word: str, words: Synonyms) -> float:
    if word in words.weak:
        return _CHATTER
    if word in words.kinds:
        return GENERIC_WEIGHT
    return _LIGHT if word in words.light else 1.0
