"""What a proxy keeps on disk: settings and rules as JSON, the CA, the traffic; all for its owner alone."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec

from dari.errors import DariError, Failed
from dari.os_errors import describe_os_error, suggest_next_step
from dari.paths import StagedFile, private_dir, write_private
from dari.proxy.configuration import Configuration
from dari.proxy.rules.rule_store import RuleStore
from dari.struct_types import ready

logger = logging.getLogger("dari.proxy")


class StateFiles:
    """One directory per daemon. A file that cannot be read is set aside, never overwritten."""

    def __init__(self, directory: Path) -> None:
        self.directory = private_dir(directory)
        self.notes: list[str] = []
        """What a person should know about the last start."""
        self._writing = asyncio.Lock()

    @property
    def config(self) -> Path:
        return self.directory / "config.json"

    @property
    def rules(self) -> Path:
        return self.directory / "rules.json"

    @property
    def traffic(self) -> Path:
        return private_dir(self.directory / "traffic")

    @property
    def exports(self) -> Path:
        return private_dir(self.directory / "exports")

    @property
    def ca(self) -> tuple[Path, Path]:
        """Certificate and key of the CA that is generated here."""
        folder = private_dir(self.directory / "ca")
        return folder / "ca.pem", folder / "ca-key.pem"

    def save_bundle(self, roots: bytes) -> Path:
        """The system's roots and ours, for programs that take one file; written when it changed."""
        path = self.ca[0].with_name("bundle.pem")
        if self._read(path) != roots:
            with saves(path):
                write_private(path, roots)
        return path

    def load_configuration(self) -> Configuration:
        data = self._read(self.config)
        if data is None:
            return Configuration()
        try:
            return msgspec.json.decode(data, type=ready(Configuration))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.set_aside(self.config, str(error))
            return Configuration()

    def load_rules(self, book: RuleStore) -> None:
        data = self._read(self.rules)
        if data is None:
            return
        try:
            self.notes.extend(book.load_state(data))
        except DariError as error:
            self.set_aside(self.rules, error.message)

    @asynccontextmanager
    async def saving(self, configuration: Configuration) -> AsyncIterator[None]:
        """Everything but the name of the file is on disk inside; leaving it keeps the file, an error drops it."""
        data = msgspec.json.format(msgspec.json.encode(configuration), indent=2)
        async with self._writing:
            with saves(self.config):
                staged = await asyncio.to_thread(StagedFile, self.config, data)
            try:
                yield
            except BaseException:
                staged.discard()
                raise
            with saves(self.config):
                staged.commit()

    async def save_configuration(self, configuration: Configuration) -> None:
        async with self.saving(configuration):
            pass

    async def save_rules(self, book: RuleStore) -> None:
        """One at a time and in order: the last change is what the file holds."""
        async with self._writing:
            with saves(self.rules):
                await asyncio.to_thread(write_private, self.rules, book.dump_state())

    def _read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def set_aside(self, path: Path, reason: str) -> None:
        """Keep a file that cannot be used under another name, so that the next save does not write over it."""
        kept = path.with_suffix(".unreadable.json")
        with suppress(OSError):
            os.replace(path, kept)
        note = f"{path.name} could not be used ({reason}); it was kept as {kept.name} and the defaults are used"
        self.notes.append(note)
        logger.warning("event=state_unreadable file=%s", path.name)


@contextmanager
def saves(path: Path) -> Iterator[None]:
    """A full disk is an expected error: say which file, and what to do."""
    try:
        yield
    except OSError as error:
        raise Failed(
            f"cannot write {path}: {describe_os_error(error)}",
            suggest_next_step(error, "free some space, or check the folder"),
        ) from error
