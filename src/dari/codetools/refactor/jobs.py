"""What goes to the process that plans a refactoring, and what comes back: it changes nothing itself."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Op = Literal["rename", "rewrite", "move", "organizeImports", "codemod"]


class Symbol(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A place in a file, or a name. `path` alone is the file (a Python module) itself."""

    path: Annotated[str, Meta(description="file of the symbol")] = ""
    line: Annotated[int, Meta(ge=0, description="from 1")] = 0
    col: Annotated[int, Meta(ge=0, description="from 1, in characters; without it the one definition on that line")] = 0
    name: Annotated[
        str, Meta(description="instead of a place: function, Class.method, package.module.name, function.argument")
    ] = ""


class RewriteRule(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pattern: Annotated[str, Meta(min_length=1, description="code with $NAME for one node and $$$NAME for any number")]
    rewrite: Annotated[str, Meta(description="code that takes its place, with the same names")]
    lang: Annotated[str, Meta(description="language of the pattern; without it that of each file")] = ""


class Job(Struct, frozen=True):
    op: Op
    roots: list[bytes]
    base: bytes
    symbol: Symbol = Symbol()
    new_name: str = ""
    to: str = ""
    rules: list[RewriteRule] = []
    paths: list[str] = []
    is_narrowed: bool = False
    """The caller named the paths."""
    include_ignored: bool = False
    renames_unsure: bool = False
    renames_docs: bool = False


class PlannedFile(Struct, frozen=True):
    """`before_hash` is of the content that the plan was made from."""

    path: bytes
    before_hash: str
    after: bytes | None
    like: bytes | None = None
    """Of a file that was moved: where it was."""


class PlanError(Struct, frozen=True):
    name: str
    message: str
    hint: str


class Plan(Struct, frozen=True):
    files: list[PlannedFile] = []
    notes: list[str] = []
    engine: str = ""
    what: str = ""
    error: PlanError | None = None
