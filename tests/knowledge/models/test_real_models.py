"""The models of the catalogue, as installed: vectors that mean what they should."""

from __future__ import annotations

import numpy as np
import pytest

from dari.knowledge.models.installed import find_installed
from dari.knowledge.models.model import EmbeddingModel, open_model
from dari.knowledge.models.settings import EmbeddingSettings
from tests.support.tiny_models import require_models

PAIRS = [
    ("How do I reset my password?", "Steps to recover a forgotten login credential"),
    ("The cat sat on the mat.", "A feline rested on the rug"),
    ("The invoice must be paid within thirty days.", "Payment is due a month after the bill"),
]


def _model(name: str) -> EmbeddingModel:
    found = find_installed(require_models(name), name)
    assert found is not None
    return open_model(found, EmbeddingSettings())


def test_use_m_puts_a_question_beside_its_translation() -> None:
    model = _model("use-m")
    rows = model.embed_passages(
        ["How do I reset my password?", "비밀번호를 어떻게 재설정하나요?", "The cat sat on the mat."]
    )
    assert rows.shape == (3, 512)
    assert rows[0] @ rows[1] == pytest.approx(0.84, abs=0.03)
    assert rows[0] @ rows[2] < 0.2


def test_minilm_agrees_with_what_its_float_weights_give() -> None:
    """.571 and .547 are the cosines of the float32 export of the same model."""
    model = _model("minilm")
    first, second = (model.embed_passages(pair) for pair in PAIRS[:2])
    assert first[0] @ first[1] == pytest.approx(0.571, abs=0.03)
    assert second[0] @ second[1] == pytest.approx(0.547, abs=0.03)
    assert abs(first[0] @ second[0]) < 0.15


@pytest.mark.parametrize("name", ["use-m", "minilm"])
def test_a_sentence_is_nearest_to_its_paraphrase(name: str) -> None:
    model = _model(name)
    left, right = (model.embed_passages([pair[side] for pair in PAIRS]) for side in (0, 1))
    assert (left @ right.T).argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["use-m", "minilm"])
def test_rows_are_unit_vectors_of_any_text_and_do_not_depend_on_the_batch(name: str) -> None:
    model = _model(name)
    texts = ["short", "고양이 🐈 " * 400, "x" * 5000, "\x00\ud7ff\u200b", "a b c", "long words " * 1200]
    rows = model.embed_passages(texts)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
    alone = np.concatenate([model.embed_passages([text]) for text in texts])
    assert np.allclose(rows, alone, atol=1e-5)
    assert model.embed_passages([]).shape == (0, model.dim)


def test_a_repeated_query_is_remembered() -> None:
    model = _model("minilm")
    assert model.embed_query("where is the cat?") is model.embed_query("where is the cat?")
