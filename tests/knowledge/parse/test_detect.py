from __future__ import annotations

from pathlib import PurePath

import pytest

from dari.knowledge.chunk import current_chunkers
from dari.knowledge.parse import code_language, media_of, parser_version
from dari.knowledge.parse.language import detect_language


@pytest.mark.parametrize(
    ("name", "head", "media"),
    [
        ("a.MD", b"# x", "markdown"),
        ("notes.txt", b"x", "text"),
        ("LICENSE", b"x", "text"),
        ("a.docx", b"PK\x03\x04", "office"),
        ("page.htm", b"<p>", "html"),
        ("a.ipynb", b"{}", "notebook"),
        ("scan.JPG", b"\xff\xd8\xff", "image"),
        ("Dockerfile.dev", b"FROM x", "code"),
        ("go.mod", b"module x", "code"),
        ("tool", b"#!/usr/bin/env python3\nx", "code"),
        ("tool", b"#!/bin/sh\nx", "code"),
        ("tool", b"plain", None),
        ("paper.txt", b"%PDF-1.7", "pdf"),
        ("a.md", b"\x89PNG\r\n\x1a\n", None),
        ("a.md", b"PK\x03\x04", None),
        ("package-lock.json", b"{}", None),
        ("a.exe", b"MZ", None),
        ("a.hwp", b"\xd0\xcf", None),
        (".gitignore", b"x", None),
    ],
)
def test_a_file_goes_to_the_parser_of_its_name_and_first_bytes(name: str, head: bytes, media: str | None) -> None:
    assert media_of(PurePath(name), head) == media


@pytest.mark.parametrize(
    ("name", "language"), [("a.tsx", "tsx"), ("a.h", "c"), ("Makefile", "make"), ("x.dockerfile", "dockerfile")]
)
def test_code_has_a_language(name: str, language: str) -> None:
    assert code_language(PurePath(name)) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("연차는 15일이다.", "ko"),
        ("`kubectl apply -f deployment.yaml` 명령으로 배포한다. The rest is in English words here and there.", "ko"),
        ("The index is rebuilt when the store is newer than it.", "en"),
        ("これは日本語の文です。", "ja"),
        ("这是一个中文句子。", "zh"),
        ("x = foo(bar, baz); y++", "und"),
        ("Der Index wird neu gebaut, wenn der Speicher neuer ist.", "und"),
        ("", "und"),
        ("12345 67", "und"),
    ],
)
def test_the_language_is_read_off_the_script_and_the_words(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_every_kind_has_a_parser_label_and_labels_of_chunkers_are_listed() -> None:
    assert parser_version("markdown") == "md-blocks-v1"
    assert {"md-heading-v2", "pdf-page-v1.2", "code-python-ast-v1", "k8s-manifest-resource-v1"} <= current_chunkers()
