"""The guide names every command, and only options that there are."""

from __future__ import annotations

import re

from dari.cli.crux.main import COMMANDS, make_parser
from dari.cli.crux.tmux import clients, looking, options, places, programs, typing
from tests.wires import ROOT

GUIDE = (ROOT / "docs" / "guide" / "crux.md").read_text(encoding="utf-8")


def test_the_guide_names_every_command() -> None:
    assert [name for name in COMMANDS if name not in GUIDE] == []


def test_every_option_in_the_guide_is_one_of_some_command() -> None:
    known = {"--help", "--json", "--socket"}
    for name in COMMANDS:
        if name != "tmux":
            known |= {word for action in make_parser(name)._actions for word in action.option_strings}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDE)) - known == set()


def test_the_guide_names_every_command_of_tmux_that_does_something() -> None:
    table = {**looking.COMMANDS, **places.COMMANDS, **programs.COMMANDS, **typing.COMMANDS, **clients.COMMANDS}
    hidden = {"start-server", "list-clients"}
    assert [name for name in table if f"`{name}`" not in GUIDE and name not in hidden] == []
    synonyms = {"set-window-option", "show-window-options", "unbind-key"}
    assert {name for name in options.COMMANDS if name not in GUIDE} == synonyms
