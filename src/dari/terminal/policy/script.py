"""A shell text as the list of what it would run: lists, pipelines, compound commands, functions, here-documents."""

from __future__ import annotations

import re
from dataclasses import replace

from dari.terminal.policy.ast import (
    Dialect,
    Evaluated,
    Redirect,
    Script,
    ScriptTooLarge,
    ShellError,
    SimpleCommand,
    Word,
    is_name,
    split_assignment,
)
from dari.terminal.policy.compounds import CompoundReader

MAX_SCRIPT_CHARS = 64 * 1024
MAX_COMMANDS = 3_000

_REDIRECT = re.compile(r"(?:\d+|\{[A-Za-z_]\w*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||>!|<\?|<|>)")
_VARIABLE_OF_REDIRECT = re.compile(r"\{[A-Za-z_]\w*\[.*\]\}", re.DOTALL)
_OPEN_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[[^]]*$")
_OPERATORS = ("&&", "||", "|&", "&|", "&!", "|", ";", "&", "\n")
_POSIX_WORDS = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "while",
        "until",
        "do",
        "done",
        "for",
        "case",
        "esac",
        "select",
        "function",
        "time",
        "!",
        "{",
        "}",
        "[[",
        "coproc",
    ]
)
_ZSH_WORDS = _POSIX_WORDS | {"repeat", "foreach", "end", "nocorrect", "always"}
_FISH_WORDS = frozenset(
    ["if", "else", "while", "for", "switch", "case", "begin", "end", "function", "and", "or", "not", "!", "time"]
)


def read_script(text: str, dialect: Dialect = "bash") -> Script:
    """What `text` would run when it is typed at a prompt; ShellError when that is not clear."""
    if len(text) > MAX_SCRIPT_CHARS:
        raise ShellError(f"the text has {len(text)} characters, more than the {MAX_SCRIPT_CHARS} that are read")
    if "\0" in text:
        raise ShellError("the text holds a NUL")
    reader = ScriptReader(text.replace("\r\n", "\n").replace("\r", "\n"), dialect)
    if re.match(r"\s*\^", text) and dialect in ("bash", "zsh"):
        reader.doubts.append("a line that starts with ^ changes and repeats the last command")
    reader.read_list(frozenset())
    if reader.waiting:
        raise ShellError("a here-document is not closed")
    return reader.result()


def read_expansions(text: str, dialect: Dialect = "bash") -> Script:
    """The substitutions inside `text`, whatever its quotes, as in a here-document."""
    reader = ScriptReader(text, dialect)
    reader.read_until_end()
    return reader.result()


