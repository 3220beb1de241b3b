"""`kebab …` in this process, with a terminal that remembers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dari.cli.kebab.main import run
from dari.knowledge.service import ServiceCache
from tests.support.command_result import CommandResult
from tests.support.knowledge_base import index_notes, write_config, write_notes


class RememberedConsole:
    columns = 100
    stdin_is_tty = stdout_is_tty = stderr_is_tty = False
    colour = False

    def __init__(self, stdin: str = "") -> None:
        self._stdin = stdin.encode()
        self.written = ""
        self.errors = ""

    def out(self, text: str) -> None:
        self.written += text

    def err(self, text: str) -> None:
        self.errors += text

    async def read_stdin(self) -> bytes:
        return self._stdin

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        raise AssertionError(f"asked: {prompt}")

    async def drain(self) -> None:
        pass


class Kebab:
    """The command in a home of its own."""

    def __init__(self, root: Path, services: ServiceCache) -> None:
        self.root = root
        self.notes, self.data = root / "notes", root / "data"
        self.config = root / "kebab.toml"
        self.environ = {"HOME": str(root), "DARI_HOME": str(root / "dari")}
        self._services = services

    async def __call__(self, *words: str, stdin: str = "", program: str = "kebab") -> CommandResult:
        console = RememberedConsole(stdin)
        environ = self.environ | ({"KEBAB_CONFIG": str(self.config)} if self.config.exists() else {})
        code = await run(program, list(words), console, self._services, environ, self.root)
        return CommandResult(code, console.written, console.errors)


@contextmanager
def kebab_home(root: Path, *, is_indexed: bool = True) -> Iterator[Kebab]:
    with ServiceCache() as services:
        kebab = Kebab(root, services)
        if is_indexed:
            write_notes(kebab.notes)
            index_notes(kebab.notes, kebab.data)
            write_config(kebab.config, kebab.notes, kebab.data)
        yield kebab
