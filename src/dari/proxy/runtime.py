"""The parts of one proxy, put together: engine, rules, recording, throttle, access, CA, and state on disk.

The CA is loaded at its first use: that imports 60 ms of cryptography, which a start need not wait for.
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dari.errors import DariError, InvalidInput
from dari.paths import read_regular
from dari.proxy.access import ClientAllowlist, PrivateTargetPolicy, ProxyAccess
from dari.proxy.api.breakpoints import BreakpointsApi
from dari.proxy.configuration import Configuration, shown_address
from dari.proxy.engine.listener import ProxyEngine
from dari.proxy.errors import ProxyAlreadyRunning, ProxyNotRunning
from dari.proxy.local_files import LocalFiles
from dari.proxy.recording.recording import Recording, RecordingLimits
from dari.proxy.rule_adapter import RuleAdapter
from dari.proxy.rules.rule_store import RuleStore
from dari.proxy.state_files import StateFiles
from dari.proxy.throttle import FlowThrottle, Throttle
from dari.text.redact import Redactor

if TYPE_CHECKING:
    from dari.proxy.ca import CertificateAuthority

_MAX_BYTES = 1024 * 1024


class DeferredAuthority:
    """Behaves like the authority in its files, which it reads when it is first asked for something."""

    def __init__(self, certificate_file: Path, key_file: Path) -> None:
        """Raises InvalidInput for files that are not there, or that are plainly something else."""
        self._files = certificate_file, key_file
        for file, word in ((certificate_file, b"CERTIFICATE"), (key_file, b"PRIVATE KEY")):
            try:
                data = read_regular(file, _MAX_BYTES)
            except OSError as error:
                raise InvalidInput(f"cannot read {file}: {error.strerror}", "check both paths") from error
            if b"-----BEGIN " not in data or word not in data:
                raise InvalidInput(f"{file} must be a PEM file with a {word.decode().lower()}", "load the CA again")

    @cached_property
    def loaded(self) -> CertificateAuthority:
        from dari.proxy.ca import CertificateAuthority

        return CertificateAuthority.load(*self._files)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loaded, name)


def deferred(certificate_file: Path, key_file: Path) -> CertificateAuthority:
    return cast("CertificateAuthority", DeferredAuthority(certificate_file, key_file))


logger = logging.getLogger("dari.proxy")

_MOST_NOTED = 1000


class ProxyRuntime:
    """One writer, the event loop. Made by `open`, ended by `close`; the engine inside starts and stops at will."""

    def __init__(self, files: StateFiles, recording: Recording, local_files: LocalFiles) -> None:
        self.files = files
        self.recording = recording
        self.local_files = local_files
        local_files.keep_out_of(files.directory)
        self.book = RuleStore()
        self.breakpoints = BreakpointsApi(recording.redactor)
        self.rules = RuleAdapter(self.book, self.breakpoints, local_files)
        self.gate = ProxyAccess()
        self.throttle = Throttle()
        self.configuration = Configuration()
        self.authority: CertificateAuthority | None = None
        self._changing = asyncio.Lock()
        self._warming: asyncio.Task[None] | None = None
        self.engine = ProxyEngine(rules=self.rules, recorder=recording.recorder, gate=_NotingGate(self), authority=None)

    @classmethod
    async def open(
        cls,
        directory: Path,
        limits: RecordingLimits | None = None,
        local_files: LocalFiles | None = None,
    ) -> ProxyRuntime:
        """Everything as it was when the last one ended; a proxy that ran when its daemon died runs again."""
        files = StateFiles(directory)
        recording = await asyncio.to_thread(Recording.open, files.traffic, Redactor(), limits or RecordingLimits())
        runtime = cls(files, recording, local_files or LocalFiles.of_environment(os.environ))
        saved = files.load_configuration()
        files.load_rules(runtime.book)
        await runtime._restore(saved)
        return runtime

    async def close(self) -> None:
        if self._warming is not None:
            await self._warming
        await self._stop_engine()
        try:
            await self._keep(msgspec.structs.replace(self.configuration, is_running=False))
            await self.files.save_rules(self.book)
        finally:
            await self.recording.close()

    @property
    def address(self) -> str | None:
        bound = self.engine.address
        return shown_address(*bound) if bound is not None else None

    async def start(self) -> None:
        async with self._changing:
            if self.engine.is_running:
                raise ProxyAlreadyRunning
            await self.engine.apply(self.configuration.engine_config())
            await self.engine.start()
            await self._note_running(True)
            logger.info("event=proxy_started address=%s", self.address)

    async def stop(self) -> None:
        """Stop it if it runs. It then does not start with the daemon the next time, either."""
        async with self._changing:
            await self._stop_engine()
            if self.configuration.is_running:
                await self._note_running(False)

    async def configure(self, **changes: object) -> None:
        """Change settings on disk and in the running engine. What the disk or the engine refuses changes nothing.

        Shielded: a caller that goes away must not leave half of it.
        """
        await asyncio.shield(asyncio.ensure_future(self._configure(changes)))

    async def _configure(self, changes: dict[str, object]) -> None:
        async with self._changing:
            before = self.configuration
            wanted = msgspec.structs.replace(before, **changes)
            applied = False
            try:
                async with self.files.saving(wanted):
                    await self.engine.apply(wanted.engine_config())
                    applied = True
                    self._put_in_force(wanted)
            except BaseException:
                if applied:
                    await self.engine.apply(before.engine_config())
                    self._put_in_force(before)
                raise
            self.configuration = wanted

    def trust(self, authority: CertificateAuthority | None) -> None:
        """Sign with this CA from the next handshake on."""
        self.authority = authority
        self.engine.use(authority=authority)

    def need_running(self) -> None:
        if not self.engine.is_running:
            raise ProxyNotRunning

    async def _stop_engine(self) -> None:
        self.breakpoints.resume_all()
        await self.engine.stop()

    async def _keep(self, configuration: Configuration) -> None:
        self.configuration = configuration
        await self.files.save_configuration(configuration)

    async def _note_running(self, is_running: bool) -> None:
        """For the next start only: a full disk must not keep anybody from starting or stopping the proxy."""
        self.configuration = msgspec.structs.replace(self.configuration, is_running=is_running)
        try:
            await self.files.save_configuration(self.configuration)
        except DariError as error:
            self.files.notes.append(f"whether the proxy runs was not saved: {error.message}")

    async def _restore(self, saved: Configuration) -> None:
        """A setting that no longer holds (a CA file that is gone) costs itself, not the start."""
        if saved.ca_cert_path and saved.ca_key_path:
            try:
                self.trust(deferred(Path(saved.ca_cert_path), Path(saved.ca_key_path)))
            except DariError as error:
                self.files.notes.append(f"the CA was not loaded: {_whole(error)}")
        try:
            await self.engine.apply(saved.engine_config())
            self._put_in_force(saved)
        except DariError as error:
            self.files.set_aside(self.files.config, error.message)
            saved = Configuration()
        was_running = saved.is_running
        self.configuration = msgspec.structs.replace(saved, is_running=False)
        if was_running:
            try:
                await self.start()
            except DariError as error:
                self.files.notes.append(f"the proxy ran before and could not start again: {error.message}")
        if self.authority is not None:
            self._warming = asyncio.create_task(self._warm_up(self.authority))

    async def _warm_up(self, authority: CertificateAuthority) -> None:
        """Read the CA after the start, so that the first handshake does not have to."""
        try:
            await asyncio.to_thread(getattr, authority, "certificate")
        except DariError as error:
            self.files.notes.append(f"the CA was not loaded, so HTTPS passes through unread: {_whole(error)}")
            if self.authority is authority:
                self.trust(None)

    def _put_in_force(self, configuration: Configuration) -> None:
        self.throttle.replace(configuration.throttle)
        self.engine.throttle(FlowThrottle(self.throttle) if configuration.throttle.enabled else None)
        self.gate.clients = ClientAllowlist(configuration.client_allowlist.enabled, configuration.client_allowlist.ips)
        self.gate.targets = PrivateTargetPolicy(configuration.refuses_private_targets)
        self.recording.recorder.is_on = configuration.capture
        self.recording.recorder.keeps_bodies = configuration.inspect


def _whole(error: DariError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


class _NotingGate:
    """The machine's gate, with a line in the log for each device turned away: a person may want to admit it."""

    def __init__(self, runtime: ProxyRuntime) -> None:
        self._runtime = runtime
        self._noted: set[str] = set()

    def admits(self, peer_ip: str) -> bool:
        if self._runtime.gate.admits(peer_ip):
            return True
        # Once per device: a phone that is turned away tries again several times a second.
        if peer_ip not in self._noted and len(self._noted) < _MOST_NOTED:
            self._noted.add(peer_ip)
            self._runtime.recording.note(f"LAN_ACCESS_REQUEST ip={peer_ip}")
        return False

    def permits(self, ip: str) -> bool:
        return self._runtime.gate.permits(ip)
