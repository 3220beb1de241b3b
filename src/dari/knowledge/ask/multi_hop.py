"""Questions that take several look-ups: split into simple ones, look each up, ask what is missing, at most so deep."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from dari.knowledge.ask.chat import ChatModel, complete
from dari.knowledge.ask.prompt import decide_messages, decompose_messages
from dari.knowledge.search.request import Hit
from dari.knowledge.wire.objects import AnswerHop

_ENOUGH = "ENOUGH"
_MAX_QUESTION_CHARS = 300
_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s*")


class Gathered(Struct, frozen=True):
    """Everything that was found, best first and each chunk once, and how it was looked for."""

    hits: tuple[Hit, ...]
    hops: tuple[AnswerHop, ...]


def gather(
    question: str,
    model: ChatModel,
    search: Callable[[str], tuple[Hit, ...]],
    max_questions: int,
    max_depth: int,
    context_tokens: int,
) -> Gathered | None:
    """Look a question up in steps. None: the model did not split it into questions."""
    parts = read_questions(complete(model, decompose_messages(question, max_questions), 200), max_questions)
    if not parts:
        return None
    found: dict[str, Hit] = {}
    hops: list[AnswerHop] = []
    for part in parts:
        _collect(part, search(part), found, hops, "decomposed")
    for _ in range(max_depth - 1):
        reply = complete(model, decide_messages(question, list(found.values()), context_tokens), 100)
        further = read_questions(reply, 1)
        if _ENOUGH in reply or not further or any(hop.question == further[0] for hop in hops):
            break
        _collect(further[0], search(further[0]), found, hops, "followed")
    hits = sorted(found.values(), key=lambda hit: -hit.score)
    return Gathered(tuple(hits), tuple(hops))


def read_questions(reply: str, limit: int) -> list[str]:
    """The questions of a model's reply, one a line, without list marks."""
    lines = (_LIST_MARK.sub("", line).strip() for line in reply.splitlines())
    return [line for line in dict.fromkeys(lines) if 2 < len(line) <= _MAX_QUESTION_CHARS][:limit]


def _collect(question: str, hits: tuple[Hit, ...], found: dict[str, Hit], hops: list[AnswerHop], decision: str) -> None:
    for hit in hits:
        known = found.get(hit.chunk.chunk_id)
        if known is None or known.score < hit.score:
            found[hit.chunk.chunk_id] = hit
    hops.append(AnswerHop(hop=len(hops) + 1, question=question, chunks=len(hits), decision=decision))
