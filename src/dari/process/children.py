"""All child processes of this process: how they are started, their resource limits, and their end."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from dari.errors import InvalidInput, Unavailable
from dari.log import format_event
from dari.paths import own_paths
from dari.process.child import Child, ChildSpec
from dari.process.group import choose_group_type
from dari.process.program import build_environment, find_program
from dari.process.reaper import Reapers, become_subreaper
from dari.process.tag import ProcessTag, find_adopted_zombies
from dari.sandbox.builder import SandboxedCommand, build_command
from dari.sandbox.capabilities import SandboxCapabilities
from dari.sandbox.launcher import READY
from dari.sandbox.network_broker import LoopbackBroker

LAUNCH_S = 10.0
REAP_EVERY_S = 30.0

_log = logging.getLogger("dari.bridge")


class Children:
    """`async with Children() as children: child = await children.start(spec)`. Leaving it stops every child."""

    def __init__(self, *, protected: Sequence[Path] = (), machine: SandboxCapabilities | None = None) -> None:
        """`protected`: folders of ours besides the usual ones, which no sandboxed child may be allowed to see."""
        self._protected = tuple(protected)
        self._machine = machine
        self._group_type = choose_group_type()
        self._reapers = Reapers(is_needed=self._group_type.needs_reaper, on_lost=self._end_unguarded)
        self._running: set[Child] = set()
        self._reaping: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Children:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def running(self) -> frozenset[Child]:
        return frozenset(self._running)

    @property
    def reaper_pids(self) -> tuple[int, ...]:
        return self._reapers.pids

    async def start(self, spec: ChildSpec) -> Child:
        """The program runs when this returns; whether it answers is for the caller to find out."""
        if not spec.command:
            raise InvalidInput(f"{spec.name} has no command to run", "name the program and its arguments")
        become_subreaper()
        tag = ProcessTag.new()
        cwd = Path(os.path.abspath(spec.cwd)) if spec.cwd is not None else Path.cwd()
        environment = build_environment(spec.env, spec.inherit_env, spec.environ)
        program = find_program(spec.command[0], environment, cwd)
        prepared = build_command(
            program,
            spec.command[1:],
            {**environment, **tag.environment()},
            cwd,
            spec.confinement,
            limits=to_rlimits(spec.limits),
            protected=() if spec.confinement.is_off else (*self._protected, *own_paths()),
            machine=self._machine,
        )
        for warning in prepared.warnings:
            _log.warning(format_event("child", "sandbox", f"server={spec.name} {warning}"))
        try:
            self._reapers.watch(tag)
            if prepared.scratch is not None:
                self._reapers.folder(tag, prepared.scratch)
            child = self._spawn(spec, prepared, tag, cwd)
        except BaseException:
            prepared.discard()
            self._reapers.forget(tag)
            raise
        await self._launched(child, prepared)
        return child

    async def close(self) -> None:
        """Stop all of them, at the same time."""
        await asyncio.gather(*(child.stop() for child in self._running))
        if self._reaping is not None:
            self._reaping.cancel()
            self._reaping = None
        self._reapers.release()
        await asyncio.get_running_loop().run_in_executor(None, self._reapers.close)

    def _spawn(self, spec: ChildSpec, prepared: SandboxedCommand, tag: ProcessTag, cwd: Path) -> Child:
        try:
            popen = subprocess.Popen(
                prepared.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=prepared.environment,
                cwd=cwd,
                bufsize=0,
                pass_fds=prepared.inherited,
                **self._group_type.popen_options,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            hint = "is it made for this machine, and is the interpreter of its first line there?"
            raise Unavailable(f"cannot run {spec.command[0]!r}: {reason}", hint) from None
        group = self._group_type(popen, tag, is_wrapped=prepared.is_wrapped)
        prepared.hand_over()
        self._reapers.group(tag, popen.pid)
        child = Child(spec, popen, group, tag, prepared)
        self._running.add(child)
        child.on_gone(lambda: self._forget(child))
        if self._reaping is None:
            self._reaping = asyncio.get_running_loop().call_later(REAP_EVERY_S, self._reap)
        return child

    async def _launched(self, child: Child, prepared: SandboxedCommand) -> None:
        """Past the launcher: the program itself runs, or the reason why not is an error."""
        try:
            await child.listen()
            if prepared.status < 0:
                return
            complaint = await read_launch_status(prepared.status)
            if not complaint:
                await child.ended(LAUNCH_S)
                await child.last_words()
                raise child.explain(f"was not started ({child.status})")
            if complaint != READY:
                number, _, what = complaint.removeprefix(READY).partition(" ")
                hint = "sandbox: off starts it without" if number != "2" else "check the command and its interpreter"
                raise Unavailable(f"{child.spec.name} was not started: {what}", hint)
            if prepared.broker_socket is not None:
                gate = LoopbackBroker.from_socket(prepared.broker_socket)
                child.on_gone(gate.close)
        except BaseException:
            child.kill()
            await child.gone()
            raise

    def _end_unguarded(self) -> None:
        """No reaper is left: a child that we cannot take along when we are killed must not run."""
        for child in self._running:
            child.kill()

    def _forget(self, child: Child) -> None:
        self._reap_adopted()
        self._running.discard(child)
        self._reapers.forget(child.tag)

    def _reap(self) -> None:
        """What a child left behind and what has ended since: without this it would stay a zombie of ours."""
        self._reap_adopted()
        self._reaping = asyncio.get_running_loop().call_later(REAP_EVERY_S, self._reap) if self._running else None

    def _reap_adopted(self) -> None:
        own = {child.pid for child in self._running if not child.has_ended}
        for pid in find_adopted_zombies(self._reapers.tags()):
            if pid not in own:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass


async def read_launch_status(descriptor: int) -> str:
    """What the sandbox's launcher reports: READY, an error as `NUMBER reason`, or nothing where it just ended."""
    try:
        async with asyncio.timeout(LAUNCH_S):
            return await _read_to_end(descriptor)
    except TimeoutError:
        return f"0 launch: not done in {LAUNCH_S:g} s"


async def _read_to_end(descriptor: int) -> str:
    """All of a pipe, without a thread."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    parts: list[bytes] = []

    def read() -> None:
        try:
            part = os.read(descriptor, 4096)
        except BlockingIOError:
            return
        parts.append(part)
        if not part and not done.done():
            done.set_result(None)

    os.set_blocking(descriptor, False)
    loop.add_reader(descriptor, read)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)
    return b"".join(parts).decode("utf-8", "replace")


def to_rlimits(limits: Mapping[str, int]) -> list[tuple[int, int]]:
    """Pairs that `setrlimit` takes on this machine."""
    if not limits:
        return []
    import resource

    return [(getattr(resource, f"RLIMIT_{name.upper()}"), value) for name, value in limits.items()]
