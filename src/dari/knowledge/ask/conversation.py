"""Follow-up questions: what "it" and "and in winter?" refer to is filled in from the conversation so far."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from dari.knowledge.ask.chat import ChatModel, try_complete
from dari.knowledge.ask.prompt import standalone_messages
from dari.knowledge.index.analyzer import is_stop_word, words_of
from dari.knowledge.store.records import TurnRecord
from dari.knowledge.wire.objects import AnswerV1
from dari.struct_types import ready

_MAX_STANDALONE_CHARS = 500
_FEW_WORDS = 2
# A word that points back, or an opening that continues what was said.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|that|those|these|this|there|then|one|ones|same|former|"
    r"latter|else|instead)\b"
    r"|^\s*(?:and|or|but|what about|how about|why|also)\b"
    r"|그것|그건|그게|그걸|이것|이건|이게|저것|거기|그곳|그때|그럼|그러면|그리고|그런데"
    r"|그 사람|그들|그의|그는|그녀|같은 것",
    re.IGNORECASE,
)


class Turn(Struct, frozen=True):
    """One question of the conversation, understood by itself, with the text of its answer."""

    question: str
    standalone: str
    answer: str


def read_turns(records: Sequence[TurnRecord]) -> list[Turn]:
    """Turns as the store has them, oldest first."""
    turns = []
    for record in records:
        answer = msgspec.json.decode(record.answer, type=ready(AnswerV1))
        turns.append(Turn(record.question, record.standalone, answer.answer))
    return turns


def is_follow_up(question: str) -> bool:
    """Does the question lean on what was said before? Short ones and ones that point back do."""
    said = [word for word in words_of(question) if not is_stop_word(word)]
    return len(said) <= _FEW_WORDS or _POINTS_BACK.search(question) is not None


def make_standalone(question: str, turns: Sequence[Turn], model: ChatModel | None) -> str:
    """The question with what it refers to. A model rewrites it; without one the words of the last question join it."""
    if not turns or not is_follow_up(question):
        return question
    if model is not None:
        history = [(turn.question, turn.answer) for turn in turns]
        rewritten = try_complete(model, standalone_messages(question, history), 120).splitlines()
        if rewritten and 0 < len(rewritten[0].strip()) <= _MAX_STANDALONE_CHARS:
            return rewritten[0].strip()
    return _with_subject(question, turns)


def _with_subject(question: str, turns: Sequence[Turn]) -> str:
    """The question and the words of the last one that carry its subject and are not in it already."""
    own = {word.lower() for word in words_of(question)}
    last = turns[-1].standalone
    subject = [word for word in words_of(last) if not is_stop_word(word) and word.lower() not in own]
    return f"{question} ({' '.join(dict.fromkeys(subject))})"[:_MAX_STANDALONE_CHARS] if subject else question
