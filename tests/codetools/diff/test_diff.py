from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.codetools.diff import comparison
from dari.errors import DariError, Denied, InvalidInput
from tests.support.codetools import code_tools
from tests.support.repositories import commit, git, new_repository, write_files

SHOP = (
    "LIMIT = 3\n\n\nclass Cart:\n    def add(self, x):\n        return x\n\n    def drop(self):\n        pass\n"
    "\n\ndef main():\n    pass\n"
)


def brief(result: dict[str, Any]) -> dict[str, str]:
    return {
        one["path"]: f"{one['status']} +{one.get('added', 0)} -{one.get('removed', 0)}"
        for one in result.get("files", [])
    }


def symbols(result: dict[str, Any], path: str) -> list[str]:
    file = next(one for one in result["files"] if one["path"] == path)
    return [f"{one.get('how', 'changed')} {one['kind']} {one['name']}" for one in file.get("symbols", [])]


async def test_staged_unstaged_and_untracked_changes_with_the_functions_touched(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"shop.py": SHOP, "gone.py": "def f(): pass\n", "same.py": "x = 1\n"})
    changed = SHOP.replace("return x", "return x + 1").replace("    def drop(self):\n        pass\n", "    pass\n")
    write_files(
        root, {"shop.py": changed + "\n\ndef extra():\n    pass\n", "new/n.py": "class N:\n    def m(self): ...\n"}
    )
    write_files(root, {"staged.py": "def s(): pass\n"})
    (root / "gone.py").unlink()
    git(root, "add", "staged.py")
    async with code_tools(root) as tools:
        result = await tools.call("diff")
    assert brief(result) == {
        "gone.py": "deleted +0 -1",
        "new/n.py": "untracked +2 -0",
        "shop.py": "modified +6 -3",
        "staged.py": "added +1 -0",
    }
    assert symbols(result, "shop.py") == [
        "changed class Cart",
        "changed method Cart.add",
        "added function extra",
        "removed method Cart.drop",
    ]
    assert symbols(result, "new/n.py") == ["changed class N"]
    assert result["totals"] == {"files": 4, "added": 9, "removed": 4}
    diff = next(one["diff"] for one in result["files"] if one["path"] == "shop.py")
    assert "-        return x\n+        return x + 1\n" in diff
    assert diff.startswith("@@ ")
    assert result["engine"].startswith("git 2.")


async def test_since_is_a_commit_a_branch_or_a_tag(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    first = git(root, "rev-parse", "HEAD")
    git(root, "tag", "v1")
    git(root, "branch", "old")
    write_files(root, {"b.py": "def b(): pass\n"})
    commit(root)
    write_files(root, {"c.py": "def c(): pass\n"})
    async with code_tools(root) as tools:
        for since in (first, first[:10], "v1", "old", "HEAD~1", "main~1"):
            assert brief(await tools.call("diff", since=since)) == {"b.py": "added +1 -0", "c.py": "untracked +1 -0"}
        assert brief(await tools.call("diff", since="HEAD")) == {"c.py": "untracked +1 -0"}


@pytest.mark.parametrize(
    "since", ["nope", "-p", "--output=x", "--help", "HEAD..main", "HEAD -p", "a\0b", "HEAD:a.py", "2026-99-99", "^HEAD"]
)
async def test_what_is_no_commit_is_refused_and_never_an_option(tmp_path: Path, since: str) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    async with code_tools(root) as tools:
        with pytest.raises(InvalidInput):
            await tools.call("diff", since=since)
    assert sorted(one.name for one in root.iterdir()) == [".git", "a.py"]


async def test_names_that_look_like_options_and_odd_names_are_files(tmp_path: Path) -> None:
    names = ["-rf", "--cached", "a b.py", 'q"uote.py', "tab\there.py", "ü.py", "*.py", ":(top)x.py", "back\\slash.py"]
    root = new_repository(tmp_path / "r", dict.fromkeys(names, "x = 1\n"))
    write_files(root, {os.fsdecode(b"caf\xe9.py"): "y = 1\n"})
    write_files(root, dict.fromkeys(names, "x = 2\n"))
    async with code_tools(root) as tools:
        result = await tools.call("diff")
        assert brief(result) == dict.fromkeys(names, "modified +1 -1") | {"caf\\xe9.py": "untracked +1 -0"}
        assert all("+x = 2" in one["diff"] for one in result["files"] if one["status"] == "modified")
        for name in names:
            if "*" not in name:
                assert list(brief(await tools.call("diff", paths=[name]))) == [name]


async def test_paths_narrow_by_file_folder_and_glob(tmp_path: Path) -> None:
    files = {"a/x.py": "1\n", "a/y.ts": "1\n", "b/x.py": "1\n"}
    root = new_repository(tmp_path / "r", files)
    write_files(root, dict.fromkeys(files, "2\n"))
    (root / "b" / "x.py").unlink()
    async with code_tools(root) as tools:
        assert list(brief(await tools.call("diff", paths=["a"]))) == ["a/x.py", "a/y.ts"]
        assert list(brief(await tools.call("diff", paths=["**/*.py"]))) == ["a/x.py", "b/x.py"]
        assert list(brief(await tools.call("diff", paths=["b/x.py"]))) == ["b/x.py"]
        assert list(brief(await tools.call("diff", root="a"))) == ["x.py", "y.ts"]
        with pytest.raises(Denied):
            await tools.call("diff", paths=["../other"])


async def test_paths_take_braces_and_folders_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    files = {"app/[id]/a.ts": "1\n", "app/[id]/b.tsx": "1\n", "app/i/c.ts": "1\n"}
    root = new_repository(tmp_path / "r", files)
    write_files(root, dict.fromkeys(files, "2\n"))
    async with code_tools(root) as tools:
        for paths, found in (
            (["app/[id]"], ["app/[id]/a.ts", "app/[id]/b.tsx"]),
            (["app/[id]/a.ts"], ["app/[id]/a.ts"]),
            (["app/[i]/*.{js,ts}"], ["app/i/c.ts"]),
            (["app/{i,j}"], ["app/i/c.ts"]),
        ):
            assert list(brief(await tools.call("diff", paths=paths))) == found
        (root / "app/[id]/a.ts").unlink()
        assert list(brief(await tools.call("diff", paths=["app/[id]/a.ts"]))) == ["app/[id]/a.ts"]


async def test_a_workspace_below_the_top_sees_its_own_files_only(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"in/a.py": "1\n", "out/secret.py": "1\n"})
    write_files(root, {"in/a.py": "2\n", "out/secret.py": "2\n"})
    async with code_tools(root / "in") as tools:
        assert brief(await tools.call("diff")) == {"a.py": "modified +1 -1"}


