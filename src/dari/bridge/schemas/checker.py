"""Validate arguments by the schemas of one server: here where the work is small, else in a worker process."""

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

from dari.bridge.schemas.worker import HEAD, BadSchema, compile_schema, find_errors
from dari.log import format_event
from dari.rpc.codec import decode_any, encode

MAX_SCHEMA_DEPTH = 100
UNBOUNDED = 1 << 62
_DEFINITIONS = ("$defs", "definitions")
# References whose target depends on where one comes from, and keywords that run others a second time.
_UNPREDICTABLE = ("$dynamicRef", "$recursiveRef", "$anchor", "unevaluatedProperties", "unevaluatedItems")
_UNDER_WAY = -1


def cost_of(schema: Any) -> int:
    """How many positions the schema has with every reference written out; `UNBOUNDED` where that cannot be counted."""
    return _Count(schema).of(schema, 0)


def value_count(data: bytes) -> int:
    """At most so many values are in this JSON text. Counts commas in texts too, and reads 1 GB in a second."""
    return 1 + data.count(b",") + data.count(b":") + data.count(b"[") + data.count(b"{")


class _Count:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[str, int] = {}

    def of(self, node: Any, depth: int) -> int:
        if depth > MAX_SCHEMA_DEPTH:
            return UNBOUNDED
        total = 1
        if isinstance(node, dict):
            if any(name in node for name in _UNPREDICTABLE) or (depth and "$id" in node):
                return UNBOUNDED
            for key, each in node.items():
                if key == "$ref":
                    total += self._referred(each, depth)
                elif key not in _DEFINITIONS:
                    total += self.of(each, depth + 1)
        elif isinstance(node, list):
            for each in node:
                total += self.of(each, depth + 1)
        return min(total, UNBOUNDED)

    def _referred(self, reference: Any, depth: int) -> int:
        if not isinstance(reference, str):
            return self.of(reference, depth + 1)  # an argument that is called `$ref`
        known = self._known.get(reference)
        if known is None:
            self._known[reference] = _UNDER_WAY
            known = self._known[reference] = self._target(reference, depth)
        return UNBOUNDED if known == _UNDER_WAY else known

    def _target(self, reference: str, depth: int) -> int:
        node = self._root
        if reference[:1] != "#":
            return UNBOUNDED
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and step in node:
                node = node[step]
            elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
                node = node[int(step)]
            else:
                return UNBOUNDED
        return self.of(node, depth + 1)


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


class WorkerStopped(Exception):
    """The worker did not live to answer: it took too long, or too much memory."""


class SchemaWorker:
    """A process that compiles and runs schemas, one job after the other; it begins with the first job."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._is_closed = False
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
                raise WorkerStopped("it takes too long or too much memory to run") from error
            except asyncio.CancelledError:
                await self._end()  # its answer would be taken for that of the next job
                raise
            finally:
                if not self._is_closed:
                    self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._rest)

    async def __aenter__(self) -> SchemaWorker:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._is_closed = True
        if self._idle is not None:
            self._idle.cancel()
        await self._end()

    async def _asked(self, schema: bytes, arguments: bytes) -> list[str]:
        process = self._process
        if (process is None or process.returncode is not None) and not self._is_closed:
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
        if self._is_closed:  # before, or while the process was made
            raise EOFError("the worker is closed")
        assert process is not None
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
        """It was idle: close its stdin, which ends it."""
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


class ArgumentValidator:
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
                self._validator = compile_schema(self._schema)
            except BadSchema as error:
                self._give_up(f"its inputSchema is none: {error}")
                return []
        return find_errors(self._validator, decode_any(arguments))

    async def complaints(self, arguments: bytes) -> list[str]:
        """Validation errors; long work runs in the worker, so that no other call waits."""
        found = self.complaints_now(arguments)
        if found is not None:
            return found
        if not self._encoded:
            self._encoded = encode(self._schema)
        try:
            return await self._worker.judge(self._encoded, arguments)
        except BadSchema as error:
            self._give_up(f"its inputSchema is none: {error}")
        except WorkerStopped as error:
            self._give_up(f"its inputSchema is not checked any more: {error}")
        return []

    def _give_up(self, reason: str) -> None:
        self._is_used = False
        _log.warning(format_event("bridge", "schema", f"tool={self._name} {reason}"))
