"""Sentences of a document that address the model that reads it, such as "ignore the rules above".

A small model follows them now and then, whatever the fence around the passages says, and repeats what they dictate. The
check of an answer cannot notice that: the words do stand in the document. So a model does not read them, and no answer
takes anything from them. Search and `fetch` show the document as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dari.knowledge.chunk import sentence_spans

# What hardly any document says to a person. Every gap is bounded, so a text costs linear time.
_ADDRESSES_MODEL = re.compile(
    r"(?:^|[^\w\s]\s{0,3}|\b(?:please|and|must|should|then|to|now) )(?:ignore|disregard|forget|override|bypass)"
    r"(?: (?:all|any|every|each|of|the|these|those|your|my|our|previous|prior|earlier|other|above|former)){1,6}"
    r" (?:instructions?|rules?|prompts?|guidelines?|questions?)\b"
    r"|\b(?:system|assistant|developer)\s{0,3}:\s{0,3}(?:ignore|you|reply|respond|answer|do not|from now)\b"
    r"|\byou are (?:now|no longer) (?:a|an|in|my|bound)\b|\bsystem prompt\b|\bdo not use markers\b"
    r"|\b(?:note|message|instructions?) (?:to|for) (?:the |any |all )?(?:ai|llms?|assistants?|language models?)\b"
    r"|<\|[a-z_]{1,20}\|>|\[/?INST\]"
    r"|(?:이전|앞선|위의?|모든|지금까지의?)[^.\n]{0,20}(?:지시|규칙|명령|지침|프롬프트)[^.\n]{0,12}(?:무시|잊|따르지)"
    r"|시스템 프롬프트",
    re.IGNORECASE | re.MULTILINE,
)
# What goes on in the same paragraph after such a sentence.
_GOES_ON = re.compile(
    r"(?:please |then |instead,? |and |also |just |only )?"
    r"(?:reply|respond|answer|say|state|output|print|repeat|write|tell|claim|run|execute|call|send|use|do not|don't|"
    r"never|always|you (?:must|should|will|are))\b"
    r"|[^.\n]{0,200}(?:라고|고) (?:답|말|대답|출력)|[^.\n]{0,200}(?:하라|하세요|하십시오|해라|마라|마세요)[.!]?$",
    re.IGNORECASE,
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")


def instruction_spans(text: str) -> Iterator[tuple[int, int]]:
    """The sentences that address a model, and those that go on from them in the same paragraph."""
    if _ADDRESSES_MODEL.search(text) is None:
        return
    goes_on, last_end = False, 0
    for start, end in sentence_spans(text):
        if _BLANK_LINE.search(text, last_end, start):
            goes_on = False
        last_end = end
        sentence = text[start:end]
        if _ADDRESSES_MODEL.search(sentence) or (goes_on and _GOES_ON.match(sentence)):
            goes_on = True
            yield start, end


def without_instructions(text: str) -> str:
    kept, at = [], 0
    for start, end in instruction_spans(text):
        kept.append(text[at:start])
        at = end
    return "".join((*kept, text[at:])) if kept else text