async def test_renames_binaries_links_modes_and_empty_files(tmp_path: Path) -> None:
    body = "".join(f"def f{n}():\n    return {n}\n" for n in range(20))
    root = new_repository(tmp_path / "r", {"old.py": body, "mode.sh": "echo\n", "link": "x\n"})
    (root / "pic.png").write_bytes(b"\x89PNG\0\1")
    commit(root)
    (root / "old.py").rename(root / "moved.py")
    write_files(root, {"moved.py": body.replace("return 7", "return 70"), "empty.py": ""})
    (root / "pic.png").write_bytes(b"\x89PNG\0\2")
    (root / "mode.sh").chmod(0o755)
    (root / "link").unlink()
    (root / "link").symlink_to("/etc/passwd")
    async with code_tools(root) as tools:
        result = await tools.call("diff")
    files = {one["path"]: one for one in result["files"]}
    assert files["moved.py"]["status"] == "renamed"
    assert files["moved.py"]["oldPath"] == "old.py"
    assert symbols(result, "moved.py") == ["changed function f7"]
    assert (files["pic.png"]["status"], files["pic.png"]["note"]) == ("modified", "binary")
    assert files["mode.sh"]["note"] == "mode 644 to 755"
    assert files["link"]["status"] == "typechange"
    assert "root:" not in msgspec.json.encode(result).decode()
    assert files["empty.py"]["status"] == "untracked"


async def test_a_merge_conflict_is_named(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "x = 1\n"})
    git(root, "checkout", "-q", "-b", "other")
    write_files(root, {"a.py": "x = 2\n"})
    commit(root)
    git(root, "checkout", "-q", "main")
    write_files(root, {"a.py": "x = 3\n"})
    commit(root)
    git(root, "merge", "-q", "other", check=False)
    async with code_tools(root, lasts=True) as tools:
        result = await tools.call("diff")
        assert result["files"][0]["path"] == "a.py"
        assert "<<<<<<<" in result["files"][0]["diff"]
        assert brief(await tools.call("diff", since="session")) == {}


async def test_before_the_first_commit_everything_is_new(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r")
    write_files(root, {"a.py": "def a(): pass\n", "b.py": "b = 1\n"})
    git(root, "add", "a.py")
    async with code_tools(root) as tools:
        result = await tools.call("diff")
        assert brief(await tools.call("diff", since="1 hour ago")) == brief(result)
    assert brief(result) == {"a.py": "added +1 -0", "b.py": "untracked +1 -0"}


async def test_a_detached_head_a_linked_work_tree_and_a_shallow_clone(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "def a(): return 1\n"})
    write_files(root, {"b.py": "b = 1\n"})
    commit(root)
    git(root, "checkout", "-q", "--detach", "HEAD~1")
    git(root, "worktree", "add", "-q", str(tmp_path / "linked"), "main")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", "shallow")
    for folder in (root, tmp_path / "linked", tmp_path / "shallow"):
        write_files(folder, {"a.py": "def a(): return 2\n"})
        async with code_tools(folder, undo=tmp_path / "undo") as tools:
            result = await tools.call("diff")
            assert brief(result) == {"a.py": "modified +1 -1"}
            assert symbols(result, "a.py") == ["changed function a"]
    async with code_tools(tmp_path / "shallow", undo=tmp_path / "undo") as tools:
        with pytest.raises(InvalidInput):
            await tools.call("diff", since="HEAD~1")


