from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.bridge.limits.results import fits, limit_result, truncate_text
from dari.errors import Failed

blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=3000)),
    st.builds(lambda data: {"type": "image", "data": data, "mimeType": "image/png"}, st.text("ab", max_size=2000)),
)
results = st.builds(
    lambda content, structured, extra: {"content": content, **structured, **extra},
    st.lists(blocks, max_size=5),
    st.sampled_from([{}, {"structuredContent": {"rows": [1, 2, 3]}}, {"structuredContent": {"rows": ["x" * 50] * 99}}]),
    st.sampled_from([{}, {"isError": True}, {"taskId": "t1", "_meta": {"a": 1}}]),
)


def text_of(result: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in result["content"])


def test_a_result_that_fits_is_passed_on_itself() -> None:
    result = {"content": [{"type": "text", "text": "x" * 100}], "custom": 1}
    assert limit_result(result, 1000) is result
    assert fits(1000, 1000) and fits(10**9, None) and not fits(1001, 1000)


def test_long_text_is_cut_and_a_note_says_how_much_is_left_out() -> None:
    result = limit_result({"content": [{"type": "text", "text": "가" * 5000}]}, 2000, what="the result of fs/read")
    first, note = result["content"]
    assert first["text"] == "가" * len(first["text"]) and len(first["text"]) > 400
    assert "the result of fs/read has 15" in note["text"] and "of 5000 characters of text" in note["text"]


def test_refusing_names_both_sizes_and_the_setting() -> None:
    with pytest.raises(Failed, match=r"50\d\d bytes.* 2000") as caught:
        limit_result({"content": [{"type": "text", "text": "x" * 5000}]}, 2000, on_excess="refuse")
    assert "maxResultBytes" in caught.value.hint


def test_pictures_and_structured_content_go_whole_or_not_at_all() -> None:
    picture = {"type": "image", "data": "A" * 5000, "mimeType": "image/png"}
    after = {"type": "text", "text": "after"}
    result = limit_result({"content": [picture, after], "structuredContent": {"x": "y" * 5000}}, 3000)
    assert result["content"][0] == after
    assert "structuredContent" not in result
    assert "structured content of" in result["content"][1]["text"] and "image of" in result["content"][1]["text"]


def test_an_error_stays_an_error_and_small_structured_content_stays() -> None:
    result = limit_result(
        {"content": [{"type": "text", "text": "x" * 9000}], "isError": True, "structuredContent": {"code": 7}}, 2000
    )
    assert result["isError"] is True and result["structuredContent"] == {"code": 7}


@pytest.mark.parametrize("max_bytes", [1024, 1500, 4096, 100_000])
@pytest.mark.parametrize("letter", ["x", "가", '"', "\n", "\x01"])
def test_the_note_fits_too_however_the_text_is_escaped(max_bytes: int, letter: str) -> None:
    text = {"type": "text", "text": letter * 200_000}
    small = limit_result({"content": [text, text, text], "structuredContent": {"rows": [letter] * 99_999}}, max_bytes)
    assert max_bytes * 0.5 < len(msgspec.json.encode(small)) <= max_bytes


@given(results, st.integers(1024, 4096))
@settings(deadline=None)
def test_whatever_comes_back_it_fits_and_is_still_a_result(result: dict[str, Any], max_bytes: int) -> None:
    small = limit_result(result, max_bytes)
    assert len(msgspec.json.encode(small)) <= max_bytes
    assert small.get("isError") == result.get("isError")
    if small is not result:
        assert small["content"][-1]["text"].startswith("[Cut by the bridge")


@given(st.text(max_size=300), st.integers(-5, 300))
@settings(deadline=None)
def test_a_cut_is_the_longest_beginning_that_fits(text: str, max_bytes: int) -> None:
    head = truncate_text(text, max_bytes)
    assert text.startswith(head)
    assert len(msgspec.json.encode(head)) - 2 <= max(0, max_bytes)
    if head != text:
        assert len(msgspec.json.encode(text[: len(head) + 1])) - 2 > max_bytes
