"""Search by structure: ast-grep's patterns over syntax trees, file by file in a thread."""

from __future__ import annotations

import codecs
import os
import re
import stat
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dari.codetools.search.cursor import SearchPosition
from dari.codetools.search.line_search import SearchClock
from dari.codetools.search.query import path_key
from dari.codetools.search.rows import MAX_SPANS, FoundLine, MetaVariables, cut_context, readable
from dari.errors import InvalidInput, Unavailable
from dari.files.inside import opened_file, read_open

MAX_FILE_BYTES = 2 << 20
"""A tree of a larger file takes seconds and hundreds of bytes for each of its own."""
MAX_TEXT_CHARS = 1000
_MAX_META_CHARS = 200
LANGUAGES: dict[str, tuple[str, ...]] = {
    "bash": ("sh", "bash", "zsh", "ksh"),
    "c": ("c", "h"),
    "cpp": ("cc", "cpp", "cxx", "hpp", "hh", "hxx", "ino"),
    "csharp": ("cs",),
    "css": ("css",),
    "elixir": ("ex", "exs"),
    "go": ("go",),
    "haskell": ("hs",),
    "hcl": ("hcl", "tf"),
    "html": ("html", "htm"),
    "java": ("java",),
    "javascript": ("js", "mjs", "cjs", "jsx"),
    "json": ("json",),
    "kotlin": ("kt", "kts"),
    "lua": ("lua",),
    "nix": ("nix",),
    "php": ("php",),
    "python": ("py", "pyi", "pyw"),
    "ruby": ("rb", "rake", "gemspec"),
    "rust": ("rs",),
    "scala": ("scala", "sc", "sbt"),
    "solidity": ("sol",),
    "swift": ("swift",),
    "tsx": ("tsx",),
    "typescript": ("ts", "mts", "cts"),
    "yaml": ("yaml", "yml"),
}
_ALIASES = {"py": "python", "js": "javascript", "jsx": "javascript", "ts": "typescript", "rs": "rust", "sh": "bash"}
_ALIASES |= {"c++": "cpp", "c#": "csharp", "cs": "csharp", "golang": "go", "kt": "kotlin", "rb": "ruby", "yml": "yaml"}
_BY_SUFFIX = {suffix: language for language, suffixes in LANGUAGES.items() for suffix in suffixes}
_VARIABLE = re.compile(r"\$\$\$([A-Z_][A-Z0-9_]*)?|\$\$?([A-Z_][A-Z0-9_]*)")
_WORD = re.compile(r"[^\W\d]\w{2,}")


def language_named(lang: str | None) -> str | None:
    """InvalidInput when ast-grep does not know it."""
    if lang is None:
        return None
    name = _ALIASES.get(lang.lower(), lang.lower())
    if name not in LANGUAGES:
        raise InvalidInput(
            f"lang must be one of {', '.join(LANGUAGES)}, got {lang!r}", "leave it out to go by file name"
        )
    return name


def engine_name() -> str:
    """`ast-grep 0.51.0`; Unavailable when it is not installed."""
    try:
        import ast_grep_py  # noqa: F401 (30 ms)
    except ImportError:
        raise Unavailable("ast-grep-py is not installed", "install it: pip install 'dari[codetools]'") from None
    return f"ast-grep {version('ast-grep-py')}"


