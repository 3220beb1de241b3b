"""`go test` through `crewx_tools_test`."""

from __future__ import annotations

from pathlib import Path

from tests.support.code_engines import require_engine
from tests.support.tested_projects import run, write

SHOP = {
    "go.mod": "module example.com/shop\n\ngo 1.19\n",
    "prices/prices.go": """
        package prices

        func Total(items []int) int {
            sum := 0
            for _, item := range items {
                sum += item
            }
            return sum
        }
        """,
    "prices/prices_test.go": """
        package prices

        import "testing"

        func TestTotal(t *testing.T) {
            if Total([]int{1, 2}) != 3 {
                t.Fatal("bad")
            }
        }

        func TestWrong(t *testing.T) {
            t.Log("about to fail")
            t.Errorf("got %d, want %d", Total([]int{1}), 2)
        }

        func TestTable(t *testing.T) {
            for _, name := range []string{"one", "two parts"} {
                t.Run(name, func(t *testing.T) {
                    if name != "one" {
                        t.Error("wrong")
                    }
                })
            }
        }

        func TestLater(t *testing.T) { t.Skip("later") }
        """,
    "panics/panics_test.go": """
        package panics

        import "testing"

        func TestPanics(t *testing.T) {
            var items []int
            _ = items[3]
        }
        """,
}


def shop(folder: Path) -> Path:
    require_engine("go", "golang-go")
    return write(folder, SHOP)


def test_counts_subtests_panics_and_places(tmp_path: Path) -> None:
    report = run(shop(tmp_path))
    assert report["framework"] == "go" and report["version"].startswith("1.")
    assert [report[name] for name in ("passed", "failed", "skipped")] == [2, 3, 1]
    failures = {one["id"]: one for one in report["failures"]}
    wrong = failures["prices::TestWrong"]
    assert (wrong["message"], wrong["path"], wrong["line"]) == ("got 1, want 2", "prices/prices_test.go", 13)
    assert failures["prices::TestTable/two_parts"]["line"] == 20
    panics = failures["panics::TestPanics"]
    assert (panics["path"], panics["line"]) == ("panics/panics_test.go", 7)
    assert panics["message"].startswith("panic: runtime error: index out of range")
    assert "/src/testing/" not in panics["traceback"]


def test_an_id_a_file_and_a_folder_are_targets(tmp_path: Path) -> None:
    shop(tmp_path)
    again = run(tmp_path, targets=["prices::TestTable/two_parts"])
    assert (again["collected"], again["failed"]) == (1, 1)
    assert run(tmp_path, targets=["prices/prices_test.go"])["collected"] == 5
    assert run(tmp_path, targets=["prices"], keyword="Later")["skipped"] == 1
    assert run(tmp_path, lastFailed=True)["failed"] == 2


def test_code_that_does_not_compile_is_an_error_with_its_line(tmp_path: Path) -> None:
    shop(tmp_path)
    code = 'package broken\n\nimport "testing"\n\nfunc TestBroken(t *testing.T) {\n\tundefinedThing()\n}\n'
    write(tmp_path, {"broken/broken_test.go": code})
    report = run(tmp_path, targets=["broken"])
    (failure,) = report["failures"]
    assert (report["errors"], failure["path"], failure["line"]) == (1, "broken/broken_test.go", 6)
    assert "undefinedThing" in failure["message"]


def test_a_hang_names_the_test(tmp_path: Path) -> None:
    shop(tmp_path)
    code = 'package slow\n\nimport "testing"\n\nfunc TestHangs(t *testing.T) {\n\tselect {}\n}\n'
    timer = 'package slow\n\nimport "time"\n\nfunc init() { go func() { time.Sleep(time.Hour) }() }\n'
    write(tmp_path, {"slow/slow_test.go": code, "slow/slow.go": timer})
    report = run(tmp_path, targets=["slow"], timeoutMs=25_000)
    assert report["stopped"] == "timed_out"
    assert report["failures"][0]["id"] == "slow::TestHangs"


def test_a_folder_that_looks_like_an_option_is_a_folder(tmp_path: Path) -> None:
    shop(tmp_path)
    code = 'package odd\n\nimport "testing"\n\nfunc TestOdd(t *testing.T) {}\n'
    write(tmp_path, {"-exec=x/odd_test.go": code})
    report = run(tmp_path, targets=["-exec=x"])
    assert report["collected"] <= 1
    assert "malformed import path" in str(report["failures"]) or report["passed"] == 1
