"""Compound commands of the shells: branches, loops, cases, tests, functions; and what may stand between words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dari.terminal.policy.ast import Evaluated, ShellError, Word
from dari.terminal.policy.evaluation import COMPARISONS
from dari.terminal.policy.reader import WordReader

MAX_GUESSES = 10
_BARE = re.compile(r"[A-Za-z_!{}\[\]]+(?=[\s;&|<>()]|\Z)")


class CompoundReader(WordReader):
    """Reads what follows a reserved word. `read_command` and `read_bodies` are given by the reader of scripts."""

    functions: set[str]
    inside: str
    guesses: int = 0

    def read_command(self, is_piped: bool) -> None:
        raise NotImplementedError

    def read_bodies(self) -> None:
        """Read the here-documents that the line before this one announced."""
        raise NotImplementedError

    def read_compound(self, word: str, is_piped: bool) -> bool:
        """Read the rest after a reserved word; True when what follows was read to its end as a command."""
        if word in ("!", "not", "and", "or", "time", "coproc", "nocorrect"):
            self.skip(newlines=False)
            while word == "time" and self.bare_option() in ("-p", "--"):
                self.position += 2
                self.skip(newlines=False)
            if self.position < len(self.text) and self.here not in "\n;&|)":
                self.read_command(is_piped)
            return True
        if self.dialect == "fish":
            return self._fish(word)
        if word in ("if", "while", "until"):
            self._conditional(word)
        elif word in ("for", "select", "foreach"):
            self._loop()
        elif word == "case":
            self._case()
        elif word == "function":
            self.skip(newlines=False)
            name, _ = self.read_word()
            self.skip(newlines=False)
            if self.at("("):
                self.read_empty_parentheses()
            self.read_function(name)
            return True
        elif word == "{":
            self.read_list(frozenset(("}",)))
        elif word == "[[":
            self._test()
        else:
            raise ShellError(f"{word!r} is not expected here")
        return False

    def read_parenthesised(self) -> None:
        if self.at("((") and self.dialect in ("bash", "zsh") and self._is_arithmetic():
            return
        self.position += 1
        self.read_list(frozenset((")",)))
        self.skip(newlines=False)
        if self.dialect == "zsh" and self.here == "{":
            raise ShellError("a short loop or an anonymous function of zsh")

    def _is_arithmetic(self) -> bool:
        """Read `((…))`; what does not end in `))` is a subshell in a subshell, as the shells decide it."""
        start = self.position
        self.position += 2
        try:
            self.read_arithmetic("))")
        except ShellError:
            # One inside the other, each would be read twice: a text of 100 characters could take for ever.
            self.guesses += 1
            if self.guesses > MAX_GUESSES:
                raise
            self.position = start
            return False
        return True

    def _conditional(self, word: str) -> None:
        if word != "if":
            self.read_list(frozenset(("do",)))
            self.read_list(frozenset(("done",)))
            return
        self.read_list(frozenset(("then",)))
        while True:
            closer = self.read_list(frozenset(("elif", "else", "fi")))
            if closer == "fi":
                return
            if closer == "elif":
                self.read_list(frozenset(("then",)))

    def _loop(self) -> None:
        self.skip(newlines=False)
        if self.at("(("):
            self.position += 2
            self.read_arithmetic("))")
        else:
            name, _ = self.read_word()
            self.note_assignment(name.text)
            self.skip(newlines=True)
            if self.bare() == "in":
                self.position += 2
                self.assigned += [(name.text, word) for word in self._words_until_separator()]
            else:
                self.assigned.append((name.text, Word("$@", False)))
            if self.at("("):
                raise ShellError("a short loop of zsh")
        self.skip(newlines=True)
        if self.here == ";":
            self.position += 1
            self.skip(newlines=True)
        opener = self.bare()
        if opener not in ("do", "{"):
            raise ShellError("a loop without `do`")
        self.position += len(opener)
        self.read_list(frozenset(("done" if opener == "do" else "}",)))

    def _case(self) -> None:
        self.skip(newlines=False)
        self.read_word()
        self.skip(newlines=True)
        if self.bare() != "in":
            raise ShellError("a `case` without `in`")
        self.position += 2
        while True:
            self.skip(newlines=True)
            if self.bare() == "esac":
                self.position += 4
                return
            if self.here == "(":
                self.position += 1
            self._patterns()
            if self.read_list(frozenset((";;", "esac"))) == "esac":
                return

    def _patterns(self) -> None:
        while True:
            self.skip(newlines=False)
            if self.position >= len(self.text) or self.here in "\n;&<>(":
                raise ShellError("a pattern of `case` is not closed")
            if self.here in "|)":
                self.position += 1
                if self.text[self.position - 1] == ")":
                    return
                continue
            self._next_word()

    def _test(self) -> None:
        """`[[ … ]]` runs what is substituted inside it, also in what it evaluates as numbers or as a name."""
        words: list[Word] = []
        while True:
            self.skip(newlines=True)
            if self.position >= len(self.text):
                raise ShellError("a [[ is not closed")
            if self.at("]]"):
                self.position += 2
                self.evaluated += tested(words, True)
                return
            if self.here in "()<>&|" and not self.opens_substitution():
                self.position += 1
            elif self.here in ";":
                raise ShellError("; inside [[")
            else:
                words.append(self._next_word())

    def _fish(self, word: str) -> bool:
        if word == "function":
            self.skip(newlines=False)
            name, _ = self.read_word()
            self._define(name)
            outer, self.inside = self.inside, name.text
            self._words_until_separator()
            self.read_list(frozenset(("end",)))
            self.inside = outer
        elif word in ("for", "switch"):
            if word == "for":
                self.skip(newlines=False)
                name, _ = self.read_word()
                self.note_assignment(name.text)
            self._words_until_separator()
            self._fish_body()
        elif word in ("if", "while", "begin"):
            self._fish_body()
        else:
            raise ShellError(f"{word!r} is not expected here")
        return False

    def _fish_body(self) -> None:
        while True:
            closer = self.read_list(frozenset(("end", "else", "case")))
            if closer == "end":
                return
            self.skip(newlines=False)
            if closer == "case":
                self._words_until_separator()
            elif self.bare() == "if":
                self.position += 2

    def read_function(self, name: Word) -> None:
        self._define(name)
        self.skip(newlines=True)
        if self.position >= len(self.text):
            raise ShellError("a function without a body")
        outer, self.inside = self.inside, name.text
        self.read_command(False)
        self.inside = outer

    def _define(self, name: Word) -> None:
        if not name.is_known:
            raise ShellError("the name of a function is not known")
        self.functions.add(name.text)

    def read_empty_parentheses(self) -> None:
        self.position += 1
        self.skip(newlines=False)
        if not self.at(")"):
            raise ShellError("( after a word")
        self.position += 1

    def _words_until_separator(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self.skip(newlines=False)
            if self.position >= len(self.text) or self.here in ";\n":
                return words
            if self.here in "&|<>()" and not self.opens_substitution():
                raise ShellError(f"{self.here!r} is not expected in a list of words")
            words.append(self._next_word())

    def _next_word(self) -> Word:
        """The word that stands here; where none does, a loop over words would never end."""
        before = self.position
        word, _ = self.read_word()
        if self.position == before:
            raise ShellError(f"{self.here!r} is not expected here")
        return word

    def opens_substitution(self) -> bool:
        return (self.here in "<>" and self.text[self.position + 1 : self.position + 2] == "(") or (
            self.here == "(" and self.dialect == "fish"
        )

    def skip(self, newlines: bool) -> None:
        while self.position < len(self.text):
            if self.here in " \t":
                self.position += 1
            elif self.at("\\\n"):
                self.position += 2
            elif self.here == "\n" and newlines:
                self.position += 1
                self.read_bodies()
            elif self.here == "#":
                end = self.text.find("\n", self.position)
                end = len(self.text) if end < 0 else end
                if self.dialect == "zsh" and re.search(r"[;&|`$<>()]", self.text[self.position : end]):
                    self.doubts.append("zsh takes # for a comment only where interactive_comments is set")
                self.position = end
            else:
                return

    def bare_option(self) -> str:
        match = re.compile(r"--?\w*(?=[\s;&|<>()]|\Z)").match(self.text, self.position)
        return match[0] if match else ""

    def bare(self) -> str:
        match = _BARE.match(self.text, self.position)
        return match[0] if match else ""


def tested(words: Sequence[Word], compares_arithmetic: bool) -> Iterator[Evaluated]:
    """What a test evaluates: both sides of a comparison of numbers where the shell does so, the name after -v."""
    for index, word in enumerate(words):
        if word.text in ("-v", "-R"):
            yield from map(Evaluated, words[index + 1 : index + 2])
        elif compares_arithmetic and word.text in COMPARISONS:
            yield from map(Evaluated, [*words[max(index - 1, 0) : index], *words[index + 1 : index + 2]])
