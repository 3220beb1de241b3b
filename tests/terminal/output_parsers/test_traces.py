"""Stack traces, with what caused what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from dari.terminal.output_parsers import parse_structured
from tests.terminal.output_parsers.labelled import SAMPLES, read_sample


def trace_of(tmp_path: Path, code: str) -> list[dict[str, Any]]:
    (tmp_path / "app.py").write_text(code)
    done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    parsed = parse_structured(done.stderr)
    assert parsed.parser == "python_traceback", done.stderr
    return parsed.items or []


def sample(name: str) -> dict[str, Any]:
    (path,) = SAMPLES.glob(f"*/{name}.txt")
    parsed = parse_structured(read_sample(path).output)
    assert parsed.type == "traceback" and parsed.items
    return parsed.items[0]


def test_a_python_traceback_has_frames_with_code(tmp_path: Path) -> None:
    (item,) = trace_of(tmp_path, "def price(x):\n    return int(x)\n\nprice('abc')\n")
    assert (item["language"], item["error"]) == ("python", "ValueError") and "'abc'" in item["message"]
    assert [(frame["line"], frame["function"], frame["code"]) for frame in item["frames"]] == [
        (4, "<module>", "price('abc')"),
        (2, "price", "return int(x)"),
    ]


def test_a_cause_and_a_context_are_told_apart(tmp_path: Path) -> None:
    code = (
        "try:\n    {}['a']\nexcept KeyError as e:\n    try:\n        raise ValueError('b') from e\n"
        "    except ValueError:\n        raise RuntimeError('c')\n"
    )
    items = trace_of(tmp_path, code)
    assert [(item["error"], item.get("relation")) for item in items] == [
        ("KeyError", None),
        ("ValueError", "cause"),
        ("RuntimeError", "context"),
    ]


def test_the_parts_of_an_exception_group_are_items(tmp_path: Path) -> None:
    code = (
        "def f():\n    raise TypeError('b')\ntry:\n    f()\nexcept TypeError as e:\n"
        "    raise ExceptionGroup('many', [ValueError('a'), e])\n"
    )
    items = trace_of(tmp_path, code)
    by_error = {item["error"]: item for item in items if item.get("group") or item["error"] == "ExceptionGroup"}
    assert by_error["ExceptionGroup"]["message"] == "many (2 sub-exceptions)"
    assert by_error["ValueError"]["group"] == "1" and by_error["TypeError"]["group"] == "2"
    assert by_error["TypeError"]["frames"][-1]["function"] == "f"


def test_a_syntax_error_without_a_stack_is_an_error_at_its_line(tmp_path: Path) -> None:
    (item,) = trace_of(tmp_path, "x = 1\ndef f(:\n    pass\n")
    assert item["error"] == "SyntaxError" and item["frames"][-1]["line"] == 2


def test_an_error_without_a_message_and_one_from_a_module_are_read(tmp_path: Path) -> None:
    assert trace_of(tmp_path, "raise StopIteration\n")[0]["message"] == ""
    (item,) = trace_of(tmp_path, "import json\njson.loads('x')\n")
    assert item["error"] == "json.decoder.JSONDecodeError" and len(item["frames"]) == 4


def test_a_stack_that_was_cut_off_keeps_its_frames() -> None:
    parsed = parse_structured('Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\n')
    assert parsed.items and parsed.items[0]["frames"][0]["line"] == 3


def test_a_node_trace_says_where_it_was_thrown() -> None:
    item = sample("node_type_error")
    assert item["error"] == "TypeError" and "reading 'items'" in item["message"]
    assert item["frames"][0]["file"].endswith("app.js") and item["frames"][0]["line"] == 2
    syntax = sample("node_syntax")
    assert syntax["error"] == "SyntaxError" and syntax["file"].endswith("app.js") and syntax["at_line"] == 1


def test_a_go_panic_has_the_frames_of_its_goroutine_only() -> None:
    text = (
        "panic: boom\n\ngoroutine 1 [running]:\nmain.price(...)\n\t/srv/main.go:7\n"
        "main.main()\n\t/srv/main.go:12 +0x1d\n\n"
        "goroutine 5 [sleep]:\ntime.Sleep(0x3b9aca00)\n\t/usr/lib/go/src/runtime/time.go:195 +0x125\nexit status 2\n"
    )
    parsed = parse_structured(text)
    assert parsed.parser == "go_traceback" and parsed.items and len(parsed.items) == 1
    assert [(frame["function"], frame["line"]) for frame in parsed.items[0]["frames"]] == [
        ("main.price", 7),
        ("main.main", 12),
    ]
    assert sample("go_panic")["message"] == "assignment to entry in nil map"


def test_a_rust_panic_has_its_message_place_and_backtrace() -> None:
    text = (
        "thread 'main' (4021) panicked at src/main.rs:4:5:\nindex out of bounds\nthe second line\n"
        "stack backtrace:\n   0: rust_begin_unwind\n             at /rustc/library/std/src/panicking.rs:697:5\n"
        "   1: shop::main\n             at ./src/main.rs:4:5\nnote: Some details are omitted\n"
    )
    (item,) = parse_structured(text).items or []
    assert (item["file"], item["at_line"], item["thread"]) == ("src/main.rs", 4, "main")
    assert item["message"] == "index out of bounds\nthe second line"
    assert [frame["function"] for frame in item["frames"]] == ["rust_begin_unwind", "shop::main"]


def test_a_java_trace_has_its_causes() -> None:
    text = (
        'Exception in thread "main" java.lang.RuntimeException: outer\n\tat com.acme.App.run(App.java:12)\n'
        "\tat com.acme.App.main(App.java:5)\n"
        "Caused by: java.io.IOException: inner\n\tat com.acme.Db.open(Db.java:40)\n\t... 2 more\n"
    )
    items = parse_structured(text).items or []
    assert [(item["error"], item.get("relation")) for item in items] == [
        ("java.lang.RuntimeException", None),
        ("java.io.IOException", "cause"),
    ]
    assert items[1]["frames"] == [{"file": "Db.java", "line": 40, "function": "com.acme.Db.open"}]
