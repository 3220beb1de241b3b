"""25 symbols renamed and 17 moved in real packages: their suites pass, and undo leaves trees that git calls clean."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from tests.support.codetools import code_tools

Symbol = dict[str, object]


class Package(Struct, frozen=True):
    folder: str
    tests: tuple[str, ...]
    """Those that touch what is renamed."""
    renames: tuple[tuple[Symbol | str, str], ...]
    path: str = "."
    """Where it is imported from."""
    moves: tuple[tuple[str, str], ...] = ()


PACKAGES = (
    Package(
        "cachetools-8.0.0",
        ("tests",),
        (
            ("cachetools.keys.hashkey", "make_hash_key"),
            ("cachetools.LFUCache", "LeastUsedCache"),
            ("_TimedCache.expire", "drop_expired"),
            ("cachetools.func._cache", "_make_cached"),
            ("cachetools._descriptor", "_binding"),
        ),
        "src",
        moves=(
            ("cachetools.keys.typedkey", "src/cachetools/_typed.py"),
            ("cachetools.LFUCache", "src/cachetools/_lfu.py"),
        ),
    ),
    Package(
        "h11-0.16.0",
        ("h11/tests",),
        (
            ("get_comma_header", "read_comma_header"),
            ("ReceiveBuffer", "InputBuffer"),
            ("Connection.receive_data", "feed"),
            ("h11._util.validate", "match_or_raise"),
            ("h11._receivebuffer", "_input"),
        ),
        moves=(
            ("h11._util.bytesify", "h11/_bytes.py"),
            ("h11._headers.normalize_and_validate", "h11/_normal.py"),
            ("h11._headers.get_comma_header", "h11/_comma.py"),
            ("h11._util.Sentinel", "h11/_sentinel.py"),
        ),
    ),
    Package(
        "toolz-1.2.0",
        ("toolz/tests", "tlz"),
        (
            ("functoolz._restore_curry", "_rebuild_curry"),
            ("curry._should_curry", "_needs_more"),
            ("itertoolz._merge_sorted_binary", "_merge_two"),
            ("_signatures.expand_sig", "widen_signature"),
            ("EqualityHashKey", "ByValueKey"),
        ),
        moves=(
            ("toolz._signatures.expand_sig", "toolz/_expand.py"),
            ("toolz.itertoolz.pluck", "toolz/recipes.py"),
            ("toolz.functoolz.flip", "toolz/_flip.py"),
        ),
    ),
    Package(
        "tomlkit-0.15.2",
        ("tests/test_api.py", "tests/test_items.py", "tests/test_parser.py", "tests/test_utils.py"),
        (
            ("KeyAlreadyPresent", "DuplicateKey"),
            ("items.Trivia", "Decoration"),
            ("items.Key.is_dotted", "has_dots"),
            ("escape_string", "escape_text"),
            ("tomlkit._utils", "_text"),
        ),
        moves=(
            ("tomlkit._utils.escape_string", "tomlkit/_escape.py"),
            ("tomlkit.items.Trivia", "tomlkit/_trivia.py"),
            ("tomlkit.exceptions.KeyAlreadyPresent", "tomlkit/_errors.py"),
        ),
    ),
    Package(
        "click-8.5.1",
        (
            "tests/test_formatting.py",
            "tests/test_utils/test_make_default_short_help.py",
            "tests/test_context.py",
            "tests/test_termui.py",
            "tests/test_compat.py",
        ),
        (
            ("_compat.term_len", "visible_width"),
            ("Context.find_root", "top_context"),
            ("_termui_impl.Editor", "ExternalEditor"),
            ("_make_default_short_help.max_length", "most"),
            ("click._textwrap", "_wrapping"),
        ),
        "src",
        moves=(
            ("click.utils.get_app_dir", "src/click/_app_dir.py"),
            ("click._compat.term_len", "src/click/_textwrap.py"),
            ("click.formatting.measure_table", "src/click/_tables.py"),
            ("click.formatting.HelpFormatter", "src/click/_help.py"),
            ("click._compat.strip_ansi", "src/click/_ansi.py"),
        ),
    ),
)


def test_there_are_twenty_five() -> None:
    assert sum(len(package.renames) for package in PACKAGES) == 25


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.folder)
@pytest.mark.timeout(240)
async def test_renamed_symbols_leave_the_suite_passing_and_undo_leaves_the_tree_clean(
    tmp_path: Path, package: Package
) -> None:
    root = make_repository(tmp_path, package)
    tokens: list[str] = []
    async with code_tools(root) as tools:
        for name, new_name in package.renames:
            symbol = {"name": name} if isinstance(name, str) else name
            arguments = {"op": "rename", "symbol": symbol, "newName": new_name, "unsure": True, "maxTokens": 500}
            done = await tools.call("refactor", **arguments, dryRun=False)
            assert done["applied"], (name, done)
            tokens.append(done["undoToken"])
        assert git(root, "status", "--porcelain")
        run_suite(root, package)
        for token in reversed(tokens):
            await tools.call("undo", undoToken=token)
    assert git(root, "status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.folder)
@pytest.mark.timeout(240)
async def test_moved_symbols_leave_the_suite_passing_and_undo_leaves_the_tree_clean(
    tmp_path: Path, package: Package
) -> None:
    root = make_repository(tmp_path, package)
    tokens: list[str] = []
    async with code_tools(root) as tools:
        for name, to in package.moves:
            done = await tools.call("refactor", op="move", symbol={"name": name}, to=to, dryRun=False)
            assert done["applied"], (name, done)
            tokens.append(done["undoToken"])
        run_suite(root, package)
        for token in reversed(tokens):
            await tools.call("undo", undoToken=token)
    assert git(root, "status", "--porcelain", "--ignored") == ""


def make_repository(tmp_path: Path, package: Package) -> Path:
    if os.environ.get("DARI_NO_PACKAGES") == "1":
        pytest.skip("DARI_NO_PACKAGES=1: renames were not tried on real code")
    root = tmp_path / package.folder
    shutil.copytree(Path(os.environ["DARI_PACKAGES_DIR"], package.folder), root)
    git(root, "init", "--quiet")
    git(root, "add", "--all", "--force")
    git(root, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "as it came")
    return root


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_suite(root: Path, package: Package) -> None:
    """Without writing anything beside the files: no bytecode, no cache."""
    environ = {**os.environ, "PYTHONPATH": str(root / package.path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--basetemp", f"{root}-temp"]
    done = subprocess.run(
        [*command, *package.tests], cwd=root, env=environ, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
