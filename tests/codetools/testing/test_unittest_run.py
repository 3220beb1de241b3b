"""unittest, where a project has no pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.tested_projects import listing, run, write

SHOP = {
    "shop/__init__.py": "",
    "shop/prices.py": "def total(items):\n    return sum(item['price'] for item in items)\n",
    "tests/test_prices.py": """
        import unittest

        from shop.prices import total


        class Prices(unittest.TestCase):
            def test_sum(self):
                self.assertEqual(total([{"price": 2}]), 2)

            def test_wrong(self):
                print("about to fail")
                self.assertEqual(total([{"price": 2}]), 3)

            def test_missing(self):
                total([{}])

            @unittest.skip("later")
            def test_later(self):
                pass

            def test_parts(self):
                for n in range(3):
                    with self.subTest(n=n):
                        self.assertNotEqual(n, 1)
        """,
    "tests/test_broken.py": "import os\nimport nowhere_to_be_found\n",
}


def project(folder: Path) -> Path:
    """With an environment of its own, in which there is no pytest."""
    write(folder, SHOP)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True, timeout=60)
    return folder


def test_an_environment_without_pytest_runs_unittest(tmp_path: Path) -> None:
    before = listing(project(tmp_path))
    report = run(tmp_path)
    assert (report["framework"], report["version"]) == ("unittest", sys.version.split()[0])
    assert [report[name] for name in ("passed", "failed", "skipped", "errors", "collected")] == [1, 3, 1, 1, 5]
    failures = {one["id"]: one for one in report["failures"]}
    wrong = failures["tests/test_prices.py::Prices::test_wrong"]
    assert (wrong["message"], wrong["line"], wrong["output"]) == ("AssertionError: 2 != 3", 12, "about to fail")
    assert failures["tests/test_prices.py::Prices::test_missing"]["path"] == "shop/prices.py"
    assert failures["tests/test_broken.py"]["line"] == 2
    assert listing(tmp_path) == before


def test_an_id_is_a_target_and_those_that_failed_run_again(tmp_path: Path) -> None:
    project(tmp_path)
    again = run(tmp_path, targets=["tests/test_prices.py::Prices::test_wrong"])
    assert (again["collected"], again["failed"]) == (1, 1)
    assert run(tmp_path, lastFailed=True)["collected"] == 1
    assert run(tmp_path, keyword="sum", targets=["tests/test_prices.py"])["passed"] == 1


def test_a_hang_says_where_it_was(tmp_path: Path) -> None:
    project(tmp_path)
    code = """
        import threading, unittest

        class Slow(unittest.TestCase):
            def test_hangs(self):
                threading.Event().wait()
        """
    write(tmp_path, {"tests/test_slow.py": code})
    report = run(tmp_path, targets=["tests/test_slow.py"], timeoutMs=15_000)
    assert (report["stopped"], report["running"]) == ("timed_out", ["tests/test_slow.py::Slow::test_hangs"])
    assert (report["failures"][0]["path"], report["failures"][0]["line"]) == ("tests/test_slow.py", 5)
