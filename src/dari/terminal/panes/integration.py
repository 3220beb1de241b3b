"""How a shell is started so that it tells where commands begin and end."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dari.errors import NotFound
from dari.version import VERSION

ShellKind = Literal["bash", "zsh", "fish", "sh"]
NUMBER = 7701
_FILES = Path(__file__).with_name("shells")
_KINDS: dict[str, ShellKind] = {
    "bash": "bash",
    "zsh": "zsh",
    "fish": "fish",
    **dict.fromkeys(("sh", "dash", "ash", "ksh", "mksh", "yash"), "sh"),
}

# What a pane takes over from the daemon. The rest of the daemon's environment (tokens, the terminal and the tool
# that it was started from) is nobody's business in a pane; shells read their own files for more.
_INHERITED = re.compile(
    r"HOME|USER|LOGNAME|SHELL|PATH|MANPATH|INFOPATH|LANG|LANGUAGE|TZ|TMPDIR|DARI_HOME"
    r"|SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_SESSION_BUS_ADDRESS"
    r"|EDITOR|VISUAL|PAGER|BROWSER|VIRTUAL_ENV|JAVA_HOME|GOPATH|GOROOT|CARGO_HOME|RUSTUP_HOME|NVM_DIR|PYENV_ROOT"
    r"|PNPM_HOME|BUN_INSTALL|DOTNET_ROOT|ANDROID_HOME|GEM_HOME|DOCKER_HOST|KUBECONFIG"
    r"|http_proxy|https_proxy|no_proxy|ftp_proxy|all_proxy|HTTP_PROXY|HTTPS_PROXY|NO_PROXY|FTP_PROXY|ALL_PROXY"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|PIP_INDEX_URL"
    r"|(?:LC|XDG)_[A-Z_]+"
)


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run, and how its words are known."""

    argv: tuple[str, ...]
    env: dict[str, str]
    kind: ShellKind | None
    nonce: str


def make_environment(
    pane_id: str, socket_path: str = "", extra: Mapping[str, str] | None = None, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a program in a pane."""
    source = os.environ if base is None else base
    env = {name: value for name, value in source.items() if _INHERITED.fullmatch(name)}
    env.setdefault("PATH", os.defpath)
    env.setdefault("HOME", "/")
    if not any(env.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")):
        env["LANG"] = "C.UTF-8"
    env |= {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TERM_PROGRAM": "Crux",
        "TERM_PROGRAM_VERSION": VERSION,
        "CRUX_PANE": pane_id,
    }
    if socket_path:
        env["CRUX_SOCKET"] = socket_path
    return env | dict(extra or {})


def find_shell(wanted: str = "", env: Mapping[str, str] | None = None) -> str:
    """The path of a shell: the one that is wanted, else the user's own, else sh."""
    source = os.environ if env is None else env
    search = source.get("PATH", os.defpath)
    if wanted:
        found = shutil.which(wanted, path=search)
        if found is None:
            raise NotFound(f"there is no shell {wanted}", "give its full path, or one of bash, zsh, fish, sh")
        return found
    for name in (source.get("SHELL", ""), _account_shell(), "bash", "sh"):
        found = shutil.which(name, path=search) if name else None
        if found is not None and kind_of(found) is not None:
            return found
    raise NotFound("there is no shell on this machine", "set SHELL to the path of one")


def kind_of(program: str) -> ShellKind | None:
    """Which shell this is, as far as its name tells; None for any other program."""
    return _KINDS.get(os.path.basename(program).removeprefix("-"))


def integrate(shell: str, env: Mapping[str, str], *, is_plain: bool = False) -> Launch:
    """The shell with our file read at its start; `is_plain` leaves the user's own files out."""
    kind = kind_of(shell)
    if kind is None:
        return Launch((shell,), dict(env), None, "")
    nonce = secrets.token_hex(16)
    full = {**env, "CRUX_NONCE": nonce}
    if is_plain:
        full["CRUX_PLAIN"] = "1"
    argv: tuple[str, ...] = (shell, "-i")
    if kind == "bash":
        argv = (shell, "--noprofile", "--rcfile", str(_FILES / "bash.sh"), "-i")
    elif kind == "zsh":
        if "ZDOTDIR" in env:
            full["CRUX_ZDOTDIR"] = env["ZDOTDIR"]
        full["ZDOTDIR"] = str(_FILES / "zsh")
    elif kind == "fish":
        quoted = str(_FILES / "fish.fish").replace("\\", "\\\\").replace("'", "\\'")
        argv = (shell, "-i", *(("--no-config",) if is_plain else ()), "-C", f"source '{quoted}'")
    else:
        if "ENV" in env:
            full["CRUX_ENV"] = env["ENV"]
        full["ENV"] = str(_FILES / "sh.sh")
    return Launch(argv, full, kind, nonce)


def _account_shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return ""
