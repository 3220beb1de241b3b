"""Turn a query in natural language into weighted search terms.

Each part of the query becomes one `QueryTerm`: the words of tools it may stand for, and their weight. Data in it (a
path, an address, a quoted text, a number) says what kind of thing is handled and is not searched for. Patterns of
whole sentences (`turn … into …`, `3 + 4`, `…를 …로 바꿔`) add the terms they stand for.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from dari.bridge.search.fields import READ_ACTIONS
from dari.bridge.search.korean import CONTEXT_WEIGHT, GENERIC_WEIGHT, QueryTerm, korean_terms
from dari.bridge.search.synonyms import Synonyms, TermWeights, load_synonyms
from dari.bridge.search.tokenizer import is_hangul, is_stop_word, script_runs, stem

_ASKS = r"\?|뭐|무엇|어떤|얼마|언제|어디|누가|왜|몇"

_INQUIRES = (
    r"^\W*(?:(?:so|and|hey|ok|okay|um|oops|well)\W+)*"
    r"(?:what|which|who|whose|when|where|why|how (?:many|much|far|long|big|old|often|high|large"
    r"|is|are|was|were|does|did|has|do i|do we|can i|to|would i)|whats|whos|wheres|hows"
    r"|is|are|was|were|do|does|did|has|have|had|any|anything|anyone|anybody)\b(?!'?t? (?:you|forget|lose|let)\b)"
    r"|(?:보여|알려|봐|궁금|있어|있나|있지|뭐야|누구야|어디야|얼마야|언제야|몇\s?\S{1,3}야)\S{0,2}\s?(?:줘|주세요|줄래|요)?\W*$"
)


class SentencePatterns(NamedTuple):
    inquires: re.Pattern[str]
    """Begins as only a question does: nothing is to be changed, whatever verbs follow."""
    tells: re.Pattern[str]
    """What follows `that` is something to send or to keep."""
    orders: re.Pattern[str]
    """Something is to be made or sent, though the sentence asks or tells: `… as a chart`, `…다고 알려줘`."""
    asks: re.Pattern[str]
    """A question, not an order."""
    kinds: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]
    """Beginnings and endings that say what is done though their words say little else; the first asks for many."""
    goals: tuple[tuple[re.Pattern[str], TermWeights], ...]


@cache
def load_patterns() -> SentencePatterns:
    """Compiled when the first question is asked: no start waits for it."""
    charted = re.compile(r"\b(?:as|in|on|into) an? (?:\w+ ){0,2}(?:chart|graph|diagram|plot|map|table|picture)\b")
    informs = re.compile(r"\b(?:tell|inform|let) (?!me\b|us\b)\W?\w+.{0,40}?\bthat\b", re.IGNORECASE)
    anew = re.compile(
        r"\b(?:open|start|begin|launch|need|want|spin up|fire up|set up|like|get)\b(?: me| us)? "
        r"(?:an? (?:brand )?(?:new|fresh|second|third|further|extra|additional)|another|one more)\b",
        re.IGNORECASE,
    )
    kinds = (
        (
            re.compile(
                r"\b(?:show|list|see|display|which|what)\b(?:\s+\w+){0,3}?\s+(?!is\b|was\b|does\b|this\b)\w{3,}[^s\s]s\b"
            ),
            ("list",),
        ),
        (
            re.compile(
                r"^(?:please\s+)?(?:show|give|tell|see|view|display|what|which|who|when|where|how)\b", re.IGNORECASE
            ),
            ("read",),
        ),
        (re.compile(r"^(?:please\s+)?(?:make|put|build|set up)\b", re.IGNORECASE), ("create",)),
        (charted, ("create",)),
        (anew, ("create",)),
        (informs, ("send",)),
        (re.compile(r"[다라]고\s*(?:좀\s*)?(?:알려|전해|말해|공지)"), ("send",)),
        (re.compile(r"(?:무슨|어떤)\s\S+들|[가-힣]들[을이은도]?\s.*(?:보여|알려|봐|궁금|있)"), ("list",)),
        (re.compile(r"중에서?\s.*만\s|만\s*(?:골라|추려|뽑아|찾아)"), ("search",)),
        (re.compile(r"보여|알려|봐줘|봐 줘"), ("read",)),
    )
    goals: tuple[tuple[re.Pattern[str], TermWeights], ...] = (
        (
            re.compile(
                r"\d\s*[-+*/×÷^%]\s*\d|\d\s*(?:%|percent) of\s*[$€£]?\d"
                r"|\d의?\s*(?:%|퍼센트)(?:는|가|를)?\s*(?:얼마|계산|몇)|\d+\s*(?:곱|더하|빼|나누)"
                r"|\b(?:add|subtract|multiply|divide|plus|minus|times|sum of)\s+\d",
                re.IGNORECASE,
            ),
            {"calculat": 1.0, "sum": 0.8, "math": 0.8, "expression": 0.6, "calculator": 0.8},
        ),
        (
            re.compile(
                r"(?:엑셀|피디에프|마크다운|워드|이미지|텍스트|pdf|csv|xlsx|markdown|html|json|docx?|png)\s*(?:으로|로)\s*"
                r"(?:바꿔|변환|변경|만들|내보내|저장|뽑)|\b(?:in)?to\s+(?:an?\s+)?"
                r"(?:excel|pdf|csv|xlsx|markdown|html|json|docx|spreadsheet)\b",
                re.IGNORECASE,
            ),
            {"convert": 1.0, "export": 0.7, "import": 0.7},
        ),
        (
            re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"),
            {"show": 1.0, "commit": 0.7, "revision": 0.6},
        ),
        (
            re.compile(r"[을를]\s*(?:\S+\s+){0,2}\S+?(?:으로|로)\s*(?:다\s*)?(?:바꿔|바꾸|변경|교체|치환|고쳐)"),
            {"replac": 1.0, "renam": 0.6, "edit": 0.4},
        ),
        (
            re.compile(
                r"\b(?:open|raise|file|log)\s+(?:an?\s+)?(?:new\s+)?(?:ticket|issue|bug|pr|pull request)\b",
                re.IGNORECASE,
            ),
            {"creat": 1.0},
        ),
        (
            re.compile(r"\bwhere\b.*\w\.\w{2,5}\b|\w\.\w{2,5}.{0,12}어디", re.IGNORECASE),
            {"search": 1.0, "fil": 0.8, "search_fil": 1.0},
        ),
        (
            re.compile(
                r"(?:다|라)는\s*(?:사실|거|걸|것|점).{0,12}(?:저장|기억|기록|알아|적어)"
                r"|\b(?:store|save|note|record)\b.*\bfact\b"
            ),
            {"memory": 1.0, "observation": 0.9, "entity": 0.7, "knowledg": 0.7},
        ),
        (
            re.compile(
                r"\b(?:from|in) (?:the|my|our) (?:database|db)\b"
                r"|(?:데이터베이스|디비|DB)에서.*(?:조회|찾|뽑|검색|가져)",
                re.IGNORECASE,
            ),
            {"query": 1.0, "sql": 0.8, "databas": 0.6, "select": 0.6},
        ),
        (re.compile(r"\b(?:which|who|what)\b.*\b\w+ or \w+"), {"compar": 1.0, "comparison": 1.0, "diff": 0.5}),
        (anew, {"creat": 1.0}),
        (informs, {"send": 1.0, "messag": 0.9, "post": 0.8}),
        (re.compile(r"중에서?\s.*만\s|만\s*(?:골라|추려|뽑아|찾아)"), {"search": 1.0, "filter": 0.8}),
        (re.compile(r"\bturn\b.*\binto\b", re.IGNORECASE), {"convert": 1.0, "transform": 0.6, "import": 0.5}),
        (re.compile(r"\b(?:turn|switch)\b.*\bon\b|켜\s?줘|켜고|켜 봐", re.IGNORECASE), {"start": 1.0, "enabl": 0.8}),
        (re.compile(r"\b(?:turn|switch)\b.*\boff\b|꺼\s?줘|끄고", re.IGNORECASE), {"stop": 1.0, "disabl": 0.8}),
        (
            re.compile(r"\bwhy\b.*\bslow|slow.*\bwhy\b|왜.*(?:느리|느려|오래)", re.IGNORECASE),
            {"performanc": 1.0, "explain": 0.6, "trac": 0.6},
        ),
        (re.compile(r"\bmark\b.*\bas\b|(?:처리|표시)해", re.IGNORECASE), {"mark": 0.7, "modify": 0.8, "updat": 0.8}),
        (
            re.compile(
                r"\bpush\b.*\b(?:back|forward|out)\b|\bpostpone|\breschedul|\bpull\b.*\bforward\b|미뤄|미루|앞당|연기해"
            ),
            {"updat": 1.0, "event": 0.7, "reschedul": 0.8},
        ),
        (
            re.compile(r"\b(?:another|different|new)\s+name\b|\bcall\b.*\binstead\b", re.IGNORECASE),
            {"renam": 1.0, "updat": 0.5},
        ),
        (
            re.compile(r"\b(?:replace|swap|substitute)\b.*\b(?:with|by|for)\b", re.IGNORECASE),
            {"replac": 1.0, "edit": 0.4},
        ),
    )
    orders = re.compile(
        rf"{charted.pattern}|{anew.pattern}|(?:그려|만들어|변환해|바꿔)서?\s*보여|[다라]고\s*(?:좀\s*)?(?:알려|전해|말해|공지)"
    )
    tells = re.compile(
        r"\b(?:tell|say|saying|note|remember|announce|know|write|post|message|email|remind|inform|record|store|mention)\b"
        r".{0,60}?\bthat\b",
        re.IGNORECASE,
    )
    return SentencePatterns(
        re.compile(_INQUIRES, re.IGNORECASE), tells, orders, re.compile(_ASKS, re.IGNORECASE), kinds, goals
    )


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
