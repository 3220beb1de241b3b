"""Test runners: counts, names, messages and places of what failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.terminal.output_parsers import Parsed, parse_structured
from tests.terminal.output_parsers.labelled import SAMPLES, read_sample

TESTS = """
import pytest, warnings

def test_total(): assert 1 + 1 == 3
def test_ok(): warnings.warn("old")
@pytest.mark.parametrize("text", ["a b", "c - d"])
def test_text(text): assert text == "a b"
@pytest.mark.skip(reason="later")
def test_later(): pass
@pytest.mark.xfail
def test_known(): assert 0
@pytest.fixture
def broken(): raise ConnectionError("no database")
def test_broken(broken): pass
class TestCart:
    def test_empty(self): raise KeyError("price")
"""


def sample(name: str) -> Parsed:
    (path,) = SAMPLES.glob(f"*/{name}.txt")
    known = read_sample(path)
    return parse_structured(known.output, command=known.command)


def by_name(parsed: Parsed) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in parsed.items or []}


@pytest.mark.parametrize("options", ["", "-q", "-v", "-vv", "-ra", "--tb=short", "--tb=line", "-n 2", "-n 2 -v"])
def test_what_pytest_really_prints_is_read_in_every_form(tmp_path: Path, options: str) -> None:
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *options.split()],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    parsed = parse_structured(done.stdout, command=f"pytest {options}")
    assert parsed.parser == "pytest" and parsed.confidence > 0.95
    wanted = {"status": "failed", "passed": 2, "failed": 3, "errors": 1, "skipped": 1, "xfailed": 1, "warnings": 1}
    assert {key: parsed.value[key] for key in wanted} == wanted
    bad = {name: item["outcome"] for name, item in by_name(parsed).items() if item["outcome"] in ("failed", "error")}
    assert bad == {
        "test_shop.py::test_total": "failed",
        "test_shop.py::test_text[c - d]": "failed",
        "test_shop.py::TestCart::test_empty": "failed",
        "test_shop.py::test_broken": "error",
    }
    assert "no database" in by_name(parsed)["test_shop.py::test_broken"]["message"]
    if options in ("", "-q", "-v"):
        assert by_name(parsed)["test_shop.py::test_total"]["line"] == 4
        assert "assert (1 + 1) == 3" in by_name(parsed)["test_shop.py::test_total"]["detail"]


def test_a_file_that_cannot_be_collected_is_an_error() -> None:
    parsed = sample("pytest_collect_error")
    assert parsed.value["errors"] == 1 and parsed.value["status"] == "failed"
    assert "nosuchmodule_abc" in by_name(parsed)["test_x.py"]["message"]


def test_a_run_that_has_not_ended_says_so() -> None:
    parsed = parse_structured("===== test session starts =====\ncollected 2 items\n\na.py::test_x PASSED  [ 50%]\n")
    assert parsed.parser == "pytest" and "not ended" in parsed.notes[0]
    assert by_name(parsed)["a.py::test_x"]["outcome"] == "passed"


def test_cargo_gives_every_test_and_why_one_failed() -> None:
    parsed = sample("cargo_test_fail")
    assert parsed.parser == "cargo_test"
    assert {key: parsed.value[key] for key in ("framework", "status", "passed", "failed")} == {
        "framework": "cargo test",
        "status": "failed",
        "passed": 1,
        "failed": 1,
    }
    failed = by_name(parsed)["tests::pane_creation"]
    assert (failed["file"], failed["line"]) == ("src/lib.rs", 6)
    assert failed["message"].startswith("assertion `left == right` failed\n  left: 4")


def test_cargo_adds_up_units_and_documents() -> None:
    text = (
        "running 1 test\ntest a ... ok\n\n"
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.50s\n\n"
        "   Doc-tests shop\n\nrunning 2 tests\ntest src/lib.rs - add (line 2) ... ok\n"
        "test src/lib.rs - sub (line 9) ... ignored\n\n"
        "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.25s\n"
    )
    value = parse_structured(text).value
    assert (value["passed"], value["skipped"], value["filtered_out"], value["duration_s"]) == (2, 1, 3, 0.75)


def test_an_old_panic_of_a_cargo_test_is_read() -> None:
    text = (
        "running 1 test\ntest it ... FAILED\n\nfailures:\n\n---- it stdout ----\n"
        "thread 'it' panicked at 'boom', src/lib.rs:5:9\n\nfailures:\n    it\n\n"
        "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"
    )
    assert by_name(parse_structured(text))["it"]["message"] == "boom"


@pytest.mark.parametrize(
    ("name", "framework", "test", "message", "line"),
    [
        ("jest_fail", "jest", "cart > adds prices", "expect(received).toBe(expected)", 3),
        ("vitest_fail", "vitest", "cart > adds prices", "AssertionError: expected 2 to be 3", 3),
        ("mocha_fail", "mocha", "cart > adds", "AssertionError", 3),
    ],
)
def test_javascript_runners_name_the_failure_once(
    name: str, framework: str, test: str, message: str, line: int
) -> None:
    parsed = sample(name)
    assert parsed.value["framework"] == framework
    assert (parsed.value["failed"], parsed.value["passed"], parsed.value["status"]) == (1, 1, "failed")
    failed = [item for item in parsed.items or [] if item["outcome"] == "failed"]
    assert [item["name"] for item in failed] == [test]
    assert failed[0]["message"].startswith(message) and failed[0]["line"] == line


def test_the_runner_of_node_is_read() -> None:
    parsed = sample("node_test_fail")
    assert parsed.value["framework"] == "node" and parsed.value["failed"] == 1
    assert {item["name"]: item["outcome"] for item in parsed.items or []} == {"adds": "failed", "ok": "passed"}


@pytest.mark.parametrize("verbose", [False, True])
def test_go_tests_have_their_message_before_or_after_the_result(verbose: bool) -> None:
    if verbose:
        text = (
            "=== RUN   TestAdd\n    a_test.go:5: got 4, want 3\n--- FAIL: TestAdd (0.00s)\n=== RUN   TestOk\n"
            "--- PASS: TestOk (0.00s)\nFAIL\nFAIL\tshop\t0.006s\n"
            "ok  \tshop/cart\t(cached)\n?   \tshop/cmd\t[no test files]\n"
        )
        parsed = parse_structured(text)
        assert [entry["status"] for entry in parsed.value["packages"]] == ["failed", "passed", "no tests"]
        assert parsed.value["passed"] == 1
    else:
        parsed = sample("go_test_fail")
    assert parsed.parser == "go_test" and parsed.value["failed"] == 1
    failed = by_name(parsed)["TestAdd"]
    assert (failed["file"], failed["line"], failed["message"]) == ("a_test.go", 5, "got 4, want 3")


def test_a_package_that_did_not_build_failed() -> None:
    value = parse_structured(
        "# shop\n./a.go:3:5: undefined: x\nFAIL\tshop [build failed]\nFAIL\n", hint="go_test"
    ).value
    assert value["status"] == "failed"


UNITTESTS = """
import unittest

