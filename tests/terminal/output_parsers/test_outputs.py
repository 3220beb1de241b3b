"""Real outputs of `du`, `wc`, `git diff --stat`, and CSV and YAML files, as a pane shows them."""

from __future__ import annotations

import builtins
from pathlib import Path

import pytest

from dari.terminal.output_parsers.registry import parse_structured
from dari.terminal.output_parsers.result import Parsed

OUTPUTS = Path(__file__).parent / "outputs"


def read(name: str, *, with_command: bool = True, as_shown: bool = False) -> Parsed:
    head, _, output = (OUTPUTS / f"{name}.txt").read_text("utf-8").partition("---\n")
    command = head.splitlines()[0].removeprefix("command: ")
    return parse_structured(output.expandtabs(8) if as_shown else output, command=command if with_command else "")


@pytest.mark.parametrize("as_shown", [False, True], ids=["as printed", "with tabs as a terminal shows them"])
def test_du_gives_sizes_and_paths(as_shown: bool) -> None:
    found = read("du_human", as_shown=as_shown)
    assert (found.parser, found.headers) == ("du", ["size", "path"])
    assert ["24K", "./src/my dir/b c.txt"] in (found.rows or []) and ["244K", "."] in (found.rows or [])
    assert read("du_sk", as_shown=as_shown).rows == [["36", "src"], ["204", "docs"]]
    assert "KiB" in read("du_sk", as_shown=as_shown).notes[0]
    assert (read("du_total", as_shown=as_shown).rows or [])[-1] == ["240K", "total"]
    assert read("du_time", as_shown=as_shown).headers == ["size", "modified", "path"]


def test_du_tells_how_many_paths_it_could_not_read() -> None:
    found = read("du_missing")
    assert found.rows == [["36K", "src"], ["204K", "docs"]] and "1 paths could not be read" in found.notes


@pytest.mark.parametrize("name", ["du_human", "du_plain", "du_time", "wc_files", "diff_stat", "diff_numstat", "tsv"])
def test_it_is_known_without_the_command_too(name: str) -> None:
    assert read(name, with_command=False).parser == read(name).parser != "text"


def test_wc_names_its_columns_by_its_options() -> None:
    found = read("wc_files")
    assert found.headers == ["lines", "words", "bytes", "file"]
    assert (
        found.rows
        and found.rows[2] == ["5000", "5000", "23893", "src/my dir/b c.txt"]
        and found.rows[-1][-1] == "total"
    )
    assert read("wc_l").headers == ["lines", "file"]
    assert read("wc_mL").headers == ["chars", "max_line_length", "file"]
    assert (read("wc_stdin").headers, read("wc_stdin").rows) == (["lines", "words", "bytes"], [["100", "100", "292"]])
    assert read("wc_pipe").rows == [["2"]]
    assert read("wc_missing").rows == [["100", "src/a.txt"], ["100", "total"]]


def test_a_diff_stat_has_files_renames_and_sums() -> None:
    found = read("diff_stat")
    items = {item["path"]: item for item in found.items or []}
    assert found.type == "diff_stat"
    assert found.value == {"files_changed": 5, "insertions": 116, "deletions": 122}
    assert items["c.py"] == {"path": "c.py", "old_path": "b.py", "changes": 1, "insertions": 0, "deletions": 1}
    assert items["lib/new/a.py"]["old_path"] == "lib/old/a.py"
    assert items["lib/new/a.py"]["changes"] == 222 and "insertions" not in items["lib/new/a.py"]
    assert items["logo.png"] == {"path": "logo.png", "is_binary": True, "old_bytes": 500, "new_bytes": 900}
    assert any("scaled" in note for note in found.notes) and any("shortened" in note for note in found.notes)


def test_a_summary_completes_what_the_stat_shortened() -> None:
    items = {item["path"]: item for item in read("diff_summary").items or []}
    assert items["very/deeply/nested/folder/with/a/long/name/indeed/the file.txt"]["status"] == "added"
    assert items["gone.txt"]["status"] == "deleted" and items["c.py"]["similarity_percent"] == 96
    assert len(items) == 5


