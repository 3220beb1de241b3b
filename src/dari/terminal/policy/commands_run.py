"""What a text reaches: every command it would run, also inside `sudo`, `env`, `xargs`, `sh -c`, `find -exec` …"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from dari.terminal.policy.ast import Dialect, Evaluated, Possible, Redirect, Script, ShellError, SimpleCommand, Word
from dari.terminal.policy.carriers import MAX_CARRIER_DEPTH, RUNNERS, CarrierReader, takes_text
from dari.terminal.policy.evaluation import follow
from dari.terminal.policy.options import has_option, option_values, split_options
from dari.terminal.policy.program_tables import (
    CARRYING,
    CODE,
    ESCAPING,
    FETCHERS,
    INTERPRETERS,
    JOINED,
    KNOWN_PROGRAMS,
    OPENS_SHELL,
    PREFIXES,
    SHELLS,
    STRINGS,
    TRANSPARENT,
)
from dari.terminal.policy.programs import STREAMS, program
from dari.terminal.policy.script import read_expansions, read_script

LOADER = re.compile(r"ld(-[\w.-]+|64)?\.so(\.\d+)*|ld-musl-\w+\.so\.\d+")
LOADER_OPTIONS = "--library-path --inhibit-rpath --audit --preload --argv0 --glibc-hwcaps-prepend --glibc-hwcaps-mask"
_VERSION = re.compile(r"[0-9.]+$")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")


@dataclass(frozen=True, slots=True)
class CommandsRun:
    """`commands`: all that would run, the wrapping ones too. `doubts`: why there may be more that cannot be seen.

    `unread`: programs in other languages, and settings that decide which program is found. A caller that may run
    anything harmless may do that as well; where only listed commands run, it would be a way round the list.
    """

    commands: tuple[SimpleCommand, ...]
    doubts: tuple[str, ...]
    functions: frozenset[str]
    unread: tuple[str, ...] = ()
    possible: tuple[Possible, ...] = ()
    """Commands that may begin among the words of a program that runs commands, or that nobody knows."""
    steps: int = 0
    """How much was read, in letters and words."""


def find_commands_run(text: str, dialect: Dialect = "bash") -> CommandsRun:
    """What `text` would run; ShellError when the text cannot be read."""
    finder = _Finder()
    functions = finder.read(text, dialect, 0)
    finder.follow_evaluated()
    doubts, unread = (tuple(dict.fromkeys(each)) for each in (finder.doubts, finder.unread))
    return CommandsRun(tuple(finder.commands), doubts, functions, unread, tuple(finder.possible), finder.steps)


class _Finder(CarrierReader):
    _fed_by: tuple[tuple[Redirect, ...], bool] = ((), False)
    """The input of the command that runs the text which is being read: here-documents and files, and whether a pipe."""

    def read(self, text: str, dialect: Dialect, depth: int) -> frozenset[str]:
        if depth > MAX_CARRIER_DEPTH:
            raise ShellError(f"commands call commands more than {MAX_CARRIER_DEPTH} deep")
        self.spend(len(text))
        script = read_script(text, dialect)
        self._take(script, dialect, depth)
        for name in sorted(script.functions):
            self.unread.append(f"it defines the function {name}, which stays in the shell and takes that name")
        return script.functions

    def expansions(self, text: str, dialect: Dialect, depth: int) -> None:
        if depth > MAX_CARRIER_DEPTH:
            raise ShellError(f"commands call commands more than {MAX_CARRIER_DEPTH} deep")
        self.spend(len(text))
        self._take(read_expansions(text, dialect), dialect, depth + 1)

    def _take(self, script: Script, dialect: Dialect, depth: int) -> None:
        self.doubts += script.doubts
        self.evaluate(script.evaluated, dialect, depth)
        for name, value in script.assigned:
            self.keep(name, value, dialect, depth)
        for command in script.commands:
            self.look(command, dialect, depth)

    def follow_evaluated(self) -> None:
        """Read the strings that are evaluated, once all values are known; what they run may evaluate more."""
        seen: set[str] = set()
        for name in sorted(self.variables.integers):
            self.evaluate(map(Evaluated, self.variables.values.get(name, [])), "bash", 0)
        while self.evaluated:
            waiting, self.evaluated = self.evaluated, []
            for each, dialect, depth in waiting:

                def read(text: str, dialect: Dialect = dialect, depth: int = depth) -> None:
                    self.expansions(text, dialect, depth)

                self.doubts += follow([each], self.variables, read, seen)

    def look(self, command: SimpleCommand, dialect: Dialect, depth: int) -> None:
        at = len(self.commands)
        self.spend(len(command.words) + 1)
        if not command.reads_pipe and not any(each.feeds_stdin for each in command.redirects):
            redirects, reads_pipe = self._fed_by
            command = replace(command, redirects=(*command.redirects, *redirects), reads_pipe=reads_pipe)
        self.commands.append(command)
        for name, value in command.assignments:
            if name != "IFS" or command.name != "read":
                self.assigned(name, value, depth, dialect)
        if command.name is None:
            self.doubts.append(f"what {command.words[0].text!r} runs is known only when it runs")
            return
        if not command.name:
            return
        name = program(command.name)
        found = len(self.commands)
        outer = self._fed_by
        feeding = tuple(each for each in command.redirects if each.feeds_stdin)
        self._fed_by = ((), False) if name in ("xargs", "parallel") else (feeding, command.reads_pipe)
        try:
            self._look_inside(name, command, dialect, depth)
        finally:
            self._fed_by = outer
        if len(self.commands) > found and (name in TRANSPARENT or (name in SHELLS and takes_text(command))):
            self.commands[at] = replace(command, is_carrier=True)
        is_alone = len(self.commands) == found or name == "chroot"  # the folder of chroot is read as a command, too
        if is_alone and name in OPENS_SHELL and (feeding or command.reads_pipe):
            self._fed(name, command, "sh", depth)
        if name in ESCAPING:
            self._guess_input(command, depth)

    def _look_inside(self, name: str, command: SimpleCommand, dialect: Dialect, depth: int) -> None:
        for inner in self._inner(name, command, dialect, depth):
            if inner.words:
                if depth > MAX_CARRIER_DEPTH:
                    raise ShellError(f"commands call commands more than {MAX_CARRIER_DEPTH} deep")
                self.look(inner, dialect, depth + 1)

    def _guess_input(self, command: SimpleCommand, depth: int) -> None:
        """What is fed to a program of which a line can start another one: `!rm x` of ed, a recipe of make."""
        texts = [Word(each.body) for each in command.redirects if each.feeds_stdin and each.body is not None]
        texts += [word for word in command.words[1:] if word.text.startswith("!")]
        if command.reads_pipe:
            for each in self.commands:
                texts += each.words[1:] if each.name in ("echo", "printf", "print") else ()
        for text in texts:
            self.guess((text,), "sh", depth)

    def _inner(self, name: str, command: SimpleCommand, dialect: Dialect, depth: int) -> Iterator[SimpleCommand]:
        arguments = command.words[1:]
        self.doubtful_options(name, arguments)
        if name in SHELLS:
            self._shell(name, command, depth)
        elif name == "env":
            yield from self._env(command, depth)
        elif name in PREFIXES or LOADER.fullmatch(name):
            yield from self._prefix(name, command, depth)
        elif name in JOINED:
            self._joined(name, arguments, dialect, depth)
        elif name in ("find", "gfind", "bfs", "fd", "fdfind"):
            yield from self._find(command)
        elif name in CARRYING:
            self.carried(command, CARRYING[name], dialect, depth)
        elif name == "git":
            self.git(arguments, depth)
        elif name in ("tmux", "crux", "screen", "cruxd"):
            self.multiplexer(name, arguments, depth)
        elif name in ("su", "runuser", "sg", "newgrp", "script", "capsh", "start-stop-daemon"):
            yield from self._other_user(name, command, depth)
        elif name == "trap":
            options = split_options(arguments, "")
            if options.plain and options.plain[0].text not in ("-", ""):
                self.text(options.plain[0], dialect, depth)
            if dialect == "zsh" and not {"INT", "SIGINT", "2"}.isdisjoint(word.text for word in options.plain[1:]):
                self.doubts.append("trap changes what C-c does at this prompt")
        elif name in ("source", "."):
            is_file = bool(arguments) and arguments[0].is_known and not STREAMS.fullmatch(arguments[0].text)
            if not is_file or command.reads_pipe or any(each.feeds_stdin for each in command.redirects):
                self.doubts.append(f"{name} runs what it reads, which is not known")
        elif name in ("awk", "gawk", "mawk", "nawk", "sed", "gsed"):
            self.filter(name, arguments)
        elif name == "crontab":
            if split_options(arguments, "-u").plain or command.reads_pipe or command.redirects:
                self.doubts.append("crontab runs what it reads later")
        elif _VERSION.sub("", name) in INTERPRETERS:
            self._interpreter(name, command)
        else:
            self.setting(name, arguments, dialect, depth)
            if name not in KNOWN_PROGRAMS:
                self.guess(command.words, dialect, depth)
        for value in option_values(arguments, STRINGS.get(name, "").split()):
            if name in ("fzf", "sk") or (name in CARRYING and not value.is_known):
                self.guess((value,), "sh", depth)
            else:
                self.text(value, "sh", depth)
        for value in option_values(arguments, CODE.get(name, "").split()):
            self.guess((value,), "sh", depth)
        if name in ("make", "gmake"):
            self.make_variables(arguments, depth)
        if name in ("tar", "gtar") and arguments and re.match(r"[A-Za-z]*[IF]", arguments[0].text):
            self.guess(command.words, "sh", depth)

    def _other_user(self, name: str, command: SimpleCommand, depth: int) -> Iterator[SimpleCommand]:
        """`su bob -c text`, `su bob -- -c text`, `runuser -u bob cmd`, `script file cmd`, `start-stop-daemon -x c`."""
        arguments = command.words[1:]
        texts = [word.text for word in arguments]
        after = arguments[texts.index("--") + 1 :] if "--" in texts else ()
        if name == "start-stop-daemon":
            for value in option_values(arguments, ["-x", "-a", "--exec", "--startas"]):
                yield replace(command, words=(value, *after), assignments=())
        elif name in ("runuser", "script"):
            valued = "-u --user -g -G --group" if name == "runuser" else "-c -E -I -O -B -T -m -o -t --command"
            plain = split_options(arguments, valued, stop_at_plain=True).plain
            yield replace(command, words=plain[0 if name == "runuser" else 1 :], assignments=())
        elif name == "sg" and len(arguments) > 1 and not arguments[1].text.startswith("-"):
            self.text(arguments[1], "sh", depth)
        if name in ("su", "runuser", "capsh") and after:
            yield SimpleCommand((Word("sh"), *after))

    def text(self, word: Word, dialect: Dialect, depth: int) -> None:
        if not word.is_known:
            self.doubts.append(f"the text {word.text!r} that would be run is known only then")
            return
        self.read(word.text, dialect, depth + 1)

    def _shell(self, name: str, command: SimpleCommand, depth: int) -> None:
        inner = cast(Dialect, SHELLS[name])
        arguments = command.words[1:]
        options = split_options(arguments, "-o +o -O +O --rcfile --init-file -C --init-command")
        if any(not word.is_known for word in arguments[:1]):
            self.doubts.append(f"how {name} is called is known only then")
        for option in ("--rcfile", "--init-file", "-C", "--init-command"):
            if has_option(arguments, option):
                self.doubts.append(f"{name} {option} runs a file or text first")
        if takes_text(command):
            if options.plain:
                self.text(options.plain[0], inner, depth)
            else:
                self.doubts.append(f"{name} -c without a text")
            return
        reads_stdin = not options.plain or any(re.fullmatch(r"-[A-Za-z]*s[A-Za-z]*", w.text) for w in options.given)
        if options.plain and STREAMS.fullmatch(options.plain[0].text):
            reads_stdin = True
        if options.plain and not options.plain[0].is_known:
            self.doubts.append(f"what {name} runs is known only then")
        if reads_stdin:
            self._fed(name, command, inner, depth)

    def _fed(self, name: str, command: SimpleCommand, dialect: Dialect, depth: int) -> None:
        bodies = [redirect for redirect in command.redirects if redirect.operator.startswith("<")]
        if any(not each.feeds_stdin for each in bodies):
            self.doubts.append(f"{name} runs what it reads, which is not known")
        elif bodies and bodies[-1].body is not None:
            self.read(bodies[-1].body, dialect, depth + 1)
        elif bodies and bodies[-1].operator == "<" and bodies[-1].target.is_known:
            self.unread.append(f"{name} runs the file {bodies[-1].target.text}")
        elif bodies or command.reads_pipe or command.inside or _named_stream(command):
            self.doubts.append(f"{name} runs what it reads, which is not known")

    def _interpreter(self, name: str, command: SimpleCommand) -> None:
        """Code in another language is not read: the name of its interpreter decides, but for code from elsewhere."""
        options = split_options(command.words[1:], "-m -W -X -c -e -r --eval")
        reads_code = not [word for word in options.plain if word.text != "-"] and not options.given
        has_fetched = any(program(each.name or "") in FETCHERS for each in self.commands)
        if any(not word.is_known and "(" in word.text[:2] for word in options.plain[:1]):
            self.doubts.append(f"what {name} runs is known only then")
        if reads_code and command.reads_pipe and has_fetched:
            self.doubts.append(f"{name} runs what was fetched from elsewhere")

    def _env(self, command: SimpleCommand, depth: int) -> Iterator[SimpleCommand]:
        words = command.words[1:]
        given = split_options(words, PREFIXES["env"][0], stop_at_plain=True).given
        for word in given:
            match = re.match(r"-[A-Za-z0-9]*S|--s[a-z-]*=?", word.text)
            if match is None:
                continue
            rest = word.text[match.end() :]
            after = words[words.index(word) + 1 :]
            if not rest and after:
                word, rest, after = after[0], after[0].text, after[1:]
            script = read_script(rest, "sh") if word.is_known and not re.search(r"[$\\]", rest) else None
            if script is None or len(script.commands) != 1:
                self.doubts.append("env -S splits a text that cannot be read as a plain command")
                return
            inner = script.commands[0]
            for name, value in inner.assignments:
                self.assigned(name, value, depth)
            yield replace(command, words=(*inner.words, *after), assignments=())
            return
        yield from self._prefix("env", command, depth)

    def _prefix(self, name: str, command: SimpleCommand, depth: int) -> Iterator[SimpleCommand]:
        valued, skipped = PREFIXES.get(name, (LOADER_OPTIONS, 0))
        options = split_options(command.words[1:], valued, stop_at_plain=True)
        if name == "command" and any(word.text in ("-v", "-V") for word in options.given):
            return
        rest = list(options.plain)
        while rest and name in ("env", "sudo", "doas") and (match := _ASSIGNMENT.match(rest[0].text)):
            word = rest.pop(0)
            self.assigned(match[1], Word(word.text[match.end() :], word.is_known), depth)
        if name == "sudo" and not rest and any(re.fullmatch(r"-[A-Za-z]*[is][A-Za-z]*", w.text) for w in options.given):
            self.doubts.append("sudo opens a shell of another user")
        if name == "exec" and not rest and any(each.feeds_stdin for each in command.redirects):
            self.doubts.append("the shell would run what it then reads")
        if name == "strace":
            for value in option_values(command.words[1:], ["-o"]):
                if value.text[:1] in ("|", "!"):
                    self.text(Word(value.text[1:], value.is_known), "sh", depth)
        if name == "flock" and rest[1:2] and rest[1].text in ("-c", "--command"):
            rest = [rest[0]]
            self.text(command.words[-1], "sh", depth)
        if name == "parallel":
            at = next((index for index, word in enumerate(rest) if word.text.startswith(":::")), len(rest))
            inner = rest[:at]
            if inner and (len(inner) == 1 or any(" " in word.text for word in inner)):
                self.text(Word(" ".join(map(str, inner)), all(word.is_known for word in inner)), "sh", depth)
            rest = inner
        if name == "xargs":
            marks = [value.text for value in option_values(command.words[1:], ["-I", "--replace"])]
            marks += [word.text[2:] or "{}" for word in options.given if re.match(r"-i|--rep[a-z]*$", word.text)]
            if rest and any(mark and mark in rest[0].text for mark in marks):
                self.doubts.append("xargs makes a command of what it reads")
            for mark in filter(None, marks):
                rest = [_filled_in(word, mark) for word in rest]
        if skipped and name != "flock" and rest and rest[0].is_known and not re.match(r"[\d.]", rest[0].text):
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
            is_shell = program(rest[0].text) in SHELLS
            if "{}" in rest[0].text or (is_shell and not takes_text(replace(command, words=tuple(rest[:-1])), 1)):
                self.doubts.append(f"{name} makes a command of what it reads")
        yield replace(
            command, words=tuple(rest), assignments=(), reads_pipe=name not in ("xargs",) and command.reads_pipe
        )

    def _joined(self, name: str, arguments: Sequence[Word], dialect: Dialect, depth: int) -> None:
        valued, skipped = JOINED[name]
        options = split_options(arguments, valued, stop_at_plain=name != "hyperfine")
        rest = options.plain[skipped:]
        if name in ("at", "batch", "run-parts"):
            self.doubts.append(f"{name} runs code that the policy does not read")
        elif name == "hyperfine":
            for word in rest:
                self.text(word, "sh", depth)
        elif rest:
            text = Word(" ".join(word.text for word in rest), all(word.is_known for word in rest))
            self.text(text, dialect if name == "eval" else "sh", depth)

    def _find(self, command: SimpleCommand) -> Iterator[SimpleCommand]:
        words = command.words
        index = 1
        while index < len(words):
            if words[index].text.startswith(("--exec=", "--exec-batch=")):
                yield SimpleCommand(
                    (Word(words[index].text.partition("=")[2]), *words[index + 1 :]), (), (), False, command.inside
                )
            if words[index].text in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
                end = index + 1
                while end < len(words) and words[end].text not in (";", "+"):
                    end += 1
                inner = words[index + 1 : end]
                if inner and ("{}" in inner[0].text or program(inner[0].text) in RUNNERS):
                    inner = tuple(_filled_in(word, "{}") for word in inner)
                yield SimpleCommand(inner, (), (), False, command.inside)
                index = end
            elif words[index].text == "-delete":
                self.doubts.append("find -delete removes what it finds")
            elif words[index].text in ("-fprint", "-fprintf", "-fls", "-fprint0"):
                self.unread.append(f"find {words[index].text} writes a file")
            elif not words[index].is_known and not re.match(r'"|\$\{?(HOME|PWD)\b', words[index].text):
                # Without quotes it may hold any number of words, `-exec` among them.
                self.doubts.append("an argument of find is known only when it runs")
            index += 1


def _filled_in(word: Word, mark: str) -> Word:
    """A word in which a mark stands for what is known only then; in a text it stands where a variable could."""
    if mark not in word.text or not word.is_known:
        return word
    if re.search(r"\s", word.text):
        return replace(word, text=word.text.replace(mark, "$x"))
    return Word('"' + word.text.replace(mark, "$x") + '"', False)


def _named_stream(command: SimpleCommand) -> bool:
    """Whether a shell is given an open file by its name, such as /dev/fd/3, as its script."""
    return any(STREAMS.fullmatch(word.text) and len(word.text) > 1 for word in command.words[1:])
