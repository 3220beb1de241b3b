"""`crux tmux --install` and `--run`: programs that call tmux get ours instead."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from dari.cli.crux.line import Line
from dari.errors import Conflict, Failed, InvalidInput, NotFound
from dari.paths import make_dirs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MAX_SHEBANG_CHARS = 100
MARK = "# written by `crux tmux --install`"


def install(folder: str) -> str:
    """A program `tmux` in the folder; its path. A file there that is not ours is left alone."""
    path = os.path.join(os.path.abspath(os.path.expanduser(folder)), "tmux")
    text = _program()
    try:
        if os.path.lexists(path) and MARK not in _read(path):
            raise Conflict(f"{path} is there already and is not ours", "name another folder: crux tmux --install DIR")
        make_dirs(Path(path).parent)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(f"{path}.new", 0o755)
        os.replace(f"{path}.new", path)
    except OSError as error:
        raise Failed(f"cannot write {path}: {error.strerror}", "name a folder that you may write to") from None
    return path


def _program() -> str:
    """Without `site` an interpreter starts in half the time; a path that a first line cannot hold goes through sh."""
    root = str(Path(__file__).resolve().parents[4])
    code = f"import sys; sys.path.insert(0, {root!r}); from dari.cli.crux.tmux.fast import main; sys.exit(main())"
    if len(sys.executable) <= MAX_SHEBANG_CHARS and " " not in sys.executable:
        return f"#!{sys.executable} -IS\n{MARK}\n{code}\n"
    return f'#!/bin/sh\n{MARK}\nexec {shlex.quote(sys.executable)} -IS -c {shlex.quote(code)} "$@"\n'


def run_inside(line: Line, words: list[str]) -> NoReturn:
    """Become the program, which finds itself in a tmux whose panes are those of crux."""
    if not words:
        raise InvalidInput("no program was named", "crux tmux --run claude")
    pane = os.environ.get("CRUX_PANE", "")
    known = line.call("crux:window/list") if line.is_up() else {"panes": []}
    found = next((each["info"] for each in known["panes"] if each["info"]["id"] == pane), None)
    if found is None:
        raise NotFound(
            "this is no pane of crux", f"open one: crux split-pane -- crux tmux --run {shlex.join(words)}; crux attach"
        )
    folder = os.path.dirname(install(os.path.join(line.place.run_dir, "bin")))
    session = found["window_id"].removeprefix("w")
    os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", os.defpath)
    os.environ["TMUX"] = f"{line.place.mcp_socket},{known['pid']},{session}"
    os.environ["TMUX_PANE"] = f"%{pane}"
    try:
        os.execvp(words[0], words)
    except OSError as error:
        raise NotFound(f"cannot run {words[0]}: {error.strerror}", "name a program on your PATH") from None


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096)
