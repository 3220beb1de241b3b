"""Builtins that change the shell itself: variables, keys, names; and what they evaluate while they do it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dari.terminal.policy.ast import Dialect, Evaluated, Word
from dari.terminal.policy.compounds import tested
from dari.terminal.policy.evaluation import INTEGERS, UNKNOWN, Variables, stores_evaluated_text
from dari.terminal.policy.options import option_values, split_options
from dari.terminal.policy.program_tables import (
    COMMAND_NAME,
    COMMAND_NAMES,
    DECIDING_NAMES,
    FINDING_NAMES,
    OPTION_NAMES,
    ZSH_NAMES,
)

_DECLARING = frozenset(("export", "declare", "typeset", "local", "readonly", "integer", "float", "private"))
_SETTERS = _DECLARING | {"set", "read", "printf", "print", "let", "unset", "setenv", "getopts", "mapfile", "readarray"}
_TARGET = re.compile(r"([A-Za-z_]\w*)(\[)?")
_VALUED = {
    "read": "-a -d -i -n -N -p -t -u -k -q",
    "mapfile": "-d -n -O -s -u -C -c",
    "readarray": "-d -n -O -s -u -C -c",
}
_ZSH_NUMBERS = frozenset(("shift", "exit", "return", "break", "continue", "logout", "print", "printf"))
"""zsh evaluates what these take for a number; bash and dash do not."""


class BuiltinReader:
    """Notes `doubts`, what is `unread`, `variables`, and strings that are evaluated, each with its shell."""

    def __init__(self) -> None:
        self.doubts: list[str] = []
        self.unread: list[str] = []
        self.variables = Variables()
        self.evaluated: list[tuple[Evaluated, Dialect, int]] = []

    def text(self, word: Word, dialect: Dialect, depth: int) -> None:
        """Read a shell text that a builtin or a program would run."""
        raise NotImplementedError

    def expansions(self, text: str, dialect: Dialect, depth: int) -> None:
        """Read the substitutions inside a text."""
        raise NotImplementedError

    def guess(self, words: tuple[Word, ...], dialect: Dialect, depth: int) -> None:
        """Note what a program may run that is given these words."""
        raise NotImplementedError

    def evaluate(self, found: Iterable[Evaluated], dialect: Dialect, depth: int) -> None:
        if dialect != "fish":
            self.evaluated += [(each, dialect, depth) for each in found]

    def assigned(self, name: str, value: Word, depth: int, dialect: Dialect = "bash") -> None:
        """A variable is set, for one command or for good."""
        self.keep(name, value, dialect, depth)
        if name in OPTION_NAMES:
            self.guess((value,), "sh", depth)
        is_deciding = name in DECIDING_NAMES or (dialect == "zsh" and name.removeprefix("dis_") in ZSH_NAMES)
        if is_deciding or name.startswith(("GIT_CONFIG_KEY", "GIT_CONFIG_VALUE", "BASH_FUNC")):
            self.doubts.append(f"setting {name} changes what later commands run")
        elif name in COMMAND_NAMES or COMMAND_NAME.fullmatch(name):
            if not value.is_known:
                self.unread.append(f"setting {name} decides what other programs run")
            elif value.text.strip():
                self.text(value, "sh", depth)
        elif name == "HOME" and not (value.is_known and re.fullmatch(r"[\w./+@-]*", value.text)):
            self.doubts.append("HOME gets a value that is known only at run time, which changes what $HOME/… runs")
        elif name in FINDING_NAMES:
            self.unread.append(f"setting {name} decides which programs or libraries later commands find")

    def keep(self, name: str, value: Word, dialect: Dialect, depth: int) -> None:
        """Remember the value; one that would run something wherever it is evaluated counts as if it were."""
        self.variables.set(name, value)
        if name in INTEGERS or stores_evaluated_text(value):
            self.evaluate([Evaluated(value)], dialect, depth)

    def setting(self, name: str, arguments: Sequence[Word], dialect: Dialect, depth: int) -> None:
        words = [word.text for word in arguments]
        if name in _SETTERS:
            self._set(name, arguments, dialect, depth)
        elif name in ("test", "["):
            # ksh and zsh compare expressions; bash and dash only numbers.
            self.evaluate(tested(arguments, dialect in ("zsh", "sh")), dialect, depth)
        elif name == "wait":
            self._target(name, option_values(arguments, ["-p"]), dialect, depth)
        elif name in ("compgen", "complete"):
            self._completions(name, arguments, dialect, depth)
        elif name in ("alias", "abbr"):
            if any("=" in word.text or not word.is_known for word in arguments) or (dialect == "fish" and arguments):
                self.doubts.append(f"{name} changes what a later word runs")
        elif (
            (name == "bind" and any(not re.fullmatch(r"-[lpPsSvVLM]+", word) for word in words))
            or (name == "bindkey" and any(not re.fullmatch(r"-[lL]+", word) for word in words))
            or name in ("fish_vi_key_bindings", "fish_hybrid_key_bindings")
            or (name == "hash" and any(re.match(r"-[a-z]*p|[^-].*=", word) for word in words))
            or (name == "enable" and words)
            or (name == "zmodload" and any("files" in word or not _is_flag(word) for word in words))
            or (name in ("zle", "add-zsh-hook", "zstyle") and words)
        ):
            self.doubts.append(f"{name} changes what keys or words do in this shell")
        elif name == "fc" and not any(re.fullmatch(r"-[A-Za-z]*l[A-Za-z]*", word) for word in words):
            self.doubts.append("fc runs commands of the history")
        elif name == "stty" and any(re.fullmatch(r"-echo|raw|cbreak|-icanon|-cooked", word) for word in words):
            self.doubts.append("stty hides later typing, which is then not judged")
        elif name == "stty" and not all(map(_STTY_HARMLESS.fullmatch, words)):
            self.doubts.append("stty changes what keys do in this terminal")
        elif name == "argparse" and dialect == "fish":
            for word in arguments:
                if "!" in word.text:
                    self.text(Word(word.text.partition("!")[2], word.is_known), dialect, depth)
        if (name == "print" and any(re.match(r"-[A-Za-z]*z", word) for word in words)) or name in (
            "pushln",
            "commandline",
        ):
            self.doubts.append(f"{name} writes a line that the next Enter runs")
        if name in ("set", "setopt") and {"vi", "emacs"} & set(words):
            self.doubts.append(f"{name} changes what keys do in this shell")
        if dialect == "zsh" and name in _ZSH_NUMBERS:
            self.evaluate([Evaluated(word) for word in arguments if word.is_known], dialect, depth)
            if name == "print" and any(re.match(r"-[A-Za-z]*P", word) for word in words):
                self.doubts.append("print -P expands what it prints")

    def _completions(self, name: str, arguments: Sequence[Word], dialect: Dialect, depth: int) -> None:
        """`-W` expands its words; `-C` and `-F` run what they name, at once or at a Tab."""
        for value in option_values(arguments, ["-W"]):
            if not value.is_known:
                self.doubts.append(f"{name} -W expands words that are known only then")
            elif name == "compgen":
                self.expansions(value.text, dialect, depth)
            elif re.search(r"[$`]", value.text):
                self.doubts.append("complete -W expands its words at a Tab")
        if name == "complete" and any(re.match(r"-[A-Za-z]*[CFca]", word.text) for word in arguments):
            self.doubts.append("complete changes what keys or words do in this shell")

    def _set(self, name: str, arguments: Sequence[Word], dialect: Dialect, depth: int) -> None:
        if name in ("printf", "print"):
            self._target(name, option_values(arguments, ["-v"]), dialect, depth)
        elif dialect == "fish" and name == "set":
            plain = [word for word in arguments if not word.text.startswith("-")]
            if plain:
                text = " ".join(word.text for word in plain[1:])
                self.assigned(plain[0].text, Word(text, all(word.is_known for word in plain[1:])), depth, dialect)
        elif name in _DECLARING:
            self._declare(name, arguments, dialect, depth)
        elif name == "let":
            self._let(arguments, dialect, depth)
        elif name in ("read", "mapfile", "readarray"):
            targets = split_options(arguments, _VALUED[name]).plain
            self._target(name, [*targets, *option_values(arguments, ["-a"])] or [Word("REPLY")], dialect, depth)
        elif name == "getopts":
            self._target(name, [*arguments[1:2], Word("OPTARG")], dialect, depth)
        elif name == "unset":
            plain = [word for word in arguments if not word.text.startswith("-")]
            self.evaluate([Evaluated(word) for word in plain if "[" in word.text or not word.is_known], dialect, depth)
        else:
            for word in arguments:
                match = re.match(r"([A-Za-z_]\w*)=", word.text)
                if match:
                    self.assigned(match[1], Word(word.text[match.end() :], word.is_known), depth, dialect)
                elif stores_evaluated_text(word):
                    self.evaluate([Evaluated(word)], dialect, depth)

    def _let(self, arguments: Sequence[Word], dialect: Dialect, depth: int) -> None:
        self.evaluate(map(Evaluated, arguments), dialect, depth)
        for word in arguments:
            if match := _TARGET.match(_unquoted(word)):
                self.assigned(match[1], Word("0"), depth, dialect)

    def _declare(self, name: str, arguments: Sequence[Word], dialect: Dialect, depth: int) -> None:
        flags = {letter for word in arguments if re.fullmatch(r"[-+][A-Za-z]+", word.text) for letter in word.text[1:]}
        if name in ("integer", "float"):
            flags.add("i")
        for word in arguments:
            if word.text[:1] in ("-", "+"):
                continue
            source = _unquoted(word)
            match = _TARGET.match(source)
            if match is None:
                if source.startswith("$"):
                    self.doubts.append(f"which variable {name} sets is known only then")
                continue
            target, value = _split_value(source)
            if match[2]:
                self.evaluate([Evaluated(Word(target, word.is_known))], dialect, depth)
            if flags & {"i", "n", "E", "F"}:
                self.variables.integers.add(match[1])
            if "A" in flags:
                self.variables.maps.add(match[1])
            if value is not None:
                self._declared(
                    match[1], Word(value, word.is_known or not re.search(r"[$`]", value)), flags, dialect, depth
                )
            elif match[1] in DECIDING_NAMES:
                self.assigned(match[1], UNKNOWN, depth, dialect)

    def _declared(self, name: str, value: Word, flags: set[str], dialect: Dialect, depth: int) -> None:
        text = value.text.strip("\"'")
        is_plain = value.is_known or not re.search(r"[$`(]", text)
        self.assigned(name, Word(text, is_plain), depth, dialect)
        if flags & {"i", "n", "E", "F"}:
            self.evaluate([Evaluated(value)], dialect, depth)
        if (flags & {"a", "A"} or text.startswith("(")) and re.search(r"[$`]", text):
            # The text of an array is read again: `declare -a 'x=($(rm y))'` runs rm.
            if value.is_known:
                self.expansions(text, dialect, depth)
            else:
                self.doubts.append(f"the words of the array {name} are known only then, and are expanded")

    def _target(self, way: str, names: Iterable[Word], dialect: Dialect, depth: int) -> None:
        """Variables that a builtin sets to what is known only then; nobody sets some of them in such a way."""
        for word in names:
            source = _unquoted(word)
            match = _TARGET.match(source)
            if match is None:
                self.evaluate([Evaluated(word)], dialect, depth)
                continue
            if match[2]:
                self.evaluate([Evaluated(word)], dialect, depth)
            if match[1] in DECIDING_NAMES | FINDING_NAMES | COMMAND_NAMES:
                self.doubts.append(f"{way} sets {match[1]}, which changes what later commands run")
            self.variables.set(match[1], UNKNOWN)


# Words of stty by which every key goes on doing what it does in a new terminal.
_STTY_HARMLESS = re.compile(
    r"-a|--all|-g|--save|size|speed|sane|cooked|icanon|isig|icrnl|rows|cols|columns|line|\d+|[io]speed|-F.*|--file.*|"
    r"/dev/[\w/]+|--help|--version|-?(ixon|ixoff|ixany|onlcr|opost|tostop|iutf8|echoctl|echoe|echok|imaxbel|parenb|"
    r"parodd|cstopb|crtscts|clocal|hupcl|cread|cs[5678])|echo"
)


def _unquoted(word: Word) -> str:
    return word.text if word.is_known else word.text.lstrip("\"'")


def _split_value(source: str) -> tuple[str, str | None]:
    """`a[x]=v` as its target and value; the value is None where there is none."""
    match = re.match(r"[A-Za-z_]\w*(?:\[.*?\])?\+?=", source, re.DOTALL)
    if match is None:
        return source, None
    return source[: match.end() - 1].removesuffix("+"), source[match.end() :]


def _is_flag(word: str) -> bool:
    return re.fullmatch(r"-[A-Za-z]+|zsh/(datetime|zprof|mathfunc|parameter|stat|terminfo|complist)", word) is not None
