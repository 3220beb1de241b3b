"""What a text reaches: every command it would run, also inside `sudo`, `env`, `xargs`, `sh -c`, `find -exec` …"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from dari.terminal.policy.options import has_option, option_values, split_options
from dari.terminal.policy.script import read_script
from dari.terminal.policy.words import Command, Dialect, ShellError, Word
from dari.terminal.policy.wrappers import (
    CODE,
    DECIDING_NAMES,
    DOUBTFUL,
    GIT_GLOBAL,
    GIT_OPTIONS,
    GIT_RUNNERS,
    JOINED,
    PREFIXES,
    SHELLS,
    STRINGS,
)

DEEPEST = 8
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|nodejs|php|lua|luajit|tclsh|expect|Rscript)[0-9.]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")


@dataclass(frozen=True, slots=True)
class Reach:
    """`commands`: all that would run, the wrapping ones too. `doubts`: why there may be more that cannot be seen."""

    commands: tuple[Command, ...]
    doubts: tuple[str, ...]
    functions: frozenset[str]


def reach(text: str, dialect: Dialect = "bash") -> Reach:
    """What `text` would run; ShellError when the text cannot be read."""
    finder = _Finder()
    functions = finder.read(text, dialect, 0)
    return Reach(tuple(finder.commands), tuple(dict.fromkeys(finder.doubts)), functions)


def program(name: str) -> str:
    """The name without its directory: what the program is, whatever path it is called by."""
    return name.rstrip("/").rsplit("/", 1)[-1]


class _Finder:
    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.doubts: list[str] = []

    def read(self, text: str, dialect: Dialect, depth: int) -> frozenset[str]:
        if depth > DEEPEST:
            raise ShellError(f"commands call commands more than {DEEPEST} deep")
        script = read_script(text, dialect)
        self.doubts += script.doubts
        for command in script.commands:
            self.look(command, dialect, depth)
        for name in sorted(script.functions):
            self.doubts.append(f"it defines the function {name}, which stays in the shell and takes that name")
        return script.functions

    def look(self, command: Command, dialect: Dialect, depth: int) -> None:
        self.commands.append(command)
        for name, _ in command.assignments:
            self._assigned(name)
        if command.name is None:
            self.doubts.append(f"what {command.words[0].text!r} runs is known only when it runs")
            return
        if not command.name:
            return
        name = program(command.name)
        for inner in self._inner(name, command, dialect, depth):
            if inner.words:
                if depth > DEEPEST:
                    raise ShellError(f"commands call commands more than {DEEPEST} deep")
                self.look(inner, dialect, depth + 1)

    def _assigned(self, name: str) -> None:
        if name in DECIDING_NAMES or name.startswith(("GIT_CONFIG_KEY", "GIT_CONFIG_VALUE", "BASH_FUNC")):
            self.doubts.append(f"setting {name} changes what later commands run")

    def _inner(self, name: str, command: Command, dialect: Dialect, depth: int) -> Iterator[Command]:
        arguments = command.words[1:]
        self._doubtful_options(name, arguments)
        if name in SHELLS:
            yield from self._shell(name, command, dialect, depth)
        elif name == "env":
            yield from self._env(command, dialect)
        elif name in PREFIXES:
            yield from self._prefix(name, command)
        elif name in JOINED:
            self._joined(name, arguments, dialect, depth)
        elif name in ("find", "gfind", "bfs", "fd", "fdfind"):
            yield from self._find(command)
        elif name == "git":
            self._git(arguments)
        elif name == "trap":
            options = split_options(arguments, "")
            if options.plain and options.plain[0].text not in ("-", ""):
                self._text(options.plain[0], dialect, depth)
        elif name in ("source", "."):
            is_file = bool(arguments) and arguments[0].is_known and arguments[0].text not in ("-", "/dev/stdin")
            if not is_file or command.reads_pipe or any(each.operator.startswith("<") for each in command.redirects):
                self.doubts.append(f"{name} runs what it reads, which is not known")
        elif name in ("alias", "abbr"):
            if any("=" in word.text or not word.is_known for word in arguments) or (dialect == "fish" and arguments):
                self.doubts.append(f"{name} changes what a later word runs")
        elif name in ("export", "declare", "typeset", "local", "readonly", "set", "read", "printf", "let", "unset"):
            self._setting(name, arguments)
        elif name in ("awk", "gawk", "mawk", "nawk", "sed", "gsed"):
            self._filter(name, arguments)
        elif _INTERPRETER.fullmatch(name):
            self._interpreter(name, command)
        for value in option_values(arguments, STRINGS.get(name, "").split()):
            self._text(value, "sh", depth)

    def _doubtful_options(self, name: str, arguments: Sequence[Word]) -> None:
        short = match[1] if (match := _INTERPRETER.fullmatch(name)) else name
        for option in CODE.get(short, "").split():
            if has_option(arguments, option):
                self.doubts.append(f"{name} {option} runs a program that is not read")
        for option in DOUBTFUL.get(name, ()):
            if has_option(arguments, option) or any(word.text.startswith(option + "=") for word in arguments):
                self.doubts.append(f"{name} {option} can start another program")
        if short in ("vim", "vi", "nvim", "view", "ex", "less", "more") and any(
            w.text.startswith("+") for w in arguments
        ):
            self.doubts.append(f"{name} +… runs commands of the editor, which can start programs")
        if name in ("ssh", "scp", "sftp") and any(
            re.match(r"(-o)?\s*(ProxyCommand|LocalCommand|KnownHostsCommand|PermitLocalCommand)", w.text, re.I)
            for w in arguments
        ):
            self.doubts.append(f"{name} -o …Command starts another program")
        if name in ("socat", "tmux", "screen") and any(
            re.match(r"(EXEC|SYSTEM|SHELL):", w.text, re.I) or name != "socat" for w in arguments
        ):
            self.doubts.append(f"{name} can start programs that are not read")

    def _text(self, word: Word, dialect: Dialect, depth: int) -> None:
        if not word.is_known:
            self.doubts.append(f"the text {word.text!r} that would be run is known only then")
            return
        self.read(word.text, dialect, depth + 1)

    def _shell(self, name: str, command: Command, dialect: Dialect, depth: int) -> Iterator[Command]:
        inner = cast(Dialect, SHELLS[name])
        arguments = command.words[1:]
        options = split_options(arguments, "-o +o -O +O --rcfile --init-file -C --init-command")
        if any(not word.is_known for word in arguments[:1]):
            self.doubts.append(f"how {name} is called is known only then")
        takes_text = any(re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*|--command", word.text) for word in options.given)
        for option in ("--rcfile", "--init-file", "-C", "--init-command"):
            if has_option(arguments, option):
                self.doubts.append(f"{name} {option} runs a file or text first")
        if takes_text:
            if options.plain:
                self._text(options.plain[0], inner, depth)
            else:
                self.doubts.append(f"{name} -c without a text")
            return
        reads_stdin = not options.plain or any(re.fullmatch(r"-[A-Za-z]*s[A-Za-z]*", w.text) for w in options.given)
        if options.plain and options.plain[0].text in ("-", "/dev/stdin", "/proc/self/fd/0"):
            reads_stdin = True
        if options.plain and not options.plain[0].is_known:
            self.doubts.append(f"what {name} runs is known only then")
        if reads_stdin:
            self._fed(name, command, inner, depth)
        yield from ()

    def _fed(self, name: str, command: Command, dialect: Dialect | None, depth: int) -> None:
        bodies = [redirect for redirect in command.redirects if redirect.operator.startswith("<")]
        if bodies and dialect is not None and bodies[-1].body is not None:
            self.read(bodies[-1].body, dialect, depth + 1)
        elif bodies or command.reads_pipe:
            self.doubts.append(f"{name} runs what it reads, which is not known")

    def _interpreter(self, name: str, command: Command) -> None:
        options = split_options(command.words[1:], "-m -W -X -c -e -r")
        if not options.plain and not has_option(command.words[1:], "-m"):
            self._fed(name, command, None, 0)

    def _env(self, command: Command, dialect: Dialect) -> Iterator[Command]:
        words = command.words[1:]
        given = split_options(words, PREFIXES["env"][0], stop_at_plain=True).given
        for word in given:
            match = re.match(r"-[A-Za-z0-9]*S|--split-string=?", word.text)
            if match is None:
                continue
            rest = word.text[match.end() :]
            after = words[words.index(word) + 1 :]
            if not rest and after:
                word, rest, after = after[0], after[0].text, after[1:]
            script = read_script(rest, "sh") if word.is_known and not re.search(r"[$\\]", rest) else None
            if script is None or len(script.commands) != 1:
                self.doubts.append("env -S splits a text that is no plain command")
                return
            inner = script.commands[0]
            for name, _ in inner.assignments:
                self._assigned(name)
            yield replace(command, words=(*inner.words, *after), assignments=())
            return
        yield from self._prefix("env", command)

    def _prefix(self, name: str, command: Command) -> Iterator[Command]:
        valued, skipped = PREFIXES[name]
        options = split_options(command.words[1:], valued, stop_at_plain=True)
        if name == "command" and any(word.text in ("-v", "-V") for word in options.given):
            return
        rest = list(options.plain)
        while rest and name in ("env", "sudo", "doas") and (match := _ASSIGNMENT.match(rest[0].text)):
            self._assigned(match[1])
            rest.pop(0)
        if name == "sudo" and not rest and any(re.fullmatch(r"-[A-Za-z]*[is][A-Za-z]*", w.text) for w in options.given):
            self.doubts.append("sudo opens a shell of another user")
        if skipped and rest and rest[0].is_known and not re.match(r"[\d.]", rest[0].text):
            # `setarch -R ls` has no first word of its own; so both readings count.
            yield replace(command, words=tuple(rest), assignments=())
        rest = rest[skipped:]
        if name == "entr" and has_option(command.words[1:], "-s"):
            self.doubts.append("entr -s runs a text")
        if name in ("xargs", "parallel"):
            # What they read becomes arguments, and with -I or `sh -c` also the command.
            rest.append(Word("…", False))
            if len(rest) == 1:
                rest = [Word("echo" if name == "xargs" else "…", name == "xargs")]
            if program(rest[0].text) in SHELLS or "{}" in rest[0].text:
                self.doubts.append(f"{name} makes a command of what it reads")
        yield replace(
            command, words=tuple(rest), assignments=(), reads_pipe=name not in ("xargs",) and command.reads_pipe
        )

    def _joined(self, name: str, arguments: Sequence[Word], dialect: Dialect, depth: int) -> None:
        valued, skipped = JOINED[name]
        options = split_options(arguments, valued, stop_at_plain=name != "hyperfine")
        rest = options.plain[skipped:]
        if name == "at":
            self.doubts.append("at runs what it reads later")
        elif name == "hyperfine":
            for word in rest:
                self._text(word, "sh", depth)
        elif rest:
            text = Word(" ".join(word.text for word in rest), all(word.is_known for word in rest))
            self._text(text, dialect if name == "eval" else "sh", depth)

    def _find(self, command: Command) -> Iterator[Command]:
        words = command.words
        index = 1
        while index < len(words):
            if words[index].text in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
                end = index + 1
                while end < len(words) and words[end].text not in (";", "+"):
                    end += 1
                inner = words[index + 1 : end]
                yield Command(inner, (), (), False, command.inside)
                index = end
            elif words[index].text == "-delete":
                self.doubts.append("find -delete removes what it finds")
            elif words[index].text in ("-fprint", "-fprintf", "-fls", "-fprint0"):
                self.doubts.append(f"find {words[index].text} writes a file")
            elif not words[index].is_known:
                self.doubts.append("an argument of find is known only when it runs")
            index += 1

    def _git(self, arguments: Sequence[Word]) -> None:
        options = split_options(arguments, "-c -C --git-dir --work-tree --namespace --exec-path --config-env", True)
        for option in GIT_GLOBAL:
            if has_option(options.given, option):
                self.doubts.append(f"git {option} can start another program")
        if not options.plain:
            return
        sub = options.plain[0].text
        rest = options.plain[1:]
        words = {word.text for word in rest}
        if not options.plain[0].is_known:
            self.doubts.append("the subcommand of git is known only when it runs")
        if sub == "config":
            plain = [word for word in rest if not word.text.startswith("-")]
            reads = words & {"--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"}
            if (not reads and len(plain) > 1) or words & {"set", "--add", "--replace-all", "-e", "--edit", "edit"}:
                self.doubts.append("git config can set what later git commands run")
        elif sub in GIT_RUNNERS or words & (
            {"run"} if sub == "bisect" else {"foreach"} if sub == "submodule" else set()
        ):
            self.doubts.append(f"git {sub} can start another program")
        for option in GIT_OPTIONS.get(sub, "").split():
            if has_option(rest, option):
                self.doubts.append(f"git {sub} {option} can start another program")
        if any(word.text.startswith("ext::") for word in rest):
            self.doubts.append("git ext:: starts another program")

    def _setting(self, name: str, arguments: Sequence[Word]) -> None:
        for word in arguments:
            if not word.is_known and name != "printf":
                match = _ASSIGNMENT.match(word.text)
                if match is None and name != "unset" and not word.text.startswith("$"):
                    continue
            match = re.match(r"([A-Za-z_]\w*)", word.text)
            if match and (name != "printf"):
                self._assigned(match[1])
        if name == "printf":
            for value in option_values(arguments, ["-v"]):
                self._assigned(value.text)

    def _filter(self, name: str, arguments: Sequence[Word]) -> None:
        options = split_options(arguments, "-f -e -v -F -E -i -l --expression --file")
        if has_option(arguments, "-f") or has_option(arguments, "--file"):
            self.doubts.append(f"{name} -f runs a program from a file")
        programs = option_values(arguments, ["-e", "--expression"]) or list(options.plain[:1])
        for word in programs:
            risky = (
                r"system\s*\(|\||getline|>|close\s*\(|@load|@include"
                if "awk" in name
                else (r"(^|[;{}\n\d$/!]|\\n)\s*[ewWrR](\s|$)|[/|#,@:!~]\s*[gpIiMm0-9]*[ew][gpIiMm0-9]*\s*($|[;}\n\sw])")
            )
            if not word.is_known or re.search(risky, word.text):
                self.doubts.append(f"a program of {name} can start another program or write a file")
