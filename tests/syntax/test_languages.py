from __future__ import annotations

from pathlib import PurePath

import pytest

from dari.syntax.languages import code_language, language_of_name, language_of_script


@pytest.mark.parametrize(
    ("name", "language"),
    [
        *[("a.tsx", "tsx"), ("a.h", "c"), ("Makefile", "make"), ("x.dockerfile", "dockerfile"), ("A.PY", "python")],
        *[("Dockerfile.dev", "dockerfile"), (".py", ""), ("py", ""), ("a.b.rs", "rust"), ("", "")],
    ],
)
def test_a_name_says_the_language(name: str, language: str) -> None:
    assert language_of_name(name) == language


@pytest.mark.parametrize(
    ("head", "language"),
    [
        *[(b"#!/usr/bin/env python3\n", "python"), (b"#!/bin/sh -e\n", "bash"), (b"#! /usr/bin/perl5.36\n", "perl")],
        *[(b"#!/usr/bin/env -S node --x\n", "javascript"), (b"#!/bin/cat\n", ""), (b"#!" + b"a" * 9999, ""), (b"", "")],
    ],
)
def test_a_script_says_its_interpreter(head: bytes, language: str) -> None:
    assert language_of_script(head) == language


def test_the_name_wins_over_the_first_line() -> None:
    assert code_language(PurePath("a.go"), b"#!/usr/bin/env python3\n") == "go"
    assert code_language(PurePath("tool"), b"#!/usr/bin/env python3\n") == "python"
