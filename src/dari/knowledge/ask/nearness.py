"""How near sentences are to a question in meaning, by the model of the vectors and, for English, by a second one.

Two corrections, both measured in docs/decisions/0015-knowledge.md. A multilingual model places every question near
what sounds like a question, so the direction that questions have in common is taken off first. And a small
multilingual model knows English less well than an English one of the same size: where one is installed beside it, that
one compares an English question with the English sentences that the first found nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.errors import DariError
from dari.knowledge.parse.language import detect_language

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from dari.knowledge.models.model import EmbeddingModel

    Vectors = NDArray[float32]

MAX_SECOND_OPINIONS = 24
"""A sentence takes MiniLM 7 ms."""
_ENGLISH_CODES = ("en", "und")  # a short question may have no word that tells
_CENTRED_MODELS = ("use-m",)
TYPICAL_QUESTIONS = (
    "How many people live in the capital?",
    "When was the treaty signed?",
    "Who wrote the novel?",
    "What is the highest mountain of the continent?",
    "Why is the sky blue?",
    "Where do penguins live?",
    "How do I reset my password?",
    "Which file holds the settings?",
    "What does the error mean?",
    "How long does the battery last?",
    "How much does a ticket cost?",
    "Who may approve the request?",
    "When does the shop open on Sundays?",
    "What should I do if the machine does not start?",
    "Is it allowed to bring a dog?",
    "How often must the filter be changed?",
    "What is the difference between the two versions?",
    "Which option turns this off?",
    "How far is it from the station?",
    "What happens after the deadline?",
    "Who is responsible for this?",
    "How is the result calculated?",
    "Where can I find the form?",
    "What temperature is best for this?",
    "수도에는 몇 명이 살고 있나요?",
    "조약은 언제 맺어졌습니까?",
    "그 소설은 누가 썼나요?",
    "가장 높은 산은 무엇인가요?",
    "하늘은 왜 파란가요?",
    "펭귄은 어디에 사나요?",
    "비밀번호는 어떻게 다시 정하나요?",
    "설정은 어느 파일에 있습니까?",
    "이 오류는 무슨 뜻인가요?",
    "배터리는 얼마나 오래 가나요?",
    "표는 얼마인가요?",
    "요청은 누가 승인할 수 있나요?",
    "일요일에는 가게가 몇 시에 여나요?",
    "기계가 켜지지 않으면 어떻게 해야 하나요?",
    "개를 데려와도 되나요?",
    "필터는 얼마나 자주 갈아야 합니까?",
    "두 판은 무엇이 다른가요?",
    "어떤 옵션으로 끌 수 있습니까?",
    "역에서 얼마나 먼가요?",
    "기한이 지나면 어떻게 되나요?",
    "이 일은 누가 맡고 있나요?",
    "결과는 어떻게 계산하나요?",
    "양식은 어디에서 찾을 수 있나요?",
    "몇 도가 가장 알맞습니까?",
)
_MEANS: dict[str, Vectors] = {}
"""The mean of the typical questions by model key; a process knows one or two."""


class Scale(Struct, frozen=True):
    """Puts the cosines of the English model on the scale of the model beside it: both cross the gate at one point."""

    slope: float
    offset: float


_SCALES = {("use-m", "minilm"): Scale(1.15, -0.133)}


class Nearness:
    """Compares sentences with a question. `english` is heard where a scale for the pair of models is known."""

    def __init__(self, model: EmbeddingModel, english: EmbeddingModel | None = None) -> None:
        self._model = model
        self._scale = _SCALES.get((model.name, english.name)) if english is not None else None
        self._english = english if self._scale is not None else None

    def cosines(
        self, question: str, texts: Sequence[str], english: Sequence[bool], second_opinion: bool = True
    ) -> list[float]:
        """One a text. `english` says which texts are, `second_opinion` whether those may be compared once more."""
        found: list[float] = (self._model.embed_passages(list(texts)) @ self._question(question)).tolist()
        if second_opinion and self._english is not None and is_english(question):
            places = [place for place, one in enumerate(english) if one]
            places.sort(key=lambda place: -found[place])
            self._compare_again(question, texts, places[:MAX_SECOND_OPINIONS], found)
        return found

    def _question(self, question: str) -> Vectors:
        vector = self._model.embed_query(question)
        if self._model.name not in _CENTRED_MODELS:
            return vector
        key = self._model.key
        if key not in _MEANS:
            _MEANS[key] = self._model.embed_passages(TYPICAL_QUESTIONS).mean(axis=0)
        centred = vector - _MEANS[key]
        centred /= max(float(centred @ centred) ** 0.5, 1e-6)
        return centred

    def _compare_again(self, question: str, texts: Sequence[str], places: Sequence[int], found: list[float]) -> None:
        english, scale = self._english, self._scale
        if english is None or scale is None or not places:
            return
        try:
            near = english.embed_passages([texts[place] for place in places]) @ english.embed_query(question)
        except (DariError, OSError):
            return  # the first opinion stands
        for place, cosine in zip(places, near.tolist(), strict=True):
            found[place] = scale.slope * cosine + scale.offset


def is_english(text: str) -> bool:
    """Or may be: in Latin letters, and no other language is sure."""
    return is_latin(text) and detect_language(text) in _ENGLISH_CODES


def is_latin(text: str) -> bool:
    return all(letter < "\u0250" for letter in text if letter.isalpha())
