"""A prompt lists its arguments and refuses what it does not take."""

from __future__ import annotations

import pytest

from dari.core.content import PromptMessage, TextContent
from dari.core.context import Context
from dari.core.prompt import Prompt, PromptArgument
from dari.errors import InvalidInput


async def render(context: Context, given: dict[str, str]) -> list[PromptMessage]:
    return [PromptMessage("user", TextContent(text=str(given)))]


LETTER = Prompt("letter", render, "Write a letter", [PromptArgument("to", "name", True), PromptArgument("tone")])


def test_a_listing_shows_the_arguments_and_which_are_needed() -> None:
    assert LETTER.listing() == {
        "name": "letter",
        "description": "Write a letter",
        "arguments": [{"name": "to", "description": "name", "required": True}, {"name": "tone", "required": False}],
    }
    assert Prompt("bare", render, title="Bare").listing() == {"name": "bare", "title": "Bare"}


@pytest.mark.parametrize("given", [{"to": "x"}, {"to": "x", "tone": "warm"}, {"to": ""}])
def test_arguments_that_fit_are_taken(given: dict[str, str]) -> None:
    LETTER.check(given)


@pytest.mark.parametrize(
    ("prompt", "given", "message"),
    [
        (LETTER, {}, "prompt 'letter' needs argument 'to'"),
        (LETTER, {"tone": "warm"}, "prompt 'letter' needs argument 'to'"),
        (LETTER, {"to": "x", "ton": "y"}, "prompt 'letter' has no argument 'ton'"),
        (Prompt("bare", render), {"x": "y"}, "prompt 'bare' has no argument 'x'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(prompt: Prompt, given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        prompt.check(given)
    assert refused.value.message == message
    assert refused.value.hint.strip(": ") not in ("", "known"), "the hint names a next step"


def test_the_first_of_several_unknown_arguments_is_always_the_same() -> None:
    messages = set()
    for given in ({"b": "", "a": "", "to": ""}, {"a": "", "to": "", "b": ""}):
        with pytest.raises(InvalidInput) as refused:
            LETTER.check(given)
        messages.add(refused.value.message)
    assert messages == {"prompt 'letter' has no argument 'a'"}
