from __future__ import annotations

import json
from pathlib import Path

import pytest

from dari.errors import InvalidInput, NotFound
from dari.terminal.layout.workspace import load_workspace, parse_workspace, presets


@pytest.mark.parametrize(
    ("name", "panes"),
    [
        ("debug-session", ("code", "logs", "debugger")),
        ("full-stack", ("frontend", "backend", "database", "tests")),
        ("agent-team-3", ("leader", "worker-1", "worker-2")),
        ("monitoring", ("processes", "metrics", "logs")),
    ],
)
def test_the_presets_of_the_design_fill_a_window(name: str, panes: tuple[str, ...]) -> None:
    workspace = load_workspace(name)
    assert workspace.names == panes and workspace.name == name and workspace.description
    for cols, rows in ((80, 24), (200, 60), (11, 7)):
        tree = workspace.tree(cols, rows)
        assert tree.panes == panes and (tree.root.cols, tree.root.rows) == (cols, rows)


def test_a_workspace_uses_the_ids_that_it_is_given() -> None:
    tree = load_workspace("agent-team-3").tree(80, 24, {"leader": "%1", "worker-1": "%2", "worker-2": "%3"})
    areas = tree.areas()
    assert list(areas) == ["%1", "%2", "%3"]
    assert areas["%1"].cols == 39 and areas["%2"].left == areas["%3"].left == 40


def test_a_file_of_the_user_comes_before_a_preset_and_may_be_json(tmp_path: Path) -> None:
    spec = {
        "layout": {"split": "horizontal", "parts": [{"pane": "a", "size": 20}, {"pane": "b"}]},
        "panes": {"a": {"command": "htop", "env": {"X": "1"}, "focus": True}},
    }
    (tmp_path / "monitoring.json").write_text(json.dumps(spec))
    workspace = load_workspace("monitoring", (tmp_path,))
    assert workspace.names == ("a", "b") and workspace.focused == "a" and workspace.spec("a").command == "htop"
    assert workspace.tree(80, 24).area("a").cols == 20 and workspace.tree(80, 24).area("b").cols == 59
    assert load_workspace(str(tmp_path / "monitoring.json")).name == "monitoring"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("layout = 3", "layout"),
        ("[layout]\npane = 'a'\nsplit = 'horizontal'", "layout: `pane` or `split`"),
        ("[layout]\nsplit = 'horizontal'\nparts = [{pane='a'}]", "a split of 1 parts"),
        ("[layout]\nsplit = 'diagonal'\nparts = [{pane='a'},{pane='b'}]", "layout.split"),
        ("[layout]\nsplit = 'horizontal'\nparts = [{pane='a'},{pane='a'}]", "twice"),
        ("[layout]\nsplit = 'horizontal'\nparts = [{pane='a', size='x%'},{pane='b'}]", "layout.parts[0].size"),
        ("[layout]\nsplit = 'horizontal'\nparts = [{pane='a', width=3},{pane='b'}]", "width"),
        ("[layout]\npane = 'a'\n[panes.b]\ncommand='x'", "panes.b"),
        ("[layout]\npane = 'a'\n[panes.a]\nenv = {'A-B'='1'}", "A-B"),
        ("[layout]\npane = 'a b'", "'a b'"),
        ("arrange = 'spiral'\norder = ['a']", "arrange"),
        ("description = 'x'", "`layout` or `arrange`"),
        ("arrange = 'tiled'\norder = []", "0 panes"),
        ("layout = {", "x.toml"),
    ],
)
def test_a_mistake_in_a_file_names_the_field(text: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_workspace(text.encode(), "x.toml")
    assert told in caught.value.message and caught.value.message.startswith("x.toml: ")


def test_an_unknown_workspace_lists_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[layout]\npane = 'a'\n")
    with pytest.raises(NotFound) as caught:
        load_workspace("nope", (tmp_path,))
    assert "mine" in caught.value.hint and all(name in caught.value.hint for name in presets())


def test_a_window_too_small_is_refused_and_says_so() -> None:
    for name in presets():
        with pytest.raises(InvalidInput):
            load_workspace(name).tree(2, 2)
