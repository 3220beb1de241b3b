"""A home of its own with profiles of real servers in it, the commands that run there, and what answers them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dari.bridge.config.locations import ClientEnvironment
from tests.support.command_result import CommandResult
from tests.support.real_servers import RealServer, write_profiles

DARI = Path(sys.executable).with_name("dari")
COMMAND_S = 90
STOP_S = 30


class House:
    """Everything that Dari keeps is below `root`, and nothing of the person who runs the tests is seen."""

    def __init__(self, root: Path, servers: Iterable[RealServer], **more: Any) -> None:
        self.root = root
        self.env = {"PATH": os.environ["PATH"], "HOME": str(root), "DARI_HOME": str(root / "dari")}
        write_profiles(root / ".config" / "crewx" / "mcp.json", servers, **more)

    @property
    def around(self) -> ClientEnvironment:
        return ClientEnvironment(self.root, self.root, self.env, sys.platform)

    def remote(self, *words: str, in_process: bool = False) -> CommandResult:
        """`dari remote …`, by the daemon, which is started when there is none, or in the process of the command."""
        env = {**self.env, "DARI_NO_DAEMON": "1"} if in_process else self.env
        done = subprocess.run(
            [str(DARI), "remote", *words],
            cwd=self.root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def prewarm(self, names: Iterable[str]) -> None:
        """Start servers before the clock of a test runs: some are slow, on a busy machine very."""
        for name in names:
            done = self.remote("prewarm", "--server", name)
            assert done.code == 0, done.err

    @contextmanager
    def daemon(self) -> Iterator[House]:
        """Whatever daemon the commands of the block started is stopped at its end."""
        try:
            yield self
        finally:
            stopped = self.remote("daemon", "stop")
            assert stopped.code == 0, stopped.err

    @contextmanager
    def hub(self, *options: str) -> Iterator[Hub]:
        """`dari up` on a free port."""
        log = self.root / "hub.log"
        token, socket = self.root / "token", self.root / "hub" / "mcp.sock"
        words = [str(DARI), "up", "--http-port", "0", "--token-path", str(token), "--socket", str(socket), *options]
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                words, cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=stderr, stderr=subprocess.PIPE
            )
        with process:
            try:
                yield Hub(_url_of(process, log), token.read_text().strip(), socket)
            finally:
                process.terminate()
                try:
                    process.communicate(timeout=STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
        assert process.returncode == 0, f"dari up ended with exit code {process.returncode}"


@dataclass(frozen=True)
class Hub:
    url: str
    token: str
    socket: Path

    def at(self, path: str) -> str:
        """Another address of the same hub."""
        return self.url.removesuffix("/mcp") + path


def _url_of(process: subprocess.Popen[bytes], log: Path) -> str:
    assert process.stderr is not None
    said = b""
    for line in process.stderr:
        said += line
        if found := re.search(rb"event=start url=(\S+)", line):
            return found[1].decode()
    raise RuntimeError(f"dari up did not start:\n{said.decode()}")
