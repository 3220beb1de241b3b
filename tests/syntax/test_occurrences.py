from __future__ import annotations

import pytest

from dari.syntax.analysis import AnalysisRequest, analyse
from dari.syntax.occurrences import Occurrence


def find(source: str, name: str, language: str = "python") -> list[Occurrence]:
    return analyse(AnalysisRequest(source.encode(), language, name)).occurrences


def brief(source: str, name: str, language: str = "python") -> list[str]:
    return [
        f"{one.line} {one.role} {one.kind}" + (f" in {one.symbol}" if one.symbol and one.role != "definition" else "")
        for one in find(source, name, language)
    ]


def test_each_place_says_what_the_name_does_there() -> None:
    source = (
        "from a import go\n"
        "def run():\n"
        "    return go(1) + x.go()\n"
        "class B(go):\n"
        "    f = go  # go\n"
        "    g: go\n"
        "t = 'go'\n"
        "u = f'{go}'\n"
        "h(go=1)\n"
    )
    assert brief(source, "go") == [
        "1 reference import",
        "3 reference call in run",
        "3 reference call in run",
        "4 reference inherit in B",
        "5 reference use in B.f",
        "5 text comment in B",
        "6 reference type in B.g",
        "7 text string_content in t",
        "8 reference use in u",
        "9 reference argument",
    ]


def test_a_member_names_its_receiver() -> None:
    found = find("class A:\n    def go(self):\n        self.go()\n        other.thing.go\n", "go")
    assert [(one.role, one.receiver, one.is_member) for one in found] == [
        ("definition", "", False),
        ("reference", "self", True),
        ("reference", "other.thing", True),
    ]


def test_a_parameter_or_a_local_variable_of_the_name_is_marked() -> None:
    source = (
        "def go(): pass\ndef a(go):\n    return go\ndef b():\n"
        "    go = 1\n    return go + x.go\ndef c():\n    return go()\n"
    )
    assert [(one.line, one.is_local) for one in find(source, "go")] == [
        (1, False),
        (2, True),
        (3, True),
        (5, True),
        (6, True),
        (6, False),
        (8, False),
    ]


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("javascript", "import {go} from 'x';\nexport {go};\nnew A.go();\nlet z = go;\n", "import export call use"),
        ("typescript", "function go(): void {}\nlet x: Go = go();\n", "function call"),
        ("go", "func run() {}\nfunc m() { x.run(); run() }\n", "function call call"),
        ("rust", "use a::go;\nfn m() { go(); A::go(); }\n", "import call call"),
        ("java", "class A { void go() {} void m() { go(); this.go(); } }\n", "method call call"),
        ("c", "int go(void);\nint main() { return go(); }\n", "declaration call"),
        ("cpp", "void A::go() {}\nint m() { a.go(); b->go(); }\n", "function call call"),
        ("ruby", "def go; end\nx.go\n", "method call"),
        ("php", "<?php function go() {} go(); $a->go();\n", "function call call"),
        ("bash", "go() { :; }\ngo a\n", "function call"),
        ("csharp", "class A { void go() { go(); this.go(); } }\n", "method call call"),
        ("kotlin", "fun go() = 1\n\nfun m() = go()\n", "function call"),
    ],
)
def test_definitions_and_calls_are_told_apart_in_every_language(language: str, source: str, expected: str) -> None:
    name = "run" if language == "go" else "go"  # a keyword there
    assert " ".join(one.kind for one in find(source, name, language)) == expected


def test_only_whole_words_count_and_columns_are_characters() -> None:
    found = find("é = 'ü'; go(gone, ago, go_)\n", "go")
    assert [(one.line, one.col, one.text) for one in found] == [(1, 10, "é = 'ü'; go(gone, ago, go_)")]


def test_a_minified_line_is_cut_around_the_place() -> None:
    found = find("a=1;" * 50_000 + "go();" + "b=2;" * 50_000, "go", "javascript")
    assert len(found) == 1
    assert "go();" in found[0].text
    assert len(found[0].text) <= 200


def test_places_on_one_long_line_have_their_own_columns() -> None:
    source = "x = 1\n" + "go(é); " * 200 + "\n\ngo()\n"
    assert [(one.line, one.col) for one in find(source, "go")] == [*((2, 1 + 7 * n) for n in range(200)), (4, 1)]
