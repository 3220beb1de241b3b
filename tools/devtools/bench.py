"""What each benchmark needs on the machine besides `.venv`; its peers in Python it installs itself."""

import ctypes.util

from devtools import node, postgres, system
from devtools.workspace import DEV, SetupError, say

PROXY_PACKAGES = ("mockttp@4.6.3",)
BRIDGE_PACKAGES = (
    "mcporter@0.12.3",
    "@modelcontextprotocol/inspector@2.12.0",
    "supergateway@4.0.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
)
CONSOLE_PACKAGES = ("@modelcontextprotocol/inspector@2.12.0",)
CODETOOLS_PACKAGES = ("mcp-ripgrep@0.4.0", "@modelcontextprotocol/server-filesystem@2026.8.31")


def prepare(part: str) -> dict[str, str]:
    """Install what is missing, and return the environment that tells the benchmark where it is."""
    if part in ("core", "bridge"):
        system.ensure_programs("wrk")
    if part == "terminal":
        system.ensure_programs("tmux")
        if ctypes.util.find_library("cairo") is None and not system.apt_install("libcairo2"):
            say("not on this machine: libcairo2\nhint: install with your system's package manager")
    if part == "bridge":
        return _with_packages(BRIDGE_PACKAGES, "npm-bridge")
    if part == "console":
        system.ensure_programs("chromium")
        return _with_packages(CONSOLE_PACKAGES, "npm-console")
    if part.partition(".")[0] == "codetools":
        return _with_packages(CODETOOLS_PACKAGES, "npm-codetools")
    if part == "knowledge":
        return _with_postgres()
    if part == "proxy":
        # The load generator is ours, in C, with OpenSSL; the origin is nginx.
        system.ensure_files(
            {"/usr/include/openssl/ssl.h": "libssl-dev", "/usr/bin/cc": "gcc", "/usr/sbin/nginx": "nginx-light"}
        )
        return _with_packages(PROXY_PACKAGES, "npm")
    return {}


def _with_postgres() -> dict[str, str]:
    try:
        return postgres.ensure()
    except SetupError as error:
        say(f"`--only postgres` will not run: {error}")
        return {}


def _with_packages(packages: tuple[str, ...], folder: str) -> dict[str, str]:
    where = DEV / "bench" / folder
    try:
        return {"DARI_NODE": str(node.ensure(packages, where)), "DARI_BENCH_NPM_DIR": str(where)}
    except SetupError as error:
        say(f"peers will be missing: {error}")
        return {}
