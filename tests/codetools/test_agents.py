"""`crewx_tools_listAgents`: which files count, which wins, and what never leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.codetools.agents import BUILT_IN, Agent, list_agents
from dari.codetools.workspace import Workspace
from dari.errors import Denied, InvalidInput, NotFound

CREWX = """
providers:
  - id: build-farm
    type: remote
    location: https://user:pass@farm.example.com/mcp?key=SECRET-KEY
    auth: {type: bearer, token: SECRET-TOKEN}
agents:
  - id: claude
    name: Our Claude
    provider: [cli/claude, cli/gemini]
    inline: {model: opus, system_prompt: "# Reviews\\nYou review."}
  - id: farmhand
    role: Builder
    team: Infra
    provider: remote/build-farm
    working_directory: ./farm
    capabilities: [build, deploy]
    env: {API_KEY: SECRET-ENV}
  - name: nobody
"""
CLAUDE = "---\nname: reviewer\ndescription: Reads diffs\ntools: Read, Grep\nmodel: sonnet\n---\nYou review.\n"


def listed(folder: Path, home: Path | None = None, config: str | None = None, **environ: str) -> dict[str, Agent]:
    environ = {"HOME": str(home or folder / "nowhere"), **environ}
    agents, _ = list_agents(Workspace([folder]), environ, config)
    return {f"{agent.tool}/{agent.id}": agent for agent in agents}


def test_without_any_file_crewx_has_its_three_agents(tmp_path: Path) -> None:
    assert list(listed(tmp_path)) == ["crewx/claude", "crewx/gemini", "crewx/copilot"]
    assert [agent.source for agent in BUILT_IN] == ["built in"] * 3


def test_crewx_yaml_replaces_and_adds_agents(tmp_path: Path) -> None:
    (tmp_path / "crewx.yaml").write_text(CREWX)
    (tmp_path / "agents.yaml").write_text("agents: [{id: old}]")
    found = listed(tmp_path)
    assert list(found) == ["crewx/claude", "crewx/gemini", "crewx/copilot", "crewx/farmhand"]
    claude, farmhand = found["crewx/claude"], found["crewx/farmhand"]
    assert (claude.name, claude.model, claude.provider) == ("Our Claude", "opus", ["cli/claude", "cli/gemini"])
    assert (claude.description, claude.role, claude.source) == ("Reviews", "AI Agent", "crewx.yaml")
    assert (farmhand.team, farmhand.working_directory, farmhand.capabilities) == (
        "Infra",
        "./farm",
        ["build", "deploy"],
    )
    assert farmhand.remote == "https://farm.example.com/mcp"


def test_agents_yaml_counts_where_there_is_no_crewx_yaml(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text("agents: [{id: old}]")
    assert "crewx/old" in listed(tmp_path)


def test_the_environment_names_another_file(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("agents: [{id: mate}]")
    (tmp_path / "crewx.yaml").write_text(CREWX)
    assert "crewx/mate" in listed(tmp_path, CREWX_CONFIG="team.yaml")
    assert "crewx/farmhand" not in listed(tmp_path, CREWX_CONFIG="team.yaml")


def test_no_key_of_a_file_is_shown(tmp_path: Path) -> None:
    (tmp_path / "crewx.yaml").write_text(CREWX)
    assert "SECRET" not in repr(listed(tmp_path)) and "pass" not in repr(listed(tmp_path))


def test_agents_of_other_tools_are_found_and_a_projects_wins_over_the_persons(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for base, said in ((home, "Mine"), (project, "Reads diffs")):
        (base / ".claude/agents").mkdir(parents=True)
        (base / ".claude/agents/reviewer.md").write_text(CLAUDE.replace("Reads diffs", said))
    (home / ".gemini/agents").mkdir(parents=True)
    (home / ".gemini/agents/far.md").write_text(
        "---\nkind: remote\nname: far\nagent_card_url: https://a.example.com/card\n---\n"
    )
    (project / ".codex/agents").mkdir(parents=True)
    (project / ".codex/agents/mapper.toml").write_text('name = "mapper"\ndescription = "Maps code"\nmodel = "gpt-6"\n')
    found = listed(project, home)
    assert [one for one in found if not one.startswith("crewx")] == [
        "claude-code/reviewer",
        "codex/mapper",
        "gemini/far",
    ]
    reviewer = found["claude-code/reviewer"]
    assert (reviewer.description, reviewer.tools, reviewer.model) == ("Reads diffs", ["Read", "Grep"], "sonnet")
    assert reviewer.source == ".claude/agents/reviewer.md"
    assert found["gemini/far"].remote == "https://a.example.com/card"


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    (tmp_path / "crewx.yaml").write_text("agents: [")
    (tmp_path / ".codex/agents").mkdir(parents=True)
    (tmp_path / ".codex/agents/bad.toml").write_text("name = ")
    (tmp_path / ".codex/agents/good.toml").write_text('name = "good"')
    agents, problems = list_agents(Workspace([tmp_path]), {"HOME": "/nowhere"})
    assert [agent.id for agent in agents] == ["claude", "gemini", "copilot", "good"]
    assert [problem.path for problem in problems] == ["crewx.yaml", ".codex/agents/bad.toml"]


def test_a_named_file_that_is_wrong_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("agents: 3")
    with pytest.raises(InvalidInput, match="no list of agents"):
        listed(tmp_path, config="bad.yaml")
    with pytest.raises(NotFound, match=r"other\.yaml"):
        listed(tmp_path, config="other.yaml")
    with pytest.raises(Denied, match="outside"):
        listed(tmp_path, config="/etc/passwd")


def test_a_yaml_bomb_and_a_python_object_are_harmless(tmp_path: Path) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    (tmp_path / "crewx.yaml").write_text(bomb + "agents: [{id: one, capabilities: *i, name: [x]}]")
    assert listed(tmp_path)["crewx/one"].capabilities == []
    (tmp_path / "crewx.yaml").write_text("agents: !!python/object/apply:os.system ['touch here']")
    assert "crewx/claude" in listed(tmp_path)
    assert not (tmp_path / "here").exists()


def outside(folder: Path) -> Path:
    """Files of the person beside the project, which a hostile project would like to show."""
    (folder / "agents").mkdir(parents=True)
    (folder / "agents/mine.md").write_text("---\nname: outsider\ndescription: OUTSIDE\n---\n")
    (folder / "crewx.yaml").write_text("agents: [{id: outsider, description: OUTSIDE}]")
    (folder / "key").write_text("root: [OUTSIDE: x\n: - y\n")
    return folder


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("crewx.yaml", "crewx.yaml"),
        ("crewx.yaml", "key"),
        (".claude/agents", "agents"),
        (".claude/agents/mine.md", "agents/mine.md"),
        (".claude", "."),
        (".codex/agents/key.toml", "key"),
    ],
)
def test_links_that_lead_out_of_the_project_are_not_read(tmp_path: Path, link: str, target: str) -> None:
    place = tmp_path / "project" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(outside(tmp_path / "outside") / target)
    agents, problems = list_agents(Workspace([tmp_path / "project"]), {"HOME": str(tmp_path / "home")})
    assert "OUTSIDE" not in str((agents, problems))
    assert [agent.id for agent in agents] == ["claude", "gemini", "copilot"]


def test_links_inside_the_project_and_in_the_home_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "project/kept").mkdir(parents=True)
    (tmp_path / "project/kept/agent.md").write_text(CLAUDE)
    (tmp_path / "project/.claude").mkdir()
    (tmp_path / "project/.claude/agents").symlink_to("../kept")
    (tmp_path / "home/.gemini").mkdir(parents=True)
    (tmp_path / "home/.gemini/agents").symlink_to(outside(tmp_path / "dotfiles") / "agents")
    found = listed(tmp_path / "project", tmp_path / "home")
    assert {"claude-code/reviewer", "gemini/outsider"} <= set(found)


@pytest.mark.parametrize(
    "name",
    ["!!timestamp x", "!!bool x", '!!int ""', '!!float ""', "0x" + "f" * 20_000, ":".join(["1"] * 3000), "2020-99-99"],
)
def test_values_that_yaml_cannot_read_cost_the_file_and_not_the_list(tmp_path: Path, name: str) -> None:
    (tmp_path / "crewx.yaml").write_text(f"agents:\n  - id: odd\n    name: {name}\n")
    agents, problems = list_agents(Workspace([tmp_path]), {})
    assert [one.path for one in problems] == ["crewx.yaml"] or agents[-1].name == "odd"


def test_merge_keys_that_double_are_refused_early(tmp_path: Path) -> None:
    levels = "".join(f"m{i}: &m{i}\n  <<: [*m{i - 1}, *m{i - 1}]\n" for i in range(1, 40))
    (tmp_path / "crewx.yaml").write_text(f"m0: &m0 {{a: 1}}\n{levels}agents: []\n")
    _, problems = list_agents(Workspace([tmp_path]), {})
    assert "merge" in problems[0].message


def test_what_is_not_yaml_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TOKEN: [SECRET-TOKEN: x\n: - y\n")
    with pytest.raises(InvalidInput) as refused:
        listed(tmp_path, config=".env")
    assert "SECRET-TOKEN" not in str(refused.value) and "line" in str(refused.value)
