"""Outputs that make a careless pattern or loop take for ever."""

from __future__ import annotations

from collections.abc import Callable

from tests.terminal.output_parsers.labelled import all_samples

MEGABYTE = 1_000_000
WORST = ["one letter", "blanks", "tabs", "open brackets", "empty arrays", "objects on lines", "arrays that never close"]
WORST += [
    "pairs",
    "a table",
    "a box",
    "wide tables",
    "titles",
    "errors",
    "frames",
    "diagnostics",
    "brackets at the end",
]
WORST += ["commits", "marks", "disk words", "not found", "pairs that go on"]
"""Those that are read at their full size of a megabyte."""

_UNITS = {
    "one letter": "a",
    "blanks": " ",
    "tabs": "\t",
    "new lines": "\n",
    "digits": "0",
    "dashes": "-",
    "underscores": "_",
    "bars": "|",
    "open brackets": "[",
    "empty arrays": "[]",
    "objects on lines": '{"a": 1}\n',
    "objects that never close": "{\n",
    "arrays that never close": '["a",\n',
    "colons": ":",
    "pairs": "key: value\n",
    "keys that nest": "key:\n",
    "pairs that go on": "key: value\n" + "  more of it\n" * 100_000,
    "words and blanks": "ab  cd   ",
    "a table": "NAME   SIZE   TYPE\nvda    256G   disk\n",
    "narrow tables": "A B\n1 2\n\n",
    "a box": "+---+---+\n| a | b |\n",
    "wide characters": "가나 다라\n",
    "wide tables": "이름   크기\n가나   10\n",
    "combining characters": "a\u0301\u0301",
    "double colons": "a::b ",
    "test ids": "a.py::test_b PASSED (x) ",
    "titles": "___ test_a ___\nE   assert 0\na.py:1: AssertionError\n",
    "errors": "ErrorErrorError",
    "frames": '  File "a.py", line 1, in f\n    x()\n',
    "node frames": "Error: x\n    at f (a.js:1:1)\n",
    "parentheses": " at (",
    "java frames": "java.lang.Error: x\n\tat a.b.C.d(C.java:1)\n",
    "go frames": "panic: x\n\ngoroutine 1 [running]:\nmain.f()\n\t/a.go:1 +0x1\n",
    "panics": "thread 'main' panicked at a.rs:1:1:\nmessage\n",
    "diagnostics": "a.c:1:2: error: bad [-Wx]\n",
    "eslint": "/a.js\n  1:1  error  x   y   z  rule\n",
    "brackets at the end": "a.c:1:2: error: " + " " * 400 + "[x]\n",
    "arrows": "error: x\n --> a.rs:1:1\n",
    "commits": "commit 1234567890\nAuthor: a <b>\nDate:   x\n\n    text\n",
    "graph": "| \\ * / ",
    "hashes": "1234567 text\n",
    "statuses": " M a.txt\n",
    "quoted paths": '?? "\\355\\225\\234"\n',
    "listing": "-rw-r--r-- 1 a b 1 Nov 16 05:10 name\n",
    "modes": "-rw-r--r-- 1 ",
    "processes": "  PID TTY TIME CMD\n    1 ?   0:00 a b\n",
    "disks": "Filesystem Size Used Avail Use% Mounted on\n/dev/a 1 1 1 1% /\n",
    "disk words": "Filesystem % a b\nword word word ",
    "containers": "CONTAINER ID   IMAGE   STATUS\nabc            x       Up\n",
    "cargo tests": "test a ... FAILED\n---- a stdout ----\nthread 'a' panicked at a.rs:1:1:\nx\n",
    "marks": "  ✕ adds (1 ms)\n",
    "jest details": "Tests:  1 failed, 1 total\n  ● a › b\n    at x (a.js:1:1)\n",
    "mocha details": "  1 failing\n  1) a\n       b:\n     Error: x\n",
    "go tests": "--- FAIL: TestA (0.00s)\n    a_test.go:1: x\nFAIL\ta\t0.1s\n",
    "questions": "Proceed? [y/N] ",
    "ports": ":8080 address already in use ",
    "urls": "http://localhost:",
    "quotes": "'‘\"`",
    "not found": "a: b: c: not found: ",
}


def hostile_outputs() -> dict[str, Callable[[int], str]]:
    """Makers of outputs by name; each takes the number of characters wanted."""

    def repeated(unit: str) -> Callable[[int], str]:
        return lambda size: (unit * (size // len(unit) + 1))[:size]

    made = {name: repeated(unit) for name, unit in _UNITS.items()}
    for sample in all_samples()[::25]:
        if sample.output.strip():
            made[f"{sample.name} over and over"] = repeated(sample.output)
            made[f"{sample.name} on one line"] = repeated(sample.output.replace("\n", " "))
    return made
