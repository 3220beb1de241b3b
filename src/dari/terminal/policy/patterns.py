"""Patterns of commands, matched word by word and never as parts of a text.

ls              the command `ls`, with any arguments
git *           the same: a last `*` stands for any arguments
git status      exactly this
npm run test:*  a `*` inside a word stays inside it
rm -rf          for dangerous and denied patterns: these options in any order and spelling, anywhere
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate

from dari.terminal.policy.ast import SimpleCommand
from dari.terminal.policy.programs import program

SYSTEM_DIRECTORIES = (
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
)


@dataclass(frozen=True, slots=True)
class CommandPattern:
    text: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> CommandPattern:
        return cls(text, tuple(text.split()))

    def allows(self, command: SimpleCommand) -> bool:
        """Whether the whole command is one that the pattern describes."""
        name = command.name
        if not name or not self._names(name):
            return False
        rest = self.words[1:]
        if not rest or rest == ("*",):
            return True
        arguments = command.words[1:]
        if rest[-1] == "*":
            rest, arguments = rest[:-1], arguments[: len(rest) - 1]
        if len(rest) != len(arguments):
            return False
        return all(
            word.is_known and not word.has_glob and fnmatchcase(word.text, part)
            for word, part in zip(arguments, rest, strict=True)
        )

    def finds(self, command: SimpleCommand) -> bool:
        """Whether the command is that one and has all the words of the pattern, in any order of options."""
        name = command.name
        if not name or not fnmatchcase(program(name), program(self.words[0])):
            return False
        arguments = [word.text for word in command.words[1:]]
        return all(_has(arguments, part) for part in self.words[1:] if part != "*")

    def is_named_in(self, text: str) -> bool:
        """Whether the letters of the command occur at all: a quick look before a long one."""
        return re.sub(r"[*?\[].*", "", program(self.words[0])) in text

    def _names(self, name: str) -> bool:
        wanted = self.words[0]
        if "/" in wanted or "/" not in name:
            return fnmatchcase(name, wanted)
        # /tmp/ls is not the `ls` that somebody allowed.
        directory, _, last = name.rpartition("/")
        return directory in SYSTEM_DIRECTORIES and fnmatchcase(last, wanted)


def watch(patterns: Sequence[CommandPattern]) -> Callable[[str], bool]:
    """Whether a command of this name can be found by one of the patterns: a quick look before a long one."""
    names = re.compile("|".join(translate(program(pattern.words[0])) for pattern in patterns) or r"(?!)")
    return lambda name: names.match(program(name)) is not None


def _has(arguments: Sequence[str], part: str) -> bool:
    if re.fullmatch(r"-[A-Za-z]+", part):
        letters = {letter for word in arguments if re.fullmatch(r"-[A-Za-z]+", word) for letter in word[1:]}
        return set(part[1:]) <= letters or part in arguments
    return any(fnmatchcase(word, part) for word in arguments)
