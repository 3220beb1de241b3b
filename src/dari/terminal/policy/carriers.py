"""Programs that carry a command among their words, known or not: `docker run image rm x`, `some-runner -c 'rm x'`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dari.terminal.policy.ast import Dialect, Possible, ScriptTooLarge, ShellError, SimpleCommand, Word
from dari.terminal.policy.options import split_options
from dari.terminal.policy.program_tables import CARRYING, JOINED, PREFIXES, SHELLS
from dari.terminal.policy.programs import ProgramReader, program

MAX_CARRIER_DEPTH = 8
MAX_STEPS = 150_000
"""Letters and words that are read for one text, with all that it calls: about a quarter of a second."""
MAX_TRIED = 8
"""Words of one program from which on the rest is read as a command of its own."""
RUNNERS = frozenset((*SHELLS, *PREFIXES, *JOINED, *CARRYING, "find", "fd", "su", "runuser", "script", "tmux", "screen"))
_TRIAL_STEPS = 20
_TOKEN = re.compile(r"(?<![\w$./+{-])[\w./+-]+")
_IS_TEXT = re.compile(r"[\s;|&()`$]")


class CarrierReader(ProgramReader):
    """Notes the `commands` that run and those that are `possible`, and counts the `steps` it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[SimpleCommand] = []
        self.possible: list[Possible] = []
        self.steps = 0

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise ScriptTooLarge(f"it would take more than {MAX_STEPS} steps to read all that it may run")

    def read(self, text: str, dialect: Dialect, depth: int) -> frozenset[str]:
        """Read a whole text; the functions that it defines."""
        raise NotImplementedError

    def look(self, command: SimpleCommand, dialect: Dialect, depth: int) -> None:
        """Note a command and what it runs."""
        raise NotImplementedError

    def make_variables(self, arguments: Sequence[Word], depth: int) -> None:
        """A variable on the command line is a text of make, where `$(shell …)` runs; some decide what runs all else."""
        for word in arguments:
            name, equals, value = word.text.partition("=")
            if not equals or name.startswith("-"):
                continue
            if name.rstrip(":?+") in ("SHELL", ".SHELLFLAGS", "MAKE", "MAKEFLAGS"):
                self.doubts.append(f"make {name}= decides what runs its recipes")
            self.guess((Word(value, word.is_known),), "sh", depth)

    def carried(self, command: SimpleCommand, verbs: Sequence[str], dialect: Dialect, depth: int) -> None:
        """`docker run -v a:b image rm x`: which word begins the inner command is not known, so each may."""
        words = command.words
        start = 1
        if verbs:
            start = next((index for index, word in enumerate(words) if word.text in verbs), len(words)) + 1
        tried = 0
        for index in range(start, len(words)):
            word = words[index]
            if not word.is_known or word.has_glob:
                continue
            if program(word.text) in RUNNERS:
                tried += 1
                self._check_tried(tried)
                if depth > MAX_CARRIER_DEPTH:
                    raise ShellError(f"commands call commands more than {MAX_CARRIER_DEPTH} deep")
                self.look(
                    SimpleCommand(words[index:], (), (), False, command.inside, is_carrier=True), dialect, depth + 1
                )
            elif re.match(r"[\w./~]", word.text):
                self.possible.append(Possible(words, index, is_certain=True))
            self._guess_word(word, depth)

    def guess(self, words: tuple[Word, ...], dialect: Dialect, depth: int) -> None:
        """Words of a program that is not known: it may run them, or the texts among them."""
        tried = 0
        for index, word in enumerate(words):
            if not word.is_known:
                self.possible += [Possible((Word(token),)) for token in dict.fromkeys(_TOKEN.findall(word.text))]
                continue
            if index and program(word.text) in RUNNERS:
                tried += 1
                self._check_tried(tried)
                self._try(SimpleCommand(words[index:]), depth)
            elif index or len(words) == 1:
                self.possible.append(Possible(words, index))
            self._guess_word(word, depth)

    def _check_tried(self, tried: int) -> None:
        if tried > MAX_TRIED:
            raise ScriptTooLarge(f"more than {MAX_TRIED} words of one program may each begin a command")

    def _guess_word(self, word: Word, depth: int) -> None:
        """A word that may be a text to run, or an option with one: `--preview='rm {}'`."""
        value = word.text.partition("=")[2] if word.text.startswith("-") else ""
        tokens = _TOKEN.findall(word.text) if _IS_TEXT.search(word.text) or value else []
        self.spend(len(word.text) if tokens else 1)
        self.possible += [Possible((Word(token),)) for token in dict.fromkeys(tokens)]
        if _IS_TEXT.search(word.text) and depth < MAX_CARRIER_DEPTH:
            self._try(Word(value or word.text.lstrip("!: ")), depth)

    def _try(self, found: SimpleCommand | Word, depth: int) -> None:
        """Read words that may not be a command: what they would run is possible, unclear parts count for nothing."""
        self.spend(_TRIAL_STEPS)
        kept = self.commands, self.doubts, self.unread
        self.commands, self.doubts, self.unread = [], [], []
        doubts: list[str] = []
        try:
            if isinstance(found, Word):
                self.read(found.text, "sh", depth + 1)
            elif depth <= MAX_CARRIER_DEPTH:
                self.look(found, "sh", depth + 1)
                if program(found.words[0].text) in SHELLS and takes_text(found):
                    doubts = self.doubts
        except ScriptTooLarge:
            raise
        except ShellError:
            pass
        finally:
            self.possible += [Possible(command.words) for command in self.commands if command.words]
            self.commands, self.doubts, self.unread = kept
            self.doubts += doubts


def takes_text(command: SimpleCommand, least_plain: int = 0) -> bool:
    """Whether a shell is given its text by -c."""
    options = split_options(command.words[1:], "-o +o -O +O --rcfile --init-file -C --init-command")
    is_given = any(re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*|--command", word.text) for word in options.given)
    return is_given and len(options.plain) >= least_plain
