"""Our side of the guardian: starts it, tells it what lives, starts it again when it is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dari.bridge.children import guardian
from dari.bridge.children.marks import Mark
from dari.errors import Unavailable


class Guard:
    """One guardian for all children of this process. Nothing here waits."""

    def __init__(self, *, is_needed: bool = True) -> None:
        self._is_needed = is_needed
        self._process: subprocess.Popen[bytes] | None = None
        self._marks: dict[str, Mark] = {}
        self._groups: dict[str, int] = {}
        self._folders: dict[str, Path] = {}

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def watch(self, mark: Mark) -> None:
        """Before the child is started: from here on it cannot outlive us."""
        self._marks[mark.token] = mark
        if not self._say(f"watch {mark.token} {mark.brand}"):
            self._start()

    def group(self, mark: Mark, group: int) -> None:
        self._groups[mark.token] = group
        self._say(f"group {mark.token} {group}")

    def folder(self, mark: Mark, path: Path) -> None:
        """A temporary folder that goes away with the child."""
        self._folders[mark.token] = path
        self._say(f"folder {mark.token} {path}")

    def forget(self, mark: Mark) -> None:
        """Once nothing of the child is left."""
        self._groups.pop(mark.token, None)
        self._folders.pop(mark.token, None)
        if self._marks.pop(mark.token, None) is not None:
            self._say(f"forget {mark.token}")

    def marks(self) -> dict[str, int]:
        return {mark.token: mark.brand for mark in self._marks.values()}

    def close(self) -> None:
        """It kills whatever is still watched, then ends."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    def _start(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
        command = [sys.executable, "-IS", guardian.__file__]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(
                f"the guardian of child processes does not start: {error.strerror}", f"does {sys.executable} run?"
            ) from None
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        lines = [f"watch {mark.token} {mark.brand}" for mark in self._marks.values()]
        lines += [f"group {token} {group}" for token, group in self._groups.items()]
        lines += [f"folder {token} {path}" for token, path in self._folders.items()]
        if not self._say("\n".join(lines)):
            raise Unavailable("the guardian of child processes ended at once", f"does {sys.executable} run?")

    def _say(self, text: str) -> bool:
        """False when there is nobody to hear it: ended, or stopped and its pipe full."""
        if not self._is_needed:
            return True
        if self._process is None or self._process.poll() is not None:
            return False
        assert self._process.stdin is not None
        data = f"{text}\n".encode("utf-8", "surrogateescape")
        try:
            return os.write(self._process.stdin.fileno(), data) == len(data)
        except OSError:
            return False
