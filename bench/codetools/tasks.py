"""Ten everyday tasks in a real repository (click's), each done four ways and checked by its end state.

The ways are those of an agent that knows its tools: the fewest calls that lead to the end with certainty. What no tool
of a server does (running tests, a formatter), the servers' side does in a shell, which counts like any other call.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bench.codetools.sides import Side, shell_environment
from bench.errors import BenchError

Do = Callable[[Side], Awaitable[None]]
_MATCH = re.compile(r"^(?P<path>[^:\n]+\.py):(?P<line>\d+):(?P<text>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    prepare: Callable[[Path], None]
    """What the person did before; the repository is a fresh copy."""
    is_done: Callable[[Path, str], bool]
    """Looks at the repository, and at all that the agent has read."""
    ways: dict[str, Do]
    """By side: dari, servers, serena, shell."""


def run(repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=repo, env=shell_environment(), capture_output=True, text=True, timeout=240, check=False
    )


def passes(repo: Path, *tests: str) -> bool:
    return run(repo, "python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests).returncode == 0


def has_word(repo: Path, word: str, *folders: str) -> bool:
    return run(repo, "rg", "-qw", word, "-g", "*.py", *folders).returncode == 0


def nothing(repo: Path) -> None:
    """The repository as it was committed."""


def replace(repo: Path, name: str, old: str, new: str) -> None:
    file = repo / name
    text = file.read_text()
    if old not in text:
        raise BenchError(f"{name} has no {old!r}", "the tasks are written for click 8.5.1")
    file.write_text(text.replace(old, new, 1))


async def replace_lines(side: Side, found: str, old: str, new: str) -> None:
    """Edit every line of a search result with the file system server: one call a file."""
    lines: dict[str, list[str]] = defaultdict(list)
    for match in _MATCH.finditer(found):
        lines[match["path"]].append(match["text"])
    for path, texts in lines.items():
        edits = [{"oldText": text, "newText": re.sub(old, new, text)} for text in texts]
        await side.call("edit_file", "fs", path=str(side.repo / path), edits=edits)


# 1. Rename

OLD, NEW = "term_len", "display_width"


async def rename_dari(side: Side) -> None:
    await side.call("crewx_tools_refactor", op="rename", symbol={"name": OLD}, newName=NEW, docs=True, dryRun=False)


async def rename_servers(side: Side) -> None:
    found = await side.call(
        *("advanced-search", "rg"), pattern=OLD, path=str(side.repo), wordMatch=True, fileType="py", maxResults=200
    )
    await replace_lines(side, found, rf"\b{OLD}\b", NEW)


async def rename_serena(side: Side) -> None:
    """Not by rename_symbol: of 31 places in 6 files it changed 4 here (serena 2.1.0 with pyright 1.1.403)."""
    await side.call("search_for_pattern", substring_pattern=rf"\b{OLD}\b", paths_include_glob="**/*.py")
    await side.call(
        "replace_in_files",
        needle=rf"\b{OLD}\b",
        repl=NEW,
        mode="regex",
        relative_path=".",
        paths_include_glob="**/*.py",
    )


async def rename_shell(side: Side) -> None:
    await side.shell(f"rg -nw {OLD} -g '*.py'")
    await side.shell(f"rg -lw {OLD} -g '*.py' | xargs sed -i 's/\\b{OLD}\\b/{NEW}/g' && git diff --stat")


# 2. Run the tests that cover a function


async def cover_dari(side: Side) -> None:
    await side.call("crewx_tools_test", touching=["split_arg_string"])


async def cover_servers(side: Side) -> None:
    await side.call(
        *("advanced-search", "rg"), pattern="split_arg_string", path=str(side.repo), wordMatch=True, fileType="py"
    )
    await side.shell("python -m pytest -q tests/test_parser.py tests/test_deprecations.py 2>&1 | tail -30")


async def cover_serena(side: Side) -> None:
    place = "src/click/shell_completion.py"
    await side.call("find_referencing_symbols", name_path="split_arg_string", relative_path=place)
    await side.shell("python -m pytest -q tests/test_parser.py tests/test_deprecations.py 2>&1 | tail -30")


async def cover_shell(side: Side) -> None:
    await side.shell("python -m pytest -q $(rg -lw split_arg_string tests) 2>&1 | tail -30")


# 3. Format what I changed


def misformat(repo: Path) -> None:
    replace(repo, "src/click/utils.py", "def make_str(value: t.Any) -> str:", "def make_str( value : t.Any )->str :")
    replace(repo, "src/click/globals.py", "def push_context(ctx: Context) ->", "def push_context( ctx:Context )->")


def is_formatted(repo: Path, seen: str) -> bool:
    return not run(repo, "git", "diff", "--name-only").stdout.strip()


async def format_dari(side: Side) -> None:
    await side.call("crewx_tools_format", paths=["src", "tests"], dryRun=False)


async def format_servers(side: Side) -> None:
    await side.call("git_status", "git", repo_path=str(side.repo))
    await side.shell("ruff format src/click/utils.py src/click/globals.py")


async def format_shell(side: Side) -> None:
    await side.shell("git diff --name-only -- '*.py' | xargs ruff format")


# 4. What did I change, and in which functions?


def change_three(repo: Path) -> None:
    replace(
        repo, "src/click/utils.py", "    if isinstance(value, bytes):", "    if isinstance(value, bytes | bytearray):"
    )
    replace(
        repo,
        "src/click/formatting.py",
        "    return tuple(y for x, y in sorted",
        "    return tuple(y for _, y in sorted",
    )
    replace(repo, "src/click/globals.py", "    _local.stack.pop()", "    _ = _local.stack.pop()")


def knows_functions(repo: Path, seen: str) -> bool:
    return all(name in seen for name in ("make_str", "measure_table", "pop_context"))


async def changes_dari(side: Side) -> None:
    await side.call("crewx_tools_diff", since="HEAD")


async def changes_servers(side: Side) -> None:
    await side.call("git_diff", "git", repo_path=str(side.repo), target="HEAD", context_lines=10)


async def changes_shell(side: Side) -> None:
    await side.shell("git diff -W HEAD")


# 5. Who calls this, and from which function?


def knows_callers(repo: Path, seen: str) -> bool:
    return all(name in seen for name in ("get_pager_file", "progressbar", "echo", "_readline_prompt", "__init__"))


async def callers_dari(side: Side) -> None:
    await side.call("crewx_tools_symbols", name="resolve_color_default", paths=["src"])


async def callers_servers(side: Side) -> None:
    found = await side.call(
        *("search", "rg"), pattern="resolve_color_default", path=str(side.repo / "src"), filePattern="*.py"
    )
    for path in sorted({match["path"] for match in _MATCH.finditer(found)}):
        if path.endswith("globals.py"):
            continue
        where = path if path.startswith("/") else str(side.repo / path)
        await side.call("search", "rg", pattern=r"^\s*(def|class) |resolve_color_default\(", path=where)


async def callers_serena(side: Side) -> None:
    await side.call("find_referencing_symbols", name_path="resolve_color_default", relative_path="src/click/globals.py")


async def callers_shell(side: Side) -> None:
    await side.shell("rg -n '^\\s*(def|class) |resolve_color_default\\(' $(rg -l resolve_color_default src)")


# 6. Fix the lint errors of my change


def break_lint(repo: Path) -> None:
    unused = "import zipfile\nimport json\nfrom threading import local"
    replace(repo, "src/click/globals.py", "from threading import local", unused)


def is_linted(repo: Path, seen: str) -> bool:
    changed = run(repo, "git", "diff", "--name-only").stdout.split()
    is_clean = run(repo, "ruff", "check", "-q", "--no-fix", "src").returncode == 0
    return is_clean and changed in ([], ["src/click/globals.py"])


async def lint_dari(side: Side) -> None:
    await side.call("crewx_tools_lint", paths=["src/click/globals.py"], fix="safe", dryRun=False)


async def lint_servers(side: Side) -> None:
    await side.shell("ruff check src/click/globals.py")


# 7. Replace a call everywhere


def is_rewritten(repo: Path, seen: str) -> bool:
    left = run(repo, "rg", "-q", "-F", "os.environ.get(", "src").returncode == 0
    return not left and run(repo, "python", "-c", "import click, click.testing").returncode == 0


async def rewrite_dari(side: Side) -> None:
    await side.call(
        *("crewx_tools_refactor",),
        op="rewrite",
        pattern="os.environ.get($$$ARGS)",
        rewrite="os.getenv($$$ARGS)",
        lang="python",
        paths=["src"],
        dryRun=False,
    )


async def rewrite_servers(side: Side) -> None:
    found = await side.call(
        *("advanced-search", "rg"), pattern="os.environ.get(", path=str(side.repo / "src"), fixedStrings=True
    )
    await replace_lines(side, found, r"os\.environ\.get\(", "os.getenv(")


async def rewrite_serena(side: Side) -> None:
    await side.call("search_for_pattern", substring_pattern=r"os\.environ\.get\(", relative_path="src")
    await side.call(
        "replace_in_files", needle="os.environ.get(", repl="os.getenv(", mode="literal", relative_path="src"
    )


async def rewrite_shell(side: Side) -> None:
    await side.shell("rg -n -F 'os.environ.get(' src")
    await side.shell("rg -l -F 'os.environ.get(' src | xargs sed -i 's/os\\.environ\\.get(/os.getenv(/g'")


# 8. A test fails: which, and why?


def break_code(repo: Path) -> None:
    replace(
        repo, "src/click/formatting.py", "widths.get(idx, 0), term_len(col))", "widths.get(idx, 0), term_len(col) + 1)"
    )


def knows_failure(repo: Path, seen: str) -> bool:
    """Which test, and what it compared."""
    return "assert" in seen and ("1 failed" in seen or '"failed":1' in seen) and "test_" in seen


async def failing_dari(side: Side) -> None:
    await side.call("crewx_tools_test", targets=["tests"], failFast=True)


async def failing_shell(side: Side) -> None:
    await side.shell("python -m pytest -q -x tests 2>&1 | tail -60")


# 9. Move a function to a module of its own


def is_moved(repo: Path, seen: str) -> bool:
    code = "import click._app_dir as m, click; assert click.get_app_dir is m.get_app_dir; click.get_app_dir('a b')"
    return run(repo, "python", "-c", code).returncode == 0 and passes(repo, "tests/test_utils")


async def move_dari(side: Side) -> None:
    await side.call(
        *("crewx_tools_refactor",),
        op="move",
        symbol={"name": "click.utils.get_app_dir"},
        to="src/click/_app_dir.py",
        dryRun=False,
    )


class _Moved:
    """What a move by hand writes: the new module, the function that goes, the line that imports it."""

    old_import, new_import = "from .utils import get_app_dir as", "from ._app_dir import get_app_dir as"

    def __init__(self, repo: Path) -> None:
        self.source = (repo / "src/click/utils.py").read_text()
        start = self.source.index("def get_app_dir(")
        self.function = self.source[start : self.source.index("\n\n\n", start)]
        head = "from __future__ import annotations\n\nimport os\nimport sys\n\n"
        self.module = f"{head}from ._compat import WIN\nfrom .utils import _posixify\n\n\n{self.function}\n"


async def move_servers(side: Side) -> None:
    moved = _Moved(side.repo)

    async def edit(name: str, old: str, new: str) -> None:
        await side.call("edit_file", "fs", path=str(side.repo / name), edits=[{"oldText": old, "newText": new}])

    await side.call("search", "rg", pattern="get_app_dir", path=str(side.repo), filePattern="*.py")
    await side.call("read_text_file", "fs", path=str(side.repo / "src/click/utils.py"))
    await side.call("write_file", "fs", path=str(side.repo / "src/click/_app_dir.py"), content=moved.module)
    await edit("src/click/utils.py", f"{moved.function}\n\n\n", "")
    await edit("src/click/__init__.py", moved.old_import, moved.new_import)
    await side.shell("python -m pytest -q tests/test_utils 2>&1 | tail -15")


async def _write_by_hand(side: Side, moved: _Moved) -> None:
    """Three writes that answer with next to nothing, as an agent's own editor does."""
    init = (side.repo / "src/click/__init__.py").read_text()
    texts = {
        "src/click/_app_dir.py": (moved.module, moved.module),
        "src/click/utils.py": (moved.source.replace(f"{moved.function}\n\n\n", ""), moved.function),
        "src/click/__init__.py": (init.replace(moved.old_import, moved.new_import), moved.new_import),
    }
    for name, (text, sent) in texts.items():
        await asyncio.to_thread((side.repo / name).write_text, text)
        side.tally.add(sent, "OK")


