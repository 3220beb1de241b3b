"""Strings that a shell evaluates a second time: arithmetic, subscripts of arrays, names behind `${!x}`.

bash expands a subscript when it evaluates it, so `let 'x[$(rm y)]'` runs `rm`, and so does `((x))` when the value of
`x` is `a[$(rm y)]`. What matters is where a string ends up, not how it was written: each such string is read for
substitutions, and the variables it names are followed to every value that the text gives them. A value that only the
shell will know, and that need not be a number, is a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dari.terminal.policy.ast import Evaluated, ShellError, Word

MAX_EVALUATED = 2_000
"""Strings that are followed for one text; nobody writes as many, and each is read."""

COMPARISONS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
UNKNOWN = Word("$(…)", False)
"""The value of a variable that is read from elsewhere."""

_NUMBERS = frozenset(
    ("#", "?", "$", "!", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "BASHPID", "PPID", "UID", "EUID")
) | {
    *("COLUMNS", "LINES", "SHLVL", "OPTIND", "HISTCMD", "EPOCHSECONDS", "EPOCHREALTIME", "BASH_SUBSHELL"),
    *("BASH_VERSINFO", "PIPESTATUS"),
}
INTEGERS = frozenset(("RANDOM", "HISTCMD", "OPTIND", "SECONDS", "LINENO", "EUID", "UID", "PPID"))
"""Variables of the shell that have the integer attribute: what they are set to is arithmetic."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_EXPLICIT = re.compile(r"\$\{?[#!]?([A-Za-z_]\w*|[0-9]+|[@*#?$!_-])")
_LENGTH = re.compile(r"\$\{#[^{}]*\}|\$\{![A-Za-z_]\w*\[[@*]\]\}")
_LONE_DOLLAR = re.compile(r"\$(?![A-Za-z_0-9({\[@*#?$!'\"-])")
_SUBSTITUTES = re.compile(r"\$[({\[]|`")
_COUNTS = re.compile(
    r"(?:.*\|)?\s*(?:wc\s+-[lcwm]+(?:\s*<\s*[^\s|;&]+)?|date(?:\s+-u)?\s+['\"]?\+%(?:s|N|s%N|Y|m|d|j|u|H|M|S|Y%m%d)['\"]?|"
    r"nproc|id\s+-[ug]|tput\s+(?:cols|lines)|grep\s+-[A-Za-z]*c[A-Za-z]*(?:\s+-?[\w.'\"^$-]+)?|pgrep\s+-c\s+\S+|"
    r"stat\s+(?:-c\s*|-f\s*|--format=)['\"]?%[sYzm]['\"]?\s+[^\s|;&]+|git\s+rev-list\s+[^|;&]*--count[^|;&]*|"
    r"seq\s+[\d\s.-]+|jq\s+(?:-r\s+)?['\"]?\.?\s*\|?\s*length['\"]?|bc(?:\s+-l)?|echo\s+\d+)\s*",
    re.DOTALL,
)


@dataclass(slots=True)
class Variables:
    """Every value that a text gives to a variable; whose values are evaluated (integers and references to names), and
    which are associative arrays."""

    values: dict[str, list[Word]] = field(default_factory=dict)
    integers: set[str] = field(default_factory=set)
    maps: set[str] = field(default_factory=set)

    def set(self, name: str, value: Word) -> None:
        self.values.setdefault(name, []).append(Word(value.text, False) if value.has_glob else value)


def stores_evaluated_text(value: Word) -> bool:
    """Whether the value, wherever it is used as a number or a name, would run something: `a[$(rm x)]`."""
    at = value.text.find("[") if value.is_known else -1
    return at >= 0 and _SUBSTITUTES.search(value.text, at) is not None


def follow(
    evaluated: Iterable[Evaluated], variables: Variables, read: Callable[[str], None], seen: set[str]
) -> Iterable[str]:
    """Why something may run that cannot be seen; `read` is given each string in which substitutions stand.

    `seen` holds the variables and strings that were followed before.
    """
    waiting = [each for each in evaluated if not (each.array in variables.maps and each.is_plain_use)]
    for each in waiting:
        if len(seen) > MAX_EVALUATED:
            raise ShellError(f"more than {MAX_EVALUATED} strings are evaluated as arithmetic")
        text = each.word.text
        if (key := f"={each.word.is_known}{text}") in seen:
            continue
        seen.add(key)
        try:
            if _SUBSTITUTES.search(text):
                read(text)
        except ShellError as error:
            yield f"{_shown(text)} is evaluated as arithmetic and cannot be read: {error}"
            continue
        yield from _names(each, variables, waiting, seen)


def _names(each: Evaluated, variables: Variables, waiting: list[Evaluated], seen: set[str]) -> Iterable[str]:
    text = _LENGTH.sub("0", without_arithmetic(each.word.text))
    if _LONE_DOLLAR.search(text) and each.word.is_known:
        yield f"{_shown(text)} is part of an arithmetic expression"
    bare, results = without_substitutions(text)
    for result in results:
        if not is_count(result):
            yield f"the output of {_shown(result)} is evaluated as arithmetic, which can run commands"
    explicit = {match[1] for match in _EXPLICIT.finditer(bare)}
    for name in explicit | set(_IDENTIFIER.findall(bare)):
        if name in seen:
            continue
        values = variables.values.get(name)
        if values is None:
            if name in explicit and name not in _NUMBERS:
                yield f"the value of ${name} is evaluated as arithmetic, which can run commands, and is known only then"
            continue
        seen.add(name)
        waiting += [Evaluated(value) for value in values]


def without_arithmetic(text: str) -> str:
    """The text with each `$((…))` as a number: that is evaluated on its own, and its result is one."""
    parts: list[str] = []
    position = 0
    while (start := text.find("$((", position)) >= 0:
        end = _closing(text, start + 1)
        if end < 0 or text[end - 1] != ")":
            break
        parts += [text[position:start], "0"]
        position = end + 1
    return "".join([*parts, text[position:]])


def without_substitutions(text: str) -> tuple[str, list[str]]:
    """The text without `$(…)` and backticks, and what stood in them."""
    parts: list[str] = []
    inner: list[str] = []
    position = 0
    for match in re.finditer(r"\$\(|`", text):
        if match.start() < position:
            continue
        end = text.find("`", match.end()) if match[0] == "`" else _closing(text, match.start() + 1)
        if end < 0:
            break
        parts += [text[position : match.start()], " "]
        inner.append(text[match.end() : end])
        position = end + 1
    return "".join([*parts, text[position:]]), inner


def is_count(command: str) -> bool:
    """Whether the output of this command can only be numbers."""
    return _COUNTS.fullmatch(command) is not None


def _closing(text: str, start: int) -> int:
    """The place of the parenthesis that closes the one at `start`; -1 when none does."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.start()
    return -1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
