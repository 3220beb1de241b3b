"""ripgrep's regular expressions for the engine that works without ripgrep.

The syntax is that of Rust's `regex`: no look-around and no backreferences, so ripgrep needs linear time; here the
package `regex` searches, within a time limit. What is written differently there is translated, and what one of the two
does not know is refused with its place. `(?x)`, `(?U)` and `(?-u)` need ripgrep itself.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from dari.errors import InvalidInput

MAX_REPEAT = 1000
_CLASSES = frozenset("dDsSwW")
_ASSERTIONS = {"b": r"\b", "B": r"\B", "<": r"\m", ">": r"\M", "A": "^", "z": r"(?=\r?(?:\n|\Z))"}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_LINE_END = r"(?=\r?$)"
_ANY = r"[^\r\n]"
_TURKISH = "(?-i:[ıİ])"
_POSIX_CLASSES = {  # of ASCII alone, as in Rust
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t\x20",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\t\n\v\f\r\x20",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_POSIX = re.compile(rf"\[:(\^?)({'|'.join(_POSIX_CLASSES)}):\]")
_REPEAT = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}")
_GROUP_NAME = re.compile(r"[A-Za-z_][\w.\[\]]*")


def bad_pattern(pattern: str, place: int, what: str) -> InvalidInput:
    """`place` counts characters from 0."""
    hint = "mode literal takes the pattern as plain text; in a regex escape . ? * + ( ) [ ] { } | ^ $ with a backslash"
    if "look-around" in what or "backreference" in what:
        hint = "search for less and read the lines, or use mode ast for structure"
    return InvalidInput(f"pattern {pattern[:200]!r} is wrong at character {place + 1}: {what}", hint)


def compile_pattern(pattern: str, *, is_literal: bool, ignore_case: bool) -> Any:
    """A compiled expression of the package `regex`, for lines without their end; InvalidInput names the place."""
    import regex  # 50 ms

    for place, letter in enumerate(pattern):
        if letter in "\n\r":
            raise bad_pattern(pattern, place, f"the literal {letter!r} is not allowed: a search goes line by line")
    if is_literal:
        written = "".join(_letter(letter, ignore_case) for letter in pattern)
    else:
        written = _Translation(pattern, ignore_case).run()
    flags = regex.VERSION1 | regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    try:
        # Simple case folding, as ripgrep has it: ß is not ss.
        return regex.compile(f"(?-f:{written})" if ignore_case else written, flags)
    except (regex.error, RecursionError, OverflowError) as error:
        raise bad_pattern(pattern, min(getattr(error, "pos", 0) or 0, len(pattern)), str(error)) from None


def is_case_ignored(pattern: str, case: str, *, is_literal: bool) -> bool:
    """Smart case: a pattern without a capital letter ignores case; escapes such as `\\S` are no letters."""
    if case != "smart":
        return case == "insensitive"
    text = pattern if is_literal else re.sub(r"\\(?:[pP]\{[^}]*\}|[pP]?.)", "", pattern)
    return bool(pattern) and not any(letter.isupper() for letter in text)


class _Translation:
    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._ignores_case = ignore_case
        """Here: flags change it up to the end of their group."""

    def run(self) -> str:
        written = self._alternatives(depth=0)
        if self._at < len(self._pattern):
            self._fail("unopened group", self._at)
        return written

    def _fail(self, what: str, place: int) -> NoReturn:
        raise bad_pattern(self._pattern, place, what)

    def _alternatives(self, depth: int) -> str:
        """Up to the end, or the `)` that ends this group."""
        if depth > 100:
            self._fail("exceeded the maximum number of nested parentheses", self._at)
        atoms: list[str] = []
        is_atom = False  # whether the last one may be repeated
        while self._at < len(self._pattern):
            place, letter = self._at, self._pattern[self._at]
            if letter == ")":
                break
            if letter in "*+?" or letter == "{":
                if not is_atom:
                    self._fail("repetition operator missing expression", place)
                atoms[-1] = self._repeated(atoms[-1], letter)
                continue
            self._at += 1
            is_atom = True
            if letter == "|":
                atoms.append("|")
                is_atom = False
            elif letter == "(":
                written = self._group(place, depth)
                is_atom = not written.endswith("\0")
                atoms.append(written.rstrip("\0"))
            elif letter == "[":
                written = self._set(place)
                if self._ignores_case:
                    written = f"(?:(?!{_TURKISH}){written}|(?-i:(?={_TURKISH}){written}))"
                atoms.append(written)
            elif letter == ".":
                atoms.append(_ANY)
            elif letter == "^":
                atoms.append("^")
            elif letter == "$":
                atoms.append(_LINE_END)
            elif letter == "\\":
                atoms.append(self._escape(place, in_set=False))
            else:
                atoms.append(_letter(letter, self._ignores_case))
        return "".join(atoms)

    def _repeated(self, atom: str, letter: str) -> str:
        place = self._at
        if letter == "{":
            found = _REPEAT.match(self._pattern, place)
            if found is None:
                is_open = "}" not in self._pattern[place:]
                self._fail(
                    "unclosed counted repetition" if is_open else "repetition quantifier expects a valid decimal", place
                )
            low, high = int(found[1]), int(found[3]) if found[3] else None
            if high is not None and high < low:
                self._fail("invalid repetition count range, the start must be <= the end", place)
            if max(low, high or 0) > MAX_REPEAT:
                self._fail(f"a repetition of more than {MAX_REPEAT} needs ripgrep", place)
            self._at = found.end()
            written = f"{{{low}{',' if found[2] else ''}{'' if high is None else high}}}"
        else:
            self._at += 1
            written = letter
        if self._pattern[self._at : self._at + 1] == "?":
            self._at += 1
            written += "?"
        # A repetition of a repetition, which `regex` would take for a possessive one.
        return f"(?:{atom}{written})"

    def _group(self, place: int, depth: int) -> str:
        """After `(`. Ends with NUL when it only sets flags, which nothing can repeat."""
        opening = "("
        outside = self._ignores_case
        if self._pattern.startswith("?", self._at):
            self._at += 1
            rest = self._pattern[self._at :]
            if rest.startswith(("=", "!", "<=", "<!")):
                self._fail("look-around, including look-ahead and look-behind, is not supported", place)
            if rest.startswith(("P<", "<")):
                self._at += rest.index("<") + 1
                name = _GROUP_NAME.match(self._pattern, self._at)
                if name is None or not self._pattern.startswith(">", name.end()):
                    self._fail("invalid capture group name", self._at)
                self._at = name.end() + 1
            else:
                opening = self._flags(place)
                if opening.endswith(")"):
                    return f"{opening}\0" if opening != "(?)" else "\0"
        inside = self._alternatives(depth + 1)
        if not self._pattern.startswith(")", self._at):
            self._fail("unclosed group", place)
        self._at += 1
        self._ignores_case = outside
        return f"{'(?:' if opening == '(' else opening}{inside})"

    def _flags(self, place: int) -> str:
        """`i`, `-i:` and the like; the flags of lines (m, s, R, u) change nothing in a search of lines."""
        on, off, is_off = "", "", False
        while self._at < len(self._pattern):
            letter = self._pattern[self._at]
            self._at += 1
            if letter in ":)":
                flags = f"{on}-{off}" if off else on
                self._ignores_case = bool(on) or (self._ignores_case and not off)
                return f"(?{flags}{letter}"
            if letter == "-" and not is_off:
                is_off = True
            elif letter == "i":
                on, off = (on, "i") if is_off else ("i", off)
            elif letter in "xU" or (letter == "u" and is_off):
                if not is_off or letter == "u":
                    self._fail(f"the flag {letter} needs ripgrep, which is not installed", self._at - 1)
            elif letter not in "msRu":
                self._fail("unrecognized flag", self._at - 1)
        self._fail("unclosed group", place)

    def _escape(self, place: int, *, in_set: bool) -> str:
        """After the backslash."""
        if self._at >= len(self._pattern):
            self._fail("incomplete escape sequence, reached end of pattern prematurely", place)
        letter = self._pattern[self._at]
        self._at += 1
        if letter in _CLASSES:
            return f"\\{letter}"
        if letter in _CONTROLS:
            if letter in "nr":
                self._fail(f"the literal \\{letter} is not allowed: a search goes line by line", place)
            return _quote(_CONTROLS[letter])
        if letter in _HEX_DIGITS:
            return self._hex(place, _HEX_DIGITS[letter])
        if letter in "pP":
            return self._property(place, letter)
        if letter in _ASSERTIONS and not in_set:
            return self._assertion(place, letter)
        if letter.isdigit():
            self._fail("backreferences are not supported", place)
        if letter.isalpha() or not letter.isascii() or letter.isspace():
            self._fail("unrecognized escape sequence", place)
        return _quote(letter)

    def _assertion(self, place: int, letter: str) -> str:
        if letter == "b" and (found := re.compile(r"\{(start|end)(-half)?\}").match(self._pattern, self._at)):
            self._at = found.end()
            if found[2]:
                return r"(?<!\w)" if found[1] == "start" else r"(?!\w)"
            return r"\m" if found[1] == "start" else r"\M"
        return _ASSERTIONS[letter]

    def _hex(self, place: int, digits: int) -> str:
        if self._pattern.startswith("{", self._at):
            end = self._pattern.find("}", self._at)
            text, after = self._pattern[self._at + 1 : end], end + 1
        else:
            text, after, end = self._pattern[self._at : self._at + digits], self._at + digits, 0
        try:
            if end < 0 or (end == 0 and len(text) < digits):
                raise ValueError
            letter = chr(int(text, 16))
        except (ValueError, OverflowError):
            self._fail("invalid hexadecimal digit or escape sequence", place)
        self._at = after
        return _quote(letter)

    def _property(self, place: int, letter: str) -> str:
        found = re.compile(r"\{(\^?[\w =:!&-]+)\}|([A-Za-z])").match(self._pattern, self._at)
        if found is None:
            self._fail("unclosed or empty Unicode property", place)
        self._at = found.end()
        import regex

        written = f"\\{letter}{{{found[1] or found[2]}}}"
        try:
            regex.compile(written)
        except regex.error:
            self._fail("Unicode property not found", place)
        return written

    def _set(self, place: int) -> str:
        """After `[`: sets inside sets, `&&`, `--`, `~~` and POSIX classes are the same in both."""
        written = "["
        if self._pattern.startswith("^", self._at):
            self._at += 1
            written += "^"
        is_first = True
        while self._at < len(self._pattern):
            here, letter = self._at, self._pattern[self._at]
            if letter == "]" and not is_first:
                self._at += 1
                return f"{written}]"
            if letter == "[":
                if posix := _POSIX.match(self._pattern, here):
                    self._at = posix.end()
                    written += f"[{posix[1]}{_POSIX_CLASSES[posix[2]]}]"
                else:
                    self._at += 1
                    written += self._set(here)
            elif self._pattern.startswith(("&&", "--", "~~"), here) and not is_first:
                self._at += 2
                written += self._pattern[here : here + 2]
            else:
                written += self._range(here)
            is_first = False
        self._fail("unclosed character class", place)

    def _range(self, place: int) -> str:
        first = self._member()
        if not self._pattern.startswith("-", self._at) or self._pattern[self._at + 1 : self._at + 2] in ("]", "-", ""):
            return first
        self._at += 1
        last = self._member()
        low, high = _unquote(first), _unquote(last)
        if low is None or high is None:
            self._fail("invalid range boundary, must be a literal", place)
        if low > high:
            self._fail("invalid character class range, the start must be <= the end", place)
        return f"{first}-{last}"

    def _member(self) -> str:
        place, letter = self._at, self._pattern[self._at]
        self._at += 1
        return self._escape(place, in_set=True) if letter == "\\" else _quote(letter)


def _letter(letter: str, ignores_case: bool) -> str:
    """`regex` takes the Turkish ı and İ for an i whenever case is ignored, ripgrep does not."""
    if ignores_case and letter in "iIıİ":
        return "(?-i:[iI])" if letter in "iI" else f"(?-i:{letter})"
    return _quote(letter)


def _quote(letter: str) -> str:
    return letter if letter.isalnum() or letter == "_" else f"\\U{ord(letter):08x}"


def _unquote(written: str) -> str | None:
    if written.startswith("\\U"):
        return chr(int(written[2:], 16))
    return written if len(written) == 1 else None
