from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.syntax.analysis import AnalysisRequest, Answer, Symbol, analyse
from dari.syntax.grammars import UnknownLanguage
from dari.syntax.parsing import parse_source

SOURCES = {
    "python": (
        "import os\nX = 1\nclass A(B):\n    f: int = 1\n    @property\n    def go(self, x=lambda: 1) -> int:\n"
        "        y = 1\n        def inner(): pass\nasync def top(a,\n   b): ...\nif 1:\n    def cond(): pass\n",
        "constant X, class A, field A.f, method A.go, function A.go.inner, function top, function cond",
    ),
    "javascript": (
        "export const f = (x) => { const loc = 1; };\nconst V = 1;\nfunction g() {}\n"
        "export default class C { x = 1; static m() {} h = () => 1 }\nmodule.exports.z = function() {};\n"
        "const o = { q() {}, r: () => 1, s: 2 };\ndescribe('x', () => { const inn = 1; });\n",
        "function f, constant V, function g, class C, field C.x, method C.m, method C.h, function module.exports.z, "
        "variable o, method o.q, method o.r",
    ),
    "typescript": (
        "export interface I { a: string; b(): void }\nexport type T = string;\nenum E { A }\n"
        "namespace N { export function f() {} }\n"
        "export abstract class C<T> { private x: number = 1; abstract q(): void }\n",
        "interface I, field I.a, method I.b, type T, enum E, namespace N, function N.f, class C, field C.x, method C.q",
    ),
    "go": (
        "package a\ntype S struct { A, B int }\ntype I interface { M() }\n"
        "func (s *S) Go(x int) error { y := 1; return nil }\nfunc F() {}\nconst C, D = 1, 2\nvar V = 1\n",
        "struct S, field S.A, field S.B, interface I, method I.M, method S.Go, function F, constant C, constant D, "
        "variable V",
    ),
    "rust": (
        "pub struct A { f: u8 }\nimpl<T> Tr for A<T> { fn go(&self) -> u8 { let x = 1; 1 } }\nmod m { pub fn g() {} }\n"
        "const C: u8 = 1;\nenum E { P }\ntrait T { fn f(); }\nmacro_rules! mm { () => {} }\n",
        "struct A, field A::f, impl A, method A::go, module m, function m::g, constant C, enum E, field E::P, trait T, "
        "method T::f, macro mm",
    ),
    "java": (
        "public class A { private int x = 1, y; A() {} void go(int a) { int l = 1; } enum E { P } }\n"
        "record R(int a) {}\n",
        "class A, field A.x, field A.y, method A.A, method A.go, enum A.E, field A.E.P, record R",
    ),
    "kotlin": (
        "class A(val x: Int) {\n    val y = 1\n    fun go() {\n        val l = 1\n    }\n}\n\n"
        "object O\n\nfun g() = 1\n",
        "class A, field A.y, method A.go, object O, function g",
    ),
    "c": (
        "#define X 1\nstruct S { int a; };\ntypedef struct { int b; } T;\nint proto(int a);\n"
        "static int *f(struct S *s) { int l = 1; return 0; }\nint g1, g2 = 2;\nenum E { P };\n",
        "macro X, struct S, field S.a, type T, field T.b, declaration proto, function f, variable g1, variable g2, "
        "enum E, field E.P",
    ),
    "cpp": (
        "namespace n {\nclass A : public B { public: void f() {} int x; void decl(int); };\n"
        "template <class T> T tf(T a) { return a; }\n}\nvoid n::A::h() {}\nusing Q = int;\n",
        "namespace n, class n::A, method n::A::f, field n::A::x, method n::A::decl, function n::tf, function n::A::h, "
        "type Q",
    ),
    "bash": ("X=1\nrun() {\n  z=2\n}\nfunction other { :; }\n", "constant X, function run, function other"),
    "ruby": (
        "module M\n class A < B\n  X = 1\n  def go(a)\n  end\n  def self.no; end\n end\nend\n",
        "module M, class M.A, field M.A.X, method M.A.go, method M.A.no",
    ),
    "php": (
        "<?php\nclass A { private $f = 1; const Z=2; function go($x) {} }\nfunction f() {}\ntrait T {}\n",
        "class A, field A.$f, field A.Z, method A.go, function f, trait T",
    ),
    "csharp": (
        "namespace N { class A { int f = 1; int P {get;set;} void Go() {} } enum E {X} record R(int x); }",
        "namespace N, class N.A, field N.A.f, field N.A.P, method N.A.Go, enum N.E, field N.E.X, record N.R",
    ),
    "swift": (
        "struct S { var x = 1\n func go() {} }\nprotocol P { func f() }\nextension S { func z() {} }\n",
        "struct S, field S.x, method S.go, interface P, method P.f, extension S, method S.z",
    ),
    "scala": (
        "object O { def f(x: Int) = x\n val y = 1 }\ncase class C(a: Int)\n",
        "object O, method O.f, field O.y, class C",
    ),
    "lua": (
        "local function a() end\nfunction M.b() end\nM.d = function() end\n",
        "function a, function M.b, function M.d",
    ),
    "elixir": ("defmodule A.B do\n  def go(a), do: a\nend\n", "module A.B, function A.B.go"),
    "julia": ("module M\nfunction f(x)\n x\nend\ng(x) = x\nend\n", "module M, function M.f, function M.g"),
    "r": ("f <- function(x) { y <- 1 }\n", "function f"),
    "haskell": ("data T = A | B\ng :: Int -> Int\ng x = x\n", "type T, function g, function g"),
    "sql": ("CREATE TABLE t (a int);\nCREATE VIEW v AS SELECT 1;\n", "table t, view v"),
    "proto": (
        "message M { string a = 1; }\nservice S { rpc Get(M) returns (M); }\n",
        "struct M, field M.a, class S, method S.Get",
    ),
    "solidity": ("contract C { function f() public {} struct S { uint a; } }\n", "class C, method C.f, struct C.S"),
    "vue": ("<template/>\n<script lang='ts'>\nexport function go(x: number) {}\n</script>\n", "function go"),
    "markdown": ("# A\n\n## B\ntext\n", "heading A, heading A.B"),
    "toml": ("[a]\nb=1\n", "key a, key a.b"),
    "yaml": ("a:\n  b: 1\n", "key a, key a.b"),
    "gdscript": ("func go():\n\tpass\n", "function go"),
    "powershell": ("class A { [void] Go() {} }\n", "class A, method A.Go"),
}


