"""Agents that are configured around a repository: CrewX's own file, and those of Claude Code, Codex and Gemini.

CrewX reads one file: the one that CREWX_CONFIG names, else `crewx.yaml`, else `agents.yaml`, and has three agents
of its own, which the file may replace. The others have a file per agent, of the project and of the person.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from dari.codetools.workspace import Workspace
from dari.errors import DariError, InvalidInput, NotFound, Unavailable
from dari.installation import install_extra
from dari.paths import read_regular

MAX_FILE_BYTES = 1 << 20
MAX_AGENTS = 500
MAX_TEXT_CHARS = 400
MAX_ITEMS = 50
MAX_MERGED = 100_000
"""Entries of all mappings of a YAML file, with those that merge keys repeat."""
CONFIG_VARIABLE = "CREWX_CONFIG"
CONFIG_NAMES = ("crewx.yaml", "crewx.yml", "agents.yaml", "agents.yml")


class Agent(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One agent. `source` is the file that it stands in, or `built in`."""

    id: str
    tool: str
    """crewx, claude-code, codex or gemini."""
    source: str
    name: str = ""
    role: str = ""
    team: str = ""
    provider: list[str] = []
    """In the order in which they are tried."""
    model: str = ""
    description: str = ""
    working_directory: str = ""
    capabilities: list[str] = []
    specialties: list[str] = []
    tools: list[str] = []
    remote: str = ""
    """The address of an agent that runs elsewhere."""


class AgentProblem(Struct, frozen=True):
    path: str
    message: str


BUILT_IN = tuple(
    Agent(id, "crewx", "built in", name, "AI Assistant", "AI Team", [f"cli/{id}"])
    for id, name in (("claude", "Claude AI"), ("gemini", "Gemini AI"), ("copilot", "GitHub Copilot"))
)
_FOLDERS = (
    (".claude/agents", "claude-code", ".md"),
    (".gemini/agents", "gemini", ".md"),
    (".codex/agents", "codex", ".toml"),
)


def list_agents(
    workspace: Workspace, environ: Mapping[str, str], config: str | None = None
) -> tuple[list[Agent], list[AgentProblem]]:
    """All agents that can be found, and the files that could not be read. Blocks on files for a moment."""
    problems: list[AgentProblem] = []
    agents = {agent.id: agent for agent in BUILT_IN}
    if (file := _crewx_file(workspace, environ, config)) is not None:
        try:
            agents |= {agent.id: agent for agent in _read_crewx(file)}
        except (DariError, OSError) as error:
            if config is not None:
                raise
            problems.append(AgentProblem(file.source, str(error)))
    found = [*agents.values(), *_of_other_tools(workspace, environ, problems)]
    return found[:MAX_AGENTS], problems


class _File(Struct, frozen=True):
    """A file with agents. `inside` is where names of the workspace lead; a person's own files lead where they like."""

    source: str
    path: Path
    inside: Workspace | None = None

    def read(self) -> bytes:
        """Denied for a file of the project that is a link to somewhere else: its content is not the project's."""
        if self.inside is None:
            return read_regular(self.path, MAX_FILE_BYTES)
        return self.inside.read(self.inside.locate(str(self.path)), MAX_FILE_BYTES)


def _crewx_file(workspace: Workspace, environ: Mapping[str, str], config: str | None) -> _File | None:
    """Only files of the workspace, except the one that the person's own environment names."""
    if config is not None:
        found = workspace.locate(config).absolute
        if not found.is_file():
            raise NotFound(f"{config} does not exist", "name a crewx.yaml, or leave config out")
        return _File(config, found, workspace)
    if named := environ.get(CONFIG_VARIABLE, "").strip():
        is_inside = not os.path.isabs(named) and not os.path.normpath(named).startswith("..")
        return _File(named, workspace.base / named, workspace if is_inside else None)
    for name in CONFIG_NAMES:
        if (path := workspace.base / name).is_file():
            return _File(name, path, workspace)
    return None


def _read_crewx(file: _File) -> Iterator[Agent]:
    source = file.source
    document = _parse_yaml(file.read(), source)
    listed = document.get("agents") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InvalidInput(f"{source} has no list of agents", "begin with `agents:` and a list below it")
    providers = _remote_providers(document)
    for each in listed[:MAX_AGENTS]:
        if isinstance(each, dict) and (id := _text(each.get("id"))):
            yield _crewx_agent(id, each, providers, source)


def _crewx_agent(id: str, entry: dict[str, Any], providers: Mapping[str, str], source: str) -> Agent:
    inline = entry.get("inline") if isinstance(entry.get("inline"), dict) else {}
    assert isinstance(inline, dict)
    chain = _texts(entry.get("provider") or inline.get("provider"))
    remote = entry.get("remote") if isinstance(entry.get("remote"), dict) else {}
    assert isinstance(remote, dict)
    told = _text(entry.get("description")) or _first_line(inline.get("system_prompt"))
    return Agent(
        id=id,
        tool="crewx",
        source=source,
        name=_text(entry.get("name")) or id,
        role=_text(entry.get("role")) or "AI Agent",
        team=_text(entry.get("team")),
        provider=chain,
        model=_text(inline.get("model")),
        description=told,
        working_directory=_text(entry.get("working_directory")),
        capabilities=_texts(entry.get("capabilities")),
        specialties=_texts(entry.get("specialties")),
        remote=_address(remote.get("url")) or next((providers[one] for one in chain if one in providers), ""),
    )


