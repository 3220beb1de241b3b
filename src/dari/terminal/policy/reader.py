"""Words of a shell text: quotes, escapes, expansions; what runs inside them is handed on."""

from __future__ import annotations

import re

from dari.terminal.policy.ast import Dialect, Evaluated, ShellError, Word
from dari.terminal.policy.program_tables import COMMAND_NAMES, DECIDING_NAMES, FINDING_NAMES
from dari.terminal.policy.quoting import decode_ansi_c, decode_fish, may_expand_braces

MAX_DEPTH = 40

_META = frozenset(" \t\n;&|<>()")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-]")
_ASSIGNS = re.compile(r"\$\{([A-Za-z_]\w*):?:?=")
_PARAMETER = re.compile(r"\$\{([#!]?)([A-Za-z_]\w*|[0-9]+|[@*#?$!_-])")
_LETTERS = re.compile(r"[A-Za-z0-9_./:@%+,-]+")
_QUOTED = re.compile(r"'[^'}\"\\]*'")
# Other quotes inside arithmetic hide nothing: `(( '$(rm x)' ))` runs rm.
_QUOTED_PARENTHESIS = re.compile(r"""'[^'$()]{0,999}[()]|"[^"$()]{0,999}[()]""")
_SETS = re.compile(r"([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)")
_HISTORY = re.compile(r"!(?:[A-Za-z0-9!?$^*#-])")