async def move_serena(side: Side) -> None:
    moved = _Moved(side.repo)
    await side.call("find_symbol", name_path_pattern="get_app_dir", include_body=True)
    await side.call("find_referencing_symbols", name_path="get_app_dir", relative_path="src/click/utils.py")
    await side.shell("head -30 src/click/utils.py")
    await _write_by_hand(side, moved)
    await side.shell("python -m pytest -q tests/test_utils 2>&1 | tail -15")


async def move_shell(side: Side) -> None:
    moved = _Moved(side.repo)
    await side.shell("rg -nw get_app_dir -g '*.py'; sed -n '1,30p;460,525p' src/click/utils.py")
    await _write_by_hand(side, moved)
    await side.shell("python -m pytest -q tests/test_utils 2>&1 | tail -15")


# 10. Is my change ready?


def half_done(repo: Path) -> None:
    replace(repo, "src/click/globals.py", "from threading import local", "import zipfile\nfrom threading import local")
    replace(repo, "src/click/globals.py", "    _local.stack.pop()", "    _local.stack.pop( )")


def knows_faults(repo: Path, seen: str) -> bool:
    return "F401" in seen and "globals.py" in seen and "passed" in seen


async def ready_dari(side: Side) -> None:
    await side.call("crewx_tools_check")


