"""Names in code: where they are defined, and the functions that mention them."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator

from msgspec import Struct

from dari.codetools.testing.projects import SUFFIXES, Language

_DEFINITIONS: dict[Language, str] = {
    "python": r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{name}\b|^{name}[ \t]*(?::[^=\n]*)?=[^=]",
    "node": r"\b(?:function\*?|class|const|let|var|interface|type|enum)[ \t]+{name}\b"
    r"|^[ \t]*(?:(?:public|private|protected|static|async|get|set)[ \t]+)*{name}[ \t]*(?:<[^>\n]*>)?"
    r"\([^)\n]*\)[^;\n]*\{{",
    "go": r"^func[ \t]+(?:\([^)\n]*\)[ \t]*)?{name}\b|^[ \t]*(?:type|var|const)[ \t]+{name}\b",
    "rust": r"\b(?:fn|struct|enum|trait|const|static|type|mod|union)[ \t]+{name}\b|macro_rules![ \t]*{name}\b",
}
_FUNCTIONS: dict[Language, re.Pattern[str]] = {
    "node": re.compile(
        r"^[ \t]*(?:export[ \t]+(?:default[ \t]+)?)?(?:async[ \t]+)?(?:function\*?[ \t]+(\w+)|class[ \t]+(\w+)"
        r"|(?:const|let|var)[ \t]+(\w+)[ \t]*=)"
        r"|^[ \t]+(?:static[ \t]+|async[ \t]+)*(?!(?:if|for|while|switch|catch|return)\b)(\w+)[ \t]*"
        r"\([^)\n]*\)[ \t]*\{",
        re.MULTILINE,
    ),
    "go": re.compile(r"^func[ \t]+(?:\([^)\n]*\)[ \t]*)?(\w+)", re.MULTILINE),
    "rust": re.compile(r"\bfn[ \t]+(\w+)", re.MULTILINE),
}
_BLANKED = re.compile(r"^[ \t]*(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)


class Function(Struct, frozen=True):
    """A function with the lines it spans, from 1. `name` is how a test of pytest is called: `Class::method`."""

    name: str
    first: int
    last: int
    is_test: bool

    @property
    def called(self) -> str:
        """The name that its callers write: of a constructor the class's."""
        *above, own = self.name.split("::")
        return above[-1] if above and own.startswith("__") else own

    @property
    def owner(self) -> str:
        """Its class, unless it is the class's own name that is called."""
        *above, own = self.name.split("::")
        return above[-1] if above and not own.startswith("__") else ""


def language_of(path: str) -> Language:
    return SUFFIXES[os.path.splitext(path)[1]]


def is_defined(text: str, language: Language, name: str) -> bool:
    return re.search(_DEFINITIONS[language].format(name=re.escape(name)), text, re.MULTILINE) is not None


def mention_lines(text: str, language: Language, name: str) -> list[int]:
    """Lines with the name as a word, without those of imports: a name that is only imported is not used."""
    if language == "python":
        text = _BLANKED.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [text.count("\n", 0, one.start()) + 1 for one in re.finditer(rf"\b{re.escape(name)}\b", text)]


def functions_of(text: str, language: Language) -> list[Function]:
    """The outermost functions and methods, in order; none where the text cannot be read."""
    if language == "python":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return list(_python_functions(ast.parse(text).body, ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
    starts = [
        (next(filter(None, found.groups()), ""), text.count("\n", 0, found.start()) + 1)
        for found in _FUNCTIONS[language].finditer(text)
    ]
    ends = [*(line - 1 for _, line in starts[1:]), text.count("\n") + 1][: len(starts)]
    return [
        Function(name, first, max(first, last), language == "go" and name.startswith(("Test", "Example", "Fuzz")))
        for (name, first), last in zip(starts, ends, strict=True)
    ]


def _python_functions(body: list[ast.stmt], prefix: str) -> Iterator[Function]:
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _python_functions(one.body, f"{prefix}{one.name}::")
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)])
            yield Function(f"{prefix}{one.name}", first, one.end_lineno or first, one.name.startswith("test"))
        elif isinstance(one, ast.If | ast.Try):
            yield from _python_functions(one.body, prefix)
