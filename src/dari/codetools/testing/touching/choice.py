"""Which tests touch this: files and symbols in, tests out, each with the reason why it was chosen."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from dari.codetools.testing.projects import Language, is_test_file
from dari.codetools.testing.report import ChosenTest
from dari.codetools.testing.request import Target, split_targets, to_id
from dari.codetools.testing.touching.imports import Edges, GoImports, ImportGraph, NodeImports, RustModules
from dari.codetools.testing.touching.python_imports import PythonImports
from dari.codetools.testing.touching.sources import SourceIndex
from dari.codetools.testing.touching.symbols import (
    Function,
    functions_of,
    is_defined,
    language_of,
    mention_lines,
)
from dari.codetools.workspace import Workspace
from dari.errors import NotFound

MAX_STEPS = 6
"""Of imports from a test to the change: further away nearly everything touches everything. Unless nothing is nearer."""
MAX_CALLERS = 40
MAX_NOTES = 5
MAX_CALL_STEPS = 2
MAX_IMPORT_STEPS = (4, 2)
"""Between a mention and the definition, of the name itself and of its callers: further away it is another thing of the
same name."""
_MIN_CALLER_CHARS = 3
_CONFIGURATION = re.compile(
    r"pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|pytest\.ini|requirements.*\.txt|package\.json|tsconfig.*\.json"
    r"|(?:vitest|jest|vite|babel)\.config\..*|go\.(?:mod|sum)|Cargo\.(?:toml|lock)|.*lock.*"
)

_DOCUMENTATION = re.compile(
    r"\.(?:md|rst|adoc|txt|png|jpe?g|gif|svg)$|^(?:LICEN[CS]E|NOTICE|AUTHORS|CHANGELOG)\b", re.I
)


class TouchingTests(Struct, frozen=True):
    """`targets` are in the order of how near they are. None: all tests when `is_all`, otherwise not one."""

    targets: tuple[Target, ...]
    chosen: tuple[ChosenTest, ...]
    is_all: bool = False
    notes: tuple[str, ...] = ()


async def find_touching(workspace: Workspace, names: Sequence[str]) -> TouchingTests:
    """`choose_tests` in a thread, which ends when this is cancelled."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(choose_tests, workspace, names, stop)
    finally:
        stop.set()


def choose_tests(workspace: Workspace, names: Sequence[str], stop: threading.Event | None = None) -> TouchingTests:
    """The tests that touch files or symbols, by imports, names of files and mentions; all where that cannot tell.

    Nothing is run. What a test reaches without naming it (a program that it starts, a plugin) is not seen. NotFound
    for a symbol that is nowhere.
    """
    paths, symbols = split_targets(workspace, names)
    return _Chooser(SourceIndex(workspace, stop or threading.Event())).choose([one.path for one in paths], symbols)


def find_named_tests(workspace: Workspace, symbol: str, stop: threading.Event | None = None) -> list[Target]:
    """Tests that are called so: `test_sum`, `TestCart`, `TestCart.test_sum`."""
    return _Chooser(SourceIndex(workspace, stop or threading.Event())).named(symbol)


class _Wanted(Struct, frozen=True):
    name: str
    defined_in: tuple[str, ...]
    """None: unknown."""
    owner: str = ""
    """Its class or module."""
    uses: str = ""