class CartTest(unittest.TestCase):
    def test_total(self): self.assertEqual(1 + 1, 3)
    def test_ok(self): pass
    def test_key(self):
        \"\"\"A price is looked up.\"\"\"
        raise KeyError("price")
    @unittest.skip("later")
    def test_later(self): pass
    @unittest.expectedFailure
    def test_known(self): self.fail("x")
    def test_sub(self):
        for n in range(2):
            with self.subTest(n=n): self.assertEqual(n, 0)
"""


@pytest.mark.parametrize("options", ["", "-v"])
def test_what_unittest_really_prints_is_read(tmp_path: Path, options: str) -> None:
    (tmp_path / "test_shop.py").write_text(UNITTESTS)
    done = subprocess.run(
        [sys.executable, "-m", "unittest", *options.split()], cwd=tmp_path, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 1, done.stderr
    parsed = parse_structured(done.stderr, command=f"python -m unittest {options}")
    assert parsed.parser == "unittest" and parsed.confidence > 0.95
    wanted = {"status": "failed", "total": 6, "passed": 1, "failed": 2, "errors": 1, "skipped": 1, "xfailed": 1}
    assert {key: parsed.value[key] for key in wanted} == wanted
    tests = by_name(parsed)
    assert tests["test_shop.CartTest.test_total"] | {"file": ""} == {
        "name": "test_shop.CartTest.test_total",
        "outcome": "failed",
        "file": "",
        "line": 5,
        "message": "AssertionError: 2 != 3",
    }
    assert tests["test_shop.CartTest.test_key"]["message"] == "KeyError: 'price'"
    assert tests["test_shop.CartTest.test_sub (n=1)"]["outcome"] == "failed"
    if options:
        assert tests["test_shop.CartTest.test_later"]["message"] == "later"
        assert tests["test_shop.CartTest.test_ok"]["outcome"] == "passed"


@pytest.mark.parametrize(
    ("name", "framework", "counts", "failed"),
    [
        (
            "h_rspec_real",
            "rspec",
            {"passed": 1, "failed": 2, "skipped": 2},
            {"name": "Cart sums prices", "file": "spec/cart_spec.rb", "line": 3},
        ),
        (
            "h_ctest_real",
            "ctest",
            {"passed": 1, "failed": 4, "skipped": 2, "duration_s": 1.09},
            {"name": "cart_slow", "reason": "Timeout", "duration_s": 1.06},
        ),
        (
            "h_maven_real",
            "surefire",
            {"passed": 1, "failed": 1, "errors": 1, "skipped": 1, "total": 4},
            {"name": "shop.CartTest.total", "file": "CartTest.java", "line": 6},
        ),
        (
            "h_maven",
            "surefire",
            {"passed": 2, "failed": 1, "errors": 0, "total": 3},
            {
                "name": "com.acme.CartTest.total",
                "message": "org.opentest4j.AssertionFailedError: expected: <3> but was: <4>",
            },
        ),
    ],
)
def test_other_runners_tell_what_failed_and_where(
    name: str, framework: str, counts: dict[str, Any], failed: dict[str, Any]
) -> None:
    parsed = sample(name)
    assert parsed.value["framework"] == framework and parsed.confidence > 0.95
    assert {key: parsed.value[key] for key in counts} == counts
    assert parsed.value["status"] == "failed"
    found = by_name(parsed)[failed["name"]]
    assert found["outcome"] == "failed"
    assert found | failed == found


def test_a_run_of_ctest_that_goes_on_has_no_result_yet() -> None:
    shown = "    Start 1: a\n1/9 Test #1: a .....   Passed    0.01 sec\n    Start 2: b\n"
    parsed = parse_structured(shown, command="ctest")
    assert parsed.parser == "ctest" and parsed.value["passed"] == 1 and parsed.notes
