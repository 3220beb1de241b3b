"""Patterns of whole sentences and the terms they stand for: `turn … into …`, `3 + 4`, `…를 …로 바꿔`."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from dari.bridge.search.synonyms import TermWeights

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
