"""What each contender needs installed, and its installation under `.dev/bench/<name>`."""

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.machine import ROOT

ENVIRONMENTS = ROOT / ".dev" / "bench"
INSTALL_TIMEOUT_S = 600

# One web server for all: the same versions as ours, by constraints.txt.
_WEB = ("uvicorn", "uvloop", "httptools")

# fastmcp 4.1.4 asks for certifi >= 2026.10.19, newer than the package index carries, so the two
# packages of FastMCP come without their requirements and these are the requirements of
# `fastmcp-slim[client,server]==4.1.4` with that one bound removed.
_FASTMCP_NEEDS = (
    "authlib>=1.6.11",
    "certifi",
    "cyclopts>=4.0.0",
    "exceptiongroup>=1.2.2",
    "griffelib>=2.0.0",
    "httpx2>=2.5.0",
    "joserfc>=1.5.0",
    "jsonref>=1.1.0",
    "jsonschema-path>=0.3.4",
    "mcp==2.3.0",
    "openapi-pydantic>=0.6.0",
    "opentelemetry-api>=1.28.0",
    "packaging>=24.0",
    "platformdirs>=4.0.0",
    "py-key-value-aio[filetree,memory]>=0.4.4,<0.5.0",
    "pydantic-settings>=2.0.0",
    "pydantic[email]>=2.12.0",
    "pyperclip>=1.9.0",
    "python-dotenv>=1.1.0",
    "python-multipart>=0.0.26",
    "pyyaml>=6.0,<7.0",
    "rich>=13.9.4",
    "starlette>=1.0.1",
    "uncalled-for>=0.4.0",
    "watchfiles>=1.0.0",
    "websockets>=15.0.1",
)


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    needs: tuple[str, ...]
    bare: tuple[str, ...] = ()  # installed without their own requirements
    is_constrained: bool = True  # by our constraints.txt

    @property
    def home(self) -> Path:
        return ENVIRONMENTS / self.name

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def fingerprint(self) -> str:
        pins = constraints().read_bytes() if self.is_constrained and constraints().exists() else b""
        wanted = "\n".join((sys.version, *self.needs, *self.bare)).encode()
        return hashlib.sha256(wanted + pins).hexdigest()


PEERS = (
    Peer("sdk", ("mcp==2.3.0", *_WEB)),
    Peer("fastmcp", (*_FASTMCP_NEEDS, *_WEB), bare=("fastmcp==4.1.4", "fastmcp-slim==4.1.4")),
    Peer("asgi", ("msgspec", *_WEB)),
)


def constraints() -> Path:
    return ROOT / "constraints.txt"


def install(peer: Peer) -> None:
    """Make the environment of `peer`; a finished one of the same requirements is kept."""
    stamp = peer.home / "installed"
    if stamp.exists() and stamp.read_text() == peer.fingerprint and peer.python.exists():
        return
    print(f"installing {peer.name} into {peer.home.relative_to(ROOT)} …", file=sys.stderr, flush=True)
    shutil.rmtree(peer.home, ignore_errors=True)
    peer.home.parent.mkdir(parents=True, exist_ok=True)
    _run(_venv_command(peer))
    pins = ("-c", str(constraints())) if peer.is_constrained and constraints().exists() else ()
    _run([*_install_command(peer), *pins, *peer.needs])
    if peer.bare:
        _run([*_install_command(peer), "--no-deps", *peer.bare])
    stamp.write_text(peer.fingerprint)


def _base_python() -> str:
    """The interpreter below our own environment, so that all contenders run the same one."""
    return str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())


def _uv() -> str | None:
    local = ROOT / ".dev" / "uv" / "bin" / "uv"
    return shutil.which("uv") or (str(local) if local.exists() else None)


def _venv_command(peer: Peer) -> list[str]:
    if uv := _uv():
        return [uv, "venv", "--quiet", "--python", _base_python(), str(peer.home)]
    return [_base_python(), "-m", "venv", str(peer.home)]


def _install_command(peer: Peer) -> list[str]:
    if uv := _uv():
        # pip compiles on install, uv only when asked; cold starts are compared, so both compile.
        return [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(peer.python)]
    return [str(peer.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    if done.returncode:
        raise BenchError(
            f"{' '.join(command[:4])} … exited with {done.returncode}:\n{done.stderr[-2000:]}",
            "check that the package index answers and carries these versions (bench/peers.py)",
        )
