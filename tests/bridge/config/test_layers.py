"""Where files are found and which one counts: design 001 §5 and §6."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dari.bridge.config.catalog import Catalog
from dari.bridge.config.locations import ClientEnvironment
from dari.errors import Conflict, Denied, InvalidInput, NotFound
from tests.support.bridge_config import World, put


def server(id: str, host: str = "h", **more: object) -> dict[str, object]:
    return {"servers": [{"id": id, "baseUrl": f"http://{host}", **more}]}


def address(catalog: Catalog, id: str) -> str:
    profile = catalog.find(id).profile
    assert profile
    return profile.address


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_file_that_cannot_be_read_is_named(world: World, make: Callable[[Path], object]) -> None:
    for file in (world.project_file, world.user_file):
        file.parent.mkdir(parents=True, exist_ok=True)
        make(file)
    problems = world.load().problems
    assert len(problems) == 2
    for file, problem in zip((world.project_file, world.user_file), problems, strict=True):
        assert problem.startswith(f"{file} cannot be read: ")
    with pytest.raises(InvalidInput, match="cannot be read"):
        world.book.trust()


def test_a_folder_name_that_is_a_file_is_no_problem(world: World) -> None:
    put(world.project_file.parent, "")
    assert world.load().problems == ()


def test_the_strongest_layer_wins_and_the_rest_is_remembered(world: World) -> None:
    """§5: 1. CREWX_MCP_JSON, 2. ./.crewx/mcp.json, 3. ~/.config/crewx/mcp.json."""
    world.environ["CREWX_MCP_JSON"] = str(put(world.home / "mine.json", server("s", "env")))
    world.project(server("s", "project"))
    world.user(server("s", "user"))
    world.book.trust()
    catalog = world.load()
    assert address(catalog, "s") == "http://env"
    listed = catalog.find("s")
    assert (listed.source.layer, listed.source.line) == ("env", 3)
    assert [source.layer for source in listed.shadows] == ["project", "user"]
    del world.environ["CREWX_MCP_JSON"]
    assert address(world.load(), "s") == "http://project"
    world.project_file.unlink()
    assert address(world.load(), "s") == "http://user"


def test_servers_of_all_layers_are_listed_together(world: World) -> None:
    world.project(server("p"))
    world.user(server("u"))
    world.book.trust()
    assert world.states() == {"p": "ready", "u": "ready"}


def test_without_any_file_there_is_nothing_and_no_error(world: World) -> None:
    assert (world.load().listed, world.load().problems) == ((), ())


def test_a_named_file_that_is_not_there_is_a_problem(world: World) -> None:
    world.environ["CREWX_MCP_JSON"] = "/nowhere/mcp.json"
    assert "named by CREWX_MCP_JSON and cannot be read" in world.load().problems[0]


@pytest.mark.parametrize("name", ["~/x.json", "sub/x.json"])
def test_the_variable_may_be_relative_or_start_with_home(world: World, name: str) -> None:
    world.environ["CREWX_MCP_JSON"] = name
    put(world.home / "x.json" if name[0] == "~" else world.cwd / name, server("s"))
    assert world.states() == {"s": "ready"}


def test_a_file_named_twice_counts_once_and_as_the_stronger(world: World) -> None:
    world.environ["CREWX_MCP_JSON"] = str(world.project(server("s")))
    catalog = world.load()
    assert (len(catalog.files), catalog.find("s").source.layer, catalog.find("s").shadows) == (1, "env", ())


def test_the_project_is_the_working_folder_and_not_one_above(world: World) -> None:
    world.project(server("s"))
    below = world.cwd / "src"
    below.mkdir()
    places = ClientEnvironment(world.home, below, {}).places()
    assert world.project_file not in [place.path for place in places]


def test_the_default_of_the_strongest_layer_counts(world: World) -> None:
    world.user(server("u", default=True))
    world.project(server("p", default=True))
    assert world.load().default_id == "u"  # the project is not trusted yet
    world.book.trust()
    assert world.load().default_id == "p"
    world.book.disable("p")
    assert world.load().default_id == "u"


def test_a_server_is_selected_as_the_design_says(world: World) -> None:
    """§6: --server, else default, else --endpoint is required."""
    world.user({"servers": [{"id": "a", "baseUrl": "http://a"}, {"id": "b", "baseUrl": "http://b", "default": True}]})
    catalog = world.load()
    assert (catalog.select("a").id, catalog.select().id) == ("a", "b")
    world.book.disable("b")
    with pytest.raises(InvalidInput) as caught:
        world.load().select()
    assert "--endpoint" in caught.value.hint


def test_each_state_has_its_error(world: World) -> None:
    world.user(
        {"mcpServers": {"off": {"command": "x", "disabled": True}, "bad": {"comand": "x"}, "fine": {"command": "x"}}}
    )
    world.project(server("mine"))
    catalog = world.load()
    for id, error in {"off": Conflict, "bad": InvalidInput, "mine": Denied, "fin": NotFound}.items():
        with pytest.raises(error) as caught:
            catalog.usable(id)
        assert caught.value.hint
    assert caught.value.hint == "did you mean 'fine'?"
    assert [profile.id for profile in catalog.ready()] == ["fine"]


def test_an_untrusted_project_cannot_take_the_name_of_a_server_that_works(world: World) -> None:
    world.user(server("github", "mine"))
    world.project(server("github", "theirs"))
    catalog = world.load()
    assert (address(catalog, "github"), catalog.find("github").state) == ("http://mine", "ready")
    assert "'github' is not trusted" in catalog.problems[0]
    world.book.trust()
    assert address(world.load(), "github") == "http://theirs"


def test_an_untrusted_project_cannot_break_a_server_that_works(world: World) -> None:
    world.user({"servers": [{"id": "github", "command": "mine"}]})
    world.project({"servers": [{"id": "github", "command": "x", "bogus": 1}]})
    (listed,) = world.book.load().listed
    assert (listed.state, listed.source.layer) == ("ready", "user")


def test_a_project_that_links_to_the_persons_own_file_does_not_take_it_over(world: World) -> None:
    world.user({"servers": [{"id": "github", "command": "mine"}]})
    world.project("{}")
    world.project_file.unlink()
    world.project_file.symlink_to(world.user_file)
    (listed,) = world.book.load().listed
    assert (listed.state, listed.source.layer) == ("ready", "user")


def test_a_stronger_broken_server_is_not_replaced_in_silence(world: World) -> None:
    world.environ["CREWX_MCP_JSON"] = str(put(world.home / "x.json", {"servers": [{"id": "s"}]}))
    world.user(server("s"))
    assert world.states() == {"s": "broken"}


def test_sets_come_from_trusted_files_only(world: World) -> None:
    world.project({"profiles": {"dev": {}}})
    assert world.load().sets == ()
    world.book.trust()
    assert [chosen.name for chosen in world.load().sets] == ["dev"]


def test_the_process_is_looked_at_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CREWX_MCP_JSON", raising=False)
    monkeypatch.chdir(tmp_path)
    around = ClientEnvironment.of_process()
    assert (around.home, around.cwd) == (tmp_path, tmp_path)
    assert around.places()[-1].path.parent == tmp_path / ".config/crewx"
