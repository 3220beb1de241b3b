"""`.venv`: made with the running Python, filled by uv (pip as the fallback), skipped when nothing changed."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from devtools import system
from devtools.workspace import (
    DEV,
    ROOT,
    VENV,
    VENV_PYTHON,
    SetupError,
    attempt,
    digest,
    is_stamped,
    one_at_a_time,
    say,
)

CONSTRAINTS = ROOT / "constraints.txt"
CONFIG = VENV / "pyvenv.cfg"  # without it .venv/bin/python is the system's Python
RUN = "oauth,schemas,bridge,terminal,knowledge,codetools,embeddings,postgres,uv"  # extras of `./dev up`
WORK = "oauth,schemas,bridge,terminal,knowledge,codetools,embeddings,postgres,uv,japanese,chinese,dev"  # of the rest


def ensure(extras: str) -> None:
    """Make `.venv` hold `.[extras]` at the pinned versions; costs one hash when it already does."""
    if _is_ready(extras):
        return
    with one_at_a_time():
        if _is_ready(extras):
            return
        _ensure_venv()
        started = time.monotonic()
        say(f"installing .[{extras}] into .venv")
        _install(extras)
        _stamp_file(extras).write_text(_stamp_value())
        say(f"installed in {time.monotonic() - started:.1f} s")


def _is_ready(extras: str) -> bool:
    if not (VENV_PYTHON.exists() and CONFIG.is_file()):
        return False
    stamps = {_stamp_file(extras), _stamp_file(WORK)}  # WORK contains RUN
    return any(is_stamped(stamp, _stamp_value()) for stamp in stamps)


def _stamp_file(extras: str) -> Path:
    return VENV / f".dev-stamp-{extras.replace(',', '-')}"


def _stamp_value() -> str:
    """Changes with the pins, with the interpreter and, as the install is editable, with the place."""
    files = (ROOT / "pyproject.toml", CONSTRAINTS, CONFIG)
    return digest(str(ROOT), *(file.read_bytes() for file in files))


def _ensure_venv() -> None:
    works = attempt([VENV_PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]) is None
    if works and CONFIG.is_file():
        return
    if VENV.is_symlink() or VENV.is_file():
        raise SetupError(f"{VENV} is not a folder\nhint: remove it and run ./dev again")
    if VENV.exists():
        say("the .venv here has no working Python 3.11; making it anew")
        shutil.rmtree(VENV)
    say(f"making .venv with Python {'.'.join(map(str, sys.version_info[:3]))}")
    failed = attempt([sys.executable, "-m", "venv", VENV])
    if failed is None:
        return
    # Debian without python3-venv has no ensurepip: a venv without pip is enough for uv, and for pip --python.
    shutil.rmtree(VENV, ignore_errors=True)
    if attempt([sys.executable, "-m", "venv", "--without-pip", VENV]) is None and _has_installer():
        return
    shutil.rmtree(VENV, ignore_errors=True)
    if system.apt_install("python3-venv") and attempt([sys.executable, "-m", "venv", VENV]) is None:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    raise SetupError(f"cannot make .venv:\n{failed}\nhint: install pip or venv (Debian: python3-pip, python3-venv)")


def _has_installer() -> bool:
    return shutil.which("uv") is not None or bool(find_pip(VENV_PYTHON))


def find_pip(target: Path) -> list[str]:
    """A pip that installs for the Python `target`: its own, else the running one's; empty when there is none."""
    for python, options in ((str(target), []), (sys.executable, ["--python", str(target)])):
        if attempt([python, "-m", "pip", "--version"]) is None:
            return [python, "-m", "pip", *options]
    return []


def _install(extras: str) -> None:
    fill(VENV_PYTHON, ["-e", f"{ROOT}[{extras}]"], CONSTRAINTS)


def fill(python: Path, packages: Sequence[str], pins: Path, *, compiles: bool = False) -> None:
    """Install for `python`, at the versions in `pins`, with uv or else with pip; SetupError when neither can."""
    words = [*packages, "-c", str(pins)]
    uv = _find_uv()
    if uv is not None:
        options = ["--compile-bytecode"] if compiles else []
        failed = attempt([uv, "pip", "install", "--python", python, *options, *words], _uv_environment(pins))
        if failed is None:
            return
        say(f"uv could not install:\n{failed}")
    pip = find_pip(python)
    if not pip:
        raise SetupError("there is neither uv nor pip\nhint: install pip (Debian: python3-pip) and run ./dev again")
    say("installing with pip")
    # pip applies PIP_CONSTRAINT to the build backend too, -c only to what is installed.
    failed = attempt([*pip, "install", *words], {**os.environ, "PIP_CONSTRAINT": str(pins)})
    if failed is not None:
        raise SetupError(f"pip could not install:\n{failed}\nhint: is a package index reachable from here?")


def fill_new_venv(folder: Path, packages: Sequence[str], pins: Path, *, compiles: bool = False) -> None:
    """A venv at `folder`, made anew, with `packages` alone: other people's dependencies stay out of ours."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    failed = attempt([sys.executable, "-m", "venv", "--without-pip", folder])
    if failed is not None:
        raise SetupError(f"cannot make {folder}:\n{failed}\nhint: install venv (Debian: python3-venv)")
    fill(folder / "bin" / "python", packages, pins, compiles=compiles)


def _find_uv() -> str | None:
    found = shutil.which("uv")
    if found is not None:
        return found
    ours = DEV / "uv" / "bin" / "uv"
    if not ours.exists():
        # --target is allowed where Debian refuses `pip install uv` (PEP 668).
        pip = (
            [sys.executable, "-m", "pip"]
            if attempt([sys.executable, "-m", "pip", "--version"]) is None
            else find_pip(VENV_PYTHON)
        )
        if not pip:
            return None
        say("fetching uv into .dev/uv")
        failed = attempt([*pip, "install", "--target", DEV / "uv", "-c", CONSTRAINTS, "uv"])
        if failed is not None:
            say(f"no uv here, going on with pip:\n{failed}")
            return None
    return str(ours)


def _uv_environment(pins: Path) -> dict[str, str]:
    """uv does not read pip's settings; give it the ones that decide whether an index can be reached."""
    env = dict(os.environ)
    env.setdefault("UV_SYSTEM_CERTS", "1")
    env.setdefault("UV_BUILD_CONSTRAINT", str(pins))
    for theirs, ours in (("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_CERT", "SSL_CERT_FILE")):
        if theirs in env:
            env.setdefault(ours, env[theirs])
    return env
