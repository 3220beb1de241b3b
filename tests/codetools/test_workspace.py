"""Names that callers send: what they stand for, and that nothing outside of the roots is ever opened."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from dari.codetools.workspace import MAX_DEPTH, Workspace, WorkspacePath
from dari.errors import DariError, Denied, InvalidInput, NotFound
from tests.support.file_trees import write_tree

REPOSITORY = Path(__file__).parents[2]
AWKWARD = (
    b"new\nline",
    b'quo"te',
    b"-rf",
    b"--force",
    b"caf\xe9.py",
    b"\xff\xfe",
    b" blank ",
    b"~",
    b"$HOME",
    b"a;b|c&d",
)


def shown(workspace: Workspace, *patterns: str, **options: bool) -> list[str]:
    return [workspace.show(path) for path in workspace.files(patterns, **options)]


def test_files_folders_and_globs_stand_for_files_in_order_each_once(tmp_path: Path) -> None:
    workspace = Workspace([write_tree(tmp_path, dict.fromkeys(("b/z.py", "b/a.py", "a.py", "c.txt", "b/c/d.py"), ""))])
    assert shown(workspace) == ["a.py", "b/a.py", "b/c/d.py", "b/z.py", "c.txt"]
    assert shown(workspace, "b") == ["b/a.py", "b/c/d.py", "b/z.py"]
    assert shown(workspace, "*.py") == ["a.py"]
    assert shown(workspace, "**/*.py", "a.py", "b") == ["a.py", "b/a.py", "b/c/d.py", "b/z.py"]
    assert shown(workspace, "b/*/*.py") == ["b/c/d.py"]
    for name in ("nothing.py", "no/*.py"):
        with pytest.raises(NotFound):
            shown(workspace, name)


def test_braces_of_a_glob_stand_for_each_of_their_alternatives(tmp_path: Path) -> None:
    names = ("src/a.ts", "src/b.tsx", "src/c.js", "lib/d.ts", "{e}.py", "app/[id]/f.ts")
    workspace = Workspace([write_tree(tmp_path, dict.fromkeys(names, ""))])
    assert shown(workspace, "src/*.{ts,tsx}") == ["src/a.ts", "src/b.tsx"]
    assert shown(workspace, "{src,lib,none}/**/*.ts") == ["src/a.ts", "lib/d.ts"]
    assert shown(workspace, "src/{a.ts,[ab].{ts,tsx}}") == ["src/a.ts", "src/b.tsx"], "each once"
    assert shown(workspace, "{src,lib}") == ["src/a.ts", "src/b.tsx", "src/c.js", "lib/d.ts"]
    assert shown(workspace, "{e}.py", "app/[id]") == ["{e}.py", "app/[id]/f.ts"], "a name that is there is that file"
    for glob in ("src/*.{go,rs}", "{}", "{none,src}", "{../x,src}/*", "{" * 50 + "a,b" + "}" * 50 + "{a,b}" * 9):
        with pytest.raises(DariError):
            shown(workspace, glob)


def test_ignored_files_secrets_and_version_control_are_left_out_unless_named(tmp_path: Path) -> None:
    files = {
        ".gitignore": "*.log\nbuild/\n!keep.log\n",
        "a.py": "",
        "a.log": "",
        "keep.log": "",
        "build/x.py": "",
        ".env": "TOKEN=1",
        "id_rsa": "",
        ".ssh/config": "",
        ".git/config": "",
        "sub/.gitignore": "/only.py",
        "sub/only.py": "",
        "sub/deep/only.py": "",
    }
    workspace = Workspace([write_tree(tmp_path, files)])
    assert shown(workspace) == [".gitignore", "a.py", "keep.log", "sub/.gitignore", "sub/deep/only.py"]
    assert "build/x.py" in shown(workspace, include_ignored=True)
    assert ".git/config" not in shown(workspace, include_ignored=True)
    assert shown(workspace, ".env", "a.log") == [".env", "a.log"]


def test_the_ignore_files_above_a_folder_count_up_to_the_top_of_the_repository(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {".git/config": "", ".gitignore": "*.log", "sub/a.log": "", "sub/a.py": ""})
    assert shown(Workspace([root / "sub"])) == ["a.py"]


@pytest.mark.parametrize("name", ["..", "../x", "/etc/passwd", "sub/../../x", "out", "out/passwd", "up/x", "chain"])
def test_what_is_outside_after_all_links_is_denied(tmp_path: Path, name: str) -> None:
    root = write_tree(tmp_path / "root", {"sub/a": ""})
    (root / "out").symlink_to("/etc")
    (root / "up").symlink_to("..")
    (root / "chain").symlink_to("sub/link")
    (root / "sub/link").symlink_to("../../root/../elsewhere")
    with pytest.raises(Denied) as raised:
        Workspace([root]).locate(name)
    assert str(root) in raised.value.hint


def test_a_folder_beside_the_root_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    write_tree(tmp_path, {"root/a": "", "root-other/a": ""})
    with pytest.raises(Denied):
        Workspace([tmp_path / "root"]).locate("../root-other/a")


def test_links_inside_are_resolved_and_shown_by_what_they_lead_to(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"real/a.py": "x"})
    (root / "link").symlink_to("real")
    workspace = Workspace([root])
    assert workspace.show(workspace.locate("link/a.py")) == "real/a.py"
    assert shown(workspace, "link", "real") == ["real/a.py"]
    assert shown(workspace) == ["real/a.py"]


def test_a_link_loop_is_named_and_a_walk_passes_it_by(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {"a.py": "x"})
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "self").symlink_to(".")
    workspace = Workspace([root])
    assert shown(workspace) == ["a.py"]
    with pytest.raises(InvalidInput):
        shown(workspace, "one")
    with pytest.raises(InvalidInput):
        workspace.read(workspace.locate("one"))


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder"])
def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root can make a device")
    workspace = Workspace([tmp_path])
    with pytest.raises(InvalidInput):
        workspace.read(workspace.locate("thing"))
    if kind == "folder":
        assert shown(workspace, "thing") == []
    else:
        with pytest.raises(InvalidInput):
            shown(workspace, "thing")
        assert shown(workspace) == []


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_go_to_the_caller_as_json_and_come_back(tmp_path: Path, name: bytes) -> None:
    (tmp_path / os.fsdecode(name)).write_bytes(b"content")
    workspace = Workspace([tmp_path])
    (path,) = workspace.files()
    told = msgspec.json.decode(msgspec.json.encode(workspace.show(path)))
    assert workspace.locate(told) == path
    assert workspace.read(workspace.locate(told)) == b"content"
    assert shown(workspace, told) == [told]


def test_a_name_that_looks_like_an_escape_is_that_name_where_it_exists(tmp_path: Path) -> None:
    (tmp_path / "caf\\xe9").write_bytes(b"backslash")
    (tmp_path / os.fsdecode(b"caf\xe9")).write_bytes(b"byte")
    workspace = Workspace([tmp_path])
    assert workspace.read(workspace.locate("caf\\xe9")) == b"backslash"


def test_a_tilde_is_a_file_name_and_never_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(write_tree(tmp_path / "home", {"x": "secret"})))
    workspace = Workspace([write_tree(tmp_path / "root", {"~/y": "file"})])
    assert shown(workspace, "~/y") == ["~/y"]
    with pytest.raises(NotFound) as raised:
        shown(workspace, "~/x")
    assert "file name" in raised.value.hint


def test_what_belongs_to_dari_itself_is_not_opened_even_when_its_home_is_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, {"dari/tokens/mcp": "secret", "project/a.py": ""})
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    workspace = Workspace([tmp_path])
    assert shown(workspace) == ["project/a.py"]
    with pytest.raises(Denied):
        workspace.locate("dari/tokens/mcp")


def test_several_roots_and_a_narrowed_base(tmp_path: Path) -> None:
    write_tree(tmp_path, {"one/a.py": "", "one/sub/b.py": "", "two/c.py": ""})
    workspace = Workspace([tmp_path / "one", tmp_path / "two", tmp_path / "one"])
    assert len(workspace.roots) == 2
    assert workspace.show(workspace.locate(str(tmp_path / "two/c.py"))) == str(tmp_path / "two/c.py")
    inner = workspace.narrow("sub")
    assert shown(inner) == ["b.py"]
    assert inner.show(inner.locate("../a.py")) == str(tmp_path / "one/a.py")
    for name in ("a.py", "missing"):
        with pytest.raises(DariError):
            workspace.narrow(name)


def test_a_nul_and_a_name_that_is_too_long_are_refused(tmp_path: Path) -> None:
    workspace = Workspace([tmp_path])
    with pytest.raises(InvalidInput):
        workspace.locate("a\0b")
    with pytest.raises(OSError):
        workspace.read(workspace.locate("x" * 5000))


def test_a_file_of_a_gigabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "huge.py", "wb") as file:
        file.truncate(1 << 30)
    workspace = Workspace([tmp_path])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidInput) as raised:
        workspace.read(workspace.locate("huge.py"))
    assert "1073741824" in raised.value.message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_folders_nested_deeper_than_the_limit_end_the_walk_quietly(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (MAX_DEPTH + 20))
    deep.mkdir(parents=True)
    (deep / "x.py").write_text("")
    (tmp_path / "a.py").write_text("")
    assert shown(Workspace([tmp_path])) == ["a.py"]


def test_a_walk_of_200_000_files_holds_one_folder_at_a_time() -> None:
    """In a process of its own, for its memory: what is listed grows with the largest folder, not with the tree."""
    code = (
        "import resource, sys; from pathlib import Path; from dari.codetools.workspace import Workspace\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "count = sum(1 for _ in Workspace([Path(sys.argv[1])]).files())\n"
        "print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    memory = Path("/dev/shm")  # a file there costs a tenth of one on a disk
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for number in range(200_000):
            if number % 1000 == 0:
                os.mkdir(inner := f"{folder}/{number}")
            os.close(os.open(f"{inner}/{number}.py", os.O_CREAT))
        done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=80)
    count, grown_kb = map(int, done.stdout.split())
    assert count == 200_000
    assert grown_kb < 20_000


def test_a_link_swapped_in_for_a_folder_or_a_file_never_leads_out(tmp_path: Path) -> None:
    """A second process swaps them all the time, while names are resolved, walked and read."""
    root = write_tree(tmp_path / "root", {"sub/a.txt": "inside", "file": "inside"})
    outside = write_tree(tmp_path / "outside", {"a.txt": "outside", "only-outside.txt": "outside"})
    code = (
        "import os, sys\n"
        "def swap(name, target):\n"
        "    os.rename(name, name + '.away'); os.symlink(target, name)\n"
        "    os.unlink(name); os.rename(name + '.away', name)\n"
        "os.chdir(sys.argv[1]); print('ready', flush=True)\n"
        "while True: swap('sub', sys.argv[2]); swap('file', sys.argv[2] + '/a.txt')\n"
    )
    swapper = subprocess.Popen([sys.executable, "-c", code, str(root), str(outside)], stdout=subprocess.PIPE, text=True)
    contents: set[bytes] = set()
    names: set[str] = set()
    refusals: set[str] = set()
    try:
        assert swapper.stdout is not None and swapper.stdout.readline() == "ready\n"
        workspace = Workspace([root])
        for _ in range(3000):
            for path in (WorkspacePath(root, "sub/a.txt"), WorkspacePath(root, "file")):
                try:
                    contents.add(workspace.read(path))
                except (DariError, OSError) as error:
                    refusals.add(type(error).__name__)
            names.update(path.relative for path in workspace.files())
    finally:
        swapper.kill()
        swapper.wait()
        assert swapper.stdout is not None
        swapper.stdout.close()
    assert contents == {b"inside"}
    assert not any("only-outside" in name for name in names)
    assert refusals, "the race was never met"