class _Chooser:
    def __init__(self, sources: SourceIndex) -> None:
        self._sources = sources
        self._why: dict[Target, tuple[int, str]] = {}
        self._notes: list[str] = []
        self._is_all = False
        self._is_known = False
        """Nothing has to run for some of it."""
        self._graphs: dict[Language, ImportGraph] = {}

    def choose(self, paths: Iterable[Path], symbols: Iterable[str]) -> TouchingTests:
        changed: list[str] = []
        for path in paths:
            inside = [file for file in self._sources.files() if file.startswith(os.path.join(path, ""))]
            changed += inside if path.is_dir() else [str(path)]
        self._files(changed)
        for symbol in symbols:
            self._symbol(symbol)
        if not self._sources.is_complete:
            self._notes.append("the workspace has too many files to look at all: name root")
        if not self._why and not self._is_all and not self._is_known:
            self._everything("no test was found that touches it by imports or names")
        if self._is_all:
            return TouchingTests((), (), True, tuple(self._notes))
        whole = {target.path for target in self._why if not target.test}
        kept = [one for one in self._why if not one.test or one.path not in whole]
        kept.sort(key=lambda one: (self._why[one][0], one))
        chosen = [ChosenTest(to_id(self._sources.show(str(one.path)), one.test), self._why[one][1]) for one in kept]
        return TouchingTests(tuple(kept), tuple(chosen), False, tuple(self._notes))

    def named(self, symbol: str) -> list[Target]:
        *above, name = re.split(r"\.|::", symbol)
        found: list[Target] = []
        for file in self._sources.files():
            if not self._is_test(file) or name not in (text := self._sources.read(file)):
                continue
            for function in functions_of(text, language_of(file)):
                parts = function.name.split("::")
                if not function.is_test or (above and above[-1] not in (*parts, Path(file).stem)):
                    continue
                if parts[-1] == name:
                    found.append(Target(Path(file), function.name))
                elif name in parts:
                    found.append(Target(Path(file), "::".join(parts[: parts.index(name) + 1])))
        return [self._to_target(Path(one.path), one.test) for one in dict.fromkeys(found)]

    def _files(self, changed: Sequence[str]) -> None:
        untouched: list[str] = []
        others: list[str] = []
        for path in dict.fromkeys(changed):
            if path in self._sources:
                untouched += [] if self._code(path) else [path]
            elif _CONFIGURATION.fullmatch(os.path.basename(path)):
                self._everything(f"{self._sources.show(path)} configures everything")
            else:
                others.append(path)
        if others and not self._is_all:
            self._other_files(others)
        if len(changed) > 1:
            self._notes += [f"no test touches {self._sources.show(path)}" for path in untouched[:MAX_NOTES]]
        if untouched and not self._why:
            self._is_known = False

    def _code(self, path: str) -> bool:
        """Whether a test was found, near or far."""
        ways = list(self._ways([path]).values())
        found = [self._add_way(way) for way in ways if len(way) <= MAX_STEPS + 1]
        found.append(self._add_namesakes(path))
        if not any(found):
            found += [self._add_way(way) for way in ways]
        return any(found)

    def _ways(self, changed: Iterable[str]) -> dict[str, list[str]]:
        """Of every file that reaches a changed one."""
        found: dict[str, list[str]] = {}
        by_language: dict[Language, list[str]] = {}
        for path in changed:
            by_language.setdefault(language_of(path), []).append(path)
        for language, files in by_language.items():
            found |= self._graph(language).walk_back(files)
        return found

    def _add_way(self, way: list[str]) -> bool:
        """Whether there is a test at its beginning."""
        file, steps = way[0], len(way) - 1
        show = self._sources.show
        between = [*way[1:-1][:1], *(["…"] if len(way) > 4 else way[2:-1]), *way[-1:]] if steps else []
        why = f"imports {' → '.join(map(show, between))}" if steps else "is named itself"
        if os.path.basename(file) == "conftest.py":
            folder = os.path.join(os.path.dirname(file), "")
            tests = [one for one in self._sources.files("python") if one.startswith(folder) and self._is_test(one)]
            for test in tests:
                self._add(Target(Path(test)), steps + 1, f"below {show(file)}, which {why}")
            return bool(tests)
        if not self._is_test(file):
            return False
        if steps and language_of(file) == "rust" and "/tests/" not in file:
            why = f"mentions {show(way[1])}"
        self._add(Target(Path(file)), steps, why)
        return True

    def _add_namesakes(self, path: str) -> bool:
        """`prices.py` is tested by `test_prices.py`, wherever that is. Whether there is one."""
        stem = Path(path).name.split(".")[0]
        wanted = re.compile(rf"(?:test_{re.escape(stem)}|{re.escape(stem)}(?:_test|[.-]test|[.-]spec|_spec))\.\w+")
        tests = [file for file in self._named_tests if wanted.fullmatch(os.path.basename(file))]
        tests = [file for file in tests if language_of(file) == language_of(path)]
        for file in tests:
            self._add(Target(Path(file)), 1, f"named after {self._sources.show(path)}")
        return bool(tests)

    def _other_files(self, paths: Sequence[str]) -> None:
        """Data: the tests that mention a name, and those of the code that does. Every file is read once for all."""
        names = {os.path.basename(path): path for path in paths}
        any_name = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
        for file in self._sources.files():
            for name in set(any_name.findall(self._sources.read(file))):
                names.pop(name, None)
                if self._is_test(file):
                    self._add(Target(Path(file)), 1, f"mentions {name}")
                else:
                    self._code(file)
        unknown = [path for name, path in names.items() if _DOCUMENTATION.search(name)]
        self._notes += [f"no code mentions {self._sources.show(path)}" for path in unknown[:MAX_NOTES]]
        self._is_known = len(unknown) == len(names)

    def _symbol(self, symbol: str) -> None:
        *above, name = re.split(r"\.|::", symbol)
        owner = above[-1] if above else ""
        definitions = self._definitions(name, owner)
        before = len(self._why)
        is_mentioned = self._follow_mentions(_Wanted(name, tuple(definitions), owner))
        if len(self._why) > before:
            return
        if definitions:
            self._notes.append(f"no test mentions {symbol}: the tests that import its file were chosen")
            self._files(definitions)
        elif not is_mentioned:
            raise NotFound(f"{symbol!r} is neither a path nor a symbol here", "crewx_tools_symbols finds names")

    def _definitions(self, name: str, owner: str) -> list[str]:
        found = []
        for file in self._sources.files():
            text = self._sources.read(file)
            if name in text and is_defined(text, language_of(file), name):
                found.append((file, Path(file).stem == owner or is_defined(text, language_of(file), owner or name)))
        owned = [file for file, is_owned in found if is_owned]
        if found and not owned:
            files = ", ".join(self._sources.show(file) for file, _ in found[:5])
            raise NotFound(f"{owner} has no {name}; {files} define it", f"name {name} alone, or its class or module")
        return owned

    def _follow_mentions(self, first: _Wanted) -> bool:
        """Tests that mention a name, then those that mention a function which does. False: nothing mentions it."""
        wanted, known, is_mentioned = [first], {first.name}, False
        for step in range(MAX_CALL_STEPS + 1):
            callers: dict[str, _Wanted] = {}
            for one in wanted:
                mentions = list(self._mentions_of(one, MAX_IMPORT_STEPS[min(step, 1)]))
                is_mentioned = is_mentioned or bool(mentions)
                # `record` is the name of many methods: tests that mention its class too are taken where there are any.
                owned = {file for file, text, _ in mentions if self._is_test(file) and one.owner and one.owner in text}
                for file, text, lines in mentions:
                    is_near = file in owned or not (owned or (step and one.owner))
                    if self._is_test(file) and is_near:
                        why = f"uses {one.name}" if not step else f"uses {one.name}, which uses {one.uses}"
                        self._add_mention(file, text, lines, step, why)
                    if not self._is_test(file) or language_of(file) == "rust":
                        for caller in _callers(file, text, lines):
                            if caller.called not in known and len(caller.called) >= _MIN_CALLER_CHARS:
                                before = callers.get(caller.called)
                                files = (*before.defined_in, file) if before else (file,)
                                callers[caller.called] = _Wanted(caller.called, files, caller.owner, one.name)
            wanted = list(callers.values())[:MAX_CALLERS]
            known.update(callers)
        return is_mentioned

    def _mentions_of(self, wanted: _Wanted, max_steps: int) -> Iterator[tuple[str, str, list[int]]]:
        """Files that mention a name and reach its definition, with their text and the lines."""
        near = self._ways(wanted.defined_in) if wanted.defined_in else None
        for file in self._sources.files():
            if near is not None and not 0 < len(near.get(file, ())) <= max_steps + 1:
                continue
            text = self._sources.read(file)
            if wanted.name in text and (lines := mention_lines(text, language_of(file), wanted.name)):
                yield file, text, lines

    def _add_mention(self, file: str, text: str, lines: list[int], step: int, why: str) -> None:
        """Single tests where every mention is inside of one; the whole file where a helper or a fixture mentions it."""
        language = language_of(file)
        tests = [one for one in functions_of(text, language) if one.is_test]
        found = [next((one for one in tests if one.first <= line <= one.last), None) for line in lines]
        if language in ("python", "go") and all(one is not None for one in found):
            for one in dict.fromkeys(filter(None, found)):
                self._add(self._to_target(Path(file), one.name), step, why)
        else:
            self._add(Target(Path(file)), step, why)

    def _to_target(self, path: Path, test: str) -> Target:
        return Target(path.parent if path.suffix == ".go" else path, test)

    def _is_test(self, file: str) -> bool:
        if language_of(file) == "rust":
            return "/tests/" in file or self._rust.has_tests(file)
        return is_test_file(os.path.basename(file)) or "/__tests__/" in file

    def _graph(self, language: Language) -> ImportGraph:
        if language not in self._graphs:
            self._graphs[language] = ImportGraph(self._edges(language))
        return self._graphs[language]

    def _edges(self, language: Language) -> Mapping[str, Edges]:
        match language:
            case "python":
                return PythonImports(self._sources).edges()
            case "node":
                return NodeImports(self._sources).edges()
            case "go":
                return GoImports(self._sources).edges()
            case "rust":
                return self._rust.edges()

    @cached_property
    def _named_tests(self) -> list[str]:
        return [file for file in self._sources.files() if is_test_file(os.path.basename(file))]

    @cached_property
    def _rust(self) -> RustModules:
        return RustModules(self._sources)

    def _add(self, target: Target, steps: int, why: str) -> None:
        known = self._why.get(target)
        if known is None or steps < known[0]:
            self._why[target] = (steps, why)

    def _everything(self, why: str) -> None:
        self._is_all = True
        self._notes.append(f"{why}: all tests ran")


def _callers(file: str, text: str, lines: list[int]) -> list[Function]:
    functions = functions_of(text, language_of(file))
    found = (next((one for one in functions if one.first <= line <= one.last), None) for line in lines)
    return list(dict.fromkeys(one for one in found if one is not None))
