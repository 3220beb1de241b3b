"""Arguments against the schemas of one server: at once where the work is known to be small, else in a process apart."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
import logging
import os
import sys
from typing import Any

import msgspec

from dari.bridge.schemas.cost import cost_of, value_count
from dari.bridge.schemas.validation import BadSchema, compiled, complaints
from dari.bridge.schemas.worker import HEAD
from dari.log import format_event
from dari.rpc.codec import decode_any, encode

MAX_COST_HERE = 2_000
"""Positions of a schema, references written out: below this it is compiled in this process."""
MAX_STEPS_HERE = 200_000
"""Positions times values: what is run in this process takes some milliseconds."""
MAX_ARGUMENT_BYTES_HERE = 256 * 1024
ANSWER_TIMEOUT_S = 15.0
"""The worker ends itself after 2 s of processor time; a busy machine may give it that late."""
IDLE_S = 60.0
_MAX_ANSWER_BYTES = 64 * 1024

_log = logging.getLogger("dari.bridge")


@functools.cache
def can_check() -> bool:
    """Whether `jsonschema-rs` is installed; without it arguments go to the server unchecked."""
    return importlib.util.find_spec("jsonschema_rs") is not None


class Stopped(Exception):
    """The worker did not live to answer: it took too long, or too much memory."""


class SchemaWorker:
    """A process that compiles and runs schemas, one job after the other; it begins with the first job."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self.jobs = 0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def judge(self, schema: bytes, arguments: bytes = b"") -> list[str]:
        """What does not fit. Raises BadSchema and Stopped; without arguments the schema alone is tried."""
        async with self._turn:
            if self._idle is not None:
                self._idle.cancel()
            self.jobs += 1
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    return await self._asked(schema, arguments)
            except (OSError, EOFError, TimeoutError) as error:
                await self._end()
                raise Stopped("it takes too long or too much memory to run") from error
            except asyncio.CancelledError:
                await self._end()  # its answer would be taken for that of the next job
                raise
            finally:
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._rest)

    async def __aenter__(self) -> SchemaWorker:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        await self._end()

    async def _asked(self, schema: bytes, arguments: bytes) -> list[str]:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "dari.bridge.schemas.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT") if name in os.environ},
                start_new_session=True,  # a Ctrl-C at the terminal is for us
            )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(HEAD.pack(len(schema), len(arguments)) + schema + arguments)
        await process.stdin.drain()
        problem_bytes, found_bytes = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
        if problem_bytes + found_bytes > _MAX_ANSWER_BYTES:
            raise EOFError("the worker's answer is too long")
        problem = await process.stdout.readexactly(problem_bytes)
        found = await process.stdout.readexactly(found_bytes)
        if problem:
            raise BadSchema(problem.decode("utf-8", "replace"))
        return msgspec.json.decode(found, type=list[str])

    def _rest(self) -> None:
        """Nobody asked for a while: its stdin ends, and so does it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


class ArgumentCheck:
    """The arguments of one tool. A schema that cannot be used or finished is not asked again: all arguments fit it."""

    __slots__ = ("_cost", "_encoded", "_is_used", "_name", "_schema", "_validator", "_worker")

    def __init__(self, name: str, schema: Any, worker: SchemaWorker) -> None:
        self._name = name
        self._schema = schema
        self._worker = worker
        self._cost = 0
        self._validator: Any = None
        self._encoded = b""
        self._is_used = isinstance(schema, dict) and bool(schema) and can_check()

    def complaints_now(self, arguments: bytes) -> list[str] | None:
        """What does not fit, or None where that may take long and `complaints` has to be asked."""
        if not self._is_used:
            return []
        if not self._cost:
            self._cost = cost_of(self._schema)
        if len(arguments) > MAX_ARGUMENT_BYTES_HERE or self._cost * value_count(arguments) > MAX_STEPS_HERE:
            return None
        if self._cost > MAX_COST_HERE:
            return None
        if self._validator is None:
            try:
                self._validator = compiled(self._schema)
            except BadSchema as error:
                self._give_up(f"its inputSchema is none: {error}")
                return []
        return complaints(self._validator, decode_any(arguments))

    async def complaints(self, arguments: bytes) -> list[str]:
        """What does not fit, however long it takes; nobody else waits meanwhile."""
        found = self.complaints_now(arguments)
        if found is not None:
            return found
        if not self._encoded:
            self._encoded = encode(self._schema)
        try:
            return await self._worker.judge(self._encoded, arguments)
        except BadSchema as error:
            self._give_up(f"its inputSchema is none: {error}")
        except Stopped as error:
            self._give_up(f"its inputSchema is not checked any more: {error}")
        return []

    def _give_up(self, reason: str) -> None:
        self._is_used = False
        _log.warning(format_event("bridge", "schema", f"tool={self._name} {reason}"))
