"""How a shell is started so that it tells where commands begin and end."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dari.errors import NotFound

ShellKind = Literal["bash", "zsh", "fish", "sh"]
NUMBER = 7701
_FILES = Path(__file__).with_name("shells")
_KINDS: dict[str, ShellKind] = {
    "bash": "bash",
    "zsh": "zsh",
    "fish": "fish",
    **dict.fromkeys(("sh", "dash", "ash", "ksh", "mksh", "yash"), "sh"),
}


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run, and how its words are known."""

    argv: tuple[str, ...]
    env: dict[str, str]
    kind: ShellKind | None
    nonce: str


def plan_launch(
    command: Sequence[str], shell: str, env: Mapping[str, str], *, is_plain: bool = False, is_login: bool = False
) -> Launch:
    """A command as it stands; a shell, also one that is named as the command, with its integration."""
    if command and (len(command) > 1 or kind_of(command[0]) is None):
        return Launch(tuple(command), dict(env), None, "")
    path = find_shell(command[0] if command else shell, env)
    return integrate(path, env, is_plain=is_plain, is_login=is_login)


def find_shell(wanted: str = "", env: Mapping[str, str] | None = None) -> str:
    """The path of a shell: the one that is wanted, else the user's own, else sh."""
    source = os.environ if env is None else env
    search = source.get("PATH", os.defpath)
    if wanted:
        found = shutil.which(wanted, path=search)
        if found is None:
            raise NotFound(f"the shell {wanted} was not found", "give its full path, or one of bash, zsh, fish, sh")
        return found
    for name in (source.get("SHELL", ""), _account_shell(), "bash", "sh"):
        found = shutil.which(name, path=search) if name else None
        if found is not None and kind_of(found) is not None:
            return found
    raise NotFound("no shell was found on this machine", "set SHELL to the path of one")


def kind_of(program: str) -> ShellKind | None:
    """Which shell this is, as far as its name tells; None for any other program."""
    return _KINDS.get(os.path.basename(program).removeprefix("-"))


def integrate(shell: str, env: Mapping[str, str], *, is_plain: bool = False, is_login: bool = False) -> Launch:
    """The shell with our file read at its start; `is_plain` leaves the user's own files out.

    With `is_login`, the user's file for login shells is read, too: where most set their PATH. It stays an
    interactive shell that is none, for /etc/profile would replace a PATH that was chosen for the pane.
    """
    kind = kind_of(shell)
    if kind is None:
        return Launch((shell,), dict(env), None, "")
    nonce = secrets.token_hex(16)
    full = {**env, "CRUX_NONCE": nonce}
    if is_plain:
        full["CRUX_PLAIN"] = "1"
    elif is_login:
        full["CRUX_LOGIN"] = "1"
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


def join_script(kind: ShellKind, nonce: str, control: str = "") -> str:
    """What a running shell reads to tell about its commands from now on; the exit code before it stays what it was."""
    if kind == "fish":
        code, setting = "set -l __crux_last $status", "set -g {} {}"
    else:
        code, setting = "__crux_last=$?", "{}={}"
    names = {"CRUX_NONCE": nonce, **({"CRUX_CONTROL": control} if control else {})}
    file = {"bash": "bash_hooks.sh", "zsh": "zsh_hooks.zsh", "fish": "fish.fish", "sh": "sh.sh"}[kind]
    word = "source" if kind == "fish" else "."
    return "\n".join(
        [
            code,
            *(setting.format(name, quote(value, kind)) for name, value in names.items()),
            f"{word} {quote(str(_FILES / file), kind)}",
            *(["unset CRUX_NONCE CRUX_CONTROL"] if kind != "fish" else []),
            "return $__crux_last",
            "",
        ]
    )


def quote(text: str, kind: ShellKind | None) -> str:
    """One word of that shell, whatever stands in it."""
    if kind == "fish":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "'\\''") + "'"


def _account_shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return ""
