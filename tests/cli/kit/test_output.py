from __future__ import annotations

import json

from dari.cli.kit.console import Output, paint, print_json
from dari.errors import NotFound
from tests.support.remote_command import Screen


def test_a_script_gets_one_json_value_and_a_person_gets_lines() -> None:
    script, person = Screen(), Screen()
    Output(as_json=True, console=script).show({"a": "é"}, ["line"])
    Output(console=person).show({"a": "é"}, ["line", "two"])
    assert json.loads(script.shown) == {"a": "é"}
    assert person.shown == "line\ntwo\n"


def test_an_error_names_the_fact_and_the_next_step_in_the_words_of_the_program() -> None:
    script, person = Screen(), Screen()
    error = NotFound("no pane 3", "see crux_list_panes")

    def rewrite(text: str) -> str:
        return text.replace("crux_list_panes", "crux list")

    Output(console=person, rewrite=rewrite).error(error)
    Output(as_json=True, console=script, rewrite=rewrite).error(error)
    assert person.told == "error: no pane 3\nhint: see crux list\n"
    assert json.loads(script.told)["error"] == {
        "code": NotFound.code,
        "name": "not_found",
        "message": "no pane 3",
        "hint": "see crux list",
    }


def test_messages_hold_nothing_that_a_terminal_obeys() -> None:
    screen = Screen()
    output = Output(console=screen)
    output.warn("a\x1b[2Jb", "c\x07d")
    assert "\x1b" not in screen.told and "\x07" not in screen.told


def test_colours_are_for_screens_that_take_them() -> None:
    screen, pipe = Screen(tty=True), Screen()
    screen.colour = pipe.colour = True
    assert paint("x", "red", screen) == "\x1b[31mx\x1b[0m"
    assert paint("x", "", screen) == paint("x", "red", pipe) == "x"
    assert (Output(console=screen).width, Output(console=pipe).width) == (100, None)


def test_json_on_a_screen_has_escapes_for_what_a_terminal_obeys() -> None:
    screen = Screen(tty=True)
    print_json(screen, {"a": "\x9b2J"})
    assert "\\u009b2J" in screen.shown and json.loads(screen.shown) == {"a": "\x9b2J"}
