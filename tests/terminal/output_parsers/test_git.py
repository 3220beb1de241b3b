"""`git status` and `git log`, as git itself prints them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dari.terminal.output_parsers import parse_structured


class Repository:
    """A real repository under a temporary folder, with nothing of the person's own settings."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self("init", "-q", "-b", "main")

    def __call__(self, *arguments: str, check: bool = True) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root.parent), "GIT_CONFIG_GLOBAL": os.devnull}
        environment |= {"LC_ALL": "C.UTF-8", "GIT_CONFIG_SYSTEM": os.devnull}
        named = ["-c", "user.name=Ada Park", "-c", "user.email=ada@example.com", "-c", "protocol.file.allow=always"]
        done = subprocess.run(
            ["git", *named, *arguments], cwd=self.root, env=environment, capture_output=True, text=True, timeout=20
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout + done.stderr

    def commit(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / name).write_text(text)
        self("add", "-A")
        self("commit", "-qm", f"Change {', '.join(files)}\n\nBecause of reasons.")


@pytest.fixture
def git(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


FORMS = ["status", "status -sb", "status --porcelain=v2 --branch"]


def status(git: Repository, form: str) -> dict[str, Any]:
    parsed = parse_structured(git(*form.split()), command=f"git {form}")
    assert parsed.parser == "git_status" and parsed.confidence > 0.9
    value: dict[str, Any] = parsed.value
    return value


@pytest.mark.parametrize("form", FORMS)
def test_changes_are_told_apart_in_every_form(git: Repository, form: str) -> None:
    git.commit(kept="1", changed="1", removed="1", moved="a long text that stays the same\n" * 3)
    (git.root / "changed").write_text("2")
    git("mv", "moved", "here now")
    git("rm", "-q", "removed")
    (git.root / "added").write_text("x")
    git("add", "added")
    (git.root / "new 파일").write_text("x")
    value = status(git, form)
    assert value["branch"] == "main" and value["is_clean"] is False
    staged = {entry["path"]: entry["change"] for entry in value["staged"]}
    assert staged == {"added": "added", "here now": "renamed", "removed": "deleted"}
    assert next(entry["from"] for entry in value["staged"] if entry["change"] == "renamed") == "moved"
    assert value["unstaged"] == [{"path": "changed", "change": "modified"}]
    assert [entry["path"] for entry in value["untracked"]] == ["new 파일"]


@pytest.mark.parametrize("form", FORMS)
def test_a_clean_tree_is_clean(git: Repository, form: str) -> None:
    git.commit(a="1")
    value = status(git, form)
    assert value["is_clean"] and value["branch"] == "main" and (value["ahead"], value["behind"]) == (0, 0)


@pytest.mark.parametrize("form", FORMS)
def test_how_far_two_branches_are_apart_is_told(git: Repository, form: str, tmp_path: Path) -> None:
    git.commit(a="1")
    git("clone", "-q", "--bare", ".", str(tmp_path / "up.git"))
    git("remote", "add", "origin", str(tmp_path / "up.git"))
    git.commit(b="1")
    git("push", "-q", "-u", "origin", "main")
    git("reset", "-q", "--hard", "HEAD~1")
    git.commit(c="1")
    git.commit(d="1")
    value = status(git, form)
    assert (value["upstream"], value["ahead"], value["behind"]) == ("origin/main", 2, 1)


@pytest.mark.parametrize("form", FORMS)
def test_conflicts_are_unmerged_paths(git: Repository, form: str) -> None:
    git.commit(a="1", b="1")
    git("checkout", "-qb", "other")
    git.commit(a="2")
    git("checkout", "-q", "main")
    git.commit(a="3")
    git("merge", "other", check=False)
    value = status(git, form)
    assert value["unmerged"] == [{"path": "a", "change": "both modified"}]
    if form == "status":
        assert value["operation"] == "merge"


@pytest.mark.parametrize("form", FORMS)
def test_a_detached_head_has_no_branch(git: Repository, form: str) -> None:
    git.commit(a="1")
    git("checkout", "-q", "--detach")
    value = status(git, form)
    assert value["branch"] is None
    if form == "status":
        assert git("rev-parse", "HEAD").startswith(value["detached_at"])


def test_a_repository_without_commits_is_read(git: Repository) -> None:
    assert status(git, "status")["branch"] == "main"
    assert status(git, "status -sb")["branch"] == "main"


@pytest.mark.parametrize("form", ["log", "log --graph", "log --stat", "log -p", "log --format=fuller"])
def test_commits_come_with_author_date_and_message(git: Repository, form: str) -> None:
    git.commit(a="1")
    git.commit(b="2")
    parsed = parse_structured(git(*form.split()), command=f"git {form}")
    assert parsed.parser == "git_log" and parsed.items is not None
    assert [item["subject"] for item in parsed.items] == ["Change b", "Change a"]
    first = parsed.items[0]
    assert first["commit"] == git("rev-parse", "HEAD").strip()
    assert (first["author"], first["email"], first["body"]) == ("Ada Park", "ada@example.com", "Because of reasons.")
    assert "20" in first["date"]


@pytest.mark.parametrize("form", ["log --oneline --decorate", "log --oneline --graph --decorate --all"])
def test_short_logs_have_hash_refs_and_subject(git: Repository, form: str) -> None:
    git.commit(a="1")
    git("checkout", "-qb", "side")
    git.commit(b="1")
    git("checkout", "-q", "main")
    git.commit(c="1")
    git("merge", "-q", "--no-edit", "side")
    parsed = parse_structured(git(*form.split()), command=f"git {form}")
    assert parsed.parser == "git_log" and parsed.items is not None and len(parsed.items) == 4
    assert parsed.items[0]["subject"] == "Merge branch 'side'" and "HEAD -> main" in parsed.items[0]["refs"]
    full = [git("rev-parse", item["commit"]).strip() for item in parsed.items]
    assert len(set(full)) == 4


def test_a_merge_names_its_parents(git: Repository) -> None:
    git.commit(a="1")
    git("checkout", "-qb", "side")
    git.commit(b="1")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "--no-edit", "side")
    items = parse_structured(git("log")).items
    assert items and len(items[0]["parents"]) == 2


def test_what_a_commit_changed_is_no_part_of_its_message(git: Repository) -> None:
    code = "def f():\n    first = 1\n    second = 2\n    third = 3\n    fourth = 4\n"
    git.commit(**{"a.py": code})
    (git.root / "a.py").write_text(code.replace("third = 3", "third = 33"))
    git("commit", "-a", "-m", "Change a line\n\nBecause it was wrong.")
    git.commit(b="b")
    for form in (["show", "HEAD~1"], ["log", "-p", "--stat"]):
        items = parse_structured(git(*form), command="git " + " ".join(form), hint="git_log").items
        assert items
        found = next(item for item in items if item["subject"] == "Change a line")
        assert found["body"] == "Because it was wrong."


def test_words_that_look_like_hashes_are_no_commits() -> None:
    assert parse_structured("defaced the wall\nacceded to it\n").type == "text"
