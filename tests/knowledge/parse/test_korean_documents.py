"""Korean in PDFs and pictures: words whole, and cited by page or place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.knowledge.parse import parse_bytes
from dari.knowledge.parse.ocr import is_available, languages
from tests.support.documents import picture_pdf
from tests.support.kebab_command import kebab_home
from tests.support.korean_documents import korean_pdf, korean_picture, png, require_font
from tests.support.requirements import missing

PAGES = (
    "첫 쪽은 목차이다.\n회의록과 규정을 모았다.",
    "휴가는 해마다 열다섯 날이며 입사한 달부터 쓸 수 있다. 남은 휴가는 다음 해로 넘기지 않는다.",
    "비밀번호는 90일마다 바꾸어야 하며 관리자는 이중 인증을 반드시 사용한다. 분실한 경우에는 정보보호팀(내선 4021)에 "
    "곧바로 신고한다.",
)
LINES = ("비밀번호는 90일마다 바꾸어야 한다", "정보보호팀 내선 4021 Backup server", "관리자는 이중 인증을 쓴다.")


@pytest.fixture(autouse=True)
def font() -> None:
    require_font()


def require_korean_ocr() -> None:
    if not is_available() or "kor" not in languages("kor+eng"):
        missing("KOREAN OCR WAS NOT TESTED: apt-get install tesseract-ocr-kor")


def test_the_words_of_a_korean_pdf_are_whole_and_its_lines_keep_their_page() -> None:
    document = parse_bytes(korean_pdf(PAGES, "사내 규정집"), "규정.pdf")
    assert (document.title, document.lang, document.warnings) == ("사내 규정집", "ko", ())
    assert [block.page for block in document.blocks] == [1, 2, 3]
    for block, page in zip(document.blocks, PAGES, strict=True):
        assert block.text.split() == page.split()


async def test_a_search_in_a_korean_pdf_cites_the_page(tmp_path: Path) -> None:
    with kebab_home(tmp_path) as kebab:
        (kebab.notes / "규정 모음.pdf").write_bytes(korean_pdf(PAGES, "사내 규정집"))
        assert (await kebab("ingest")).code == 0
        for query in ("정보보호팀 내선", "이중 인증은 누가 사용하나", '"다음 해로 넘기지 않는다"'):
            found = (await kebab("search", query, "--mode", "lexical", "--path-glob", "*.pdf", "--json")).json
            page = 2 if "다음" in query else 3
            assert found["hits"][0]["citation"]["uri"] == f"규정 모음.pdf#p={page}", query
        answer = (await kebab("ask", "정보보호팀 내선 번호는 무엇인가?", "--json")).json
    assert "4021" in answer["answer"]
    assert answer["citations"][0]["citation"]["uri"] == "규정 모음.pdf#p=3"


@pytest.mark.parametrize("size_px", [28, 40, 56])
def test_the_words_of_a_korean_picture_are_whole_at_every_size(size_px: int) -> None:
    require_korean_ocr()
    document = parse_bytes(png(korean_picture(LINES, size_px)), "게시판.png")
    text = "\n".join(block.text for block in document.blocks)
    assert document.lang == "ko"
    for line in LINES:
        assert line in text, text
    assert all(block.region is not None and block.region[2] > 200 for block in document.blocks if "비밀" in block.text)


async def test_a_scanned_korean_page_is_found_by_its_words_and_cited_as_a_page(tmp_path: Path) -> None:
    require_korean_ocr()
    image = korean_picture(LINES, 40)
    with kebab_home(tmp_path) as kebab:
        (kebab.notes / "스캔.pdf").write_bytes(picture_pdf(image.width, image.height, image.tobytes()))
        (kebab.notes / "게시판.png").write_bytes(png(image))
        assert (await kebab("ingest")).code == 0
        hits = (await kebab("search", "정보보호팀 내선", "--mode", "lexical", "--json")).json["hits"]
    uris = {hit["doc_path"]: hit["citation"]["uri"] for hit in hits}
    assert uris["스캔.pdf"] == "스캔.pdf#p=1"
    assert uris["게시판.png"].startswith("게시판.png#xywh=")