def symbols_of(source: str, language: str) -> list[Symbol]:
    return analyse(AnalysisRequest(source.encode(), language)).symbols


@pytest.mark.parametrize("language", SOURCES)
def test_definitions_have_a_kind_and_a_qualified_name(language: str) -> None:
    source, expected = SOURCES[language]
    assert ", ".join(f"{one.kind} {one.symbol}" for one in symbols_of(source, language)) == expected


def test_lines_are_those_of_the_whole_definition_with_its_decorators() -> None:
    source = "import a\n\n@x\n@y(1)\nclass A:\n    def f(self):\n        pass\n\n\nZ = [\n    1,\n]\n"
    found = {one.symbol: (one.line, one.end_line) for one in symbols_of(source, "python")}
    assert found == {"A": (3, 7), "A.f": (6, 7), "Z": (10, 12)}


def test_a_signature_is_one_line_without_the_body() -> None:
    source = "class A(B):\n    async def go(\n        self,\n        x: int = 1,\n    ) -> int:\n        return x\n"
    assert [one.signature for one in symbols_of(source, "python")] == [
        "class A(B)",
        "async def go( self, x: int = 1, ) -> int",
    ]
    assert [one.signature for one in symbols_of("export const f = (x: T): U => {\n}\n", "typescript")] == [
        "export const f = (x: T): U"
    ]


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", 'def f():\n    """Says hello.\n\n    More."""\n'),
        ("go", "// Says hello.\n// More.\nfunc F() {}\n"),
        ("rust", "/// Says hello.\n#[inline]\nfn f() {}\n"),
        ("java", "/**\n * Says hello.\n * More.\n */\n@Override\nclass A {}\n"),
        ("typescript", "/** Says hello. */\nexport function f() {}\n"),
        ("bash", "# Says hello.\nf() { :; }\n"),
    ],
)
def test_the_first_line_of_the_documentation_comes_along(language: str, source: str) -> None:
    assert [one.doc for one in symbols_of(source, language)] == ["Says hello."]


def test_what_could_be_read_of_broken_code_is_there() -> None:
    answer = analyse(AnalysisRequest(b"def a():\n    pass\n\ndef b(:\n\nclass C:\n    def d(self): pass\n", "python"))
    assert answer.has_errors
    assert {"a", "C", "C.d"} <= {one.symbol for one in answer.symbols}


def test_a_language_without_a_grammar_is_unknown() -> None:
    assert analyse(AnalysisRequest(b"x", "klingon")) == Answer(is_unknown=True)
    with pytest.raises(UnknownLanguage):
        parse_source(b"x", "klingon")


@pytest.mark.parametrize("source", [b"(" * 100_000, b"[{" * 50_000, b"fn f(){" * 5_000, b"\xff\xfe\0" * 9_000, b""])
@pytest.mark.parametrize("language", ["python", "javascript", "rust", "json"])
def test_nesting_and_garbage_are_walked_in_linear_time(language: str, source: bytes) -> None:
    analyse(AnalysisRequest(source, language))


def test_scripts_without_end_are_passed_over_in_linear_time() -> None:
    analyse(AnalysisRequest(b"<script>" * 100_000, "vue"))
    analyse(AnalysisRequest(b"<script>a()</script>\n" * 20_000, "html"))


def test_a_comment_of_blanks_is_read_in_no_more_than_the_square_of_its_length() -> None:
    source = ("// x" + " " * 390 + "y\nfunction f() {}\n") * 300
    assert symbols_of(source, "javascript")[-1].doc.startswith("x")


def test_the_scripts_of_a_page_keep_its_lines_and_columns() -> None:
    page = b"<p>\n</p><script>function a() {}</script>\n<script lang='ts'>\nfunction b(x: number) {}\n</script>\n"
    answer = analyse(AnalysisRequest(page, "vue", "b"))
    assert [(one.symbol, one.line) for one in answer.symbols] == [("a", 2), ("b", 4)]
    assert [(one.line, one.col) for one in answer.occurrences] == [(4, 10)]


@given(st.text(max_size=300), st.sampled_from(sorted(SOURCES)))
@settings(max_examples=150)
def test_any_text_is_read_in_any_language(text: str, language: str) -> None:
    lines = text.count("\n") + 1
    for one in symbols_of(text, language):
        assert one.symbol
        assert 1 <= one.line <= one.end_line <= lines