@pytest.mark.parametrize("as_shown", [False, True])
def test_numbers_of_a_diff_are_exact(as_shown: bool) -> None:
    found = read("diff_numstat", as_shown=as_shown)
    items = {item["path"]: item for item in found.items or []}
    assert (items["lib/new/a.py"]["insertions"], items["lib/new/a.py"]["deletions"]) == (111, 111)
    assert items["logo.png"]["is_binary"] and found.value["insertions"] == 116


def test_a_pull_and_a_short_stat_are_read_as_well() -> None:
    assert (read("git_pull").items or [])[0]["path"] == "c.py"
    assert read("diff_shortstat").value == {"files_changed": 5, "insertions": 116, "deletions": 122}


def test_csv_with_quotes_commas_and_line_breaks_is_a_table() -> None:
    for with_command in (True, False):
        found = read("csv_quoted", with_command=with_command)
        assert (found.parser, found.headers) == ("csv", ["name", "age", "city", "note"])
        assert found.rows == [
            ["Kim, Minsu", "31", "Seoul", 'likes "tea"'],
            ["Ann", "28", "", "two\nlines, and a comma"],
            ["Bob", "", "Paris", "x"],
        ]
        assert found.lines == [(1, 5)]


def test_tabs_and_semicolons_separate_too() -> None:
    assert read("tsv").headers == ["id", "name", "score"]
    assert (read("csv_semicolons").rows or [])[0] == ["01.02.2024", "12,50", "Miete"]


def test_a_row_of_another_width_is_kept_and_noted() -> None:
    found = read("csv_ragged")
    assert (found.rows or [])[-1] == ["4", "5"] and "row 10" in found.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "Well, this is prose.\nIt has commas, too.\n",
        "one, two\nthree, four\n",
        "error: a, b\nerror: c, d\n",
        "total 4\n-rw-r--r-- 1 a a 5 Jan  1 10:00 a,b\n",
        "[1, 2]\n[3, 4]\n",
    ],
)
def test_prose_with_commas_is_no_csv(text: str) -> None:
    assert parse_structured(text).parser != "csv"


def test_yaml_is_read_with_lists_dates_and_merged_keys() -> None:
    found = read("yaml_compose")
    assert found.type == "yaml" and found.value["services"]["web"]["ports"] == ["80:80", "443:443"]
    assert found.value["services"]["copy"]["image"] == "postgres"
    assert found.value["services"]["db"]["started"].startswith("2024-01-02T03:04:05")
    assert read("yaml_compose", with_command=False).type == "yaml"
    assert parse_structured("a: b", hint="yaml").value == {"a": "b"}


def test_several_documents_are_items() -> None:
    found = read("yaml_documents")
    assert found.type == "yaml_documents"
    assert [item["kind"] for item in found.items or []] == ["ConfigMap", "Secret"]


def test_aliases_that_multiply_are_not_expanded() -> None:
    assert read("yaml_bomb").type != "yaml"
    assert parse_structured("a: &a [*a]\n", hint="yaml").type == "text"


def test_merged_mappings_that_multiply_are_not_copied() -> None:
    levels = [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}]}}" for level in range(1, 12)]
    assert parse_structured("\n".join(["a0: &a0 {k: 1}", *levels]), hint="yaml").type == "text"
    wide = f"a: &a {{{', '.join(f'k{number}: 1' for number in range(500))}}}\nb: {{<<: [{', '.join(['*a'] * 40_000)}]}}"
    assert parse_structured(wide, hint="yaml").type == "text"


def test_a_number_to_the_base_of_60_is_text_when_it_is_long() -> None:
    long = "1" + ":1" * 90_000
    assert parse_structured(f"time: 1:30:00\nlong: {long}\n", hint="yaml").value == {"time": 5400, "long": long}


def test_without_pyyaml_the_answer_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util
    import sys

    real_import, real_find = builtins.__import__, importlib.util.find_spec

    def without_yaml(name: str, *rest: object, **more: object) -> object:
        if name == "yaml":
            raise ImportError(name)
        return real_import(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "yaml", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_yaml)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "yaml" else real_find(name, *rest)
    )
    found = parse_structured("a:\n  - b\n", hint="yaml")
    assert found.type == "text" and any("bridge" in note for note in found.notes)