class ScriptReader(CompoundReader):
    def __init__(self, text: str, dialect: Dialect, depth: int = 0) -> None:
        super().__init__(text, dialect, depth)
        self.commands: list[SimpleCommand] = []
        self.functions: set[str] = set()
        self.inside = ""
        self.waiting: list[tuple[int, int, str, bool, bool]] = []
        self._reserved = {"fish": _FISH_WORDS, "zsh": _ZSH_WORDS}.get(dialect, _POSIX_WORDS)

    def result(self) -> Script:
        return Script(
            tuple(self.commands),
            frozenset(self.functions),
            tuple(dict.fromkeys(self.doubts)),
            tuple(self.evaluated),
            tuple(self.assigned),
        )

    def _inner(self, text: str) -> ScriptReader:
        inner = ScriptReader(text, self.dialect, self.depth + 1)
        inner.inside, inner.guesses = self.inside, self.guesses
        inner.evaluated, inner.assigned = self.evaluated, self.assigned
        return inner

    def read_inner(self, text: str) -> None:
        inner = self._inner(text)
        inner.read_list(frozenset())
        if inner.waiting:
            raise ShellError("a here-document is not closed")
        self.commands += inner.commands
        self.functions |= inner.functions
        self.doubts += inner.doubts

    def read_list(self, closers: frozenset[str]) -> str:
        """Read commands up to one of `closers` and return it; with none, up to the end."""
        self.depth += 1
        if self.depth > 200:
            raise ShellError("commands are nested too deeply")
        operator = ""
        while True:
            self.skip(newlines=True)
            if self.position >= len(self.text):
                if closers:
                    raise ShellError(f"the text ends before {sorted(closers)[0]!r}")
                if operator in ("|", "|&", "&&", "||"):
                    raise ShellError(f"the text ends after {operator!r}")
                break
            for mark in (";;&", ";&", ";;", ")"):
                if self.at(mark):
                    closer = ")" if mark == ")" else ";;"
                    if closer not in closers:
                        raise ShellError(f"{mark!r} closes nothing")
                    self.position += len(mark)
                    self.depth -= 1
                    return closer
            bare = self.bare()
            if bare in closers:
                self.position += len(bare)
                self.depth -= 1
                return bare
            if self.here in ";&|" and not (self.dialect == "fish" and self.here == ";"):
                raise ShellError(f"nothing stands before {self.here!r}")
            if self.here != ";":
                self.read_command(operator in ("|", "|&"))
            operator = self._operator()
        self.depth -= 1
        return ""

    def _operator(self) -> str:
        self.skip(newlines=False)
        if self.position >= len(self.text) or self.at(")") or self.at(";;") or self.at(";&"):
            return ""
        for operator in _OPERATORS:
            if self.at(operator):
                if operator in ("&|", "&!") and self.dialect != "zsh":
                    continue
                if operator != "\n":
                    self.position += len(operator)
                return "" if operator in ("&|", "&!") else operator
        raise ShellError(f"{self.here!r} is not expected here")

    def read_command(self, is_piped: bool) -> None:
        bare = self.bare()
        first = len(self.commands)
        if self.here == "(":
            if self.dialect == "fish":
                raise ShellError("fish does not run ( ) in place of a command")
            self.read_parenthesised()
        elif self.here == "{" and self.dialect == "zsh" and bare != "{":
            raise ShellError("zsh may open a group here")
        elif bare in self._reserved:
            self.position += len(bare)
            if self.read_compound(bare, is_piped):
                return
        else:
            self._simple(is_piped)
            return
        self._trailing_redirects(is_piped, first)

    def _simple(self, is_piped: bool) -> None:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        waiting_from = len(self.waiting)
        while True:
            self.skip(newlines=False)
            if self.position >= len(self.text) or self.here in "\n;|)":
                break
            match = _REDIRECT.match(self.text, self.position)
            if (
                match
                and words
                and _VARIABLE_OF_REDIRECT.fullmatch(words[-1].text)
                and self.text[self.position - 1] == "}"
            ):
                self.evaluated.append(Evaluated(words[-1]))
            if match and not (match[0] in ("<", ">") and self.opens_substitution() and self.dialect in ("bash", "zsh")):
                redirects.append(self._redirect(match, len(redirects)))
                continue
            if self.here == "&":
                break
            if self.here == "(" and not (self.dialect == "fish" and words):
                if len(words) == 1 and not assignments and not redirects and words[0].is_known:
                    self.read_empty_parentheses()
                    self.read_function(words[0])
                    return
                raise ShellError("( after a word")
            before = self.position
            word, raw = self.read_word()
            if self.position == before:
                raise ShellError(f"{self.here!r} is not expected here")
            assigned = split_assignment(word, raw) if not words else None
            if assigned is not None and is_name(assigned[0]):
                name, subscript, value = assigned
                if subscript:
                    self.evaluated.append(Evaluated(Word(subscript, word.is_known), name, is_plain_use=True))
                if self.here == "(" and self.text[self.position - 1] == "=":
                    self._array(name)
                    value = Word("(…)", False)
                assignments.append((name, value))
            else:
                if not words and _OPEN_SUBSCRIPT.match(raw):
                    self.doubts.append(f"{raw.replace(chr(0), '…')} begins a subscript, which the shell evaluates")
                words.append(word)
        self._add(
            SimpleCommand(tuple(words), tuple(assignments), tuple(redirects), is_piped, self.inside), waiting_from
        )

    def _add(self, command: SimpleCommand, waiting_from: int) -> None:
        if not (command.words or command.assignments or command.redirects):
            raise ShellError("an empty command")
        if len(self.commands) >= MAX_COMMANDS:
            raise ScriptTooLarge(f"the text has more than {MAX_COMMANDS} commands")
        self.commands.append(command)
        for index in range(waiting_from, len(self.waiting)):
            _, which, delimiter, is_quoted, is_tabbed = self.waiting[index]
            self.waiting[index] = (len(self.commands) - 1, which, delimiter, is_quoted, is_tabbed)

    def _array(self, name: str) -> None:
        self.position += 1
        while True:
            self.skip(newlines=True)
            if self.position >= len(self.text):
                raise ShellError("an array is not closed")
            if self.here == ")":
                self.position += 1
                return
            if self.here in ";&|(":
                raise ShellError(f"{self.here!r} inside an array")
            before = self.position
            word, raw = self.read_word()
            if self.position == before:
                raise ShellError(f"{self.here!r} inside an array")
            if raw.startswith("["):
                self.evaluated.append(Evaluated(word, name, is_plain_use=True))
            self.assigned.append((name, word))

    def _redirect(self, match: re.Match[str], which: int) -> Redirect:
        self.position = match.end()
        self.skip(newlines=False)
        operator = match[1]
        before = self.position
        word, raw = self.read_word()
        if self.position == before:
            raise ShellError(f"nothing follows {operator}")
        if operator in ("<<", "<<-") and self.dialect != "fish":
            if not word.is_known:
                raise ShellError("the end of a here-document is not known")
            self.waiting.append((-1, which, word.text, "\0" in raw, operator == "<<-"))
        body = word.text + "\n" if operator == "<<<" and word.is_known else None
        return Redirect(operator, word, body, match[0].removesuffix(operator))

    def _trailing_redirects(self, is_piped: bool, first: int) -> None:
        """Of a group, whose commands from `first` on read what the group reads."""
        redirects: list[Redirect] = []
        waiting_from = len(self.waiting)
        while True:
            self.skip(newlines=False)
            match = _REDIRECT.match(self.text, self.position)
            if match is None:
                break
            redirects.append(self._redirect(match, len(redirects)))
        if is_piped or any(redirect.operator.startswith("<") for redirect in redirects):
            self.commands[first:] = [replace(command, reads_pipe=True) for command in self.commands[first:]]
        if redirects:
            self._add(SimpleCommand((), (), tuple(redirects), is_piped, self.inside), waiting_from)

    def read_bodies(self) -> None:
        waiting, self.waiting = self.waiting, []
        moved = 0
        for place, which, delimiter, is_quoted, is_tabbed in waiting:
            place += moved
            lines: list[str] = []
            while True:
                if self.position >= len(self.text):
                    raise ShellError("a here-document is not closed")
                end = self.text.find("\n", self.position)
                end = len(self.text) if end < 0 else end
                line = self.text[self.position : end]
                self.position = min(end + 1, len(self.text))
                line = line.lstrip("\t") if is_tabbed else line
                if line == delimiter:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            is_known = True
            if not is_quoted:
                inner = self._inner(body)
                inner.read_until_end()
                is_known = "$" not in body and "`" not in body and "\\" not in body
                # Before the command that reads it, as any substitution is.
                self.commands[place:place] = inner.commands
                place += len(inner.commands)
                moved += len(inner.commands)
                self.doubts += inner.doubts
            command = self.commands[place]
            redirects = list(command.redirects)
            redirects[which] = replace(redirects[which], body=body if is_known else None)
            self.commands[place] = replace(command, redirects=tuple(redirects))
