"""A real PostgreSQL with pgvector, as `./dev test` installs it, started as another user where the tests run as root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from tests.support.ports import reserved_port
from tests.support.requirements import missing
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
USER = "kebab"
PASSWORD = "hunter2-postgres"
NOBODY = 65534
_START_S = 30
_names = count()
# What a crash of the server would lose does not matter here, and it need not wait for the disk.
_OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=64MB", "max_connections=60")


@contextmanager
def serving_postgres(*options: str) -> Iterator[str]:
    """The URL of a database with a superuser's role, without its password; `PASSWORD` is that."""
    programs = _programs()
    with reserved_port() as port, tempfile.TemporaryDirectory(prefix="dari-pg-", ignore_cleanup_errors=True) as scratch:
        home = Path(scratch)
        home.chmod(0o755)
        programs = _reachable(programs, home)
        data = home / "data"
        data.mkdir(mode=0o700)
        (home / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            for path in (home, data, home / "password"):
                os.chown(path, NOBODY, NOBODY)
        words = [str(programs / "initdb"), "-D", str(data), "-U", USER, "--pwfile", str(home / "password")]
        words += ["-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        subprocess.run(words, cwd=home, check=True, capture_output=True, timeout=60, **_as_other(programs))  # type: ignore[call-overload]
        words = [str(programs / "postgres"), "-D", str(data), "-p", str(port), "-k", str(home)]
        words += ["-c", "listen_addresses=127.0.0.1"]
        for option in (*_OPTIONS, *options):
            words += ["-c", option]
        with (home / "log").open("wb") as log:
            server = subprocess.Popen(
                words, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **_as_other(programs)
            )  # type: ignore[call-overload]
        try:
            ready = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
            wait_until(
                lambda: subprocess.run(ready, **_as_other(programs)).returncode == 0, within_s=_START_S, interval_s=0.05
            )
            yield f"postgresql://{USER}@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # a fast shutdown: sessions are ended
            with suppress(subprocess.TimeoutExpired):
                server.wait(20)
            if server.returncode is None:
                server.kill()
                server.wait()


def fresh_schema() -> str:
    """The name of a schema that no other test of this run has."""
    return f"t{os.getpid()}_{next(_names)}"


def with_password(url: str, password: str = PASSWORD) -> str:
    return url.replace(f"{USER}@", f"{USER}:{password}@")


def _programs() -> Path:
    if os.environ.get("DARI_NO_POSTGRES") == "1":
        missing("POSTGRESQL WAS NOT TESTED: it could not be installed")
    folder = Path(os.environ.get("DARI_POSTGRES_DIR") or ROOT / ".dev" / "postgres" / "server")
    if not (folder / "bin" / "postgres").exists():
        missing(f"POSTGRESQL WAS NOT TESTED: `./dev test` could not install it into {folder}")
    return folder / "bin"


def _reachable(programs: Path, home: Path) -> Path:
    """The programs, or a copy where the other user does not come to them."""
    try:
        subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, **_as_other(programs))  # type: ignore[call-overload]
    except (OSError, subprocess.CalledProcessError):
        copy = home / "server"
        shutil.copytree(programs.parent, copy, symlinks=True)
        return copy / "bin"
    return programs


def _as_other(programs: Path) -> dict[str, object]:
    """PostgreSQL refuses to run as root. It brings libraries that its own libraries need."""
    env = {"LD_LIBRARY_PATH": str(programs.parent / "lib"), "PATH": os.defpath, "LC_ALL": "C"}
    return {"env": env} | ({"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {})
