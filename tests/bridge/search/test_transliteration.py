"""English words in Hangul are found by their consonants."""

from __future__ import annotations

import pytest

from dari.bridge.search.index import ToolIndex
from dari.bridge.search.korean import english_sounds, hangul_sounds
from dari.bridge.search.tokenizer import stem

PAIRS = """
스크린샷 screenshot | 스크린셧 screenshot | 디플로이먼트 deployment | 네임스페이스 namespace | 레포지토리 repository
디렉토리 directory | 브라우저 browser | 노티피케이션 notification | 대시보드 dashboard | 스프레드시트 spreadsheet
워크플로우 workflow | 캘린더 calendar | 인보이스 invoice | 템플릿 template | 트랜잭션 transaction | 컨테이너 container
리퀘스트 request | 프레젠테이션 presentation | 다이어그램 diagram | 네트워크 network | 라이브러리 library
클러스터 cluster
"""


@pytest.mark.parametrize("pair", [pair.split() for line in PAIRS.strip().splitlines() for pair in line.split("|")])
def test_a_word_is_heard_the_same_in_both_scripts(pair: list[str]) -> None:
    written, english = pair
    assert hangul_sounds(written) in english_sounds(stem(english))


def test_two_consonants_are_not_enough() -> None:
    assert hangul_sounds("파드") == "" and english_sounds("pod") == ()


def test_a_loan_word_that_no_lexicon_names_finds_the_english_tool() -> None:
    index = ToolIndex()
    index.put(
        "s",
        [
            {"name": "s__create_playlist", "description": "Create a playlist."},
            {"name": "s__create_coupon", "description": "Create a coupon."},
        ],
    )
    assert index.find("플레이리스트 만들어줘")[0].name == "s__create_playlist"
    assert index.find("쿠폰을 만들어줘")[0].name == "s__create_coupon"


def test_an_entry_inside_of_another_word_is_an_accident() -> None:
    index = ToolIndex()
    index.put(
        "s",
        [
            {"name": "s__list_things", "description": "List things."},
            {"name": "s__get_analyst", "description": "Get the analyst."},
        ],
    )
    assert index.find("애널리스트")[0].name == "s__get_analyst"
