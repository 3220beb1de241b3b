"""Hostile and awkward cases of the code tools, as data: what is there, what is called, what comes of it.

`test_hostile_cases.py` runs every row, and `python -m tools.reference` writes them down for readers.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.support.file_trees import write_tree


class Box(Struct, frozen=True):
    """`root` is the workspace; `outside` is beside it, and no case may change or show it."""

    root: Path
    outside: Path

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()


Make = Callable[[Box], None]
Check = Callable[[Any, Box], bool]


class Case(Struct, frozen=True):
    group: str
    what: str
    make: Make
    tool: str
    arguments: dict[str, Any]
    outcome: str
    check: Check | str
    """What holds of the result; or the name of the error."""


def files(**contents: str | bytes) -> Make:
    return tree(contents)


def tree(contents: Mapping[str, str | bytes]) -> Make:
    def make(box: Box) -> None:
        write_tree(box.root, contents)

    return make


def named(name: bytes, content: str | bytes = "needle(1)\n") -> Make:
    return tree({os.fsdecode(name): content})


def both(*makes: Make) -> Make:
    def make(box: Box) -> None:
        for one in makes:
            one(box)

    return make


def link(name: str, target: str) -> Make:
    return lambda box: (box.root / name).symlink_to(target.replace("OUTSIDE", str(box.outside)))


def paths_of(result: Any) -> list[str]:
    return [one["path"] for one in result["matches"]]


def finds(*names: str) -> Check:
    return lambda result, box: paths_of(result) == list(names)


def has(name: str, content: str | bytes) -> Check:
    data = content.encode() if isinstance(content, str) else content
    return lambda result, box: box.read(name) == data


def unchanged(result: Any, box: Box) -> bool:
    return not result["applied"] and not result.get("edits", result.get("changed", []))


def _fifo(box: Box) -> None:
    os.mkfifo(box.root / "pipe.py")


def _socket(box: Box) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(box.root / "sock.py"))


def _device(box: Box) -> None:
    try:
        os.mknod(box.root / "zero.py", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        os.mkfifo(box.root / "zero.py")  # without root there is no device to make


def _huge(box: Box) -> None:
    with open(box.root / "huge.py", "wb") as file:
        file.truncate(1 << 30)


def _hard_link(box: Box) -> None:
    write_tree(box.root, {"a.py": "needle(1)\n"})
    os.link(box.root / "a.py", box.root / "b.txt")


def _read_only(box: Box) -> None:
    write_tree(box.root, {"a.py": "needle(1)\n"})
    (box.root / "a.py").chmod(0o444)


def _deep(box: Box) -> None:
    folder = box.root.joinpath(*["d"] * 150)
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("needle\n")
    (box.root / "a.py").write_text("needle\n")


def _trap(box: Box) -> str:
    return f"open({str(box.outside / 'trap')!r}, 'w').close()\n"


def _traps(*names: str) -> Make:
    def make(box: Box) -> None:
        write_tree(box.root, {name: _trap(box) for name in names} | {"a.py": "def old():\n    pass\n\n\nold()\n"})

    return make


def _git(box: Box) -> None:
    write_tree(box.root, {"a.py": CALL})
    for words in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"],
    ):
        subprocess.run(["git", *words], cwd=box.root, check=True, timeout=30)


def _hostile_git(box: Box) -> None:
    """Every setting of a repository that makes git run a program."""
    _git(box)
    trap = f"touch {box.outside / 'trap'};:"
    settings = ("core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command", "filter.evil.clean")
    for name in (*settings, "core.pager", "core.editor", "pager.diff", "core.sshCommand", "interactive.diffFilter"):
        subprocess.run(["git", "config", name, trap], cwd=box.root, check=True, timeout=30)
    write_tree(box.root, {".gitattributes": "*.py diff=evil filter=evil\n", "a.py": "needle(2)\n"})


REWRITE = {"op": "rewrite", "pattern": "needle($A)", "rewrite": "found($A)", "lang": "python", "dryRun": False}
RENAME = {"op": "rename", "symbol": {"name": "old"}, "newName": "fresh", "dryRun": False}
SEARCH = {"pattern": "needle"}
FORMAT = {"paths": ["."], "dryRun": False}
CALL = "needle(1)\n"
DONE = "found(1)\n"
RTL = "rtl\u202egnp.py"
LONG = "a" * 252 + ".py"
N = "names"
E = "encodings and line ends"
L = "links and paths"
S = "special files"
G = "ignored files and secrets"
H = "code of the repository"
B = "sizes"
C = "changes by others"
A = "arguments"

# fmt: off
CASES = (
    Case(N, "a file named `-rf`", named(b"-rf"), "search", SEARCH, "searched as a file", finds("-rf")),
    Case(N, "a file named `--pre=sh`", named(b"--pre=sh"), "search", SEARCH,
         "no option of ripgrep", finds("--pre=sh")),
    Case(N, "`-rf` named as a path", named(b"-rf"), "search", {**SEARCH, "paths": ["-rf"]}, "a path", finds("-rf")),
    Case(N, "`-x.py` is formatted", named(b"-x.py", "x=1\n"), "format", FORMAT,
         "no option of ruff", has("-x.py", "x = 1\n")),
    Case(N, "`-x.py` is linted", named(b"-x.py", "import os\n"), "lint", {"paths": ["-x.py"]},
         "linted", lambda r, b: r["diagnostics"][0]["path"] == "-x.py"),
    Case(N, "a line break in a name", named(b"a\nb.py"), "refactor", {**REWRITE, "dryRun": True},
         "the diff quotes the name",
         lambda r, b: r["edits"][0]["path"] == "a\nb.py" and r["edits"][0]["diff"].startswith('--- "a/a\\nb.py"\n')),
    Case(N, "a line break in a name, searched", named(b"a\nb.py"), "search", SEARCH,
         "one match with that path", finds("a\nb.py")),
    Case(N, "quotes and `$(…)` in a name", named(b"\"';$(touch x).py", "x=1\n"), "format", FORMAT,
         "formatted; no shell reads it",
         lambda r, b: b.read("\"';$(touch x).py") == b"x = 1\n" and not (b.root / "x").exists()),
    Case(N, "a character that reverses text", named(RTL.encode()), "refactor", {**REWRITE, "dryRun": True},
         "the diff shows it escaped",
         lambda r, b: "\u202e" not in r["edits"][0]["diff"] and "+" in r["edits"][0]["diff"]),
    Case(N, "bytes that are not UTF-8", named(b"caf\xe9.py"), "search", SEARCH,
         "shown as `caf\\xe9.py`", finds("caf\\xe9.py")),
    Case(N, "that name sent back", named(b"caf\xe9.py"), "refactor", {**REWRITE, "paths": ["caf\\xe9.py"]},
         "the same file", lambda r, b: b.read(os.fsdecode(b"caf\xe9.py")) == DONE.encode()),
    Case(N, "a name of 255 bytes", named(LONG.encode()), "refactor", REWRITE, "written", has(LONG, DONE)),
    Case(N, "a line break in a name, in a diff", both(_git, named(b"a\nb.py")), "diff", {},
         "one file with that path", lambda r, b: "a\nb.py" in [one["path"] for one in r["files"]]),
    Case(N, "bytes that are not UTF-8, in a diff", both(_git, named(b"caf\xe9.py")), "diff", {},
         "shown as `caf\\xe9.py`", lambda r, b: "caf\\xe9.py" in [one["path"] for one in r["files"]]),
    Case(N, "symbols of `-x.py`", named(b"-x.py", "def old(): pass\n"), "symbols", {"name": "old"},
         "found", lambda r, b: r["definitions"][0]["path"] == "-x.py"),
    Case(N, "`a[1].py` named as a path", tree({"a[1].py": CALL, "a1.py": CALL}),
         "search", {**SEARCH, "paths": ["a[1].py"]}, "the file, not a glob", finds("a[1].py")),
    Case(N, "`~/x.py`", tree({"~/x.py": CALL}), "search", {**SEARCH, "paths": ["~/x.py"]},
         "`~` is a file name, never the home", finds("~/x.py")),
    Case(N, "a blank at both ends of a name", named(b" a "), "search", SEARCH, "kept", finds(" a ")),
    Case(N, "`Foo.ts` moved to `foo.ts`, which is another file",
         tree({"Foo.ts": "export {};\n", "foo.ts": "export {};\n"}),
         "refactor", {"op": "move", "symbol": {"path": "Foo.ts"}, "to": "foo.ts"}, "refused: it exists", "conflict"),
    Case(E, "CRLF", tree({"a.py": b"needle(1)\r\nx = 2\r\n"}), "refactor", REWRITE,
         "kept", has("a.py", "found(1)\r\nx = 2\r\n")),
    Case(E, "CRLF and LF mixed, renamed", tree({"a.py": b"def old():\r\n    pass\nold()\r\n"}), "refactor", RENAME,
         "every line keeps its own", has("a.py", "def fresh():\r\n    pass\nfresh()\r\n")),
    Case(E, "a BOM", tree({"a.py": b"\xef\xbb\xbfneedle(1)\n"}), "refactor", REWRITE,
         "kept", has("a.py", b"\xef\xbb\xbffound(1)\n")),
    Case(E, "Latin-1 with a coding line", tree({"a.py": "# coding: latin-1\nneedle('é')\n".encode("latin-1")}),
         "refactor", REWRITE, "kept", has("a.py", "# coding: latin-1\nfound('é')\n".encode("latin-1"))),
    Case(E, "Latin-1 without one", tree({"a.js": "needle('é');\n".encode("latin-1")}),
         "refactor", {**REWRITE, "lang": "js"},
         "every other byte stays", has("a.js", "found('é');\n".encode("latin-1"))),
    Case(E, "UTF-16", tree({"a.js": "\ufeffneedle(1);\n".encode("utf-16-le")}), "refactor", {**REWRITE, "lang": "js"},
         "rewritten in UTF-16", has("a.js", "\ufefffound(1);\n".encode("utf-16-le"))),
    Case(E, "a binary named `a.py`", tree({"a.py": b"\0\1needle(1)\n"}), "refactor", REWRITE,
         "left alone", unchanged),
    Case(E, "broken UTF-8 in a match", tree({"a.txt": b"needle \xff\n"}), "search", SEARCH,
         "shown with U+FFFD", lambda r, b: "\ufffd" in r["matches"][0]["text"]),
    Case(E, "an empty file", tree({"a.py": b""}), "format", FORMAT, "unchanged", unchanged),
    Case(E, "no line end at the end", tree({"a.py": b"needle(1)"}), "refactor", REWRITE,
         "none is added", has("a.py", "found(1)")),
    Case(E, "a form feed", tree({"a.py": b"needle(1)\n\x0c\nneedle(2)\n"}), "refactor", REWRITE,
         "a character of its line", has("a.py", b"found(1)\n\x0c\nfound(2)\n")),
    Case(E, "identifiers outside of ASCII", tree({"a.py": "def 합계():\n    pass\n\n\n합계()\n"}),
         "refactor", {**RENAME, "symbol": {"name": "합계"}, "newName": "총합"},
         "renamed", has("a.py", "def 총합():\n    pass\n\n\n총합()\n")),
    Case(L, "a link to a file outside, named", link("l.py", "OUTSIDE/secret.py"),
         "search", {**SEARCH, "paths": ["l.py"]}, "refused", "denied"),
    Case(L, "a link to a folder outside, named", link("l", "OUTSIDE"), "outline", {"path": "l"}, "refused", "denied"),
    Case(L, "a link outside, met in a folder", both(link("l", "OUTSIDE"), files(a="needle\n")), "search", SEARCH,
         "not followed", finds("a")),
    Case(L, "a link outside is to be rewritten", link("l.py", "OUTSIDE/secret.py"),
         "refactor", {**REWRITE, "paths": ["l.py"]}, "refused", "denied"),
    Case(L, "a link inside, named", both(tree({"real/a.py": CALL}), link("l", "real")),
         "refactor", {**REWRITE, "paths": ["l/a.py"]}, "the file that it leads to", has("real/a.py", DONE)),
    Case(L, "links in a circle", both(link("x", "y"), link("y", "x")), "search", {**SEARCH, "paths": ["x"]},
         "named", "invalid_input"),
    Case(L, "links in a circle, met in a folder", both(link("x", "y"), link("y", "x"), files(a="needle\n")),
         "search", SEARCH, "passed by", finds("a")),
    Case(L, "a link to nothing", link("x", "gone.py"), "outline", {"path": "x"}, "not found", "not_found"),
    Case(L, "symbols of a link outside", link("l", "OUTSIDE"), "symbols", {"name": "needle", "paths": ["l"]},
         "refused", "denied"),
    Case(L, "`..`", files(a="x"), "search", {**SEARCH, "paths": [".."]}, "refused", "denied"),
    Case(L, "an absolute path outside", files(a="x"), "outline", {"path": "/etc/passwd"}, "refused", "denied"),
    Case(L, "`root` outside", files(a="x"), "search", {**SEARCH, "root": "/etc"}, "refused", "denied"),
    Case(L, "a glob that climbs", files(a="x"), "format", {"paths": ["../**/*.py"]}, "refused", "denied"),
    Case(L, "a move out of the workspace", files(**{"a.ts": "export {};\n"}),
         "refactor", {"op": "move", "symbol": {"path": "a.ts"}, "to": "../a.ts", "dryRun": False},
         "refused", "denied"),
    Case(L, "a symbol outside", files(a="x"),
         "refactor", {**RENAME, "symbol": {"path": "../outside/secret.py", "line": 1}}, "refused", "denied"),
    Case(L, "a test target outside", files(a="x"), "test", {"targets": ["../outside/secret.py"]},
         "refused", "denied"),
    Case(L, "a file with two names (hard links)", _hard_link, "refactor", REWRITE,
         "refused: one of them would change", "conflict"),
    Case(S, "a FIFO, named", _fifo, "outline", {"path": "pipe.py"}, "refused at once", "invalid_input"),
    Case(S, "a FIFO, met in a folder", both(_fifo, files(a="needle\n")), "search", SEARCH, "passed by", finds("a")),
    Case(S, "a FIFO, met by a rewrite", both(_fifo, tree({"a.py": CALL})), "refactor", REWRITE,
         "passed by", has("a.py", DONE)),
    Case(S, "a socket, met in a folder", both(_socket, files(a="needle\n")), "search", SEARCH,
         "passed by", finds("a")),
    Case(S, "a device that never ends", both(_device, tree({"a.py": CALL})), "refactor", REWRITE,
         "passed by", has("a.py", DONE)),
    Case(S, "a folder named `x.py`", tree({"x.py/a.py": CALL}), "refactor", REWRITE,
         "a folder", has("x.py/a.py", DONE)),
    Case(S, "a read-only file", _read_only, "refactor", REWRITE, "refused", "denied"),
    Case(G, "a file that git ignores", tree({".gitignore": "gen/\n", "gen/a.py": CALL, "b.py": CALL}),
         "refactor", REWRITE, "left alone", has("gen/a.py", CALL)),
    Case(G, "the same, named itself", tree({".gitignore": "gen/\n", "gen/a.py": CALL}),
         "refactor", {**REWRITE, "paths": ["gen/a.py"]}, "asked for, so rewritten", has("gen/a.py", DONE)),
    Case(G, "`!` takes a file back in",
         tree({".git/HEAD": "", ".gitignore": "*.py\n!b.py\n", "a.py": CALL, "b.py": CALL}),
         "search", SEARCH, "searched", finds("b.py")),
    Case(G, "an ignore file that would take 2^n steps", tree({".gitignore": "*a" * 40 + "b\n", "a" * 100: "needle\n"}),
         "search", SEARCH, "read in linear time", finds("a" * 100)),
    Case(G, "`.env`", tree({".env": "needle\n", "a": "needle\n"}), "search", {**SEARCH, "includeHidden": True},
         "left out", finds("a")),
    Case(G, "a private key", tree({"id_rsa": "needle\n", "a": "needle\n"}), "search", SEARCH, "left out", finds("a")),
    Case(G, "`.git`, met in a folder", tree({".git/x.py": CALL, "a.py": CALL}),
         "refactor", {**REWRITE, "includeIgnored": True}, "left alone", has(".git/x.py", CALL)),
    Case(G, "`.git/x.py`, named itself", tree({".git/x.py": CALL}), "refactor", {**REWRITE, "paths": [".git/x.py"]},
         "refused", "denied"),
    Case(H, "`.ropeproject/config.py`, which rope runs", _traps(".ropeproject/config.py"), "refactor", RENAME,
         "not run", has("a.py", "def fresh():\n    pass\n\n\nfresh()\n")),
    Case(H, "`rope.py`, `msgspec.py`, `ast_grep_py.py` in the root", _traps("rope.py", "msgspec.py", "ast_grep_py.py"),
         "refactor", RENAME, "not imported", has("a.py", "def fresh():\n    pass\n\n\nfresh()\n")),
    Case(H, "`tree_sitter.py` in the root", _traps("tree_sitter.py", "dari.py"), "outline", {"path": "a.py"},
         "not imported", lambda r, b: bool(r["files"])),
    Case(H, "`[tool.rope]` in a broken pyproject.toml",
         tree({"pyproject.toml": "[tool.rope\n", "a.py": "def old(): pass\n"}),
         "refactor", RENAME, "not read", has("a.py", "def fresh(): pass\n")),
    Case(H, "`setup.cfg` and `.ripgreprc` that name options", tree({".ripgreprc": "--pre=sh\n", "a": "needle\n"}),
         "search", SEARCH, "not read", finds("a")),
    Case(H, "`textconv`, `diff.external`, `fsmonitor` and hooks in `.git/config`", _hostile_git, "diff", {},
         "none of them is run", lambda r, b: "a.py" in str(r["files"])),
    Case(H, "the same, checked", _hostile_git, "check", {"only": ["lint"]},
         "none of them is run", lambda r, b: isinstance(r, dict)),
    Case(B, "a file of 1 GB", both(_huge, tree({"a.py": CALL})), "refactor", REWRITE,
         "left out, and named",
         lambda r, b: b.read("a.py") == DONE.encode() and any("huge.py" in note for note in r["notes"])),
    Case(B, "a file of 1 GB, outlined", _huge, "outline", {"path": "huge.py"},
         "left out, with the reason", lambda r, b: "huge.py" in str(r)),
    Case(B, "a line of 5 MB", tree({"a.js": f"d='{'x' * (5 << 20)}';needle(1);\n"}), "search", SEARCH,
         "cut around the match", lambda r, b: len(str(r)) < 40_000 and paths_of(r) == ["a.js"]),
    Case(B, "a line of 5 MB, rewritten", tree({"a.js": f"d='{'x' * (5 << 20)}';needle(1);\n"}),
         "refactor", {**REWRITE, "lang": "js"},
         "written; the result stays small",
         lambda r, b: b.read("a.js").endswith(b"found(1);\n") and len(str(r)) < 1000),
    Case(B, "code nested 20,000 deep", tree({"a.py": "(" * 20_000 + ")" * 20_000 + "\n", "b.py": CALL}),
         "refactor", REWRITE, "the others are rewritten", has("b.py", DONE)),
    Case(B, "folders nested 150 deep", _deep, "search", {**SEARCH, "paths": ["."]},
         "searched", lambda r, b: "a.py" in paths_of(r)),
    Case(B, "300 files in one rewrite", tree({f"{n}.py": CALL for n in range(300)}),
         "refactor", {**REWRITE, "maxTokens": 500},
         "all written; the result stays small", lambda r, b: r["moreFiles"] > 200 and len(str(r)) < 6000),
    Case(B, "10,000 matches", tree({"a": "needle\n" * 10_000}), "search", SEARCH,
         "a page, and a cursor", lambda r, b: len(r["matches"]) == 200 and r["truncated"] and bool(r["cursor"])),
    Case(B, "`(a+)+$` on a long line", tree({"a": "a" * 5000 + "!\n"}),
         "search", {"pattern": "(a+)+$", "mode": "regex"}, "answered in linear time", finds()),
    Case(A, "a commit that is an option", _git, "diff", {"since": "--output=x"},
         "refused", "invalid_input"),
    Case(A, "a commit that is a range of another repository", _git, "diff", {"since": "no/such..branch"},
         "refused", "invalid_input"),
    Case(A, "a symbol that is an expression", files(**{"a.py": "def old(): pass\n"}), "symbols", {"name": "o.*d("},
         "no name, so nothing is found", lambda r, b: not r.get("definitions")),
    Case(A, "a NUL in a path", files(a="x"), "search", {**SEARCH, "paths": ["a\0b"]}, "refused", "invalid_input"),
    Case(A, "a pattern that begins with `-`", files(a="--files\n"), "search", {"pattern": "--files"},
         "searched as text", finds("a")),
    Case(A, "a broken expression", files(a="x"), "search", {"pattern": "(", "mode": "regex"},
         "refused, with the place", "invalid_input"),
    Case(A, "a name that is code", files(**{"a.py": "def old(): pass\n"}),
         "refactor", {**RENAME, "newName": "x(); import os #"}, "refused", "invalid_input"),
    Case(A, "a keyword as a name", files(**{"a.py": "def old(): pass\n"}), "refactor", {**RENAME, "newName": "class"},
         "refused", "invalid_input"),
    Case(A, "a rewrite that does not parse", files(**{"a.py": CALL}), "refactor", {**REWRITE, "rewrite": "found(("},
         "refused, with the line", "conflict"),
    Case(A, "a rewrite that grows itself", files(**{"a.py": CALL}),
         "refactor", {**REWRITE, "rewrite": "needle(needle($A))"},
         "applied once", has("a.py", "needle(needle(1))\n")),
    Case(A, "a name with two definitions", files(**{"a.py": "def old(): pass\n", "b.py": "def old(): pass\n"}),
         "refactor", RENAME, "refused; both are named", "conflict"),
    Case(A, "an argument that does not exist", files(a="x"), "search", {**SEARCH, "exec": "sh"},
         "refused", "invalid_input"),
    Case(A, "a test target that is an option", files(**{"test_a.py": "def test(): pass\n"}),
         "test", {"targets": ["--collect-only"]}, "no option of pytest", "not_found"),
    Case(A, "a hash of another plan", files(**{"a.py": CALL}), "refactor", {**REWRITE, "expectHash": "0" * 32},
         "refused", "conflict"),
    Case(A, "an undo token that is a path", files(a="x"), "undo", {"undoToken": "../../etc"},
         "not found", "not_found"),
    Case(A, "`last` where nothing was written", files(a="x"), "undo", {"undoToken": "last"},
         "not found", "not_found"),
)
SEQUENCES = (
    (C, "a file changes between the dry run and the write", "refused; the new content stays",
     "edits/test_write.py", "test_a_file_that_is_another_one_since_the_plan_is_not_written"),
    (C, "a file changes in the last moment, after all checks", "refused; that change stays, the others are taken back",
     "edits/test_write.py", "test_a_change_in_the_last_moment_is_neither_lost_nor_overwritten"),
    (C, "a file changes after the write, then undo", "refused unless `force`",
     "edits/test_undo.py", "test_a_file_that_changed_after_the_write_is_named_and_nothing_is_restored"),
    (C, "a write is cancelled in the middle", "all files are as they were",
     "edits/test_write.py", "test_a_cancelled_write_leaves_nothing_behind"),
    (C, "`kill -9` in the middle of a write, or of its undo, then undo", "all files are as they were, no draft is left",
     "edits/test_undo.py", "test_a_kill_at_any_moment_of_a_write_is_taken_back_whole"),
    (C, "two writers at once", "each write is whole or refused",
     "edits/test_write.py", "test_two_writers_at_once_never_mix_their_files"),
    (C, "the disk fills up at some file", "nothing is changed; the error names the file",
     "edits/test_write.py", "test_a_disk_that_fills_up_at_some_file_leaves_all_as_they_were"),
    (C, "a folder becomes a link to the outside during a write", "nothing outside is written",
     "edits/test_write.py", "test_a_folder_that_becomes_a_link_during_writes_never_lets_one_out"),
    (C, "a folder becomes a link to the outside during a walk", "nothing outside is listed or read",
     "test_workspace.py", "test_a_link_swapped_in_for_a_folder_or_a_file_never_leads_out"),
    (C, "a second user's file in a folder of ours", "not replaced",
     "edits/test_write.py", "test_a_second_users_file_in_a_folder_of_ours_is_not_replaced"),
    (C, "an undo of a write in another workspace", "not found",
     "edits/test_undo.py", "test_a_wider_root_takes_back_what_was_written_in_a_folder_of_it_and_a_stranger_does_not"),
    (B, "200,000 files", "walked with the memory of one folder",
     "test_workspace.py", "test_a_walk_of_200_000_files_holds_one_folder_at_a_time"),
)
# fmt: on
"""Those that take several steps or processes, with the tests that prove them."""