async def test_a_submodule_is_one_entry(tmp_path: Path) -> None:
    inner = new_repository(tmp_path / "inner", {"i.py": "i = 1\n"})
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    git(root, "submodule", "add", "-q", str(inner), "sub")
    commit(root)
    write_files(root / "sub", {"i.py": "i = 2\n"})
    async with code_tools(root) as tools:
        assert brief(await tools.call("diff")) == {}
        commit(root / "sub")
        result = await tools.call("diff")
        assert brief(result) == {"sub": "submodule +1 -1"}
        write_files(root / "sub", {"i.py": "i = 3\n"})
        assert brief(await tools.call("diff", root="sub")) == {"i.py": "modified +1 -1"}


async def test_ignored_files_and_secrets_stay_out(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {".gitignore": "build/\n", "a.py": "1\n", ".env": "KEY=old\n"})
    write_files(root, {"build/x.py": "1\n", ".env": "KEY=hidden1\n", "id_rsa": "hidden2\n"})
    async with code_tools(root) as tools:
        result = await tools.call("diff")
    assert list(brief(result)) == [".env"]
    assert "secret" in result["files"][0]["note"]
    assert "hidden" not in msgspec.json.encode(result).decode()


async def test_since_a_time_is_what_changed_after_it(tmp_path: Path) -> None:
    old = "2020-01-01T00:00:00+00:00"
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n", "stale.py": "s = 1\n"}, when=old)
    write_files(root, {"b.py": "b = 1\n"})
    commit(root, when="2021-01-01T00:00:00+00:00")
    write_files(root, {"c.py": "c = 1\n"})
    async with code_tools(root) as tools:
        assert list(brief(await tools.call("diff", since="2020-06-01"))) == ["b.py", "c.py"]
        assert list(brief(await tools.call("diff", since="1 hour ago"))) == ["c.py"]
        future = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 3600))
        assert brief(await tools.call("diff", since=future)) == {}


async def test_a_large_diff_comes_in_pages_within_the_budget(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {f"f{n:03}.py": f"x = {n}\n" * 20 for n in range(60)})
    write_files(root, {f"f{n:03}.py": f"y = {n}\n" * 20 for n in range(60)})
    write_files(root, {"huge.txt": "line of text\n" * 200_000})
    async with code_tools(root) as tools:
        seen: list[str] = []
        cursor = None
        for _ in range(80):
            page = await tools.call("diff", maxTokens=1000, cursor=cursor)
            assert len(msgspec.json.encode(page)) < 5_000
            seen += list(brief(page))
            cursor = page.get("cursor")
            if cursor is None:
                break
        stat = await tools.call("diff", statOnly=True)
    assert seen == [*(f"f{n:03}.py" for n in range(60)), "huge.txt"]
    assert "more lines of diff" in page["files"][-1]["note"]
    assert not any("diff" in one for one in stat["files"])
    assert stat["totals"]["files"] == 61


async def test_outside_of_a_repository_a_commit_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    (root / "a.py").write_text("a = 1\n")
    async with code_tools(root) as tools:
        with pytest.raises(InvalidInput, match="no git repository"):
            await tools.call("diff")
        assert brief(await tools.call("diff", since="1 hour ago")) == {"a.py": "modified +0 -0"}
        with pytest.raises(DariError):
            await tools.call("diff", since="session")


async def test_thousands_of_changed_files_are_listed_without_counting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "MAX_COUNTED", 50)
    root = new_repository(tmp_path / "r", {f"f{n}.py": "x = 1\n" for n in range(60)})
    write_files(root, {f"f{n}.py": "x = 2\n" for n in range(60)})
    async with code_tools(root) as tools:
        result = await tools.call("diff", statOnly=True, maxTokens=500)
    assert result["totals"] == {"files": 60, "added": 0, "removed": 0}
    assert "not counted" in result["note"]
    assert symbols(result, "f0.py") == ["changed variable x"]


@pytest.mark.parametrize("name", ["form\ffeed", "line\u2028separator"])
async def test_a_repository_below_a_folder_of_an_odd_name_is_compared(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    root = new_repository(tmp_path / name / "r", {"a.py": "x = 1\n"})
    (root / "a.py").write_text("x = 2\n")
    async with code_tools(root) as tools:
        result = await tools.call("diff")
    assert [one["path"] for one in result["files"]] == ["a.py"]
