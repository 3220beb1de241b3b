"""How each formatter is called. Which files it gets is in `engines/catalog.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from dari.codetools.engines.configured import ProjectConfig
from dari.codetools.engines.rewrite import Rewriter
from dari.errors import InvalidInput

DEFAULT_EDITION = "2021"
NO_DOWNLOAD = {"RUSTUP_AUTO_INSTALL": "0"}
"""A toolchain that `rust-toolchain.toml` names and that is missing is an error, not a download of 200 MB."""


class LineRange(Struct, frozen=True):
    """Lines from 1, both included."""

    start: int
    end: int


class FormatRequest(Struct, frozen=True):
    """What a formatter is asked for, for the files of one folder of configuration."""

    folder: Path
    config: ProjectConfig
    is_project: bool = True
    range: LineRange | None = None


def make_rewriter(engine: str, request: FormatRequest) -> Rewriter:
    if request.range is not None and engine not in WITH_RANGE:
        raise InvalidInput(
            f"range must be left out: {engine} formats whole files", f"these take one: {', '.join(sorted(WITH_RANGE))}"
        )
    return _MAKERS[engine](request)


def _ruff(request: FormatRequest) -> Rewriter:
    # An excluded file stays as it is when it is named, too: the project says so.
    common = ["format", "--no-cache", "--force-exclude" if request.is_project else "--isolated"]
    lines = [f"--range={request.range.start}-{request.range.end + 1}"] if request.range else []
    return Rewriter(
        lambda name: [*common, *lines, f"--stdin-filename={name}", "-"],
        [*common, "--"],
        re.compile(r"error: (?:Failed to \w+ )?.*?(?::(?P<line>\d+):\d+)?: (?P<message>[^:].*)"),
    )


def _black(request: FormatRequest) -> Rewriter:
    lines = [f"--line-ranges={request.range.start}-{request.range.end}"] if request.range else []
    return Rewriter(
        lambda name: ["--quiet", *lines, f"--stdin-filename={name}", "-"],
        ["--quiet", "--"],
        re.compile(
            r"error: cannot \w+[^\n]*?[: ](?P<line>\d+):\d+(?:: [^\n]*)?(?:[\s\S]*?^(?P<message>\w*Error: .+))?",
            re.MULTILINE,
        ),
        # It would remember every copy in the person's cache for ever.
        env={"BLACK_CACHE_DIR": "/dev/null/black"},
    )


def _isort(request: FormatRequest) -> Rewriter:
    return Rewriter(
        lambda name: ["--quiet", f"--filename={name}", "--settings-path", str(request.folder), "-"],
        ["--quiet", "--"],
    )


def _biome(request: FormatRequest) -> Rewriter:
    common = ["format", "--colors=off"] + ([] if request.is_project else ["--line-ending=auto"])
    return Rewriter(
        lambda name: [*common, f"--stdin-file-path={name}"],
        [*common, "--write", "--no-errors-on-unmatched", "--"],
        re.compile(r"(?::(?P<line>\d+):\d+ \w+ [\s\S]*?)?\u00d7 (?P<message>.+)"),
    )


def _prettier(request: FormatRequest) -> Rewriter:
    common = [] if request.is_project else ["--no-config", "--no-editorconfig", "--end-of-line=auto"]
    return Rewriter(
        lambda name: [*common, "--no-color", f"--stdin-filepath={name}"],
        [*common, "--no-color", "--log-level=warn", "--write", "--"],
        re.compile(r"\[error\] .*?: (?P<message>\w*Error: .*?)(?: \((?P<line>\d+):\d+\))?$", re.MULTILINE),
    )


def _gofmt(request: FormatRequest) -> Rewriter:
    return Rewriter(lambda name: [], ["-w", "--"], keeps_line_ends=False)


def _rustfmt(request: FormatRequest) -> Rewriter:
    # On stdin alone: named a file, it also writes the modules that the file declares.
    edition = f"--edition={find_edition(request.folder, request.config)}"
    return Rewriter(
        lambda name: [edition, "--emit=stdout", "--color=never"],
        None,
        re.compile(r"^error(?:\[\w+\])?: (?P<message>.+)(?:\n\s*--> [^\n]*?:(?P<line>\d+):\d+)?", re.MULTILINE),
        env=NO_DOWNLOAD,
    )


def _clang_format(request: FormatRequest) -> Rewriter:
    style = ["--style=file" if request.is_project else "--style=LLVM", "--fallback-style=LLVM"]
    lines = [f"--lines={request.range.start}:{request.range.end}"] if request.range else []
    return Rewriter(lambda name: [*style, *lines, f"--assume-filename={name}"], [*style, "-i", "--"])


def _shfmt(request: FormatRequest) -> Rewriter:
    return Rewriter(lambda name: [f"-filename={name}", "-"], ["-w", "--"], keeps_line_ends=False)


def find_edition(folder: Path, config: ProjectConfig) -> str:
    """The edition of the crate: rustfmt on stdin does not read Cargo.toml."""
    for above in config.folders(folder):
        for section in ("package.edition", "workspace.package.edition"):
            if isinstance(found := config.value_of(above / "Cargo.toml", section), str) and found.isdigit():
                return found
        for name in ("rustfmt.toml", ".rustfmt.toml"):
            if isinstance(found := config.value_of(above / name, "edition"), str) and found.isdigit():
                return found
    return DEFAULT_EDITION


_MAKERS: dict[str, Callable[[FormatRequest], Rewriter]] = {
    "ruff": _ruff,
    "black": _black,
    "isort": _isort,
    "biome": _biome,
    "prettier": _prettier,
    "gofmt": _gofmt,
    "rustfmt": _rustfmt,
    "clang-format": _clang_format,
    "shfmt": _shfmt,
}
WITH_RANGE = frozenset({"ruff", "black", "clang-format"})
