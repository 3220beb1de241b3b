"""Real git repositories for tests, with nothing of the machine's configuration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder: Path, *arguments: str, when: str = "", check: bool = True) -> str:
    dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when} if when else {}
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env={**os.environ, **_ENV, **dates},
        check=check,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


def new_repository(folder: Path, files: dict[str, str] | None = None, when: str = "") -> Path:
    """With one commit of the files; without any where there are none."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    if files:
        write_files(folder, files)
        commit(folder, when=when)
    return folder


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(folder: Path, message: str = "x", when: str = "") -> str:
    git(folder, "add", "-A", when=when)
    git(folder, "commit", "-q", "--allow-empty", "-m", message, when=when)
    return git(folder, "rev-parse", "HEAD")
