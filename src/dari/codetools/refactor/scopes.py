"""Which names of Python code mean the module's own, and when they are looked up."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

When = Literal["loading", "later", "typing"]
"""While the module is loaded, when a function runs, or only by a type checker."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Use(Struct, frozen=True):
    name: str
    node: ast.AST
    when: When
    function: Function | None
    """The outermost one around it."""
    is_store: bool = False


class Symbol(Struct, frozen=True):
    scope: int
    """The one that binds the name, counted from the top of the file; 0 for the module, or what is built in."""
    name: str


class Collision(Struct, frozen=True):
    line: int
    name: str
    is_split: bool = False
    """The name has another one in some places only; otherwise two names are one."""


class _Scope(Struct, frozen=True):
    kind: str
    names: set[str]
    number: int


def global_uses(tree: ast.Module, *, lazy_annotations: bool | None = None) -> list[Use]:
    """Every name that no function, class or comprehension around it binds."""
    is_lazy = has_future_annotations(tree) if lazy_annotations is None else lazy_annotations
    walker = _Walker(is_lazy)
    for node in tree.body:
        walker.visit(node)
    return walker.uses


def find_collision(before: str, after: str) -> Collision | None:
    """What a rename did to the names of a file besides renaming: it made one of two, or two of one."""
    old, new = _symbols(before), _symbols(after)
    if len(old) != len(new):
        return None  # not only names differ
    meant: dict[Symbol, Symbol] = {}
    became: dict[Symbol, Symbol] = {}
    for (_, was), (line, now) in zip(old, new, strict=True):
        if was is None or now is None:
            continue
        if meant.setdefault(now, was) != was:
            return Collision(line, now.name)
        if (first := became.setdefault(was, now)) != now:
            return Collision(line, now.name) if first.name == now.name else Collision(line, was.name, is_split=True)
    return None


def _symbols(text: str) -> list[tuple[int, Symbol | None]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return []
    walker = _Walker(False)
    for node in tree.body:
        walker.visit(node)
    return walker.symbols


def has_future_annotations(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(one.name == "annotations" for one in node.names)
        for node in tree.body
    )


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """What these statements bind in their own scope."""
    found: set[str] = set()
    outside: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(one.asname or one.name.split(".")[0] for one in node.names)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outside.update(node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(node)
    return found - outside


class _Walker(ast.NodeVisitor):
    def __init__(self, is_lazy: bool) -> None:
        self.uses: list[Use] = []
        self.symbols: list[tuple[int, Symbol | None]] = []
        """Every name that is bound or used, with its line; None where only running tells what it means."""
        self._is_lazy = is_lazy
        self._scopes: list[_Scope] = []
        self._scope_count = 0
        self._function: Function | None = None
        self._is_typing = False

    def visit_Name(self, node: ast.Name) -> None:
        is_store = not isinstance(node.ctx, ast.Load)
        scope = self._record(node.id, node.lineno, is_store=is_store)
        if scope is None:
            self._add(node.id, node, is_store)

    def _record(self, name: str, line: int, *, is_store: bool = True) -> _Scope | None:
        scope = next((one for one in reversed(self._scopes) if name in one.names), None)
        # `name = name` in a class reads the one around it.
        is_unsure = scope is not None and scope.kind == "class" and not is_store
        self.symbols.append((line, None if is_unsure else Symbol(scope.number if scope else 0, name)))
        return scope

    def _open(self, kind: str, names: set[str]) -> _Scope:
        self._scope_count += 1
        return _Scope(kind, names, self._scope_count)

    def _add(self, name: str, node: ast.AST, is_store: bool = False) -> None:
        when: When = "typing" if self._is_typing else "later" if self._in_function() else "loading"
        self.uses.append(Use(name, node, when, self._function, is_store))

    def _in_function(self) -> bool:
        return any(one.kind == "function" for one in self._scopes)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: Function) -> None:
        self._record(node.name, node.lineno)
        arguments = node.args
        for one in (*node.decorator_list, *arguments.defaults, *(one for one in arguments.kw_defaults if one)):
            self.visit(one)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [one for one in (arguments.vararg, arguments.kwarg) if one]
        for argument in every:
            self._visit_annotation(argument.annotation)
        self._visit_annotation(node.returns)
        outer, self._function = self._function, self._function or node
        self._visit_scope("function", bound_names(node.body) | {one.arg for one in every}, [*every, *node.body])
        self._function = outer

    def visit_Lambda(self, node: ast.Lambda) -> None:
        arguments = node.args
        for one in (*arguments.defaults, *(one for one in arguments.kw_defaults if one)):
            self.visit(one)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [one for one in (arguments.vararg, arguments.kwarg) if one]
        self._visit_scope("function", {one.arg for one in every}, [*every, node.body])

    def visit_arg(self, node: ast.arg) -> None:
        self._record(node.arg, node.lineno)  # its annotation is outside of the function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._record(node.name, node.lineno)
        for one in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
            self.visit(one)
        self._visit_scope("class", bound_names(node.body), node.body)

    def _visit_scope(self, kind: str, names: set[str], body: Iterable[ast.AST]) -> None:
        outer = self._scopes
        # Functions do not see the names of a class around them.
        self._scopes = [*(one for one in outer if kind == "class" or one.kind != "class"), self._open(kind, names)]
        for node in body:
            self.visit(node)
        self._scopes = outer

    def _visit_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        names = bound_names(part.target for part in node.generators)
        outer, self._scopes = self._scopes, [*self._scopes, self._open("comprehension", names)]
        self.generic_visit(node)
        self._scopes = outer

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _visit_comprehension

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for one in node.names:
            self._record(one.asname or one.name.split(".")[0], one.lineno)

    visit_ImportFrom = visit_Import

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            self._record(name, node.lineno)

    visit_Nonlocal = visit_Global

    def _visit_capture(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self._record(name, node.lineno)
        self.generic_visit(node)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = visit_MatchMapping = _visit_capture

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        self._visit_annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called == "cast" and node.args:
            self._visit_annotation(node.args[0], is_evaluated=True)
            node = ast.Call(node.func, node.args[1:], node.keywords)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        from dari.codetools.refactor.python_modules import is_type_checking

        self.visit(node.test)
        outer, self._is_typing = self._is_typing, self._is_typing or is_type_checking(node)
        for one in node.body:
            self.visit(one)
        self._is_typing = outer
        for one in node.orelse:
            self.visit(one)

    def _visit_annotation(self, node: ast.expr | None, *, is_evaluated: bool = False) -> None:
        if node is None:
            return
        outer, self._is_typing = self._is_typing, self._is_typing or (self._is_lazy and not is_evaluated)
        self.visit(node)
        self._is_typing = True
        for quoted in _quoted(node):
            known, recorded = len(self.uses), len(self.symbols)
            self.visit(quoted)
            del self.symbols[recorded:]  # a name in a string is renamed or not: the notes tell
            # The parsed string has no place of its own in the file.
            self.uses[known:] = [Use(use.name, node, use.when, use.function) for use in self.uses[known:]]
        self._is_typing = outer


def _quoted(node: ast.expr) -> Iterator[ast.expr]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            try:
                yield ast.parse(one.value, mode="eval").body
            except (SyntaxError, ValueError):
                continue
