"""What a child sees of our environment: next to nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from dari.errors import InvalidInput
from dari.sandbox.system_paths import CA_FILES

# What the official SDKs hand on, and LANG: without PATH neither `npx` nor `#!/usr/bin/env node` runs.
BASE_NAMES = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG")
# Windows starts no program without SYSTEMROOT; the others are where programs and profiles are looked for.
WINDOWS_BASE_NAMES = (
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
)

# How this machine reaches the network: a company's CA, its proxy. None of it is a right; a proxy's address may hold a
# password, which is masked in whatever we print (`network_secrets`).
PROXY_NAMES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)
NETWORK_NAMES = (*CA_FILES, *PROXY_NAMES, "NODE_USE_SYSTEM_CA", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "npm_config_proxy")


def network_secrets(environment: Mapping[str, str]) -> list[str]:
    """Passwords in the addresses of proxies, and the whole of `user:password`."""
    found = []
    for name in (*PROXY_NAMES, "npm_config_proxy"):
        login = environment.get(name, "").partition("://")[2].rpartition("@")[0]
        if ":" in login:
            found += [login, login.partition(":")[2]]
    return [one for one in found if one]


def build_environment(
    given: Mapping[str, str],
    inherited: Iterable[str] = (),
    source: Mapping[str, str] | None = None,
    platform: str = os.name,
) -> dict[str, str]:
    """Built from nothing: the base names, those that `inherited` names, and what is given, which wins.

    A value that starts with `()` is an exported shell function: code, not data, and never handed on.
    """
    source = os.environ if source is None else source
    names = (*(WINDOWS_BASE_NAMES if platform == "nt" else BASE_NAMES), *inherited)
    ours = {name: source[name] for name in names if name in source and not source[name].startswith("()")}
    for name, value in given.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise InvalidInput(f"{name!r} cannot be an environment variable", "no '=' in a name, no NUL in either")
    return {**ours, **given}
