"""`ask` over a set's index: whether it refuses what has no answer, and cites what has one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dari.knowledge.ask.asker import Asker, AskRequest
from dari.knowledge.config import Settings
from dari.knowledge.eval.index import SetIndex
from dari.knowledge.eval.run import AskFunction, AskOutcome
from dari.knowledge.index.lexical import INDEX_VERSION
from dari.knowledge.models.model import english_beside
from dari.knowledge.render import Renderer


def extractive_asker(settings: Settings) -> Callable[[SetIndex], AskFunction]:
    """What `kebab ask` answers without a language model. Nothing is written into the store."""
    ask = msgspec.structs.replace(settings.config.ask, keep_answers=False)
    llm = msgspec.structs.replace(settings.config.llm, provider="none")

    def prepare(index: SetIndex) -> AskFunction:
        name = index.model.key if index.model is not None else ""
        renderer = Renderer(settings.config.search.stale_after_days, INDEX_VERSION, name)
        english = english_beside(index.model, settings.config.embedding, settings.data.data)
        asker = Asker(index.store, index.searcher, index.model, ask, llm, renderer.citation, english)

        def answer(question: str) -> AskOutcome:
            found = asker.answer(AskRequest(question=question))
            return AskOutcome(not found.grounded, found.answer, str(found.refusal_reason or ""))

        return answer

    return prepare
