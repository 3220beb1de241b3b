"""vitest and jest through `crewx_tools_test`, each as it is installed in a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Unavailable
from tests.support.code_engines import node_project, with_node
from tests.support.tested_projects import listing, run, run_with_progress, write

FRAMEWORKS = ["vitest", "jest"]
IMPORTS = {
    "vitest": "import { describe, expect, it, test } from 'vitest';\nimport { sum } from './sum.js';\n",
    "jest": "const { sum } = require('./sum.js');\n\n",
}
SUM = """
    function sum(a, b) {
      if (a === 'boom') throw new TypeError('no sum of boom');
      return a + b;
    }
    """
TESTS = """
describe('sum', () => {
  it('adds', () => expect(sum(1, 2)).toBe(3));
  it('adds (really?) [a.b]', () => expect(sum(2, 2)).toBe(4));
  it('is wrong', () => {
    console.log('about to fail');
    expect(sum(1, 2)).toEqual({ a: 1 });
  });
  it.skip('later', () => {});
});
test('throws', () => { sum('boom', 1); });
"""


def project(folder: Path, framework: str) -> Path:
    node_project(folder, framework)
    kind = "module" if framework == "vitest" else "commonjs"
    export = "export { sum };\n" if framework == "vitest" else "exports.sum = sum;\n"
    write(folder, {"package.json": f'{{"name": "p", "type": "{kind}", "devDependencies": {{"{framework}": "*"}}}}\n'})
    write(folder, {"sum.js": SUM})
    (folder / "sum.js").write_text((folder / "sum.js").read_text() + export)
    (folder / "sum.test.js").write_text(IMPORTS[framework] + TESTS)
    return folder


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_counts_and_failures_come_back(tmp_path: Path, framework: str) -> None:
    report, told = run_with_progress(project(tmp_path, framework), environ=with_node())
    assert report["framework"] == framework and report["version"]
    assert [report[name] for name in ("passed", "failed", "skipped", "collected")] == [2, 2, 1, 5]
    wrong, throws = report["failures"]
    assert (wrong["id"], wrong["path"], wrong["line"]) == ("sum.test.js::sum > is wrong", "sum.test.js", 9)
    assert "3" in wrong["message"] and "about to fail" in wrong["output"]
    assert (throws["message"], throws["path"], throws["line"]) == ("TypeError: no sum of boom", "sum.js", 2)
    assert "node_modules" not in throws["traceback"]
    assert len(told) == 5


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_id_of_a_failure_is_a_target(tmp_path: Path, framework: str) -> None:
    project(tmp_path, framework)
    for test in ("sum > is wrong", "sum > adds (really?) [a.b]"):
        again = run(tmp_path, environ=with_node(), targets=[f"sum.test.js::{test}"])
        assert (again["collected"], again["skipped"]) == (1, 0)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_only_those_that_failed_last_run_again(tmp_path: Path, framework: str) -> None:
    project(tmp_path, framework)
    run(tmp_path, environ=with_node())
    again = run(tmp_path, environ=with_node(), lastFailed=True)
    assert (again["failed"], again["collected"]) == (2, 2)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_file_that_cannot_be_loaded_is_an_error(tmp_path: Path, framework: str) -> None:
    project(tmp_path, framework)
    code = "import './nowhere.js';\n" if framework == "vitest" else "require('./nowhere.js');\n"
    write(tmp_path, {"broken.test.js": code})
    report = run(tmp_path, environ=with_node(), targets=["broken.test.js"])
    (failure,) = report["failures"]
    assert (report["errors"], failure["path"], failure["line"]) == (1, "broken.test.js", 1)
    assert "nowhere.js" in failure["message"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_target_is_never_an_option_and_a_folder_is_all_below_it(tmp_path: Path, framework: str) -> None:
    project(tmp_path, framework)
    (tmp_path / "--help" / "deep").mkdir(parents=True)
    for name in ("one.test.js", "deep/two.test.js"):
        head = "import { test } from 'vitest';\n" if framework == "vitest" else ""
        (tmp_path / "--help" / name).write_text(f"{head}test('a', () => {{}});\n")
    report = run(tmp_path, environ=with_node(), targets=["--help"])
    assert (report["passed"], report["failed"]) == (2, 0)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_handle_that_stays_open_does_not_hold_the_result(tmp_path: Path, framework: str) -> None:
    project(tmp_path, framework)
    head = "import { test } from 'vitest';\n" if framework == "vitest" else ""
    code = f"{head}test('leaks', () => {{ setInterval(() => {{}}, 1000); }});\n"
    write(tmp_path, {"leaks.test.js": code})
    report = run(tmp_path, environ=with_node(), targets=["leaks.test.js"])
    assert (report["passed"], report.get("stopped")) == (1, None)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_hang_says_which_test_was_running(tmp_path: Path, framework: str) -> None:
    project(tmp_path, framework)
    head = "import { test } from 'vitest';\n" if framework == "vitest" else ""
    code = f"{head}test('hangs', () => new Promise(() => {{ setInterval(() => {{}}, 1000); }}), 600000);\n"
    write(tmp_path, {"hangs.test.js": code})
    report = run(tmp_path, environ=with_node(), targets=["hangs.test.js"], timeoutMs=25_000)
    assert (report["stopped"], report["running"]) == ("timed_out", ["hangs.test.js::hangs"])


def test_without_the_framework_the_install_command_is_named(tmp_path: Path) -> None:
    node_project(tmp_path, "jest")
    write(tmp_path, {"package.json": '{"devDependencies": {"vitest": "*"}}', "a.test.ts": ""})
    with pytest.raises(Unavailable) as raised:
        run(tmp_path, environ=with_node())
    assert "npm install --save-dev vitest" in raised.value.hint


def test_a_run_leaves_only_what_is_in_node_modules(tmp_path: Path) -> None:
    before = listing(project(tmp_path, "vitest"))
    run(tmp_path, environ=with_node())
    assert [name for name in listing(tmp_path) if name not in before and not name.startswith("node_modules")] == []


def test_jest_writes_no_snapshot(tmp_path: Path) -> None:
    before = listing(project(tmp_path, "jest"))
    (tmp_path / "sum.test.js").write_text("test('new', () => { expect({ a: 1 }).toMatchSnapshot(); });\n")
    report = run(tmp_path, environ=with_node())
    assert report["failed"] == 1 and "snapshot" in str(report["failures"]).lower()
    assert [name for name in listing(tmp_path) if name not in before and not name.startswith("node_modules")] == []
