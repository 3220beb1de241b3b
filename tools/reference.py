"""Writes docs/reference from the registry, the command line and the error table.

`python -m tools.reference` writes the pages; `tests/test_reference.py` fails when they are out of date.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from dari import errors
from dari.app import build
from dari.bridge.config.schema import schema_text
from dari.cli.approvals import make_parser as make_approvals_parser
from dari.cli.audit import make_parser as make_audit_parser
from dari.cli.crab_mcp import make_parser as make_crab_mcp_parser
from dari.cli.crabd import make_parser as make_crabd_parser
from dari.cli.crewx_tools.commands import COMMANDS as CODE_TOOLS_COMMANDS
from dari.cli.crewx_tools.commands import describe as describe_code_tool
from dari.cli.crewx_tools.commands import overview as code_tools_overview
from dari.cli.crewx_tools.serve import USAGE as CODE_TOOLS_USAGE
from dari.cli.crux.main import COMMANDS
from dari.cli.crux.main import make_help as make_crux_help
from dari.cli.crux.main import make_parser as make_crux_parser
from dari.cli.crux_mcp_bridge import USAGE as BRIDGE_USAGE
from dari.cli.cruxd import make_parser as make_cruxd_parser
from dari.cli.kebab.main import COMMANDS as KEBAB_COMMANDS
from dari.cli.kebab.main import overview as kebab_overview
from dari.cli.kebab.main import parser_of as kebab_parser_of
from dari.cli.kebab.mcp import USAGE as KEBAB_MCP_USAGE
from dari.cli.kebabd import make_parser as make_kebabd_parser
from dari.cli.kit.parser import HELP_COLUMNS
from dari.cli.main import make_parser
from dari.cli.proxy.main import make_parser as make_proxy_parser
from dari.cli.remote.main import REMOTE, overview, parser_of
from dari.core.tool import Tool
from dari.errors import DariError
from dari.proxy.errors import PROXY_ERRORS
from dari.settings import ServeSettings

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
_NOTE = "<!-- Written by `python -m tools.reference`; edit the code instead. -->\n"
_CRAB, _CRUX, _KEBAB, _CODE = "crab_", "crux_", "kebab_", "crewx_tools_"


def pages() -> dict[str, str]:
    """Every page by file name."""
    return {
        "tools.md": _tools(),
        "crab-tools.md": _crab_tools(),
        "crux-tools.md": _crux_tools(),
        "crux.md": _crux(),
        "kebab-tools.md": _kebab_tools(),
        "kebab.md": _kebab(),
        "code-tools.md": _code_tools(),
        "code-tools-cases.md": _code_tools_cases(),
        "commands.md": _commands(),
        "proxy.md": _proxy(),
        "remote.md": _remote(),
        "errors.md": _errors(),
        "mcp.schema.json": schema_text(),
    }


def _tools() -> str:
    parts = [_NOTE, "# Tools\n", "Every tool that `dari mcp` and `dari up` serve by themselves; they also serve"]
    parts.append("[those of the proxy](crab-tools.md), [of the terminal](crux-tools.md),")
    parts.append("[of the knowledge base](kebab-tools.md) and [for code](code-tools.md).\n")
    for tool in _served():
        if tool.name.startswith((_CRAB, _CRUX, _KEBAB, _CODE)):
            continue
        parts += _heading(tool)
        parts.append(_schema("Arguments", tool.input_schema))
        if tool.output_schema is not None:
            parts.append(_schema("Result", tool.output_schema))
    return "\n".join(parts)


def _served() -> list[Tool]:
    nowhere = Path(os.sep, "nowhere")
    server = build(ServeSettings(token_path=nowhere / "token", socket_path=nowhere / "socket"))
    return list(server.registry.tools.values())


def _heading(tool: Tool) -> list[str]:
    hints = [name.removesuffix("Hint") for name, value in tool.annotations.items() if value is True]
    limit = "its own time limit" if tool.timeout_s is None else f"time limit {tool.timeout_s:g} s"
    about = f"Scope `{tool.scope}`; hints: {', '.join(hints) or 'none'}; {limit}.\n"
    return [f"## `{tool.name}`\n\n{tool.description}\n", about]


def _crab_tools() -> str:
    parts = [_NOTE, "# Tools of the proxy\n"]
    parts.append("Served by `crab-mcp`, and by `dari mcp` and `dari up` beside their own. The first 32 are the core")
    parts.append("(`crab-mcp --tools core`). Null counts as absent; a limit above its range counts as the largest.\n")
    return "\n".join([*parts, *_family(_CRAB)])


def _crux_tools() -> str:
    parts = [_NOTE, "# Tools of the terminal\n"]
    parts.append("Served by `cruxd` (`crux-mcp-bridge`), and by `dari mcp` and `dari up` beside their own. The first")
    parts.append("20 are the core. `pane_id` is an id or a name; left out, it is the focused pane.\n")
    return "\n".join([*parts, *_family(_CRUX)])


def _kebab_tools() -> str:
    parts = [_NOTE, "# Tools of the knowledge base\n"]
    parts.append("Served by `kebab mcp` without the prefix, and by `dari mcp` and `dari up` beside their own. With")
    parts.append(
        "`KEBAB_TOOLS=all` also those behind the first four. The text of a result is the wire object as JSON; a"
    )
    parts.append("failure is `error.v1` with `isError`. Schemas of the objects: `kebab schema --wire NAME`.\n")
    os.environ["KEBAB_TOOLS"] = "all"
    try:
        return "\n".join([*parts, *_family(_KEBAB)])
    finally:
        del os.environ["KEBAB_TOOLS"]


def _code_tools() -> str:
    tools = {tool.name: tool for tool in _served()}
    parts = [_NOTE, "# Code tools\n"]
    parts.append("Served by `crewx-tools serve`, and by `dari mcp` and `dari up` beside their own.")
    parts.append("People call them with `crewx-tools` and `crewx tool`. The guide is")
    parts.append("[code-tools.md](../guide/code-tools.md).\n")
    parts += _family(_CODE)
    parts.append(f"# Commands of `crewx-tools`\n\n```text\n{code_tools_overview('crewx-tools')}```\n")
    parts.append(f"## `crewx-tools serve`\n\n```text\n{CODE_TOOLS_USAGE}```\n")
    for command in CODE_TOOLS_COMMANDS:
        if _CODE + command.tool not in tools:
            continue
        text = describe_code_tool("crewx-tools", command, tools[_CODE + command.tool])
        parts.append(f"## `crewx-tools {command.name}`\n\n```text\n{text}```\n")
    return "\n".join(parts)


def _code_tools_cases() -> str:
    """From the table that the tests run."""
    from tests.codetools.hostile_cases import CASES, SEQUENCES

    parts = [_NOTE, "# Hostile and awkward cases of the code tools\n"]
    parts.append(
        f"What the [code tools](code-tools.md) do with {len(CASES) + len(SEQUENCES)} cases; each row is a test in"
    )
    parts.append(
        "`tests/codetools`. A refusal changes nothing; after every write `crewx_tools_undo` was seen to bring all"
    )
    parts.append("files back.\n")
    rows = [(case.group, case.what, f"`{case.tool}`", case.outcome) for case in CASES]
    rows += [(group, what, "all", outcome) for group, what, outcome, _, _ in SEQUENCES]
    for group in dict.fromkeys(row[0] for row in rows):
        parts.append(f"## {group[0].upper()}{group[1:]}\n\n| case | tool | outcome |\n|---|---|---|")
        parts += [f"| {what} | {tool} | {outcome} |" for kind, what, tool, outcome in rows if kind == group]
        parts.append("")
    return "\n".join(parts)


def _kebab() -> str:
    HELP_COLUMNS.set(100)
    parts = [
        _NOTE,
        "# Commands of `kebab`\n",
        "The guide is [kebab.md](../guide/kebab.md).\n",
        f"```text\n{kebab_overview('kebab')}```\n",
    ]
    for entry in KEBAB_COMMANDS:
        if entry.name == "mcp":
            parts.append(f"## `kebab mcp`\n\n```text\n{KEBAB_MCP_USAGE}```\n")
        elif entry.name != "daemon":
            parts.append(_help(f"kebab {entry.name}", kebab_parser_of(entry, "kebab")))
    return "\n".join([*parts, _help("kebabd", make_kebabd_parser())])


def _family(prefix: str) -> list[str]:
    parts = []
    for tool in _served():
        if tool.name.startswith(prefix):
            members = [f"`{name}`" for name in (tool.output_schema or {}).get("properties", {})]
            result = f"Result: {', '.join(members) or 'what the method returns'}.\n"
            parts += [*_heading(tool), _table(tool.input_schema), result]
    return parts


def _table(schema: dict[str, Any]) -> str:
    properties = schema["properties"]
    if not properties:
        return "Arguments: none.\n"
    needed = schema.get("required", ())
    rows = ["| argument | type | default | |", "|---|---|---|---|"]
    for name, shown in properties.items():
        default = "required" if name in needed else f"`{json.dumps(shown['default'])}`" if "default" in shown else ""
        rows.append(f"| `{name}` | {_type(shown)} | {default} | {shown.get('description', '')} |")
    return "\n".join(rows) + "\n"


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(branch) for branch in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    least, most = schema.get("minimum"), schema.get("maximum")
    bounds = f" {least} to {most}" if most is not None else f" ≥ {least}" if least is not None else ""
    return str(schema["type"]) + bounds


def _schema(title: str, schema: dict[str, object]) -> str:
    if not schema.get("properties"):
        return f"{title}: none.\n"
    return f"{title}:\n\n```json\n{json.dumps(schema, indent=2, ensure_ascii=False)}\n```\n"


def _commands() -> str:
    parser = make_parser()
    parts = [_NOTE, "# Commands\n", _help("dari", parser)]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            # These have a parser of their own, the first two also a page.
            apart = ("proxy", "remote", "approvals", "audit", "knowledge")
            parts += [_help(f"dari {name}", command) for name, command in action.choices.items() if name not in apart]
    parts += [
        *_tree(make_approvals_parser()),
        *_tree(make_audit_parser()),
        *_tree(make_crab_mcp_parser()),
        *_tree(make_crabd_parser()),
    ]
    return "\n".join(parts)


def _proxy() -> str:
    parts = [_NOTE, "# Commands of `dari proxy`\n", "The guide is [proxy.md](../guide/proxy.md).\n"]
    return "\n".join([*parts, *_tree(make_proxy_parser())])


def _crux() -> str:
    parts = [_NOTE, "# Commands of `crux`\n", "The guide is [crux.md](../guide/crux.md).\n"]
    parts.append(f"```text\n{make_crux_help().rstrip()}\n```\n")
    for name in COMMANDS:
        if name != "tmux":  # its commands are tmux's
            parts.append(_help(f"crux {name}", make_crux_parser(name)))
    parts += _tree(make_cruxd_parser())
    parts.append(f"## `crux-mcp-bridge`\n\n```text\n{BRIDGE_USAGE.rstrip()}\n```\n")
    return "\n".join(parts)


def _remote() -> str:
    parts = [_NOTE, "# Commands of `dari remote` and `crewx mcp remote`\n", "Both names have the same commands.\n"]
    HELP_COLUMNS.set(100)
    parts.append(f"```text\n{overview('dari remote').rstrip()}\n```\n")
    for command in REMOTE:
        if command.help:
            parts.append(_help(f"dari remote {command.name}", parser_of(command, "dari remote")))
    return "\n".join(parts)


def _tree(parser: argparse.ArgumentParser) -> list[str]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [
        _help(parser.prog, parser),
        *(page for one in below for each in one.choices.values() for page in _tree(each)),
    ]


def _help(name: str, parser: argparse.ArgumentParser) -> str:
    # The width of a help page follows the terminal unless it is told.
    parser.formatter_class = lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=100)
    return f"## `{name}`\n\n```text\n{parser.format_help().rstrip()}\n```\n"


def _errors() -> str:
    rows = [getattr(errors, name) for name in errors.__all__ if name != "DariError"] + list(PROXY_ERRORS)
    parts = [
        _NOTE,
        "# Errors\n",
        "A failing tool on 2024-11-05 is a JSON-RPC error with this code; later revisions get `isError: true` and the",
        "same code and message in `_meta` under `dari/error`. Every error carries a `hint`: the next step.\n",
        "| name | code | message starts with | HTTP | exit | what it means |",
        "|---|--:|---|--:|--:|---|",
    ]
    parts += [_error_row(row) for row in rows]
    return "\n".join(parts) + "\n"


def _error_row(row: type[DariError]) -> str:
    advice = (row.__doc__ or "").partition("\n")[0]
    begins = row.prefix.strip() or row("").wire_message
    return f"| `{row.name}` | {row.code} | {begins} | {row.http_status} | {row.exit_code} | {advice} |"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
