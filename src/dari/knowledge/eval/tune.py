"""The lexical weight of hybrid search, chosen on the person's own questions.

Weights are tried on all questions; what the choice is worth is measured on questions that did not take part in it
(cross-validation), so that a set of thirty questions does not flatter itself.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.errors import Failed, InvalidInput
from dari.knowledge.config import Settings
from dari.knowledge.eval.dataset import EvalSet
from dari.knowledge.eval.index import SetIndex
from dari.knowledge.eval.metrics import SEED, Estimate, paired
from dari.knowledge.eval.run import ask_all
from dari.knowledge.search.searcher import Searcher
from dari.paths import make_dirs, write_private

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from dari.knowledge.models.model import EmbeddingModel

    Vectors = NDArray[float32]

WEIGHTS = tuple(round(0.1 * step, 1) for step in range(11))
FOLDS = 5
MIN_QUESTIONS = 20


class WeightScore(Struct, frozen=True):
    lexical_weight: float
    ndcg_at_10: float


class TuneReport(Struct, frozen=True, kw_only=True):
    """`kebab eval tune`: `gain` is of the chosen weights over the current one, on questions that did not choose."""

    schema_version: str = "eval_tune.v1"
    set_name: str
    model_key: str
    questions: int
    current_weight: float
    best_weight: float
    gain: Estimate
    is_sure: bool
    """Whether the gain is above zero with 95 % confidence."""
    weights: tuple[WeightScore, ...]


def tune_weight(
    chosen: EvalSet,
    settings: Settings,
    index: SetIndex,
    *,
    on_weight: Callable[[int, int], None] = lambda done, total: None,
    cancel: Event | None = None,
) -> TuneReport:
    """Search with every weight and choose. Writing `best_weight` into the configuration is the caller's part."""
    model = index.model
    questions = tuple(question for question in chosen.questions if question.answerable)
    if model is None:
        raise InvalidInput("tuning weighs words against a model, and none is installed", "kebab models install")
    if len(questions) < MIN_QUESTIONS:
        raise InvalidInput(
            f"tuning needs {MIN_QUESTIONS} questions with an answer, {chosen.name} has {len(questions)}",
            "write more: a weight chosen on fewer would be chance",
        )
    scores: dict[float, dict[str, float]] = {}
    weights = sorted({*WEIGHTS, model.lexical_weight})
    for number, weight in enumerate(weights, 1):
        searcher = Searcher(index.store, index.lexical, index.vectors, _Weighted(model, weight), settings.config.search)
        results, _ = ask_all(questions, searcher, index.names, "hybrid", lambda *_: None, cancel or Event(), None)
        scores[weight] = {result.id: result.ndcg for result in results}
        on_weight(number, len(weights))
    names = [question.id for question in questions]
    gain = _cross_validated(scores, names, model.lexical_weight)
    return TuneReport(
        set_name=chosen.name,
        model_key=model.key,
        questions=len(questions),
        current_weight=model.lexical_weight,
        best_weight=_best(scores, names, model.lexical_weight),
        gain=gain,
        is_sure=gain.low > 0,
        weights=tuple(WeightScore(weight, round(_mean(scores[weight], names), 5)) for weight in weights),
    )


def write_weight(path: Path, weight: float) -> None:
    """Set `lexical_weight` in the section `[embedding]` of the configuration; everything else in the file stays."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else ["config_version = 1"]
    setting = f"lexical_weight = {weight:g}"
    section = next((number for number, line in enumerate(lines) if line.strip() == "[embedding]"), None)
    if section is None:
        lines += ["", "[embedding]", setting]
    else:
        end = next((n for n in range(section + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
        old = [n for n in range(section + 1, end) if re.match(r"\s*lexical_weight\s*=", lines[n])]
        if old:
            lines[old[0]] = setting
        else:
            lines.insert(section + 1, setting)
    text = "\n".join(lines) + "\n"
    if tomllib.loads(text).get("embedding", {}).get("lexical_weight") != float(f"{weight:g}"):
        raise Failed(f"cannot set lexical_weight in {path}", f"write it into [embedding] yourself: {setting}")
    make_dirs(path.parent)
    write_private(path, text.encode())


class _Weighted:
    """The same model under another weight."""

    def __init__(self, model: EmbeddingModel, weight: float) -> None:
        self._model = model
        self._weight = weight

    @property
    def key(self) -> str:
        return self._model.key

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def dim(self) -> int:
        return self._model.dim

    @property
    def lexical_weight(self) -> float:
        return self._weight

    @property
    def max_tokens(self) -> int:
        return self._model.max_tokens

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._model.embed_passages(texts)

    def embed_query(self, text: str) -> Vectors:
        return self._model.embed_query(text)


def _cross_validated(scores: dict[float, dict[str, float]], names: list[str], current: float) -> Estimate:
    """Each fold is scored with the weight that the other folds choose."""
    shuffled = random.Random(SEED).sample(names, len(names))
    chosen: dict[str, float] = {}
    for fold in range(FOLDS):
        held_out = set(shuffled[fold::FOLDS])
        weight = _best(scores, [name for name in shuffled if name not in held_out], current)
        chosen |= {name: scores[weight][name] for name in held_out}
    return paired({name: scores[current][name] for name in names}, chosen)


def _best(scores: dict[float, dict[str, float]], names: list[str], current: float) -> float:
    """The best mean; among equals the one nearest to the current weight."""
    return max(scores, key=lambda weight: (round(_mean(scores[weight], names), 6), -abs(weight - current)))


def _mean(values: dict[str, float], names: Sequence[str]) -> float:
    return sum(values[name] for name in names) / len(names)