def _remote_providers(document: dict[str, Any]) -> dict[str, str]:
    """`remote/<id>` of each provider that is elsewhere, with its address; never its token."""
    listed = document.get("providers")
    found = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("type") == "remote" and (id := _text(each.get("id"))):
            found[f"remote/{id}"] = _address(each.get("location"))
    return found


def _of_other_tools(workspace: Workspace, environ: Mapping[str, str], problems: list[AgentProblem]) -> Iterator[Agent]:
    """A project's agents before the person's: of two of one name the project's counts, as in those tools."""
    seen: set[tuple[str, str]] = set()
    home = environ.get("HOME", "")
    folders = [(workspace.base, True), *([(Path(home), False)] if os.path.isabs(home) else [])]
    for base, is_project in folders:
        for folder, tool, suffix in _FOLDERS:
            for file in (
                _project_files(workspace, folder, suffix, problems) if is_project else _files(base, folder, suffix)
            ):
                try:
                    agent = _read_markdown(file, tool) if suffix == ".md" else _read_toml(file, tool)
                except (DariError, OSError) as error:
                    problems.append(AgentProblem(file.source, str(error)))
                    continue
                if agent is not None and (tool, agent.id) not in seen:
                    seen.add((tool, agent.id))
                    yield agent


def _project_files(workspace: Workspace, folder: str, suffix: str, problems: list[AgentProblem]) -> list[_File]:
    """Links out of the project are not followed: their author would choose what of this machine is shown."""
    if not os.path.lexists(workspace.base / folder):
        return []
    try:
        found = workspace.files([folder], wants=lambda name: name.endswith(suffix), include_ignored=True)
        return [_File(workspace.show(path), path.absolute, workspace) for path in islice(found, MAX_AGENTS)]
    except DariError as error:
        problems.append(AgentProblem(folder, error.message))
        return []


def _files(base: Path, folder: str, suffix: str) -> list[_File]:
    try:
        found = islice((base / folder).rglob(f"*{suffix}"), MAX_AGENTS)
        return [_File(str(path), path) for path in sorted(found) if path.is_file()]
    except OSError:
        return []


def _read_markdown(file: _File, tool: str) -> Agent | None:
    source = file.source
    text = file.read().decode("utf-8", "replace")
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in (rest := [line.strip() for line in lines[1:]]):
        return None  # a note beside the agents
    head = _parse_yaml("\n".join(lines[1 : 1 + rest.index("---")]).encode(), source)
    if not isinstance(head, dict) or not (id := _text(head.get("name"))) or head.get("disabled") is True:
        return None
    return Agent(
        id=id,
        tool=tool,
        source=source,
        model=_text(head.get("model")),
        description=_text(head.get("description")),
        tools=_texts(head.get("tools")),
        remote=_address(head.get("agent_card_url")),
    )


def _read_toml(file: _File, tool: str) -> Agent | None:
    source = file.source
    try:
        head = tomllib.loads(file.read().decode("utf-8", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"{source} is not TOML: {error}", "correct the file") from error
    id = _text(head.get("name"))
    if not id:
        return None
    return Agent(
        id=id, tool=tool, source=source, model=_text(head.get("model")), description=_text(head.get("description"))
    )


def _parse_yaml(data: bytes, source: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise Unavailable(f"{source} is YAML, and PyYAML is not installed", install_extra("codetools")) from error
    # PyYAML raises whatever its own code runs into: `!!int ""` is an IndexError, `!!bool x` a KeyError.
    try:
        return _loader()(data).get_single_data()
    except yaml.MarkedYAMLError as error:
        # Not its `str`, which quotes the file: what is not YAML may be anything, a key too.
        at = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InvalidInput(f"{source} is not YAML: {_text(error.problem)}{at}", "correct the file") from error
    except RecursionError as error:
        raise InvalidInput(f"{source} is nested too deep", "correct the file") from error
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise InvalidInput(f"{source} is not YAML: {type(error).__name__}", "correct the file") from error


@cache
def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Merge keys (`<<`) double with each level: 27 lines of them would take hours."""

        merged = 0

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            self.merged += len(node.value)
            if self.merged > MAX_MERGED:
                raise yaml.constructor.ConstructorError(None, None, "too many merge keys", node.start_mark)

    return Loader


def _texts(value: Any) -> list[str]:
    """A list of names, or one; `Read, Grep` is a list too."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return []
    return [text for one in value[:MAX_ITEMS] if (text := _text(one))]


def _text(value: Any) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return ""
    try:
        text = " ".join(str(value)[: MAX_TEXT_CHARS * 4].split())
    except ValueError:  # an integer of more digits than Python prints
        return ""
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"


def _first_line(prompt: Any) -> str:
    lines: Iterable[str] = str(prompt)[:4000].splitlines() if isinstance(prompt, str) else ()
    return next((_text(line.strip("# ")) for line in lines if line.strip("#*- \t") and not line.startswith("<")), "")


def _address(value: Any) -> str:
    """Without user and query, either of which may be a key."""
    from urllib.parse import urlsplit

    text = _text(value)
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else text
