"""What programs in panes begin with: their environment, and the directory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from dari.errors import InvalidInput
from dari.version import VERSION

# What a pane takes over when nobody gave it a person's environment. The rest of what a daemon was started with
# (tokens, the terminal and the tool that it was started from) is nobody's business; shells read their files for more.
_INHERITED = re.compile(
    r"HOME|USER|LOGNAME|SHELL|PATH|MANPATH|INFOPATH|LANG|LANGUAGE|TZ|TMPDIR|DARI_HOME"
    r"|SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_SESSION_BUS_ADDRESS"
    r"|EDITOR|VISUAL|PAGER|BROWSER|VIRTUAL_ENV|JAVA_HOME|GOPATH|GOROOT|CARGO_HOME|RUSTUP_HOME|NVM_DIR|PYENV_ROOT"
    r"|PNPM_HOME|BUN_INSTALL|DOTNET_ROOT|ANDROID_HOME|GEM_HOME|DOCKER_HOST|KUBECONFIG"
    r"|http_proxy|https_proxy|no_proxy|ftp_proxy|all_proxy|HTTP_PROXY|HTTPS_PROXY|NO_PROXY|FTP_PROXY|ALL_PROXY"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|PIP_INDEX_URL"
    r"|(?:LC|XDG)_[A-Z_]+"
)
# What belongs to the terminal, the shell or the daemon that a person came from, and would be wrong in another one.
_TIED = re.compile(
    r"_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|TERM|TERMCAP|TERMINFO|COLORTERM|TERM_PROGRAM.*|TERM_SESSION_ID|WINDOWID|WINDOW"
    r"|TMUX.*|STY|ZELLIJ.*|SSH_TTY|GPG_TTY|VTE_VERSION|LC_TERMINAL.*|WT_SESSION|WT_PROFILE_ID|TILIX_ID|CONEMU.*"
    r"|(?:KITTY|ALACRITTY|WEZTERM|ITERM|KONSOLE|GNOME_TERMINAL|GHOSTTY|XTERM|TERMINATOR|VSCODE)_.*"
    r"|CRUX_.*|DARI_(?!HOME$).*|ZDOTDIR_OLD|BASHOPTS|SHELLOPTS"
)


def of_person(environ: Mapping[str, str]) -> dict[str, str]:
    """A person's environment without what is tied to the terminal that they sit at."""
    return {name: value for name, value in environ.items() if not _TIED.fullmatch(name)}


def make_environment(
    pane_id: str, socket_path: str = "", extra: Mapping[str, str] | None = None, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """For a program in a pane: `base`, which is a person's, or what may be taken of this process's own, and `extra`."""
    env = {name: value for name, value in os.environ.items() if _INHERITED.fullmatch(name)} if base is None else {}
    env |= of_person(base or {})
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


def first_directory(cwd: str) -> str:
    """Where a pane begins: there, at home, or at the root when there is no home."""
    place = os.path.abspath(os.path.expanduser(cwd or "~"))
    if os.path.isdir(place):
        return place
    if cwd:
        raise InvalidInput(f"cwd must be a directory, got {place}", "name a directory that exists")
    return "/"