class StructuralSearch:
    """One pattern, over files of one language or of each file's own."""

    def __init__(self, pattern: str, lang: str | None, context: int, clock: SearchClock) -> None:
        self._pattern = pattern
        self._lang = lang
        self._context = context
        self._clock = clock
        names = [found[1] or found[2] for found in _VARIABLE.finditer(pattern) if (found[1] or found[2])]
        self._variables = [name for name in dict.fromkeys(names) if not name.startswith("_")]
        self._words = set(_WORD.findall(_VARIABLE.sub(" ", pattern)))
        self._languages: set[str] = set() if lang is None else {lang}
        self.skipped = 0
        """Files that were too large."""

    @property
    def needle(self) -> str:
        """The longest word of the pattern: a file without it need not be read, one without any of them not parsed."""
        return max(sorted(self._words), key=len, default="")

    def wants(self, path: str) -> bool:
        return self._language_of(path) is not None

    def _language_of(self, path: str) -> str | None:
        suffix = os.path.basename(path).rpartition(".")[2].lower()
        language = _BY_SUFFIX.get(suffix)
        if self._lang is None or language == self._lang:
            return language
        # TypeScript's own parser reads JavaScript, C++'s reads headers of C.
        return self._lang if (suffix, self._lang) in {("h", "cpp"), ("html", "php"), ("jsx", "tsx")} else None

    def search_file(self, path: str, since: SearchPosition | None) -> list[FoundLine]:
        """Its matches in order, after `since` if that is in this file."""
        self._clock.check()
        language = self._language_of(path)
        source = self._read(path) if language is not None else None
        if language is None or source is None:
            return []
        self._languages.add(language)
        if not all(word in source for word in self._words):
            return []
        nodes = self._find(source, language)
        self._clock.check()
        lines = source.split("\n") if nodes and self._context else []
        found = [self._to_line(node, lines) for node in nodes]
        found.sort(key=lambda one: (one.line, one.spans[0]))
        if since is not None and since.key == path_key(path):
            found = [one for one in found if (one.line, one.spans[0][0] + 1) > (since.line, since.col)]
        return found

    def check_pattern(self) -> None:
        """Called when nothing was found: InvalidInput when the pattern is not code in any language that was tried."""
        if self._languages and all(_is_broken(self._pattern, one) for one in self._languages):
            languages = ", ".join(sorted(self._languages))
            raise InvalidInput(
                f"pattern {self._pattern[:200]!r} must be code of {languages}: it has a syntax error",
                "write one whole expression or statement, with $NAME for one part and $$$NAME for several",
            )

    def _read(self, path: str) -> str | None:
        try:
            with opened_file(Path(path)) as (file, real):
                status = os.fstat(file)
                if real != path or not stat.S_ISREG(status.st_mode):
                    return None
                if status.st_size > MAX_FILE_BYTES:
                    self.skipped += 1
                    return None
                data = read_open(file, path, MAX_FILE_BYTES).data
        except OSError:
            return None
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return data.decode("utf-16", "replace")
        return None if b"\0" in data else data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")

    def _find(self, source: str, language: str) -> list[Any]:
        from ast_grep_py import SgRoot

        try:
            return list(SgRoot(source, language).root().find_all(pattern=self._pattern))
        except RuntimeError as error:
            causes = re.findall(r"^\s*\d+: (.+)$", str(error).partition("Stack backtrace")[0], re.MULTILINE)
            why = causes[-1].replace("µ", "$") if causes else "it is not one piece of code"
            raise InvalidInput(
                f"pattern {self._pattern[:200]!r} must be code of {language}: {why}",
                "write one whole expression or statement, with $NAME for one part and $$$NAME for several",
            ) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            return []  # a fault of the parser with this one file

    def _to_line(self, node: Any, lines: list[str]) -> FoundLine:
        place = node.range()
        start, end = place.start, place.end
        text = node.text()
        if len(text) > MAX_TEXT_CHARS:
            text = f"{text[:MAX_TEXT_CHARS]}…"
        found = FoundLine(start.line + 1, readable(text), [(start.column, end.column)])
        found.text_start = start.column
        if end.line > start.line:
            found.end_line = end.line + 1
        if lines:
            found.before = [cut_context(one) for one in lines[max(0, start.line - self._context) : start.line]]
            found.after = [cut_context(one) for one in lines[end.line + 1 : end.line + 1 + self._context]]
        found.meta = self._meta(node)
        return found

    def _meta(self, node: Any) -> MetaVariables:
        meta: MetaVariables = {}
        for name in self._variables:
            if (one := node.get_match(name)) is not None:
                meta[name] = _short(one.text())
            elif several := [part for part in node.get_multiple_matches(name) if part.is_named()]:
                meta[name] = [_short(part.text()) for part in several[:MAX_SPANS]]
        return meta


def _short(text: str) -> str:
    return readable(text if len(text) <= _MAX_META_CHARS else f"{text[:_MAX_META_CHARS]}…")


@cache
def _is_broken(pattern: str, language: str) -> bool:
    """Whether the pattern, with names for its metavariables, has a syntax error. Some such patterns match all the same:
    `def $F` is not a whole statement."""
    from ast_grep_py import SgRoot

    plain = _VARIABLE.sub(lambda found: found[1] or found[2] or "rest", pattern)
    waiting = [SgRoot(plain, language).root()]
    while waiting:
        node = waiting.pop()
        if node.kind() == "ERROR":
            return True
        waiting += node.children()
    return False
