from __future__ import annotations

import pytest

from dari.errors import Conflict, NotFound
from dari.terminal.layout.windows import Layout


def _layout() -> Layout:
    """Window w1: tab t1 with a | b, tab t2 with c."""
    layout = Layout().open_window("w1", "t1", "a", 80, 24)
    return layout.split("a", "b", "horizontal").open_tab("w1", "t2", "c")


def test_a_new_pane_tab_and_window_has_the_focus() -> None:
    layout = _layout()
    assert layout.focused == "c" and layout.find("b")[1].focused == "b"
    assert layout.open_window("w2", "t3", "d", 10, 5).focused == "d"


def test_a_pane_opened_behind_leaves_the_focus_where_it_was() -> None:
    layout = _layout().open_tab("w1", "t4", "e", is_focused=False)
    assert layout.focused == "c"
    assert layout.focus("a").split("a", "z", "vertical", is_focused=False).focused == "a"


def test_focus_brings_tab_and_window_to_the_front() -> None:
    layout = _layout().open_window("w2", "t3", "d", 10, 5).focus("a")
    assert (layout.active, layout.window("w1").active, layout.focused) == ("w1", "t1", "a")
    assert layout.focus_tab("t2").focused == "c"


def test_closing_goes_back_to_the_pane_before_and_takes_empty_tabs_and_windows_along() -> None:
    layout = _layout().focus("a").focus("b").close("b")
    assert layout.focused == "a"
    assert layout.close("a").focused == "c"
    assert layout.close("a").close("c") == Layout((), "")
    assert Layout().focused is None


def test_zoom_shows_one_pane_over_the_whole_window_and_keeps_the_tree() -> None:
    layout = _layout()
    tab = layout.tab("t1").zoom("a")
    assert tab.is_zoomed and list(tab.areas()) == ["a"] and tab.size_of("a") == (80, 24)
    assert tab.size_of("b") == (39, 24)
    assert tab.zoom("a").areas() == layout.tab("t1").areas()
    assert not tab.focus("b").is_zoomed
    assert not layout.tab("t2").zoom("c").is_zoomed
    assert not tab.split("a", "n", "vertical").is_zoomed
    changed = layout.change(tab)
    assert changed.focus_tab("t1").tab("t1").is_zoomed


def test_directions_go_to_the_neighbour_used_last_and_around_the_edge() -> None:
    tab = _layout().tab("t1").split("b", "d", "vertical").focus("b").focus("a")
    assert tab.focus_side("right").focused == "b"
    assert tab.focus("d").focus("a").focus_side("right").focused == "d"
    assert tab.focus_side("left").focused == "b"
    assert tab.focus_side("up").focused == "a"


def test_a_window_changes_the_size_of_all_its_tabs() -> None:
    layout = _layout().resize_window("w1", 100, 30)
    assert layout.tab("t1").size_of("a")[1] == 30 and layout.tab("t2").size_of("c") == (100, 30)


def test_names_can_be_changed_and_ids_cannot_be_taken_twice() -> None:
    layout = _layout().rename("t1", "build").rename("w1", "main")
    assert (layout.tab("t1").name, layout.window("w1").name) == ("build", "main")
    with pytest.raises(Conflict):
        layout.split("a", "c", "horizontal")
    with pytest.raises(Conflict):
        layout.open_tab("w1", "t2", "new")


def test_an_unknown_pane_names_the_tool_that_lists_them() -> None:
    with pytest.raises(NotFound) as caught:
        _layout().focus("nope")
    assert "crux_list_panes" in caught.value.hint
