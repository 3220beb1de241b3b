"""Is an answer held by what it cites? Markers that exist, numbers and quotes that stand in the cited text.

A cheap check that stops most inventions: a model that makes up a date, an amount or a quotation is caught, whatever
language it writes. It does not judge whether a sentence follows from its source.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from msgspec import Struct

MARKER = re.compile(r"\[#(\d{1,3})\]")
_SPACE_BEFORE_STOP = re.compile(r"\s+(?=[.,;:!?](?:\s|$))")
# What models write instead of [#1], mended before the check: [1], [#1, #2], 【#1】, [＃1].
# One class and no nested repeat: a bracket is looked at once, whatever a model puts behind it.
_LOOSE_GROUP = re.compile(r"[\[【]([\d\s#＃,;·]{1,1000})[\]】]")
_BETWEEN_MARKS = re.compile(r"[,;·]")
_LOOSE_MARK = re.compile(r"[#＃]?\s{0,8}(\d{1,3})")
_LIST_NUMBER = re.compile(r"(?m)^[^\S\n]*\d{1,2}[.)]\s")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_QUOTE = re.compile(r"“([^”]{3,400})”|\"([^\"\n]{3,400})\"|「([^」]{3,400})」|『([^』]{3,400})』")
_WORDS_FOR_NUMBERS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
]  # fmt: skip
# Native Korean numbers before a counter, as 다섯 번 and 5번 say the same.
_KOREAN_NUMBERS = {
    "한": 1, "하나": 1, "두": 2, "둘": 2, "세": 3, "셋": 3, "석": 3, "네": 4, "넷": 4, "다섯": 5, "여섯": 6, "일곱": 7,
    "여덟": 8, "아홉": 9, "열": 10, "열한": 11, "열두": 12, "스무": 20, "하루": 1, "이틀": 2, "사흘": 3, "나흘": 4,
    "닷새": 5, "엿새": 6, "이레": 7, "여드레": 8, "열흘": 10,
}  # fmt: skip


class AnswerCheck(Struct, frozen=True):
    """What the check found. `used` are the numbers of the passages that are cited, in the order of the answer."""

    used: tuple[int, ...]
    markers_ok: bool
    numbers_ok: bool
    quotes_ok: bool
    missing: tuple[str, ...] = ()  # numbers and quotes that no cited passage holds

    @property
    def holds(self) -> bool:
        return self.markers_ok and self.numbers_ok and self.quotes_ok


def normalize_markers(answer: str) -> str:
    """Write every marker as `[#n]`: models also write `[1]`, `[#1, #2]` and `【#1】`."""
    return _LOOSE_GROUP.sub(_mend_group, answer)


def without_markers(text: str) -> str:
    """A sentence of a document without what looks like our markers, which would cite what it likes."""
    return _SPACE_BEFORE_STOP.sub("", MARKER.sub("", text)).strip() if MARKER.search(text) else text


def check_answer(answer: str, passages: Sequence[str], question: str = "") -> AnswerCheck:
    """Compare an answer with its numbered passages (`[#1]` is the first). Numbers of the question may be repeated."""
    numbers = [int(found) for found in MARKER.findall(answer)]
    used = tuple(dict.fromkeys(numbers))
    markers_ok = bool(used) and all(1 <= number <= len(passages) for number in used)
    cited = [passages[number - 1] for number in used if 1 <= number <= len(passages)]
    plain = MARKER.sub(" ", answer)
    missing_numbers = _missing_numbers(plain, cited, question)
    missing_quotes = _missing_quotes(plain, [*cited, question])
    return AnswerCheck(
        used, markers_ok, not missing_numbers, not missing_quotes, tuple(missing_numbers) + tuple(missing_quotes)
    )


def _mend_group(found: re.Match[str]) -> str:
    marks = [_LOOSE_MARK.fullmatch(item.strip()) for item in _BETWEEN_MARKS.split(found[1])]
    return "".join(f"[#{mark[1]}]" for mark in marks if mark) if all(marks) else found[0]


def _missing_numbers(answer: str, cited: Sequence[str], question: str) -> list[str]:
    held: set[str] = set()
    for text in (*cited, question):
        held |= _numbers(text)
        held |= _spelt_numbers(text)
    # A list's own numbering ("1." at the start of a line) is not a claim.
    body = _LIST_NUMBER.sub(" ", answer)
    return [number for number in sorted(_numbers(body)) if number not in held]


def _numbers(text: str) -> set[str]:
    """Numbers without grouping: 1,040 and 1040 are one, 9:30 stays whole and has its parts too."""
    found: set[str] = set()
    for written in _NUMBER.findall(unicodedata.normalize("NFKC", text)):
        plain = written.replace(",", "")
        found.add(plain)
        if ":" in plain:
            found.update(plain.split(":"))
    return found


def _spelt_numbers(text: str) -> set[str]:
    """The digits of number words up to twenty: an answer may say 3 where the text says three or 세."""
    words = set(re.findall(r"[a-z]+|[가-힣]+", text.lower()))
    english = {str(value) for value, word in enumerate(_WORDS_FOR_NUMBERS) if word in words}
    return english | {str(value) for word, value in _KOREAN_NUMBERS.items() if word in words}


def _missing_quotes(answer: str, sources: Sequence[str]) -> list[str]:
    held = [_squeeze(source) for source in sources]
    quotes = ["".join(groups) for groups in _QUOTE.findall(answer)]
    return [quote for quote in quotes if not any(_squeeze(quote) in source for source in held)]


def _squeeze(text: str) -> str:
    """For comparing: NFC, one case, no blanks, no final stop."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFC", text)).casefold().rstrip(".,;:!?…")
