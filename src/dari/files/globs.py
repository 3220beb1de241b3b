"""Globs over paths, in time that no pattern can blow up: a folder may come with an ignore file of its own making.

(`pathspec` was tried: `*a*a*a*a*a*b` in a .gitignore took it 26 s for one name of 120 letters.)
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache

from dari.errors import InvalidInput

MAX_BRACES = 200
Words = tuple[re.Pattern[str] | None, ...]
"""One expression a folder; None: any number of folders."""


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> Words:
    """`*`, `?` and `[…]` stay inside one folder, `**` is any number of folders; at the end it is everything below.

    A pattern without `/` may match at any depth, as in .gitignore.
    """
    text = pattern.removeprefix("./").removeprefix("/")
    return compile_parts(text.split("/") if "/" in text else ["**", text])


def compile_parts(parts: Sequence[str]) -> Words:
    """The same with the folders apart. `fnmatch` writes expressions that do not backtrack."""
    if parts and parts[-1] == "**":
        parts = [*parts, "*"]
    return tuple(None if part == "**" else re.compile(fnmatch.translate(_closed(part))) for part in parts)


def _closed(part: str) -> str:
    """A bracket that nothing closes is itself. `fnmatch` looks for its end from each of them on: 20,000 took 50 s."""
    end = part.rfind("]") + 1
    return part[:end] + part[end:].replace("[", "[[]")


def glob_matches(words: Words, names: Sequence[str]) -> bool:
    """Whether the glob matches the whole path. There is one `**` to return to, so it takes words × names steps."""
    word = name = 0
    star = resume = -1
    while name < len(names):
        if word < len(words) and words[word] is None:
            star, resume = word, name
            word += 1
        elif word < len(words) and (regex := words[word]) is not None and regex.match(names[name]):
            word += 1
            name += 1
        elif star >= 0:
            resume += 1
            word, name = star + 1, resume
        else:
            return False
    return all(left is None for left in words[word:])


def expand_braces(glob: str) -> list[str]:
    """`*.{ts,tsx}` as `*.ts` and `*.tsx`; InvalidInput above `MAX_BRACES` of them."""
    waiting, done = [glob], []
    while waiting:
        one = waiting.pop()
        alternatives = _first_braces(one)
        if alternatives is None:
            done.append(one)
        else:
            waiting += reversed(alternatives)
        if len(done) + len(waiting) > MAX_BRACES:
            raise InvalidInput(f"the braces of {glob!r} stand for more than {MAX_BRACES} globs", "write fewer")
    return done


def _first_braces(glob: str) -> list[str] | None:
    start = glob.find("{")
    depth, parts, begin = 0, [], start + 1
    for place in range(start, len(glob)) if start >= 0 else ():
        letter = glob[place]
        depth += (letter == "{") - (letter == "}")
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(glob[begin:place])
            begin = place + 1
        if depth == 0:
            return [f"{glob[:start]}{part}{glob[begin:]}" for part in parts]
    return None


def glob_as_regex(pattern: str) -> str:
    """The same glob as a POSIX expression over the whole path; PostgreSQL compares it without backtracking."""
    text = pattern.removeprefix("./").removeprefix("/")
    parts = text.split("/") if "/" in text else ["**", text]
    if parts[-1] == "**":
        parts = [*parts, "*"]
    words = ["(?:[^/]*/)*" if part == "**" else f"{_name_regex(part)}/" for part in parts[:-1]]
    return f"^{''.join(words)}{_name_regex(parts[-1])}$"


def _name_regex(part: str) -> str:
    found = ""
    place = 0
    while place < len(part):
        letter = part[place]
        place += 1
        end = part.find("]", place + (2 if part[place : place + 1] == "!" else 1)) if letter == "[" else -1
        if letter in "*?":
            found += "[^/]*" if letter == "*" else "[^/]"
        elif end > 0:
            found += _set_regex(part[place:end])
            place = end + 1
        else:
            found += _escaped(letter)
    return found


def _set_regex(inside: str) -> str:
    """What stands in brackets, read as `fnmatch` does: a range from z to a holds nothing, and none holds `/`."""
    is_negated = inside.startswith("!")
    letters = inside[is_negated:]
    found, place = "", 0
    while place < len(letters):
        first = last = letters[place]
        if letters[place + 1 : place + 2] == "-" and place + 2 < len(letters):
            last = letters[place + 2]
            place += 2
        place += 1
        halves = [(first, "."), ("0", last)] if first < "/" < last else [(first, last)]
        for low, high in halves:
            if low <= high:
                found += _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}"
    if is_negated:
        return f"[^/{found}]"
    return f"[{found}]" if found else "(?!.)[^/]"  # nothing


def _escaped(letter: str) -> str:
    return letter if letter.isalnum() or letter in "_ " or ord(letter) > 127 else f"\\{letter}"


def path_matches(path: str, pattern: str) -> bool:
    """Of a path with `/`; SQLite calls it."""
    return glob_matches(compile_glob(pattern), path.split("/"))
