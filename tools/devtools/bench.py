"""What each benchmark needs on the machine besides `.venv`; its peers in Python it installs itself."""

from devtools import node, system
from devtools.workspace import DEV, SetupError, say

MOCKTTP = ("mockttp@4.6.3",)
NPM_DIR = DEV / "bench" / "npm"


def prepare(part: str) -> dict[str, str]:
    """Install what is missing, and return the environment that tells the benchmark where it is."""
    if part == "core":
        system.ensure_programs("wrk")
    if part != "proxy":
        return {}
    # The load generator is ours, in C, with OpenSSL; the origin is nginx.
    system.ensure_files(
        {"/usr/include/openssl/ssl.h": "libssl-dev", "/usr/bin/cc": "gcc", "/usr/sbin/nginx": "nginx-light"}
    )
    try:
        return {"DARI_NODE": str(node.ensure(MOCKTTP, NPM_DIR)), "DARI_BENCH_NPM_DIR": str(NPM_DIR)}
    except SetupError as error:
        say(f"mockttp will be missing: {error}")
        return {}