async def ready_servers(side: Side) -> None:
    await side.call("git_diff_unstaged", "git", repo_path=str(side.repo))
    await side.shell("ruff format --check src tests; ruff check --no-fix src/click/globals.py")
    await side.shell("mypy src/click 2>&1 | tail -20")
    await side.shell("python -m pytest -q tests 2>&1 | tail -30")


async def ready_shell(side: Side) -> None:
    await side.shell(
        "git diff --stat; ruff format --check src tests; ruff check --no-fix src; mypy src/click 2>&1 | tail -20;"
        " python -m pytest -q tests 2>&1 | tail -30"
    )


def ways(dari: Do, servers: Do, serena: Do | None, shell: Do) -> dict[str, Do]:
    """serena has no tool for some tasks: there it works as the other servers' side does, in a shell."""
    return {"dari": dari, "servers": servers, "serena": serena or shell, "shell": shell}


TASKS = (
    Task(
        "rename a function and all its uses",
        nothing,
        lambda repo, _: (
            not has_word(repo, OLD, "src", "tests")
            and has_word(repo, NEW, "src")
            and passes(repo, "tests/test_formatting.py", "tests/test_utils")
        ),
        ways(rename_dari, rename_servers, rename_serena, rename_shell),
    ),
    Task(
        "run the tests that cover a function",
        nothing,
        lambda _, seen: "passed" in seen and "failed" not in seen.replace('"failed":0', ""),
        ways(cover_dari, cover_servers, cover_serena, cover_shell),
    ),
    Task("format what I changed", misformat, is_formatted, ways(format_dari, format_servers, None, format_shell)),
    Task(
        "what changed, in which functions",
        change_three,
        knows_functions,
        ways(changes_dari, changes_servers, None, changes_shell),
    ),
    Task(
        "who calls this, from where",
        nothing,
        knows_callers,
        ways(callers_dari, callers_servers, callers_serena, callers_shell),
    ),
    Task("fix the lint errors of my change", break_lint, is_linted, ways(lint_dari, lint_servers, None, lint_servers)),
    Task(
        "replace a call everywhere",
        nothing,
        is_rewritten,
        ways(rewrite_dari, rewrite_servers, rewrite_serena, rewrite_shell),
    ),
    Task("why does a test fail", break_code, knows_failure, ways(failing_dari, failing_shell, None, failing_shell)),
    Task(
        "move a function to a new module",
        nothing,
        is_moved,
        ways(move_dari, move_servers, move_serena, move_shell),
    ),
    Task("is my change ready", half_done, knows_faults, ways(ready_dari, ready_servers, None, ready_shell)),
)
