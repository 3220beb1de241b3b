from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.knowledge.chunk import chunk_document, chunker_version
from dari.knowledge.document import Chunk
from dari.knowledge.parse import ParseFailed, ParseLimits, parse_bytes
from dari.knowledge.parse.code_units import MAX_UNIT_LINES, code_units
from dari.knowledge.parse.lines import has_words
from dari.syntax.grammars import GRAMMARS

LONG = "\n".join(f"        a{n} = {n}" for n in range(45))
SAMPLES = {
    "a.py": (
        "import os\n\n\n# About it.\n@cache\ndef top(x):\n    return x\n\n\n"
        f"class Big:\n    x = 1\n\n    def go(self):\n{LONG}\n",
        ["", "top", "Big", "Big.go"],
    ),
    "a.js": ("import x from 'y';\n\nconst f = () => {\n  return 1;\n};\n\nfunction g() {}\n", ["", "f", "g"]),
    "a.ts": ("export interface I { a: string }\n\nexport class C {\n  m(): void {}\n}\n", ["I", "C"]),
    "a.tsx": (
        "export const App = () => <div>hi</div>;\n\nexport default function Page() { return null }\n",
        ["App", "Page"],
    ),
    "a.go": (
        "package a\n\nfunc (r *Repo[T]) Load() {}\n\nfunc New() {}\n\ntype X struct{ a int }\n",
        ["", "Repo.Load", "New", "X"],
    ),
    "a.rs": (
        "#[derive(X)]\nstruct A;\n\nimpl Tr for A {\n    fn f() {}\n}\n\nmod m {\n    fn g() {}\n}\n",
        ["A", "A", "m"],
    ),
    "a.java": ("package a;\n\nclass A {\n  void f() {}\n}\n\nenum E { X }\n", ["", "A", "E"]),
    "a.kt": ("package a\n\nclass A(val x: Int) {\n    fun f() = 1\n}\n\nfun g() {}\n", ["", "A", "g"]),
    "a.c": ("#include <x.h>\n\nstatic int *f(int a) { return 0; }\n\nstruct S { int a; };\n", ["", "f", "S"]),
    "a.cpp": ("namespace n {\nclass A { void f() {} };\n}\n\nvoid A::h() {}\n", ["n", "A::h"]),
    "a.sh": ("#!/bin/bash\nset -e\n\nrun() {\n  echo hi\n}\n\nrun\n", ["", "run", ""]),
}


def chunks_of(text: str, name: str) -> list[Chunk]:
    return chunk_document("d", parse_bytes(text.encode(), name))


@pytest.mark.parametrize("name", SAMPLES)
def test_each_definition_is_a_chunk_with_its_symbol_and_lines(name: str) -> None:
    text, symbols = SAMPLES[name]
    document = parse_bytes(text.encode(), name)
    chunks = chunk_document("d", document)
    assert [chunk.location.symbol for chunk in chunks] == symbols
    assert chunker_version(document) == f"code-{document.code_lang}-ast-v1"
    lines = text.split("\n")
    for chunk in chunks:
        place = chunk.location
        assert chunk.text == "\n".join(lines[place.line_start - 1 : place.line_end])
        assert (place.kind, place.code_lang) == ("code", document.code_lang)


def test_comments_and_decorators_belong_to_what_they_stand_above() -> None:
    chunks = chunks_of(SAMPLES["a.py"][0], "a.py")
    assert chunks[1].text.startswith("# About it.\n@cache\ndef top(x):")


def test_members_of_a_long_type_are_units_of_their_own_in_every_language_with_types() -> None:
    body = "\n".join(f"    int a{n} = {n};" for n in range(50))
    java = f"class Outer {{\n{body}\n  class Inner {{ void deep() {{}} }}\n  void f() {{}}\n}}\n"
    assert [chunk.location.symbol for chunk in chunks_of(java, "a.java")] == [
        "Outer",
        "Outer.Inner",
        "Outer.f",
        "Outer",
    ]
    rust = "impl A {\n" + "\n".join(f"    // line {n}" for n in range(50)) + "\n    fn f() {}\n}\n"
    assert "A::f" in [chunk.location.symbol for chunk in chunks_of(rust, "a.rs")]


def test_a_function_without_end_is_cut_into_units_of_its_name() -> None:
    text = "def long():\n" + "\n".join(f"    x{n} = {n}" for n in range(900)) + "\n"
    document = parse_bytes(text.encode(), "a.py")
    assert {block.symbol for block in document.blocks} == {"long"}
    assert all(block.line_end - block.line_start < MAX_UNIT_LINES for block in document.blocks)


def test_a_kubernetes_file_is_a_chunk_per_resource() -> None:
    text = (
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  labels:\n    name: other\n---\n"
        "# the workload\nkind: Deployment\napiVersion: apps/v1\nmetadata:\n  name: 'api'\n"
    )
    document = parse_bytes(text.encode(), "k8s.yaml")
    chunks = chunk_document("d", document)
    assert [(chunk.location.symbol, chunk.location.fragment()) for chunk in chunks] == [
        ("Service/web", "L1-L6"),
        ("Deployment/api", "L8-L12"),
    ]
    assert chunker_version(document) == "k8s-manifest-resource-v1"


