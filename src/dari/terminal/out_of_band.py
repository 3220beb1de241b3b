"""Words to a shell at its prompt that leave no trace on the screen or in its history.

The shell integration binds a key that no keyboard has to a function, which reads the file `do` in the pane's control
directory as shell text and writes what it prints to the pipe `answer`. The directory is ours alone (0700).
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from dari.errors import Conflict, InvalidInput, TimedOut, Unavailable
from dari.paths import private_dir, write_private
from dari.terminal.panes.pane import Pane
from dari.terminal.policy.config import config_path

KEY = b"\x1b[7701~"
MAX_REPLY_BYTES = 4 << 20


class OutOfBandChannel:
    """The control directory of one pane; its path is the variable CRUX_CONTROL at the start of the shell."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._turn = asyncio.Lock()

    def make(self) -> str:
        self.remove()
        return str(private_dir(self.directory))

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    async def run(self, pane: Pane, script: str, timeout_s: float = 5.0) -> bytes:
        """Run the text in the shell itself, so that it may set variables; what it prints.

        Conflict when the pane is not at the prompt of a bash, zsh or fish.
        """
        async with self._turn:
            if pane.kind in (None, "sh") or not pane.is_at_prompt:
                raise Conflict(f"pane {pane.id} is not at the prompt of a bash, zsh or fish", "wait for its prompt")
            do, answer = self.directory / "do", self.directory / "answer"
            answer.unlink(missing_ok=True)
            os.mkfifo(answer, 0o600)
            reader = os.open(answer, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                write_private(do, script.encode() + b"\n")
                await pane.write(KEY)
                return await asyncio.wait_for(_read_all(reader), timeout_s)
            except TimeoutError:
                raise TimedOut(f"the shell of pane {pane.id} did not answer", "look at its screen") from None
            finally:
                # `do` first: without it the shell does not open the pipe, which nobody reads any more.
                do.unlink(missing_ok=True)
                answer.unlink(missing_ok=True)
                os.close(reader)


async def _read_all(reader: int) -> bytes:
    """Until the shell has closed the pipe; before it has opened it there is nothing to read, and no end either."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    pieces: list[bytes] = []
    size = 0

    def read() -> None:
        nonlocal size
        try:
            data = os.read(reader, 1 << 16)
        except BlockingIOError:
            return
        if size < MAX_REPLY_BYTES:
            pieces.append(data)
            size += len(data)
        if not data and not ended.done():
            ended.set_result(None)

    loop.add_reader(reader, read)
    try:
        await ended
    finally:
        loop.remove_reader(reader)
    return b"".join(pieces)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What every shell and terminal sets anew, or the files that it reads at its start: to bring it back would be wrong.
_OWN = re.compile(
    r"_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|TERM|COLORTERM|TERM_PROGRAM(_VERSION)?|CRUX_.*|WINDOWID|BASHOPTS"
    r"|PS[0-4]|R?PROMPT[0-9]?|PROMPT_COMMAND|LESSOPEN|LESSCLOSE"
)


def is_of_terminal(name: str) -> bool:
    """Whether the variable belongs to this one shell or terminal."""
    return _OWN.fullmatch(name) is not None


def is_variable(name: str) -> bool:
    """Whether a pane may be given it: a function that bash exports (`BASH_FUNC_ls%%`) is code under another name."""
    return _NAME.fullmatch(name) is not None


async def current_environment(pane: Pane, run_quietly: Callable[[Pane, str], Awaitable[bytes]]) -> dict[str, str]:
    """What the shell exports at its prompt, or what the program got that runs in front of it."""
    if pane.is_at_prompt:
        return _parsed(await run_quietly(pane, "command env -0"))
    process = pane.foreground()
    if sys.platform != "linux" or process is None:
        raise Unavailable(f"the environment of pane {pane.id} cannot be read now", "wait for its prompt")
    try:
        return _parsed(Path(f"/proc/{process.pid}/environ").read_bytes())
    except OSError as error:
        raise Unavailable(f"process {process.pid} does not show its environment", "wait for the prompt") from error


def load_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """`[terminal.environment]` of crux.toml: NAME = "value" for every pane; none when there is no file.

    `load_security` has read the file before, so that it is sound.
    """
    try:
        text = config_path(environ, Path.home()).read_text()
    except FileNotFoundError:
        return {}
    import tomllib

    tables = tomllib.loads(text)
    table = tables.get("terminal", {})
    found = table.get("environment", {}) if isinstance(table, dict) else {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InvalidInput(
            "terminal.environment of crux.toml must be a table of strings",
            'write [terminal.environment] and NAME = "value"',
        )
    for name, value in found.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise InvalidInput(
                f"terminal.environment of crux.toml: a name must have letters, digits and _ only, got {name!r}",
                "rename it",
            )
    return found


def _parsed(data: bytes) -> dict[str, str]:
    pairs = (entry.partition(b"=") for entry in data.split(b"\0") if b"=" in entry)
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}
