"""Other people's clients in Python that our servers are tried with, each in a venv under `.dev/clients`."""

import sys
import time
from pathlib import Path

from devtools import environment
from devtools.workspace import DEV, digest, is_stamped, one_at_a_time, say

FOLDER = DEV / "clients"
PINS = Path(__file__).with_name("clients.txt")
VENVS = {
    "sdk1": ("mcp==1.30.0",),
    "fastmcp": ("fastmcp==4.1.2", "mcp==2.3.0", "mcp-types==2.3.0"),  # newer ones ask for a certifi that is not out
    "tmuxp": ("tmuxp==1.76.0",),
}


def ensure() -> dict[str, str]:
    """The environment that tells tests where the clients are; SetupError when one could not be installed."""
    stamp = FOLDER / ".dev-stamp"
    value = digest(sys.version, str(FOLDER), repr(VENVS), PINS.read_bytes())
    if not is_stamped(stamp, value):
        with one_at_a_time():
            if not is_stamped(stamp, value):
                started = time.monotonic()
                for name, packages in VENVS.items():
                    say(f"installing {', '.join(packages)} into .dev/clients/{name}")
                    environment.fill_new_venv(FOLDER / name, packages, PINS)
                stamp.write_text(value)
                say(f"installed clients in {time.monotonic() - started:.1f} s")
    return {"DARI_CLIENTS_DIR": str(FOLDER)}
