from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.bridge.search.fuzzy import edit_distance, nearest_names
from dari.bridge.search.tokenizer import stem, tokenize


@pytest.mark.parametrize(
    "text",
    ["readTextFile", "read_text_file", "read-text-file", "ReadTextFile", "reading the text files", "READ TEXT FILE"],
)
def test_one_name_gives_the_same_words_however_it_is_written(text: str) -> None:
    assert tokenize(text) == ["read", "text", "fil"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTPServer", ["http", "server"]),
        ("getURL2", ["get", "url2"]),
        ("API-post-search", ["api", "post", "search"]),
        ("k8s_pods", ["k8s", "pod"]),
        ("the of and", []),
        ("", []),
        ("x" * 100, []),
    ],
)
def test_names_are_split_where_a_reader_splits_them(text: str, expected: list[str]) -> None:
    assert tokenize(text) == expected


@pytest.mark.parametrize(
    "family",
    [
        ["delete", "deletes", "deleted", "deleting"],
        ["create", "created", "creating", "creates"],
        ["query", "queries"],
        ["run", "running", "runs"],
        ["entity", "entities"],
        ["directory", "directories"],
    ],
)
def test_the_forms_of_a_word_meet(family: list[str]) -> None:
    assert len({stem(word) for word in family}) == 1


@pytest.mark.parametrize(("left", "right"), [("status", "state"), ("class", "clas"), ("string", "str"), ("need", "ne")])
def test_other_words_stay_apart(left: str, right: str) -> None:
    assert stem(left) != stem(right)


def test_korean_is_found_with_and_without_its_particle() -> None:
    assert "저장소" in tokenize("저장소를") and "저장소" in tokenize("저장소")[:1]
    assert set(tokenize("파일을")) & set(tokenize("파일"))
    assert tokenize("글") == ["글"]


def test_composed_and_decomposed_hangul_are_the_same() -> None:
    assert tokenize("\u1111\u1161\u110b\u1175\u11af") == tokenize("파일") == ["파일"]


@pytest.mark.parametrize(
    ("left", "right", "apart"),
    [("file", "file", 0), ("flie", "file", 1), ("fil", "file", 1), ("screenshto", "screenshot", 1), ("abc", "xyz", 3)],
)
def test_a_swap_is_one_slip(left: str, right: str, apart: int) -> None:
    assert edit_distance(left, right, 2) == apart


@given(st.text("abcd", max_size=8), st.text("abcd", max_size=8))
@settings(deadline=None)
def test_distances_are_the_same_both_ways_and_never_above_the_longer_word(left: str, right: str) -> None:
    assert edit_distance(left, right, 10) == edit_distance(right, left, 10) <= max(len(left), len(right))
    assert (edit_distance(left, right, 10) == 0) == (left == right)
    assert edit_distance(left, right, 1) == min(2, edit_distance(left, right, 10))


NAMES = [
    "fs__read_file",
    "fs__write_file",
    "git__log",
    "git__diff",
    "browser__take_screenshot",
    "memory__create_entities",
]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("fs__raed_file", "fs__read_file"),
        ("read_file", "fs__read_file"),
        ("fs/readFile", "fs__read_file"),
        ("take_screenshots", "browser__take_screenshot"),
        ("git__dif", "git__diff"),
        ("memory__create_entity", "memory__create_entities"),
        ("gitlog", "git__log"),
    ],
)
def test_a_slip_of_a_name_is_answered_with_the_name_that_was_meant(typed: str, meant: str) -> None:
    assert nearest_names(typed, NAMES)[0] == meant


def test_a_name_like_none_is_answered_with_none() -> None:
    assert nearest_names("send_email_to_boss", NAMES) == []
