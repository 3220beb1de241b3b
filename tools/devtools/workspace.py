"""Where things are in this checkout, and how `dev` speaks and fails."""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
DEV = ROOT / ".dev"  # what `dev` fetched for itself: uv, npm packages, the lock


class SetupError(Exception):
    """The machine cannot run this command; the message is a fact, then `hint:` and the next step."""


def say(text: str) -> None:
    print(f"dev: {text}", file=sys.stderr, flush=True)


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def attempt(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> str | None:
    """Run a set-up command quietly; None when it worked, else the end of what it printed."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return None
    return done.stdout.strip()[-4000:] or f"exit code {done.returncode}"


def digest(*parts: str | bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()


def is_stamped(stamp: Path, value: str) -> bool:
    return stamp.is_file() and stamp.read_text() == value


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Set-up holds a file lock: two terminals in one checkout must not install into each other."""
    DEV.mkdir(exist_ok=True)
    with (DEV / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another ./dev is setting this checkout up; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
