"""Sentences compared with a question: by one model, without what all questions share, and by a second for English."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dari.errors import Unavailable
from dari.knowledge.ask.nearness import MAX_SECOND_OPINIONS, Nearness, is_english
from dari.knowledge.models.model import english_beside, load_model
from dari.knowledge.models.settings import EmbeddingSettings
from tests.support.tiny_models import require_models

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


class TableModel:
    """Texts by the direction that a table gives them; an unknown one points between both."""

    dim, lexical_weight, max_tokens = 2, 0.8, 0

    def __init__(self, name: str, table: dict[str, tuple[float, float]]) -> None:
        self.name = name
        self.key = f"{name}-{id(self)}"
        self._table = table
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> NDArray[float32]:
        self.texts += texts
        return np.array([self._table.get(text, (0.6, 0.8)) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[float32]:
        return np.array(self._table.get(text, (1.0, 0.0)), dtype=np.float32)


class BrokenModel(TableModel):
    def embed_passages(self, texts: Sequence[str]) -> NDArray[float32]:
        raise Unavailable("the weights are gone", "install them again")


QUESTION = "How long does the crossing take?"


def test_what_questions_have_in_common_counts_for_nothing() -> None:
    asks, answers = "Are you coming to the pier?", "Fifty minutes."
    table = {QUESTION: (0.8, 0.6), asks: (0.6, 0.8), answers: (0.96, 0.28)}
    plain = Nearness(TableModel("other", table)).cosines(QUESTION, [asks, answers], [True, True])
    centred = Nearness(TableModel("use-m", table)).cosines(QUESTION, [asks, answers], [True, True])
    assert abs(plain[0] - plain[1]) < 0.05 and centred[1] - centred[0] > 0.5


def test_an_english_model_compares_english_sentences_again() -> None:
    near = TableModel("minilm", {"Fifty minutes.": (1.0, 0.0), "Dogs are welcome.": (0.0, 1.0)})
    nearness = Nearness(TableModel("use-m", {}), near)
    texts = ["Fifty minutes.", "Dogs are welcome.", "45분이 걸린다."]
    first, second, _ = nearness.cosines(QUESTION, texts, [True, True, False])
    assert first > 0.9 and second < 0
    assert "45분이 걸린다." not in near.texts
    nearness.cosines("얼마나 걸리나요?", texts, [True, True, False])
    nearness.cosines("Wie lange dauert die Überfahrt mit dem Schiff?", texts, [True, True, False])
    nearness.cosines(QUESTION, texts, [True, True, False], second_opinion=False)
    assert near.texts == texts[:2]


def test_second_opinions_are_few() -> None:
    near = TableModel("minilm", {})
    texts = [f"sentence {number}" for number in range(40)]
    Nearness(TableModel("use-m", {}), near).cosines(QUESTION, texts, [True] * 40)
    assert len(near.texts) == MAX_SECOND_OPINIONS


def test_a_second_model_that_fails_leaves_the_first_opinion() -> None:
    model = TableModel("use-m", {"Fifty minutes.": (1.0, 0.0)})
    alone = Nearness(model).cosines(QUESTION, ["Fifty minutes."], [True])
    assert Nearness(model, BrokenModel("minilm", {})).cosines(QUESTION, ["Fifty minutes."], [True]) == alone


def test_a_pair_of_models_without_a_known_scale_is_not_mixed() -> None:
    near = TableModel("minilm", {})
    Nearness(TableModel("mine", {}), near).cosines(QUESTION, ["Fifty minutes."], [True])
    assert not near.texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (QUESTION, True),
        ("panic knob", True),
        ("얼마나 걸리나요?", False),
        ("Wie lange ist die Fahrt mit der Fähre und was kostet sie?", False),
    ],
)
def test_what_counts_as_english(text: str, expected: bool) -> None:
    assert is_english(text) is expected


def test_the_installed_english_model_is_found_beside_the_multilingual_one(tmp_path: Path) -> None:
    settings = EmbeddingSettings(model="use-m", models_dir=str(require_models("use-m", "minilm")))
    model = load_model(settings, tmp_path)
    english = english_beside(model, settings, tmp_path)
    assert model is not None and english is not None and english.name == "minilm"
    assert english_beside(english, settings, tmp_path) is None and english_beside(None, settings, tmp_path) is None
    texts = ["Robots: Robots give way to forklifts.", "Leave: Unused days move to the end of March."]
    cosines = Nearness(model, english).cosines("Until when can I keep my spare vacation?", texts, [True, True])
    assert cosines[1] > cosines[0]
