from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.knowledge.chunk import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("서울은 수도이다. 인구는 940만 명이에요. 정말요?", ["서울은 수도이다.", "인구는 940만 명이에요.", "정말요?"]),
        ("회의를 했다.그리고 끝났다.", ["회의를 했다.", "그리고 끝났다."]),
        ('그는 "간다."라고 말했다. 나는 남았다.', ['그는 "간다."라고 말했다.', "나는 남았다."]),
        ("2024. 3. 15. 시행한다. 다음은 2025년이다.", ["2024. 3. 15. 시행한다.", "다음은 2025년이다."]),
        ("약 3.5%가 늘었다. 값은 1.25배이다.", ["약 3.5%가 늘었다.", "값은 1.25배이다."]),
        (
            "Dr. Kim met Mr. Lee at 3 p.m. yesterday. They left.",
            ["Dr. Kim met Mr. Lee at 3 p.m. yesterday.", "They left."],
        ),
        ("Use a model, e.g. MiniLM, i.e. a small one. Done!", ["Use a model, e.g. MiniLM, i.e. a small one.", "Done!"]),
        ("See Fig. 3 and No. 7. J. Smith wrote it.", ["See Fig. 3 and No. 7.", "J. Smith wrote it."]),
        ('"Really?" he asked. "Yes!"', ['"Really?" he asked.', '"Yes!"']),
        (
            "It grew in 2024. Then it stopped... or so. Wait… What?",
            ["It grew in 2024.", "Then it stopped... or so.", "Wait…", "What?"],
        ),
        ("第一句。第二句！第三句？", ["第一句。", "第二句！", "第三句？"]),
        (
            "Visit example.com/a.b today. Version 1.2.3 is out.",
            ["Visit example.com/a.b today.", "Version 1.2.3 is out."],
        ),
        ("A line that\nwraps here. And\nanother one.", ["A line that\nwraps here.", "And\nanother one."]),
        ("# Heading\nBody text. More.", ["# Heading", "Body text.", "More."]),
        (
            "Intro:\n- one item\n- two items\n  go on\n1. first\n2. second",
            ["Intro:", "- one item", "- two items\n  go on", "1. first", "2. second"],
        ),
        ("| a | b |\n|---|---|\n| 1. x | 2 |", ["| a | b |", "| 1. x | 2 |"]),
        ("```\nx = 1. y\nz = 2\n```\nAfter.", ["x = 1. y", "z = 2", "After."]),
        ("no end", ["no end"]),
        ("\n\n  \n", []),
        ("!!! ??? ...", []),
    ],
)
def test_sentences_of_korean_and_english(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@settings(max_examples=400)
@given(st.text(st.sampled_from("가다요. ?!\n\"')-|#1a。…A`~\t"), max_size=120))
def test_spans_are_in_order_apart_and_leave_no_word_out(text: str) -> None:
    at = 0
    for start, end in sentence_spans(text):
        assert at <= start < end <= len(text)
        assert not any(one.isalnum() for one in text[at:start])
        assert text[start:end] == text[start:end].strip()
        at = end
    assert not any(one.isalnum() for one in text[at:])
