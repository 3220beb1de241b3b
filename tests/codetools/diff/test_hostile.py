"""A repository whose configuration, attributes and hooks want to run programs: none runs, and the diff is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dari.codetools.diff import git as diff_git
from dari.errors import DariError, Denied
from tests.codetools.diff.test_diff import brief
from tests.support.codetools import code_tools
from tests.support.repositories import commit, git, new_repository, write_files

ATTACKS = {
    "fsmonitor": ("core.fsmonitor", "{trap}"),
    "hooks": ("core.hooksPath", "{folder}"),
    "external": ("diff.external", "{trap}"),
    "driver": ("diff.evil.command", "{trap}"),
    "textconv": ("diff.evil.textconv", "{trap}"),
    "clean": ("filter.evil.clean", "{trap}"),
    "smudge": ("filter.evil.smudge", "{trap}"),
    "process": ("filter.evil.process", "{trap}"),
    "pager": ("core.pager", "{trap}"),
    "pager of diff": ("pager.diff", "{trap}"),
    "alias": ("alias.diff", "!{trap}"),
    "alias of rev-parse": ("alias.rev-parse", "!{trap}"),
    "ssh": ("core.sshCommand", "{trap}"),
    "askpass": ("core.askPass", "{trap}"),
    "credentials": ("credential.helper", "!{trap}"),
    "gpg": ("gpg.program", "{trap}"),
    "alternate refs": ("core.alternateRefsCommand", "{trap}"),
    "editor": ("core.editor", "{trap}"),
    "merge driver": ("merge.evil.driver", "{trap}"),
}
ALSO = {"gpg": ("log.showSignature", "true"), "process": ("filter.evil.required", "true")}


def trap(folder: Path) -> tuple[Path, Path]:
    """A program that leaves a mark when it runs."""
    mark, program = folder / "ran", folder / "trap.sh"
    folder.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {mark}\ncat\n')
    program.chmod(0o755)
    for hook in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout", "fsmonitor-watchman"):
        (folder / hook).write_text(program.read_text())
        (folder / hook).chmod(0o755)
    return mark, program


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("via", ["config", "include", "worktree"])
async def test_no_program_that_a_repository_names_runs(tmp_path: Path, attack: str, via: str) -> None:
    mark, program = trap(tmp_path / "traps")
    root = new_repository(
        tmp_path / "r", {"a.py": "def a(): return 1\n", ".gitattributes": "* diff=evil filter=evil\n"}
    )
    where = root / ".git" / ("config" if via == "config" else "more" if via == "include" else "config.worktree")
    if via == "include":
        git(root, "config", "include.path", "more")
    if via == "worktree":
        git(root, "config", "extensions.worktreeConfig", "true")
    for name, value in filter(None, (ATTACKS[attack], ALSO.get(attack))):
        git(root, "config", "--file", str(where), name, value.format(trap=program, folder=program.parent))
    write_files(root, {"a.py": "def a(): return 2\n", "u.py": "u = 1\n"})
    async with code_tools(root, lasts=True) as tools:
        assert brief(await tools.call("diff")) == {"a.py": "modified +1 -1", "u.py": "untracked +1 -0"}
        assert brief(await tools.call("diff", since="session")) == {}
        assert brief(await tools.call("diff", since="1 hour ago"))
    assert not mark.exists()


@pytest.mark.parametrize("attack", ["fsmonitor", "external", "driver", "textconv", "clean", "process"])
def test_the_traps_work_on_a_bare_git(tmp_path: Path, attack: str) -> None:
    """Otherwise the test above would say nothing."""
    mark, program = trap(tmp_path / "traps")
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n", ".gitattributes": "* diff=evil filter=evil\n"})
    name, value = ATTACKS[attack]
    git(root, "config", name, value.format(trap=program))
    write_files(root, {"a.py": "a = 2\n"})
    git(root, "diff", check=False)
    assert mark.exists()


async def test_programs_that_a_submodule_names_do_not_run(tmp_path: Path) -> None:
    mark, program = trap(tmp_path / "traps")
    inner = new_repository(tmp_path / "inner", {"i.py": "i = 1\n", ".gitattributes": "* diff=evil filter=evil\n"})
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    git(root, "submodule", "add", "-q", str(inner), "sub")
    commit(root)
    for name, value in (ATTACKS[one] for one in ("fsmonitor", "external", "textconv", "clean", "process")):
        git(root / "sub", "config", name, value.format(trap=program))
    write_files(root, {"a.py": "a = 2\n", "sub/i.py": "i = 2\n"})
    async with code_tools(root, lasts=True) as tools:
        assert brief(await tools.call("diff")) == {"a.py": "modified +1 -1"}
        assert brief(await tools.call("diff", root="sub")) == {"i.py": "modified +1 -1"}
        assert brief(await tools.call("diff", since="session")) == {}
    assert not mark.exists()


async def test_a_pipe_in_place_of_a_settings_file_is_not_waited_for(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    os.mkfifo(tmp_path / "pipe")
    for name in ("core.excludesFile", "core.attributesFile"):
        git(root, "config", name, str(tmp_path / "pipe"))
    write_files(root, {"a.py": "a = 2\n"})
    async with code_tools(root) as tools:
        assert brief(await tools.call("diff")) == {"a.py": "modified +1 -1"}


async def test_hooks_in_the_usual_place_do_not_run(tmp_path: Path) -> None:
    mark, _ = trap(tmp_path / "r" / ".git" / "hooks")
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    mark.unlink(missing_ok=True)
    write_files(root, {"a.py": "a = 2\n"})
    async with code_tools(root, lasts=True) as tools:
        assert brief(await tools.call("diff")) == {"a.py": "modified +1 -1"}
        await tools.call("diff", since="session")
    assert not mark.exists()


async def test_a_missing_object_is_not_fetched_from_a_promisor(tmp_path: Path) -> None:
    mark, program = trap(tmp_path / "traps")
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    head = git(root, "rev-parse", "HEAD")
    blob = git(root, "rev-parse", "HEAD:a.py")
    for name, value in {
        "extensions.partialClone": "evil",
        "remote.evil.promisor": "true",
        "remote.evil.url": f"ext::{program}",
        "remote.evil.uploadpack": str(program),
        "protocol.ext.allow": "always",
        "core.repositoryformatversion": "1",
    }.items():
        git(root, "config", name, value)
    for missing in (head, blob):
        (root / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    write_files(root, {"a.py": "a = 2\n"})
    async with code_tools(root, lasts=True) as tools:
        for since in ("HEAD", "HEAD~3", "session", "1 hour ago"):
            try:
                await tools.call("diff", since=since)
            except DariError:
                pass
    assert not mark.exists()


async def test_a_git_folder_that_does_not_lead_back_is_refused(tmp_path: Path) -> None:
    new_repository(tmp_path / "private", {"secret.txt": "hidden\n"})
    root = tmp_path / "r"
    root.mkdir()
    (root / ".git").write_text(f"gitdir: {tmp_path / 'private' / '.git'}\n")
    async with code_tools(root) as tools:
        with pytest.raises(Denied):
            await tools.call("diff")


async def test_a_work_tree_elsewhere_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path / "private", {"secret.txt": "hidden\n"})
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    git(root, "config", "core.worktree", str(tmp_path / "private"))
    async with code_tools(root) as tools:
        with pytest.raises(DariError):
            await tools.call("diff")


async def test_the_repository_of_another_user_is_refused_with_the_next_step(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    os.chown(root, 12345, 12345)
    os.chown(root / ".git", 12345, 12345)
    async with code_tools(root) as tools:
        with pytest.raises(Denied, match="another user"):
            await tools.call("diff")


async def test_a_broken_index_and_a_file_in_place_of_a_folder_are_errors_not_crashes(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n", "d/x.py": "1\n"})
    (root / "d" / "x.py").unlink()
    (root / "d").rmdir()
    (root / "d").write_text("a file now\n")
    (root / "a.py").unlink()
    write_files(root, {"a.py/inner.py": "2\n"})
    async with code_tools(root, lasts=True) as tools:
        assert set(brief(await tools.call("diff"))) >= {"d", "a.py/inner.py"}
        await tools.call("diff", since="session")
        (root / ".git" / "index").write_bytes(b"garbage")
        with pytest.raises(DariError):
            await tools.call("diff")


async def test_no_private_folder_is_left_when_git_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_git.tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    root = new_repository(tmp_path / "r", {"a.py": "a = 1\n"})
    commit(root)
    (root / ".git" / "index").write_bytes(b"garbage")
    async with code_tools(root) as tools:
        with pytest.raises(DariError):
            await tools.call("diff")
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("trick", ["commondir", "folders", "branch", "log"])
async def test_history_of_another_repository_is_not_shown(tmp_path: Path, trick: str) -> None:
    other = new_repository(tmp_path / "other", {"plan.txt": "PRIVATE\n"}) / ".git"
    root = new_repository(tmp_path / "r", {"a.py": "x = 1\n"})
    own = root / ".git"
    branch = git(root, "symbolic-ref", "HEAD").strip()
    if trick == "commondir":
        (own / "commondir").write_text(f"{other}\n")
    elif trick == "folders":
        for name in ("objects", "refs"):
            (own / name).rename(own / f"old-{name}")
            (own / name).symlink_to(other / name)
    else:
        (own / "objects/info/alternates").write_text(f"{other}/objects\n")
        name = branch if trick == "branch" else f"logs/{branch}"
        (own / name).unlink()
        (own / name).symlink_to(other / name)
    async with code_tools(root) as tools:
        with pytest.raises(Denied):
            await tools.call("diff", since=branch)
