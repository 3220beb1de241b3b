"""pytest through `crewx_tools_test`: counts, places, tracebacks, and what a repository is left with."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import InvalidInput, NotFound
from tests.support.tested_projects import listing, run, run_with_progress, write

MIXED = {
    "pyproject.toml": "[project]\nname = 'mixed'\nversion = '1'\n",
    "shop/__init__.py": "",
    "shop/prices.py": """
        def total(items):
            return sum(item["price"] for item in items)
        """,
    "tests/test_prices.py": """
        import pytest
        from shop.prices import total


        def test_a_sum():
            assert total([{"price": 2}, {"price": 3}]) == 5


        def test_a_wrong_sum():
            print("about to fail")
            assert total([{"price": 2}]) == 3


        def test_a_missing_price():
            total([{}])


        @pytest.mark.skip(reason="later")
        def test_later():
            pass


        @pytest.mark.xfail
        def test_known():
            assert False


        @pytest.fixture
        def broken():
            raise RuntimeError("no database")


        def test_with_a_broken_fixture(broken):
            pass
        """,
}


def test_counts_and_failures_with_place_message_and_traceback(tmp_path: Path) -> None:
    report = run(write(tmp_path, MIXED))
    assert (report["framework"], report["version"]) == ("pytest", pytest.__version__)
    counts = [report[name] for name in ("passed", "failed", "skipped", "errors", "collected")]
    assert counts == [1, 2, 2, 1, 6]
    wrong, missing, broken = report["failures"]
    assert (wrong["id"], wrong["path"], wrong["line"]) == (
        "tests/test_prices.py::test_a_wrong_sum",
        "tests/test_prices.py",
        11,
    )
    assert wrong["message"].endswith("assert 2 == 3")
    assert "where 2 = total([{'price': 2}])" in wrong["traceback"]
    assert wrong["output"] == "about to fail"
    assert (missing["path"], missing["line"], missing["message"]) == ("shop/prices.py", 2, "KeyError: 'price'")
    assert (broken["isError"], broken["message"]) == (True, "RuntimeError: no database")


def test_a_run_leaves_nothing_in_the_repository(tmp_path: Path) -> None:
    before = listing(write(tmp_path, MIXED))
    run(tmp_path)
    assert listing(tmp_path) == before


def test_an_id_of_a_failure_is_a_target(tmp_path: Path) -> None:
    write(tmp_path, MIXED)
    (failure, *_) = run(tmp_path)["failures"]
    again = run(tmp_path, targets=[failure["id"]])
    assert (again["collected"], again["failed"]) == (1, 1)


def test_ids_are_relative_to_the_root_that_was_named(tmp_path: Path) -> None:
    write(tmp_path / "packages" / "one", MIXED)
    report = run(tmp_path, root="packages", targets=["one/tests"])
    assert report["failures"][0]["id"] == "one/tests/test_prices.py::test_a_wrong_sum"
    assert run(tmp_path, root="packages", targets=[report["failures"][0]["id"]])["collected"] == 1


def test_only_those_that_failed_last_run_again(tmp_path: Path) -> None:
    write(tmp_path, MIXED)
    run(tmp_path)
    again = run(tmp_path, lastFailed=True)
    assert (again["collected"], again["passed"]) == (3, 0)
    tests = tmp_path / "tests" / "test_prices.py"
    tests.write_text(tests.read_text().replace("== 3", "== 2").replace("test_a_missing_price", "test_renamed"))
    assert run(tmp_path, lastFailed=True)["collected"] == 2
    assert run(tmp_path, lastFailed=True, targets=["tests"])["collected"] == 1


def test_a_file_that_could_not_be_loaded_and_a_failed_teardown_run_again(tmp_path: Path) -> None:
    leaky = (
        "import pytest\n\n@pytest.fixture\ndef leaky():\n    yield\n    raise ValueError\n\ndef test_b(leaky): pass\n"
    )
    files = {
        "test_a.py": "import nowhere_at_all\n\ndef test_a(): pass\n",
        "test_b.py": leaky,
        "test_c.py": "def test_c(): 0\n",
    }
    assert run(write(tmp_path, files))["errors"] == 1  # pytest runs nothing when a file cannot be loaded
    assert run(tmp_path, targets=["test_b.py", "test_c.py"])["errors"] == 1
    write(tmp_path, {"test_a.py": "def test_a(): pass\n"})
    assert run(tmp_path, lastFailed=True)["collected"] == 2
    assert run(tmp_path, lastFailed=True)["collected"] == 1


def test_without_a_recorded_failure_everything_runs_and_it_says_so(tmp_path: Path) -> None:
    write(tmp_path, {"test_one.py": "def test_one(): pass\n"})
    report = run(tmp_path, lastFailed=True)
    assert report["passed"] == 1
    assert "no failure of pytest is recorded" in " ".join(report["notes"])


def test_every_test_is_reported_as_progress(tmp_path: Path) -> None:
    _, told = run_with_progress(write(tmp_path, MIXED))
    assert [(done, total) for done, total, _ in told] == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (5, 6)]
    assert told[0][2] == "tests/test_prices.py::test_a_sum"


def test_fail_fast_stops_and_says_what_was_not_run(tmp_path: Path) -> None:
    report = run(write(tmp_path, MIXED), failFast=True)
    assert (report["failed"], report["stopped"], report["notRun"]) == (1, "fail_fast", 4)


def test_a_keyword_chooses_and_is_never_an_option(tmp_path: Path) -> None:
    write(tmp_path, MIXED)
    assert run(tmp_path, keyword="sum and not wrong")["collected"] == 1
    report = run(tmp_path, keyword="--collect-only")
    assert report["passed"] == 0 and report["collected"] == 0


@pytest.mark.parametrize("name", ["-rf", "--co", "-p no:terminal", "@args"])
def test_a_folder_that_looks_like_an_option_is_a_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path, {f"{name}/test_one.py": "def test_one(): pass\n", "test_two.py": "def test_two(): pass\n"})
    assert run(tmp_path, targets=[name])["collected"] == 1


def test_a_target_that_does_not_exist_is_named(tmp_path: Path) -> None:
    write(tmp_path, MIXED)
    with pytest.raises(NotFound, match="test_gone"):
        run(tmp_path, targets=["tests/test_prices.py::test_gone"])
    with pytest.raises(NotFound, match=r"nowhere\.py"):
        run(tmp_path, targets=["tests/nowhere.py"])
    with pytest.raises(InvalidInput, match=r"notes\.txt"):
        run(write(tmp_path, {"notes.txt": "x"}), targets=["notes.txt"])


def test_a_file_that_cannot_be_imported_is_an_error_with_its_line(tmp_path: Path) -> None:
    files = {"test_x.py": "import os\nimport nowhere_to_be_found\n", "test_y.py": "def test_y(): pass\n"}
    report = run(write(tmp_path, files))
    (failure,) = report["failures"]
    assert (report["errors"], failure["path"], failure["line"]) == (1, "test_x.py", 2)
    assert failure["message"] == "ModuleNotFoundError: No module named 'nowhere_to_be_found'"


def test_a_conftest_that_cannot_be_imported_is_an_error(tmp_path: Path) -> None:
    report = run(write(tmp_path, {"conftest.py": "import nowhere_at_all\n", "test_x.py": "def test_x(): pass\n"}))
    (failure,) = report["failures"]
    assert (report["errors"], failure["path"], failure["line"]) == (1, "conftest.py", 1)
    assert "nowhere_at_all" in failure["message"]


def test_no_tests_is_a_result_that_says_so(tmp_path: Path) -> None:
    report = run(write(tmp_path, {"pyproject.toml": "", "code.py": "x = 1\n"}))
    assert report["collected"] == 0
    assert "no test was collected" in " ".join(report["notes"])


def test_a_traceback_keeps_the_frames_of_the_project(tmp_path: Path) -> None:
    code = """
        import json

        def test_json():
            json.loads("{")
        """
    (failure,) = run(write(tmp_path, {"test_x.py": code}))["failures"]
    assert (failure["path"], failure["line"]) == ("test_x.py", 4)
    assert "frames of other packages" in failure["traceback"]
    assert failure["message"].startswith("json.decoder.JSONDecodeError: ")


def test_failures_fit_into_the_budget(tmp_path: Path) -> None:
    code = """
        import pytest

        @pytest.mark.parametrize("n", range(50))
        def test_n(n):
            print("x" * 5000)
            assert list(range(200)) == list(range(n, 200 + n)) and n == -1, "y" * 3000
        """
    write(tmp_path, {"test_x.py": code})
    report = run(tmp_path, maxFailures=10, maxTokens=500)
    assert (report["failed"], len(report["failures"]), report["notDescribed"]) == (50, 10, 40)
    assert sum(len(one.get("traceback", "")) + len(one.get("output", "")) for one in report["failures"]) <= 2000
    assert all(len(one["message"]) <= 500 for one in report["failures"])


def test_the_environment_is_nearly_empty_and_env_adds_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    code = """
        import os

        def test_environment():
            assert os.environ["GIVEN"] == "yes"
            ours = {"CI", "SECRET_TOKEN", "PYTHONPATH", "DARI_TEST_EVENTS", "DARI_TEST_ONLY"}
            assert not ours.intersection(os.environ)
        """
    report = run(write(tmp_path, {"test_x.py": code}), env={"GIVEN": "yes"})
    assert report["passed"] == 1, report["failures"]


def test_xdist_of_the_project_is_followed(tmp_path: Path) -> None:
    write(tmp_path, MIXED)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -n 2\n")
    report, told = run_with_progress(tmp_path, env={})
    assert [report[name] for name in ("passed", "failed", "skipped", "errors", "collected")] == [1, 2, 2, 1, 6]
    assert len(told) == 6


def test_the_projects_own_plugins_of_the_cache_work(tmp_path: Path) -> None:
    files = {
        "pytest.ini": "[pytest]\naddopts = --ff --strict-config\n",
        "conftest.py": "def pytest_configure(config): config.cache.set('a/b', 1)\n",
        "test_x.py": "def test_x(): pass\n",
    }
    before = listing(write(tmp_path, files))
    assert run(tmp_path)["passed"] == 1
    assert listing(tmp_path) == before


def test_a_failed_teardown_and_subtests_are_counted(tmp_path: Path) -> None:
    code = """
        import pytest

        @pytest.fixture
        def leaky():
            yield
            raise ValueError("not closed")

        def test_x(leaky):
            pass

        def test_parts(subtests):
            for n in range(3):
                with subtests.test(n=n):
                    assert n != 1
        """
    report = run(write(tmp_path, {"test_x.py": code}))
    assert (report["passed"], report["errors"], report["failed"]) == (1, 1, 1)
    assert report["failures"][0]["id"] == "test_x.py::test_x (teardown)"
    assert report["failures"][1]["line"] == 14
