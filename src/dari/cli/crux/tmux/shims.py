"""`crux tmux --install` and `--run`: programs that call tmux get ours instead."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from dari.cli.crux.client import CruxClient
from dari.errors import Conflict, Failed, InvalidInput, NotFound
from dari.os_errors import describe_os_error, suggest_next_step
from dari.paths import make_dirs
from dari.terminal.paths import CruxPaths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MAX_SHEBANG_CHARS = 100
MAX_SHIM_BYTES = 1 << 20
COMPILE_S = 30.0
MARK = "# written by `crux tmux --install`"


def install(folder: str, place: CruxPaths) -> str:
    """A program `tmux` in the folder; its path. A file there that is not ours is left alone."""
    path = os.path.join(os.path.abspath(os.path.expanduser(folder)), "tmux")
    new = f"{path}.new"
    try:
        if os.path.lexists(path) and not is_shim(path):
            raise Conflict(f"{path} is there already and is not ours", "name another folder: crux tmux --install DIR")
        make_dirs(Path(path).parent)
        if not _compile(new, place):
            with open(new, "w", encoding="utf-8") as file:
                file.write(_script())
        os.chmod(new, 0o755)
        os.replace(new, path)
    except OSError as error:
        raise Failed(
            f"cannot write {path}: {describe_os_error(error)}",
            suggest_next_step(error, "name a folder that you may write to"),
        ) from None
    return path


def is_shim(path: str) -> bool:
    """Whether this file was written by `install`."""
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(MAX_SHIM_BYTES)
    except OSError:
        return False


def _code() -> str:
    root = str(Path(__file__).resolve().parents[4])
    return f"import sys; sys.path.insert(0, {root!r}); from dari.cli.crux.tmux.fast import main; sys.exit(main())"


def _script() -> str:
    """Without `site` an interpreter starts in half the time; a path that a first line cannot hold goes through sh."""
    if len(sys.executable) <= MAX_SHEBANG_CHARS and " " not in sys.executable:
        return f"#!{sys.executable} -IS\n{MARK}\n{_code()}\n"
    return f'#!/bin/sh\n{MARK}\nexec {shlex.quote(sys.executable)} -IS -c {shlex.quote(_code())} "$@"\n'


def _compile(path: str, place: CruxPaths) -> bool:
    """A program that starts as fast as tmux itself, where there is a C compiler."""
    import shutil
    import subprocess

    compiler = shutil.which("cc")
    if compiler is None:
        return False
    is_usual = not os.environ.get("CRUX_SOCKET") and place.mcp_socket_text == CruxPaths().mcp_socket_text
    values = {
        "SOCKET": place.socket_text,
        "TOKEN": place.token_text("cli"),
        "CHOSEN": place.mcp_socket_text,
        "USUAL_HOME": os.environ.get("HOME", "") if is_usual else "",
        "USUAL_DARI_HOME": os.environ.get("DARI_HOME", "") if is_usual else "",
        "FALLBACK": "".join(f"{word}\n" for word in (sys.executable, "-IS", "-c", _code())),
        "MARK": MARK,
    }
    defines = [f"-D{name}={_c_string(value)}" for name, value in values.items()]
    source = str(Path(__file__).with_name("client.c"))
    command = [compiler, "-O2", "-w", *defines, "-o", path, source]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMPILE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _c_string(text: str) -> str:
    """A literal of C, byte by byte: nothing in a path can end it."""
    return '"' + "".join(f"\\{byte:03o}" for byte in os.fsencode(text)) + '"'


def run_inside(client: CruxClient, words: list[str]) -> NoReturn:
    """Become the program, which finds itself in a tmux whose panes are those of crux."""
    if not words:
        raise InvalidInput("no program was named", "crux tmux --run claude")
    pane = os.environ.get("CRUX_PANE", "")
    known = client.call("crux:window/list") if client.is_up() else {"panes": []}
    found = next((each["info"] for each in known["panes"] if each["info"]["id"] == pane), None)
    if found is None:
        raise NotFound(
            "this must run in a pane of crux",
            f"open one: crux split-pane -- crux tmux --run {shlex.join(words)}; crux attach",
        )
    folder = os.path.dirname(install(os.path.join(client.place.run_dir_text, "bin"), client.place))
    session = found["window_id"].removeprefix("w")
    os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", os.defpath)
    os.environ["TMUX"] = f"{client.place.mcp_socket_text},{known['pid']},{session}"
    os.environ["TMUX_PANE"] = f"%{pane}"
    try:
        os.execvp(words[0], words)
    except OSError as error:
        raise NotFound(f"cannot run {words[0]}: {error.strerror}", "name a program on your PATH") from None
