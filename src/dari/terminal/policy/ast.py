"""The parts of a shell text: words with what is known of them, redirections, simple commands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Dialect = Literal["bash", "zsh", "fish", "sh"]

MAX_POSSIBLE_WORDS = 32
"""How many words of a command that only may begin somewhere are compared with patterns."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNDER_VARIABLE = re.compile(r'"(\$\{?[A-Za-z_]\w*\}?(?:/[\w.+-]+)+)"|(\$\{?(?:HOME|PWD)\}?(?:/[\w.+-]+)+)')


class ShellError(Exception):
    """The text is not complete, or not a text that we read the way every shell does."""


class ScriptTooLarge(ShellError):
    """The text would take too long to read."""


@dataclass(frozen=True, slots=True)
class Word:
    """One argument. `text` is its value where `is_known`; else the shell decides it when it runs.

    `has_glob`: a known word with an unquoted `*`, `?` or `[`. `has_tilde`: it starts with an unquoted `~`.
    """

    text: str
    is_known: bool = True
    has_glob: bool = False
    has_tilde: bool = False
    is_quoted: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Redirect:
    """`operator` as written without its number; `body` is the text of a here-document or here-string, when known."""

    operator: str
    target: Word
    body: str | None = None
    number: str = ""

    @property
    def writes(self) -> bool:
        return ">" in self.operator and not self._copies

    @property
    def feeds_stdin(self) -> bool:
        return self.operator.startswith("<") and self.number in ("", "0")

    @property
    def reads(self) -> bool:
        return self.operator in ("<", "<>")

    @property
    def _copies(self) -> bool:
        # `2>&1` and `>&-` name an open file, `>&file` is the old spelling of `&>file`.
        return self.operator == ">&" and (self.target.text.rstrip("-").isdigit() or self.target.text == "-")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A simple command as the shell would run it; `words` is empty when there are only assignments."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    reads_pipe: bool = False
    inside: str = ""
    """The function whose body it is in."""
    is_carrier: bool = False
    """What it runs is judged in its place; its own name needs no permission."""

    @property
    def name(self) -> str | None:
        """What is run; None when the shell decides it later, "" when nothing is."""
        if not self.words:
            return ""
        first = self.words[0]
        if not first.is_known:
            # One word, whatever the variable holds, and its last part is written out.
            match = _UNDER_VARIABLE.fullmatch(first.text)
            return match[1] or match[2] if match else None
        is_told = not first.has_glob and (not first.has_tilde or first.text.startswith("~/"))
        return first.text if is_told else None

    def __str__(self) -> str:
        return " ".join(word.text for word in self.words)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A string that the shell evaluates as arithmetic, or as a name with a subscript; as written if it is not known.

    `array`: it is a subscript of that array. `is_plain_use`: of `${a[x]}` or `a[x]=…`, where the subscript of an
    associative array is only a key.
    """

    word: Word
    array: str = ""
    is_plain_use: bool = False


@dataclass(frozen=True, slots=True)
class Possible:
    """A command that may begin at `start` among the words of a program that runs other commands, or may do so.

    It is built when it is asked for: a text of 3,000 words would be copied 3,000 times. Not `is_certain`: whether the
    program runs its words at all is not known.
    """

    words: tuple[Word, ...]
    start: int = 0
    is_certain: bool = False

    @property
    def name(self) -> str:
        return self.words[self.start].text

    @property
    def command(self) -> SimpleCommand:
        return SimpleCommand(self.words[self.start : self.start + MAX_POSSIBLE_WORDS])


@dataclass(frozen=True, slots=True)
class Script:
    """Everything a text would run, in the order written; a command inside another comes before it."""

    commands: tuple[SimpleCommand, ...]
    functions: frozenset[str]
    doubts: tuple[str, ...]
    evaluated: tuple[Evaluated, ...] = ()
    assigned: tuple[tuple[str, Word], ...] = ()
    """Variables that are set by a loop, an expansion or an array, with their values."""


def split_assignment(word: Word, raw: str) -> tuple[str, str, Word] | None:
    """(name, subscript, value) when the word is `name=value`, `name[subscript]=value`, or either with `+=`."""
    match = re.match(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]]*\])?\+?=", raw)
    if match is None:
        return None
    subscript, value = "", word.text[match.end() :]
    if match[2]:
        # Quotes and expansions are one letter each in `raw`, so the end is looked for in the text itself.
        end = re.search(r"\]\+?=", word.text)
        subscript = word.text[match.end(1) + 1 : end.start() if end else len(word.text)]
        value = word.text[end.end() :] if end else ""
    return match[1], subscript, Word(value, word.is_known, word.has_glob, value.startswith("~"), word.is_quoted)


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None
