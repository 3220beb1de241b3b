"""`completion`: a script that lets a shell ask us what fits. The answers (`__complete`) come from the cache alone."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dari.cli.kit.parser import Command
from dari.cli.kit.table import first_sentence
from dari.cli.remote import main
from dari.cli.remote.context import OK, CommandContext
from dari.cli.remote.input_schema import ObjectSchema, choices_of, type_text, types_of
from dari.errors import DariError
from dari.text.sanitize import escape_hidden

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream


_BASH = r"""# Completion of `crewx mcp remote` and `dari remote` for bash.
_dari_remote() {
    local line=${COMP_LINE:0:COMP_POINT} candidate ask=("$1" remote)
    local cur=${line##*[[:space:]]}
    [[ ${1##*/} == crewx ]] && ask=("$1" mcp remote)
    # readline replaces what follows the last of its own breaks, which stand inside our words.
    local before=${cur%"${cur##*[=:@]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        [[ $candidate == "$cur"* ]] || continue
        # Servers name tools and values: what they wrote stays one word, and nothing in it runs.
        printf -v candidate %q "${candidate#"$before"}"
        COMPREPLY+=("$candidate")
    done < <("${ask[@]}" __complete "$line" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _dari_remote crewx dari
"""

_ZSH = r"""#compdef crewx dari
# Completion of `crewx mcp remote` and `dari remote` for zsh.
_dari_remote() {
    local -a ask found
    local line
    ask=("${words[1]}" remote)
    [[ ${words[1]:t} == crewx ]] && ask=("${words[1]}" mcp remote)
    for line in ${(f)"$("${ask[@]}" __complete "${(j: :)words[1,CURRENT]}" 2>/dev/null)"}; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#found} )); then
        _describe -V 'dari remote' found
    else
        _files
    fi
}
compdef _dari_remote crewx dari
"""

_FISH = r"""# Completion of `crewx mcp remote` and `dari remote` for fish.
function __dari_remote
    set -l line (commandline -cp | string collect)
    $argv __complete $line 2>/dev/null
end
complete -c crewx -f -a '(__dari_remote crewx mcp remote)'
complete -c dari -f -a '(__dari_remote dari remote)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="which shell it is for")


async def run_completion(arguments: argparse.Namespace, context: CommandContext) -> int:
    context.console.out(SCRIPTS[arguments.shell])
    return OK


_TOP = {
    ("dari",): ("remote", "up", "mcp", "proxy", "audit", "doctor"),
    ("crewx",): ("mcp",),
    ("crewx", "mcp"): ("remote", "list_tools", "call_tool"),
}
_SERVER_WORDS = ("server", "id", "servers", "ids")
"""What commands call an argument that is a server."""


class CompletionCandidate(NamedTuple):
    value: str
    meaning: str = ""


def add_complete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("line", metavar="LINE", help="the command line up to the cursor")


async def run_complete(arguments: argparse.Namespace, context: CommandContext) -> int:
    words, current = _words(arguments.line)
    for each in dict.fromkeys(_candidates(words, current, context)):
        if each.value.startswith(current):
            meaning = escape_hidden(each.meaning, one_line=True)[:100]
            context.say(f"{escape_hidden(each.value, one_line=True)}\t{meaning}")
    return OK


def _words(line: str) -> tuple[list[str], str]:
    """The words before the cursor's, from the program on, and the cursor's own so far."""
    for closing in ("", "'", '"'):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        break
    else:
        words = line.split()
    current = words.pop() if words and not (line[-1:].isspace() and not closing) else ""
    names = [at for at, word in enumerate(words) if os.path.basename(word) in ("dari", "crewx")]
    if not names:
        return [], current
    return [os.path.basename(words[names[0]]), *words[names[0] + 1 :]], current


def _candidates(words: list[str], current: str, context: CommandContext) -> Iterator[CompletionCandidate]:
    for program, following in (("crewx mcp remote", 3), ("dari remote", 2)):
        if words[:following] == program.split():
            yield from _remote(program, words[following:], current, context)
            return
    if words == ["crewx", "mcp", "call_tool"]:
        from dari.cli.remote.built_in import built_in_tools

        yield from (
            CompletionCandidate(tool.name, first_sentence(tool.description)) for tool in built_in_tools().values()
        )
    yield from map(CompletionCandidate, _TOP.get(tuple(words), ()))


def _remote(program: str, words: list[str], current: str, context: CommandContext) -> Iterator[CompletionCandidate]:
    while words[:1] and words[0].startswith("-"):
        del words[: 2 if words[0] == "--config" else 1]
    commands = main.commands_of(program)
    if not words:
        listed = [command for command in commands if command.help]
        yield from (CompletionCandidate(command.name, command.help) for command in listed)
        if current.startswith("-"):
            yield from map(CompletionCandidate, ("--log", "--config", "--help"))
        return
    command = next((each for each in commands if each.name == words[0]), None)
    if command is not None:
        yield from _Line(main.parser_of(command, program), words, context).candidates(current)


class _Line:
    """A command with the words that follow it."""

    def __init__(self, parser: argparse.ArgumentParser, words: list[str], context: CommandContext) -> None:
        self._context = context
        self._command = words[0]
        self._parser = parser
        self._options = {option: action for action in parser._actions for option in action.option_strings}
        self._given: dict[str, str] = {}
        self._plain: list[str] = []
        self._pending: argparse.Action | None = None
        self._tool_flag = ""
        self._is_tools = False
        """A lone `--` stands before the cursor."""
        self._read(words[1:])

    def candidates(self, current: str) -> Iterator[CompletionCandidate]:
        name, equals, _ = current.partition("=")
        if equals and name in self._options:
            yield from (
                CompletionCandidate(f"{name}={value}", said) for value, said in self._values(self._options[name])
            )
        elif self._pending is not None:
            yield from self._values(self._pending)
        elif self._tool_flag:
            yield from self._choices(self._tool_flag)
        elif current.startswith("-"):
            yield from self._flags()
        else:
            yield from self._positional()

    def _read(self, words: list[str]) -> None:
        queue = list(words)
        while queue:
            word = queue.pop(0)
            self._tool_flag = ""
            name, equals, value = word.partition("=")
            action = None if self._is_tools else self._options.get(name)
            if word == "--":
                self._is_tools = True
            elif action is not None and action.nargs != 0:
                if not equals and not queue:
                    self._pending = action
                    return
                self._given[name] = value if equals else queue.pop(0)
            elif action is None and name.startswith("--"):
                self._tool_flag = "" if equals else name[2:]
            elif action is None:
                self._follow(word)

    def _follow(self, word: str) -> None:
        """A word of its own; the name of a command below this one brings its own options."""
        self._plain.append(word)
        for action in self._parser._actions:
            below = action.choices if isinstance(action, argparse._SubParsersAction) else None
            if isinstance(below, dict) and word in below:
                self._parser, self._plain = below[word], []
                self._options = {option: each for each in self._parser._actions for option in each.option_strings}

    def _values(self, action: argparse.Action) -> Iterator[CompletionCandidate]:
        if action.choices is not None:
            yield from (CompletionCandidate(str(choice)) for choice in action.choices)
        elif action.dest in _SERVER_WORDS:
            yield from self._servers()

    def _flags(self) -> Iterator[CompletionCandidate]:
        tool = self._tool()
        if tool is not None:
            shape = ObjectSchema(tool.get("inputSchema"))
            for each in shape.arguments:
                said = each.description or type_text(each.schema, shape.root)
                yield CompletionCandidate(f"--{each.name}", first_sentence(said))
                if types_of(each.schema, shape.root) == {"boolean"}:
                    yield CompletionCandidate(f"--no-{each.name}", f"not {each.name}")
        for option, action in self._options.items() if not self._is_tools else ():
            if option.startswith("--") and action.help != argparse.SUPPRESS:
                yield CompletionCandidate(option, (action.help or "").replace("%(default)s", str(action.default)))

    def _choices(self, flag: str) -> Iterator[CompletionCandidate]:
        shape = ObjectSchema((self._tool() or {}).get("inputSchema"))
        schema = shape.properties.get(flag)
        if schema is not None:
            yield from (CompletionCandidate(str(choice)) for choice in choices_of(schema, shape.root))
            if types_of(schema, shape.root) == {"boolean"}:
                yield from self._flags()

    def _positional(self) -> Iterator[CompletionCandidate]:
        open_ones = [action for action in self._parser._actions if not action.option_strings]
        if not open_ones:
            return
        action = open_ones[min(len(self._plain), len(open_ones) - 1)]
        if len(self._plain) >= len(open_ones) and action.nargs not in ("*", "+"):
            return
        if action.dest == "tool":
            yield from self._tools()
        elif action.dest == "uri":
            yield from (
                CompletionCandidate(str(each.get("uri"))) for up in self._chosen() for each in up.known_lists()[1]
            )
        elif action.dest == "name" and self._command == "get-prompt":
            for upstream in self._chosen():
                yield from (
                    CompletionCandidate(f"{upstream.id}/{each.get('name')}") for each in upstream.known_lists()[0]
                )
        else:
            yield from self._values(action)

    def _tools(self) -> Iterator[CompletionCandidate]:
        for upstream in self._chosen():
            known = upstream.known_tools()
            if known is None and "--server" not in self._given:
                yield CompletionCandidate(f"{upstream.id}/", "not listed yet")
            for tool in known or ():
                name = tool.name if "--server" in self._given else f"{upstream.id}/{tool.name}"
                yield CompletionCandidate(name, first_sentence(tool.shown.get("description")))

    def _tool(self) -> dict[str, object] | None:
        """The tool that the line names, as far as it is known."""
        if self._command not in ("call-tool", "call", "describe") or not self._plain:
            return None
        server, slash, name = self._plain[0].partition("/")
        for upstream in self._chosen():
            for tool in upstream.known_tools() or ():
                if tool.name == self._plain[0] or (slash and upstream.id == server and tool.name == name):
                    return tool.shown
        return None

    def _servers(self) -> Iterator[CompletionCandidate]:
        for one in self._context.view.catalog().named:
            yield CompletionCandidate(one.id, f"{one.kind} {one.state}".strip())

    def _chosen(self) -> list[Upstream]:
        """The named server, or all; those whose secrets are not there have no names to offer."""
        found: list[Upstream] = []
        for one in self._context.view.catalog().named:
            if one.state == "ready" and self._given.get("--server", one.id) == one.id:
                try:
                    found.append(self._context.view.upstream(one.id))
                except DariError:
                    continue
        return found


COMMANDS = (
    Command(
        "completion",
        "Print a completion script: commands, options, servers, tools, and a tool's own flags.",
        add_completion,
        run_completion,
        examples=(
            ("completion bash >> ~/.bashrc", "bash"),
            ("completion zsh >> ~/.zshrc", "zsh, after compinit"),
            ("completion fish > ~/.config/fish/conf.d/dari_remote.fish", "fish"),
        ),
    ),
    Command(
        "__complete",
        "Answer a shell's completion script.",
        add_complete,
        run_complete,
    ),
)