def test_other_yaml_is_paragraphs() -> None:
    document = parse_bytes(b"a: 1\n\nb:\n  - 2\n", "ci.yml")
    assert chunker_version(document) == "code-text-paragraph-v1"
    assert [chunk.text for chunk in chunk_document("d", document)] == ["a: 1\n\nb:\n  - 2"]


@pytest.mark.parametrize(
    ("name", "version"), [("Dockerfile", "dockerfile-file-v1"), ("sub/package.json", "manifest-file-v1")]
)
def test_a_dockerfile_and_a_manifest_stay_whole(name: str, version: str) -> None:
    document = parse_bytes(b"FROM x\n\nRUN y\n", name)
    (chunk,) = chunk_document("d", document)
    assert (chunk.text, chunker_version(document)) == ("FROM x\n\nRUN y", version)


def test_a_paragraph_without_end_is_read_through_windows_that_overlap() -> None:
    text = "\n".join(f"line {n};" for n in range(1, 201))
    chunks = chunks_of(text, "a.rb")
    assert [chunk.location.fragment() for chunk in chunks] == ["L1-L80", "L61-L140", "L121-L200"]


@pytest.mark.parametrize(
    "text",
    ["# Code generated by protoc. DO NOT EDIT.\nx = 1\n", "/* @generated */\nx\n", "// <auto-generated>\nx\n"],
)
def test_a_generated_file_is_skipped_unless_it_is_wanted(text: str) -> None:
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(text.encode(), "a.py")
    assert caught.value.reason == "generated" and caught.value.is_skip
    assert parse_bytes(text.encode(), "a.py", ParseLimits(skip_generated=False)).blocks


def test_code_above_the_caps_is_skipped() -> None:
    for text in (b"x = 1\n" * 5_001, b"y" * (256 * 1024 + 1)):
        with pytest.raises(ParseFailed) as caught:
            parse_bytes(text, "a.py")
        assert caught.value.reason == "size_exceeded" and caught.value.is_skip


_PYTHON_AND_C = [
    "def f():",
    "    pass",
    "class A:",
    "{",
    "}",
    "(",
    ")",
    "# d",
    "@x",
    "",
    '"""',
    "x = 1",
    "#ifdef X",
    "#endif",
]
_OTHERS = [
    "fn g() {",
    "func h() {",
    "// c",
    "impl B {",
    "namespace n {",
    "export default class Q {",
    "interface I {",
    "'",
    "`",
]
_PIECES = st.sampled_from([*_PYTHON_AND_C, *_OTHERS])


@settings(max_examples=250, deadline=None)
@given(st.lists(_PIECES, max_size=30).map("\n".join), st.sampled_from(sorted(GRAMMARS)))
def test_units_cover_every_line_once_whatever_the_code_looks_like(text: str, language: str) -> None:
    lines = text.split("\n")
    spans = code_units(text.encode(), lines, language)
    covered = [number for span in spans for number in range(span.start, span.end)]
    assert covered == sorted(set(covered))
    assert [n for n, line in enumerate(lines) if has_words(line) and n not in covered] == []


def test_each_type_of_a_group_in_go_is_a_unit_of_its_own_name() -> None:
    source = (
        "package p\n\n// Both of them.\ntype (\n\tA struct {\n\t\tX int\n\t}\n\n"
        "\t// The second.\n\tB interface {\n\t\tDo()\n\t}\n)\n\n"
        "// One.\ntype C int\n"
    )
    blocks = parse_bytes(source.encode(), "a.go").blocks
    assert [(block.symbol, block.line_start, block.line_end) for block in blocks if block.symbol] == [
        ("A", 3, 7),
        ("B", 9, 12),
        ("C", 15, 16),
    ]


def test_what_is_inside_of_a_type_without_a_name_keeps_its_own() -> None:
    source = "namespace {\nint first() { return 1; }\nint second() { return 2; }\n}\n"
    assert [block.symbol for block in parse_bytes(source.encode(), "a.cpp").blocks if block.symbol] == [
        "first",
        "second",
    ]
    source = "export default class {\n  start() { return 1 }\n  stop() { return 2 }\n}\n"
    assert [block.symbol for block in parse_bytes(source.encode(), "a.js").blocks if block.symbol] == ["start", "stop"]


def test_a_resource_is_called_by_its_own_name_and_not_by_a_label() -> None:
    source = "apiVersion: v1\nkind: Service\nmetadata:\n# ours\n  labels:\n    name: web\n  name: web-public\n"
    (block,) = parse_bytes(source.encode(), "a.yaml").blocks
    assert block.symbol == "Service/web-public"
