"""How this Dari was installed, and the command that adds an extra to it or removes it.

| how | known by |
|---|---|
| uv tool | `uv-receipt.toml` in the environment |
| pipx | `pipx_metadata.json` in the environment |
| uvx | the environment lies in uv's cache |
| checkout | `direct_url.json` of the package says `editable` |
| pip | none of these |
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Literal

from msgspec import Struct

NAME = "dari"
How = Literal["uv tool", "pipx", "uvx", "checkout", "pip"]


class Installation(Struct, frozen=True):
    """One environment that we run in; `found` looks at the one of this process."""

    how: How
    python: str = sys.executable
    source: str = ""
    """The URL or the folder that it came from; empty for a package index."""
    extras: tuple[str, ...] = ()
    """Those that were asked for, where that is recorded."""
    has_pip: bool = True

    def adding(self, extra: str) -> str:
        """The command that installs an extra and keeps those that are there."""
        wanted = f"{NAME}[{','.join(dict.fromkeys((*self.extras, extra)))}]"
        if self.how == "checkout":
            return self._pip("install", f"-e {shlex.quote(f'{self.source}[{extra}]')}")
        requirement = shlex.quote(f"{wanted} @ {self.source}" if self.source else wanted)
        if self.how == "uv tool":
            return f"uv tool install {requirement}"
        if self.how == "pipx":
            return f"pipx install --force {requirement}"
        if self.how == "uvx":
            return f"uvx --from {requirement} {NAME} …"
        return self._pip("install", requirement)

    def removing(self) -> str:
        """The command that removes the package."""
        if self.how == "uvx":
            return f"uv cache clean {NAME}"
        if self.how in ("uv tool", "pipx"):
            return f"{self.how} uninstall {NAME}"
        return self._pip("uninstall", NAME)

    def _pip(self, verb: str, what: str) -> str:
        """An environment that uv made has no pip."""
        python = shlex.quote(self.python)
        return f"{python} -m pip {verb} {what}" if self.has_pip else f"uv pip {verb} --python {python} {what}"


def found(prefix: Path | None = None, direct_url: str | None = None) -> Installation:
    """How the package of this process was installed. What cannot be read counts as absent."""
    prefix = Path(sys.prefix) if prefix is None else prefix
    source, is_editable = _source(_direct_url() if direct_url is None else direct_url)
    has_pip = _has_pip()
    if (receipt := prefix / "uv-receipt.toml").is_file():
        return Installation("uv tool", sys.executable, source, _receipt_extras(receipt), has_pip)
    if (metadata := prefix / "pipx_metadata.json").is_file():
        return Installation("pipx", sys.executable, source, _pipx_extras(metadata), has_pip)
    if _is_in_uv_cache(prefix):
        return Installation("uvx", sys.executable, source, (), has_pip)
    if is_editable:
        return Installation("checkout", sys.executable, _folder(source), (), has_pip)
    return Installation("pip", sys.executable, source, (), has_pip)


def install_extra(extra: str) -> str:
    """The command that adds an extra to this installation."""
    return found().adding(extra)


def _direct_url() -> str:
    from importlib import metadata  # 12 ms that only this question pays

    try:
        return metadata.distribution(NAME).read_text("direct_url.json") or ""
    except (metadata.PackageNotFoundError, OSError):
        return ""


def _source(direct_url: str) -> tuple[str, bool]:
    """Where the package came from (PEP 610), and whether it is used in place."""
    try:
        data = json.loads(direct_url)
        url = str(data["url"])
        if "vcs_info" in data:
            vcs = data["vcs_info"]
            revision = vcs.get("requested_revision", "")
            return f"{vcs['vcs']}+{url}" + (f"@{revision}" if revision else ""), False
        return url, bool(data.get("dir_info", {}).get("editable"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", False


def _folder(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(url).path)


def _receipt_extras(path: Path) -> tuple[str, ...]:
    import tomllib

    try:
        for one in tomllib.loads(path.read_text())["tool"]["requirements"]:
            if isinstance(one, dict) and one.get("name") == NAME:
                return tuple(str(extra) for extra in one.get("extras", ()))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return ()


def _pipx_extras(path: Path) -> tuple[str, ...]:
    import re

    try:
        named = re.match(rf"{NAME}\[([\w,. -]+)\]", json.loads(path.read_text())["main_package"]["package_or_url"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return () if named is None else tuple(extra.strip() for extra in named[1].split(",") if extra.strip())


def _is_in_uv_cache(prefix: Path) -> bool:
    cache = os.environ.get("UV_CACHE_DIR", "")
    if cache and prefix.is_relative_to(cache):
        return True
    return any(part.startswith(("archive-v", "environments-v", "builds-v")) for part in prefix.parts) and (
        "uv" in prefix.parts
    )


def _has_pip() -> bool:
    from importlib.util import find_spec

    return find_spec("pip") is not None