class WordReader:
    """Reads words at `position`. Subclasses give `read_list`, which reads commands up to a closer."""

    def __init__(self, text: str, dialect: Dialect, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ShellError(f"commands are nested more than {MAX_DEPTH} deep")
        self.text = text
        self.dialect = dialect
        self.depth = depth
        self.position = 0
        self.doubts: list[str] = []
        self.evaluated: list[Evaluated] = []
        self.assigned: list[tuple[str, Word]] = []

    def read_list(self, closers: frozenset[str]) -> str:
        raise NotImplementedError

    def read_inner(self, text: str) -> None:
        """Read commands that are written inside a word, such as those between backticks."""
        raise NotImplementedError

    def note_assignment(self, name: str) -> None:
        """A loop or an expansion sets this variable; a doubt where that decides what runs."""
        if name in DECIDING_NAMES | FINDING_NAMES | COMMAND_NAMES:
            self.doubts.append(f"setting {name} changes what later commands run")

    def at(self, what: str) -> bool:
        return self.text.startswith(what, self.position)

    @property
    def here(self) -> str:
        return self.text[self.position : self.position + 1]

    def read_word(self) -> tuple[Word, str]:
        """The word and its unquoted letters (quoted ones are left out, each quoted run is one NUL)."""
        value: list[str] = []
        bare: list[str] = []
        known = True
        start = self.position
        while self.position < len(self.text):
            if letters := _LETTERS.match(self.text, self.position):
                value.append(letters[0])
                bare.append(letters[0])
                self.position = letters.end()
                continue
            char = self.here
            if char == "\\":
                value.append(self._escape())
                bare.append("\0")
            elif char == "'":
                value.append(self._single())
                bare.append("\0")
            elif char == '"':
                text, inner_known = self._double()
                value.append(text)
                known = known and inner_known
                bare.append("\0")
            elif char == "$":
                text, inner_known = self._dollar()
                value.append(text)
                known = known and inner_known
                # A lone `$` is a letter; a value that is known came from quotes.
                bare.append("$" if text == "$" else "\0")
            elif char == "`" and self.dialect != "fish":
                value.append(self._backticks())
                known = False
                bare.append("\0")
            elif char in "<>=" and self.text[self.position + 1 : self.position + 2] == "(" and self._substitutes(char):
                value.append(self._process())
                known = False
                bare.append("\0")
            elif char == "(" and self._takes_paren(bare):
                value.append(self._parenthesis())
                known = False
                bare.append("\0")
            elif char in _META:
                break
            else:
                if char == "!":
                    self._history()
                value.append(char)
                bare.append(char)
                self.position += 1
        raw = "".join(bare)
        glob = "*" in raw or "?" in raw or 0 <= raw.find("[") < raw.rfind("]") - 1
        if self.dialect != "sh" and may_expand_braces(raw):
            known = False
        if self.dialect == "zsh" and ((raw.startswith("=") and len(raw) > 1) or "^" in raw[1:] or "#" in raw[1:]):
            # `=ls` is a path, and with EXTENDED_GLOB these are patterns.
            glob = True
        text = "".join(value) if known else self.text[start : self.position]
        return Word(text, known, known and glob, raw.startswith("~"), "\0" in raw), raw

    def read_until_end(self) -> None:
        """Look for what runs inside the text of a here-document."""
        while self.position < len(self.text):
            if self.here == "\\":
                self.position += 2
            elif self.here == "$":
                self._dollar(in_quotes=True)
            elif self.here == "`":
                self._backticks()
            else:
                self.position += 1

    def _substitutes(self, char: str) -> bool:
        return self.dialect == "zsh" or (char != "=" and self.dialect == "bash")

    def _takes_paren(self, bare: list[str]) -> bool:
        if self.dialect == "fish":
            return True
        if self.dialect == "zsh":
            return bool(bare)
        return bool(bare) and bare[-1][-1:] in tuple("?*+@!") and self.dialect == "bash"

    def _escape(self) -> str:
        if self.dialect == "fish":
            match = re.compile(
                r"\\(?:x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.S
            ).match(self.text, self.position)
            if match is None:
                raise ShellError("the text ends with a backslash")
            self.position = match.end()
            return "" if match[0] == "\\\n" else decode_fish(match[0])
        after = self.text[self.position + 1 : self.position + 2]
        if not after:
            raise ShellError("the text ends with a backslash")
        self.position += 2
        return "" if after == "\n" else after

    def _single(self) -> str:
        if self.dialect == "fish":
            match = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.position)
            if match is None:
                raise ShellError("a ' is not closed")
            self.position = match.end()
            return re.sub(r"\\([\\'])", r"\1", match[1])
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise ShellError("a ' is not closed")
        value = self.text[self.position + 1 : end]
        self.position = end + 1
        return value

    def _double(self) -> tuple[str, bool]:
        value: list[str] = []
        known = True
        self.position += 1
        while self.position < len(self.text):
            char = self.here
            if char == '"':
                self.position += 1
                return "".join(value), known
            if char == "\\":
                after = self.text[self.position + 1 : self.position + 2]
                escaped = '$"\\' if self.dialect == "fish" else '$`"\\'
                value.append("" if after == "\n" else after if after in escaped else "\\" + after)
                self.position += 2
            elif char == "$":
                text, inner_known = self._dollar(in_quotes=True)
                value.append(text)
                known = known and inner_known
            elif char == "`" and self.dialect != "fish":
                value.append(self._backticks())
                known = False
            else:
                if char == "!":
                    self._history()
                value.append(char)
                self.position += 1
        raise ShellError('a " is not closed')

    def _dollar(self, in_quotes: bool = False) -> tuple[str, bool]:
        start = self.position
        after = self.text[start + 1 : start + 2]
        if after == "(":
            self._dollar_parenthesis()
        elif after == "{" and self.dialect != "fish":
            self._dollar_brace()
        elif after == "[" and self.dialect in ("bash", "zsh"):
            self.position += 2
            self.read_arithmetic("]")
        elif after == "'" and not in_quotes and self.dialect != "fish":
            return self._ansi_c()
        elif after == '"' and not in_quotes and self.dialect != "fish":
            self.position += 1
            if self.dialect == "bash":
                return self._double()
            text, known = self._double()
            return "$" + text, known
        elif match := _VARIABLE.match(self.text, start + 1):
            self.position = match.end()
            while self.here == "[" and self.dialect in ("zsh", "fish"):
                self.position += 1
                self.read_arithmetic("]", match[0])
        else:
            self.position += 1
            return "$", True
        return self.text[start : self.position], False

    def _ansi_c(self) -> tuple[str, bool]:
        match = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.position)
        if match is None:
            raise ShellError("a $' is not closed")
        if self.dialect == "sh":
            # dash takes the `$` for a letter and ends the quote at the first `'`; others decode it.
            self.position = match.end()
            return match[0], False
        self.position = match.end()
        return decode_ansi_c(match[1]).split("\0")[0], True

    def _dollar_parenthesis(self) -> None:
        if self.text.startswith("$((", self.position) and self.dialect != "fish":
            self.position += 3
            self.read_arithmetic("))")
            return
        self.position += 2
        self.read_list(frozenset((")",)))

    def read_arithmetic(self, closer: str, array: str = "") -> None:
        """An expression up to `closer`, or the subscript of an array, which the shell evaluates."""
        start = self.position
        self._arithmetic(closer)
        self.note_evaluated(self.text[start : self.position - len(closer)], array, is_plain_use=bool(array))

    def note_evaluated(self, source: str, array: str = "", is_plain_use: bool = False) -> None:
        if self.dialect != "fish" and source not in ("@", "*"):
            # What arithmetic sets is a number.
            self.assigned += [(match[1] or match[2], Word("0")) for match in _SETS.finditer(source)]
            self.evaluated.append(Evaluated(Word(source, "$" not in source and "`" not in source), array, is_plain_use))

    def _arithmetic(self, closer: str) -> None:
        """Everything up to `closer`; what is substituted inside still runs."""
        depth = 0
        while self.position < len(self.text):
            char = self.here
            if depth == 0 and self.at(closer):
                self.position += len(closer)
                return
            if char in "'\"" and (match := _QUOTED_PARENTHESIS.match(self.text, self.position)):
                raise ShellError(f"{match[0]} inside arithmetic")
            if char == "$":
                self._dollar(in_quotes=True)
                continue
            if char == "`" and self.dialect != "fish":
                self._backticks()
                continue
            if char == "(":
                if self.dialect == "fish":
                    self.position += 1
                    self.read_list(frozenset((")",)))
                    continue
                depth += 1
            elif char == ")":
                depth -= 1
                if depth < 0:
                    raise ShellError("`((` may be arithmetic or a subshell")
            self.position += 1
        raise ShellError("arithmetic is not closed")

    def _dollar_brace(self) -> None:
        start = self.position
        if match := _ASSIGNS.match(self.text, start):
            self.note_assignment(match[1])
        self.position += 2
        if self.dialect == "zsh" and self.here == "(":
            self.doubts.append("a ${(…)…} expansion of zsh can run what a variable holds")
        closing = -1
        while self.position < len(self.text):
            char = self.here
            if char == "'" and (match := _QUOTED.match(self.text, self.position)) and self.position != closing:
                # Whether these quote depends on the shell and on quotes around the whole: what is inside is read.
                closing = match.end() - 1
                self.position += 1
            elif self.position == closing:
                self.position += 1
            elif char == "}":
                self.position += 1
                self._note_expansion(self.text[start : self.position])
                return
            elif char == "\\":
                self.position += 2
            elif char == "$":
                self._dollar(in_quotes=True)
            elif char == "`":
                self._backticks()
            elif char == '"':
                self._double()
            elif char in "'<>" and (char == "'" or self.text[self.position + 1 : self.position + 2] == "("):
                # Whether these quote or run depends on the shell and on quotes around the whole.
                raise ShellError(f"{char} inside ${{…}}")
            else:
                self.position += 1
        raise ShellError("a ${ is not closed")

    def _note_expansion(self, source: str) -> None:
        """`${a[x]}`, `${a:x:y}` and `${!a}` evaluate strings; `${a@P}` runs one."""
        if source.endswith("@P}"):
            self.doubts.append("${…@P} runs what a variable holds")
        match = _PARAMETER.match(source)
        if match is None:
            return
        rest = source[match.end() : -1]
        subscript = ""
        if rest.startswith("["):
            end = _bracket_end(rest)
            subscript, rest = rest[1:end], rest[end + 1 :]
            self.note_evaluated(subscript, match[2], is_plain_use=True)
        if match[1] == "!" and subscript not in ("@", "*") and rest not in ("@", "*"):
            self.evaluated.append(Evaluated(Word(f"${match[2]}", False)))
        if rest[:1] == ":" and rest[1:2] not in ("-", "=", "?", "+"):
            self.note_evaluated(rest[1:])
        elif rest.lstrip(":")[:1] == "=":
            value = rest.lstrip(":")[1:]
            is_known = "$" not in value and "`" not in value
            self.assigned.append((match[2], Word(value.strip("'\""), is_known)))

    def _backticks(self) -> str:
        match = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.position)
        if match is None:
            raise ShellError("a ` is not closed")
        self.position = match.end()
        self.read_inner(re.sub(r"\\([`\\$])", r"\1", match[1]))
        return match[0]

    def _process(self) -> str:
        start = self.position
        self.position += 2
        self.read_list(frozenset((")",)))
        return self.text[start : self.position]

    def _parenthesis(self) -> str:
        start = self.position
        if self.dialect == "fish":
            self.position += 1
            self.read_list(frozenset((")",)))
            return self.text[start : self.position]
        if self.dialect == "zsh":
            self.doubts.append("parentheses in a word of zsh can run code (glob qualifiers)")
        self.position += 1
        self._arithmetic(")")
        return self.text[start : self.position]

    def _history(self) -> None:
        if self.dialect in ("bash", "zsh") and _HISTORY.match(self.text, self.position):
            before = self.text[self.position - 1 : self.position]
            if before not in ("[", "{", "$"):
                self.doubts.append("an unquoted ! can bring back a command of the history")


def _bracket_end(text: str) -> int:
    """The place of the bracket that closes the one at the start."""
    depth = 0
    for index, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if depth == 0:
            return index
    return len(text)
