"""Other people's MCP servers, as tests of the bridge run them: from npm and PyPI, in `.dev/servers`."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devtools import environment, node
from devtools.workspace import DEV, SetupError, digest, is_stamped, one_at_a_time, say

FOLDER = DEV / "servers"
NPM_DIR = FOLDER / "npm"
VENV = FOLDER / "venv"
PINS = Path(__file__).with_name("servers.txt")
NPM = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@modelcontextprotocol/server-postgres@0.6.2",  # speaks 2024-11-05
    "@stripe/mcp@0.3.3",  # never answers where its own server cannot be reached
    # A real Postgres in one npm package, for server-postgres.
    "@electric-sql/pglite@0.5.14",
    "@electric-sql/pglite-socket@0.2.17",
)
PYPI = (
    "excel-mcp-server",  # slow to start, 46 tools
    "mcp-server-git",
    "mcp-server-sqlite",  # ends at start with the `mcp` of today
    "mcp-server-time",
)


def ensure() -> dict[str, str]:
    """The environment that tells tests where the servers are; SetupError when one could not be installed."""
    found = node.find()
    stamp = FOLDER / ".dev-stamp"
    value = digest(str(found.program), sys.version, str(FOLDER), *NPM, *PYPI, PINS.read_bytes())
    if not is_stamped(stamp, value):
        with one_at_a_time():
            if not is_stamped(stamp, value):
                _install(found)
                stamp.write_text(value)
    return {"DARI_SERVERS_DIR": str(FOLDER)}


def _install(found: node.Node) -> None:
    started = time.monotonic()
    (FOLDER / ".dev-stamp").unlink(missing_ok=True)
    with ThreadPoolExecutor() as pool:
        waiting = (pool.submit(node.install, found, NPM, NPM_DIR), pool.submit(_install_python))
        errors = [error for done in waiting if (error := done.exception()) is not None]
    if errors:
        raise SetupError("\n".join(map(str, errors)))
    say(f"installed other people's servers in {time.monotonic() - started:.1f} s")


def _install_python() -> None:
    """A venv of their own: their dependencies are no business of ours."""
    say(f"installing {', '.join(PYPI)} into .dev/servers/venv")
    # Compiled: a server in a sandbox cannot do it, and would start slowly every time.
    environment.fill_new_venv(VENV, PYPI, PINS, compiles=True)
