"""How each linter is called and read. Which files it gets is in `engines/catalog.py`.

A linter reads the files where they are and writes nothing; its fixes come from `rewrite`, on stdin or on copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.codetools.engines.rewrite import Rewriter
from dari.codetools.lint import parse
from dari.codetools.lint.diagnostic import Diagnostic
from dari.codetools.lint.rules import RuleFilter
from dari.struct_types import ready

Fix = str
"""`safe` or `unsafe`."""


class Linter(Struct, frozen=True):
    arguments: Callable[[RuleFilter, Sequence[str], Path], Sequence[str]]
    """For the rules, the absolute names of files, and the folder that it runs in."""
    read: Callable[[bytes, Path], list[Diagnostic]]
    """Its output as diagnostics with absolute paths; raises ValueError for what is not its output."""
    fixer: Callable[[RuleFilter, Fix], Rewriter] | None = None
    success: frozenset[int] = frozenset({0, 1})
    env: Mapping[str, str] = {}
    filters: bool = True
    """It takes the rules itself; otherwise its result is filtered."""
    reads_stderr: bool = False
    """Its result is on stderr, of which only the end would be kept: both are joined."""


def _ruff(rules: RuleFilter, names: Sequence[str], folder: Path) -> list[str]:
    return [
        "check",
        "--no-cache",
        "--exit-zero",
        "--force-exclude",
        # `fix = true` and `fix-only = true` of a project's configuration write; looking must not.
        *("--no-fix", "--no-fix-only"),
        "--output-format=json-lines",
        *_codes(rules),
        "--",
        *names,
    ]


def _ruff_fix(rules: RuleFilter, fix: Fix) -> Rewriter:
    unsafe = "--unsafe-fixes" if fix == "unsafe" else "--no-unsafe-fixes"
    common = ["check", "--no-cache", "--exit-zero", "--force-exclude", "--fix", unsafe, "--quiet", *_codes(rules)]
    return Rewriter(lambda name: [*common, f"--stdin-filename={name}", "-"], [*common, "--"], may_empty=True)


def _codes(rules: RuleFilter) -> list[str]:
    select = [f"--select={','.join(rules.select)}"] if rules.select else []
    return select + ([f"--ignore={','.join(rules.ignore)}"] if rules.ignore else [])


def _flake8(rules: RuleFilter, names: Sequence[str], folder: Path) -> list[str]:
    ignore = [f"--extend-ignore={','.join(rules.ignore)}"] if rules.ignore else []
    select = [f"--select={','.join(rules.select)}"] if rules.select and "ALL" not in rules.select else []
    return [
        "--exit-zero",
        "--jobs=1",
        # A project's `output-file` would be written; opening /dev/stdout hangs where that is a pipe.
        "--output-file=",
        f"--format={parse.FLAKE8_FORMAT}",
        *select,
        *ignore,
        "--",
        *names,
    ]


def _biome(rules: RuleFilter, names: Sequence[str], folder: Path) -> list[str]:
    fixed = ["lint", "--reporter=json", "--colors=off", "--max-diagnostics=none", "--no-errors-on-unmatched"]
    return [*fixed, *_groups(rules), "--", *names]


def _biome_fix(rules: RuleFilter, fix: Fix) -> Rewriter:
    common = ["lint", "--write", "--colors=off", *_groups(rules), *(["--unsafe"] if fix == "unsafe" else [])]
    return Rewriter(
        lambda name: [*common, f"--stdin-file-path={name}"],
        [*common, "--no-errors-on-unmatched", "--"],
        success=frozenset({0, 1}),
        may_empty=True,
    )


def _groups(rules: RuleFilter) -> list[str]:
    only = [f"--only={rule.removeprefix('lint/')}" for rule in rules.select if rule != "ALL"]
    return only + [f"--skip={rule.removeprefix('lint/')}" for rule in rules.ignore]


def _eslint(rules: RuleFilter, names: Sequence[str], folder: Path) -> list[str]:
    return ["--format=json", "--no-color", "--no-error-on-unmatched-pattern", "--", *names]


def _shellcheck(rules: RuleFilter, names: Sequence[str], folder: Path) -> list[str]:
    select = [f"--include={','.join(rules.select)}"] if rules.select and "ALL" not in rules.select else []
    ignore = [f"--exclude={','.join(rules.ignore)}"] if rules.ignore else []
    return ["--format=json1", "--color=never", *select, *ignore, "--", *names]


def _go_vet(rules: RuleFilter, names: Sequence[str], folder: Path) -> list[str]:
    """It takes packages: the folders of the files."""
    packages = sorted({f"./{Path(name).parent.relative_to(folder)}" for name in names})
    return ["vet", "-json", *packages]


def read_eslint_fixes(output: bytes) -> dict[str, bytes]:
    """The new content of each file that `--fix-dry-run` would have written, by its absolute name."""
    found = msgspec.json.decode(output, type=ready(list[parse.EslintFile]))
    return {one.file_path: one.output.encode() for one in found if one.output is not None}


LINTERS = {
    "ruff": Linter(_ruff, parse.read_ruff, _ruff_fix, frozenset({0})),
    "flake8": Linter(_flake8, parse.read_flake8, success=frozenset({0})),
    "biome": Linter(_biome, parse.read_biome, _biome_fix),
    "eslint": Linter(_eslint, parse.read_eslint, filters=False),
    "shellcheck": Linter(_shellcheck, parse.read_shellcheck),
    "go vet": Linter(
        _go_vet,
        parse.read_go_vet,
        success=frozenset({0, 1, 2}),
        # No download, no compiler for C that the code chooses.
        env={"GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        filters=False,
        reads_stderr=True,
    ),
}
