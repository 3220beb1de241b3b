"""Compilers, type checkers and linters in one shape."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.terminal.output_parsers import parse_structured
from tests.terminal.output_parsers.labelled import SAMPLES, read_sample


def item(file: str, line: int, column: int | None, severity: str, code: str, message: str) -> dict[str, Any]:
    return {"file": file, "line": line, "column": column, "severity": severity, "code": code, "message": message}


@pytest.mark.parametrize(
    ("text", "tool", "wanted"),
    [
        (
            "main.c: In function ‘main’:\nmain.c:3:9: warning: unused variable ‘x’ [-Wunused-variable]\n",
            "gcc",
            item("main.c", 3, 9, "warning", "-Wunused-variable", "unused variable ‘x’"),
        ),
        (
            "a.c:1:10: fatal error: x.h: No such file\n",
            "gcc",
            item("a.c", 1, 10, "fatal error", "", "x.h: No such file"),
        ),
        (
            'error[E0308]: mismatched types\n --> src/main.rs:2:18\n  |\n2 |     let n: u32 = "five";\n',
            "rustc",
            item("src/main.rs", 2, 18, "error", "E0308", "mismatched types"),
        ),
        (
            "warning: function `unused` is never used\n --> src/main.rs:1:4\n",
            "rustc",
            item("src/main.rs", 1, 4, "warning", "", "function `unused` is never used"),
        ),
        (
            "main.ts(1,7): error TS2322: Type 'string' is not assignable.\n",
            "tsc",
            item("main.ts", 1, 7, "error", "TS2322", "Type 'string' is not assignable."),
        ),
        (
            "src/a.ts:2:16 - error TS2353: Object literal.\n\n2 const a = 1\n",
            "tsc",
            item("src/a.ts", 2, 16, "error", "TS2353", "Object literal."),
        ),
        (
            "Main.java:4: error: cannot find symbol\n",
            "javac",
            item("Main.java", 4, None, "error", "", "cannot find symbol"),
        ),
        ("# shop\n./main.go:5:14: undefined: y\n", "go", item("./main.go", 5, 14, "error", "", "undefined: y")),
        (
            'shop.py:3: error: Argument 1 to "f" has incompatible type "str"  [arg-type]\n',
            "mypy",
            item("shop.py", 3, None, "error", "arg-type", 'Argument 1 to "f" has incompatible type "str"'),
        ),
        (
            "a.py:1:8: F401 [*] `os` imported but unused\n",
            "ruff",
            item("a.py", 1, 8, "error", "F401", "`os` imported but unused"),
        ),
        (
            "F401 [*] `os` imported but unused\n --> a.py:1:8\n  |\n1 | import os\n",
            "ruff",
            item("a.py", 1, 8, "error", "F401", "`os` imported but unused"),
        ),
        (
            "/srv/a.js\n  2:1  error  'foo' is not defined  no-undef\n\n✖ 1 problem (1 error, 0 warnings)\n",
            "eslint",
            item("/srv/a.js", 2, 1, "error", "no-undef", "'foo' is not defined"),
        ),
        (
            '/srv/shop.py\n  /srv/shop.py:2:12 - error: Type "int" is not assignable (reportReturnType)\n',
            "pyright",
            item("/srv/shop.py", 2, 12, "error", "", 'Type "int" is not assignable (reportReturnType)'),
        ),
        (
            "/usr/bin/ld: main.c:(.text+0x5): undefined reference to `helper'\n",
            "ld",
            item("main.c", 0, None, "error", "", "undefined reference to `helper'") | {"line": None},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 12 else "",
)
def test_each_tool_says_file_line_severity_code_and_message(text: str, tool: str, wanted: dict[str, Any]) -> None:
    parsed = parse_structured(text)
    assert parsed.type == "diagnostics" and parsed.value["tool"] == tool
    assert parsed.items == [wanted]


@pytest.mark.parametrize("form", ["concise", "full"])
def test_what_ruff_really_prints_is_read(tmp_path: Path, form: str) -> None:
    (tmp_path / "shop.py").write_text("import os\nprint(undefined)\n")
    command = [
        str(Path(sys.executable).parent / "ruff"),
        "check",
        "--isolated",
        "--no-cache",
        "--select=F",
        "--output-format",
        form,
        ".",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20)
    parsed = parse_structured(done.stdout, command="ruff check .")
    assert [(entry["code"], entry["line"]) for entry in parsed.items or []] == [("F401", 1), ("F821", 2)]


def test_what_mypy_really_prints_is_read(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def f(x: int) -> str:\n    return x\n")
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--cache-dir", str(tmp_path / "cache"), "shop.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50)
    parsed = parse_structured(done.stdout)
    assert parsed.items and (parsed.items[0]["line"], parsed.items[0]["code"]) == (2, "return-value")


def test_the_lines_with_source_and_carets_count_as_understood() -> None:
    known = read_sample(SAMPLES / "build_error" / "gcc_error.txt")
    parsed = parse_structured(known.output)
    assert parsed.confidence > 0.9 and parsed.value["errors"] == 1


def test_a_log_with_times_is_no_diagnostics() -> None:
    assert parse_structured("12:30:01 starting\n12:30:02 ready: yes\n").type != "diagnostics"
