"""Every row of the table of hostile and awkward cases, through the tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import DariError
from dari.os_errors import from_os_error
from tests.codetools.hostile_cases import CASES, SEQUENCES, Box, Case
from tests.support.codetools import code_tools
from tests.support.file_trees import read_tree, write_tree


def test_the_table_has_at_least_sixty_cases_of_every_kind() -> None:
    assert len(CASES) >= 60
    assert len({(case.group, case.what) for case in CASES}) == len(CASES)
    assert {case.tool for case in CASES} >= {
        "search",
        "format",
        "lint",
        "test",
        "refactor",
        "outline",
        "symbols",
        "diff",
        "check",
        "undo",
    }
    folder = Path(__file__).parent
    for _, _, _, file, name in SEQUENCES:
        assert f"def {name}(" in (folder / file).read_text(), name


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.group}: {case.what}"[:80].encode("ascii", "replace").decode()
)
async def test_case(tmp_path: Path, case: Case) -> None:
    box = Box(tmp_path / "root", write_tree(tmp_path / "outside", {"secret.py": "needle(1)\n"}))
    box.root.mkdir()
    case.make(box)
    outside = read_tree(box.outside)
    root = read_tree(box.root)
    async with code_tools(box.root) as tools:
        try:
            result = await tools.call(case.tool, **case.arguments)
        except Exception as error:
            known = error if isinstance(error, DariError) else from_os_error(error)
            assert known is not None, error
            assert known.name == case.check, (known.message, known.hint)
            assert known.message and known.hint
            assert read_tree(box.root) == root, "what is refused changes nothing"
        else:
            assert not isinstance(case.check, str), result
            assert case.check(result, box), result
            assert "outside" not in str(result)
            if result.get("undoToken"):
                await tools.call("undo", undoToken=result["undoToken"])
                assert read_tree(box.root) == root, "undo brings everything back"
    assert read_tree(box.outside) == outside
