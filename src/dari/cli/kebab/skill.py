"""`kebab skill`: how agents learn to use kebab, from files of the package."""

from __future__ import annotations

import argparse
from pathlib import Path

from dari.cli.kebab.context import OK, KebabContext
from dari.cli.kit.parser import Command
from dari.errors import Conflict
from dari.knowledge.errors import ReadonlyMode

FOLDER = Path(__file__).parent / "skill_files"
SKILL, MCP_JSON = FOLDER / "SKILL.md", FOLDER / "mcp.json"


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--install", action="store_true", help="write SKILL.md where Claude Code finds it")
    parser.add_argument("--mcp-json", action="store_true", help="print the mcp.json for agents that speak MCP")
    parser.add_argument("--to", metavar="DIR", help="the folder of skills (default: ~/.claude/skills)")
    parser.add_argument("--force", action="store_true", help="replace a skill that was changed")


async def _run(arguments: argparse.Namespace, context: KebabContext) -> int:
    if arguments.mcp_json:
        context.output.write(MCP_JSON.read_text("utf-8"))
        return OK
    text = SKILL.read_text("utf-8")
    if not arguments.install:
        context.output.write(text)
        return OK
    if context.is_readonly:
        raise ReadonlyMode(
            "kebab skill --install writes a file, and --readonly or KEBAB_READONLY forbids it", "run it without them"
        )
    folder = (
        context.resolve(arguments.to)
        if arguments.to
        else Path(context.environ.get("HOME", "~")).expanduser() / ".claude/skills"
    )
    target = folder / "kebab" / "SKILL.md"
    if target.exists() and target.read_text("utf-8") != text and not arguments.force:
        raise Conflict(f"{target} exists and differs", "replace it with --force")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")
    context.output.text(str(target))
    return OK


COMMANDS = (
    Command(
        "skill",
        "print or install the skill for Claude Code and the mcp.json for other agents",
        _add,
        _run,
        "Print the SKILL.md that teaches an agent to use kebab, or install it; print the mcp.json example.",
        (
            ("skill --install", "for Claude Code, in ~/.claude/skills/kebab"),
            ("skill --mcp-json", "what Cursor, Claude Desktop and others put into their mcp.json"),
        ),
    ),
)
