"""docs/architecture.md leads through files that exist, by ways that stay short."""

from __future__ import annotations

import re

import pytest

from tests.support.wire import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
WALKS = dict(re.findall(r"^## (Walk \d: [^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M))


def test_there_are_six_walks() -> None:
    assert len(WALKS) == 6


@pytest.mark.parametrize("walk", WALKS)
def test_every_file_of_a_walk_exists(walk: str) -> None:
    files = re.findall(r"`(src/dari/[\w/]+\.(?:py|js))`", WALKS[walk])
    assert files and [file for file in files if not (ROOT / file).is_file()] == []


def test_a_warm_call_is_read_in_at_most_25_files_without_a_file_twice() -> None:
    files = re.findall(r"^\d+\. `(src/dari/[\w/]+\.py)`", WALKS["Walk 2: a warm `dari remote call-tool`"], re.M)
    assert len(files) == len(set(files)) <= 25


def test_every_package_is_on_the_map() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "dari").glob("*/__init__.py")}
    table = PAGE.split("## The packages")[1].split("## Walk 1")[0]
    assert {package for package in packages if f"`{package}`" not in table} == set()


def test_a_module_that_is_also_a_program_runs_when_all_of_it_is_there() -> None:
    """Code that was appended behind `if __name__ == "__main__"` is not defined yet when the program runs."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        _, guard, after = path.read_text().partition('\nif __name__ == "__main__":\n')
        assert not guard or all(line[:1] in ("", " ") for line in after.splitlines()), path
