"""`batch`: many calls from JSON lines, several at once; one JSON line of result for each (design 001, phase 4)."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Raw, Struct, structs

from dari.cli.kit.console import QuietConsole, print_raw
from dari.cli.kit.hints import name_program
from dari.cli.kit.parser import Command, count_between
from dari.cli.remote.call import find_tool
from dari.cli.remote.context import (
    NETWORK,
    OK,
    OTHER,
    TOOL,
    CommandContext,
    add_server_options,
    exit_code,
    read_named_file,
    select_upstream,
    split_address,
)
from dari.cli.remote.progress import Deadline, open_caller, trace_exchange
from dari.errors import DariError, InvalidInput
from dari.rpc.codec import decode_any, encode

if TYPE_CHECKING:
    from dari.bridge.upstream.tool_view import UpstreamTool
    from dari.bridge.upstream.upstream import Upstream

MAX_BATCH_BYTES = 64 * 1024 * 1024
MAX_CALLS = 100_000
_EXAMPLE = """a line is a call: {"tool": "server/tool", "arguments": {"name": "value"}}"""
_MEMBERS = ("id", "server", "tool", "arguments")


class BatchCall(NamedTuple):
    id: Any
    """As it was given, or the number of the call."""
    server: str
    """Empty where `tool` names it, or the command does."""
    tool: str
    arguments: dict[str, Any]


async def read_calls(file: str, context: CommandContext) -> list[BatchCall]:
    """InvalidInput names the first line that does not hold a call."""
    calls: list[BatchCall] = []
    # Not `splitlines`: U+2028 and its like may stand in a JSON string as they are.
    for number, line in enumerate((await _text(file, context)).split("\n"), 1):
        if line.strip():
            calls.append(_call(line, number, len(calls) + 1))
        if len(calls) > MAX_CALLS:
            raise InvalidInput(f"a batch has at most {MAX_CALLS} calls", "split the file")
    return calls


async def _text(file: str, context: CommandContext) -> str:
    if file == "-":
        if context.console.stdin_is_tty:
            context.note("reading calls as JSON lines; end with Ctrl-D")
        data = await context.console.read_stdin()
    else:
        hint = "name a file with one call a line; - reads stdin"
        data = read_named_file(context.view.around.cwd, file, MAX_BATCH_BYTES, hint)
    if len(data) > MAX_BATCH_BYTES:
        raise InvalidInput(f"a batch has at most {MAX_BATCH_BYTES} bytes, got {len(data)}", "split the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"a batch must be UTF-8 text (byte {error.start})", "write it as UTF-8") from None


def _call(line: str, number: int, count: int) -> BatchCall:
    where = f"line {number}"
    try:
        value = json.loads(line, parse_constant=_refuse)
        # Python reads 1e999 and half of an emoji, and nothing could send or print them.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} must be JSON: {error}", _EXAMPLE) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} must be a JSON object", _EXAMPLE)
    for member in value:
        if member not in _MEMBERS:
            raise InvalidInput(f"{where} has a member {member[:60]!r}, and takes {', '.join(_MEMBERS)}", _EXAMPLE)
    tool, server, arguments = value.get("tool"), value.get("server", ""), value.get("arguments", {})
    if not isinstance(tool, str) or not tool:
        raise InvalidInput(f'{where} needs "tool", a name', _EXAMPLE)
    if not isinstance(server, str):
        raise InvalidInput(f'{where}: "server" must be a name', _EXAMPLE)
    if not isinstance(arguments, dict):
        raise InvalidInput(f'{where}: "arguments" must be an object', _EXAMPLE)
    return BatchCall(value.get("id", count), server, tool, arguments)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


MAX_PARALLEL = 64
DEFAULT_PARALLEL = 4
MAX_RETRIES = 10
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.2, 5.0


class BatchOutcome(Struct, omit_defaults=True):
    """One line of the result."""

    id: Any
    server: str
    tool: str
    ok: bool
    attempts: int = 0
    ms: float = 0.0
    result: Raw | None = None
    error: dict[str, Any] | None = None


def add_batch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="JSON lines; - or nothing reads stdin")
    parser.add_argument(
        "--parallel",
        metavar="N",
        type=count_between(1, MAX_PARALLEL),
        default=DEFAULT_PARALLEL,
        help=f"how many calls run at once, 1 to {MAX_PARALLEL} (default: %(default)s)",
    )
    parser.add_argument(
        "--retries",
        metavar="N",
        type=count_between(0, MAX_RETRIES),
        default=0,
        help="how often a call that may be repeated is, after it failed on its way (default: %(default)s)",
    )
    parser.add_argument("--as-completed", action="store_true", help="print results as they come, not in order")
    add_server_options(parser)


async def run_batch(arguments: argparse.Namespace, context: CommandContext) -> int:
    calls = await read_calls(arguments.file, context)
    batch = _Batch(arguments, context, calls)
    workers = [asyncio.create_task(batch.work()) for _ in range(min(arguments.parallel, len(calls)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if batch.failed:
        context.note(f"error: {batch.failed} of {len(calls)} calls failed")
    return batch.code


class _Batch:
    def __init__(self, arguments: argparse.Namespace, context: CommandContext, calls: list[BatchCall]) -> None:
        self._arguments = arguments
        self._console = context.console
        # Several calls share one screen, and stdin was read to its end: no progress bars, no questions.
        self._context = structs.replace(context, console=QuietConsole(context.console))
        self._left: Iterator[tuple[int, BatchCall]] = iter(enumerate(calls))
        self._waiting: dict[int, BatchOutcome] = {}
        self._printed = 0
        self._meeting: dict[str, asyncio.Lock] = {}
        self.failed = 0
        self.code = OK

    async def work(self) -> None:
        for at, call in self._left:
            outcome, code = await self._outcome(call)
            self.failed += code != OK
            self.code = max(self.code, code)
            if self._arguments.as_completed:
                self._print(outcome)
                continue
            self._waiting[at] = outcome
            while self._printed in self._waiting:
                self._print(self._waiting.pop(self._printed))
                self._printed += 1

    def _print(self, outcome: BatchOutcome) -> None:
        print_raw(self._console, encode(outcome))

    async def _outcome(self, call: BatchCall) -> tuple[BatchOutcome, int]:
        outcome = BatchOutcome(id=call.id, server=call.server, tool=call.tool, ok=False)
        began = time.perf_counter()
        try:
            result = await self._run(call, outcome)
        except DariError as error:
            code = exit_code(error)
            hint = name_program(error.hint)
            outcome.error = {
                "message": name_program(error.message),
                **({"hint": hint} if hint else {}),
                "exit_code": code,
            }
        except Exception as error:
            code = OTHER
            outcome.error = {"message": f"{type(error).__name__}: {error}", "exit_code": code}
        else:
            outcome.result = result
            outcome.ok = not _is_error(result)
            code = OK if outcome.ok else TOOL
        outcome.ms = round((time.perf_counter() - began) * 1000, 1)
        return outcome, code

    async def _run(self, call: BatchCall, outcome: BatchOutcome) -> Raw:
        given = argparse.Namespace(**vars(self._arguments))
        if call.server:
            server, name = call.server, call.tool
        else:
            named, name = split_address(call.tool, given, self._context)
            server = named or ""
        upstream = self._upstream(given, server)
        outcome.server, outcome.tool = upstream.id, name
        # One question for a server's tools, not one for each call that waits for them.
        async with self._meeting.setdefault(upstream.id, asyncio.Lock()):
            tool = await find_tool(upstream, name, Deadline(given.timeout), self._context)
        payload = json.dumps(call.arguments, ensure_ascii=False, allow_nan=False).encode()
        await tool.check(payload)
        return await self._tried(upstream, tool, payload, outcome)

    def _upstream(self, given: argparse.Namespace, server: str) -> Upstream:
        if given.stdio is not None and self._context.temporary and not server:
            return self._context.temporary[0]
        if server and given.server:
            given.server = None
        return select_upstream(given, self._context, server or None)

    async def _tried(self, upstream: Upstream, tool: UpstreamTool, payload: bytes, outcome: BatchOutcome) -> Raw:
        pause_s = _FIRST_PAUSE_S
        label = f"{upstream.id}/{tool.name}"
        while True:
            outcome.attempts += 1
            deadline = Deadline(self._arguments.timeout)
            try:
                async with open_caller(self._context, upstream, label, deadline) as caller:
                    with trace_exchange(self._context, upstream, "tools/call", tool.name):
                        async with deadline.over(label):
                            return await upstream.call_tool(tool.name, payload, caller, timeout_s=deadline.limit_s)
            except DariError as error:
                may_repeat = tool.is_repeatable and outcome.attempts <= self._arguments.retries
                if not may_repeat or exit_code(error) != NETWORK:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _MAX_PAUSE_S)


def _is_error(result: Raw) -> bool:
    value = decode_any(result)
    return isinstance(value, dict) and value.get("isError") is True


COMMANDS = (
    Command(
        "batch",
        "Call many tools from JSON lines, several at once; one JSON line of result for each.",
        add_batch,
        run_batch,
        description="""\
Call many tools. Each line of FILE, or of stdin, is one call:
  {"tool": "fs/read_file", "arguments": {"path": "a.txt"}, "id": "first"}
`id` comes back with the result (default: the number of the line); `server` may stand beside `tool`.
All lines are read and checked before anything is sent.

Each call gives one line on stdout, in the order of the lines or, with --as-completed, as they come:
  {"id": "first", "server": "fs", "tool": "read_file", "ok": true, "attempts": 1, "ms": 12.3, "result": {…}}
A call that failed has "ok": false, and the tool's own result or "error": {message, hint, exit_code}.
The exit code is 0 when all went well, else the highest of the calls'.

--retries repeats what the network or a time limit broke, and only for tools that say they may be repeated
(readOnlyHint or idempotentHint). A batch asks no questions.""",
        examples=(
            ("batch calls.jsonl --parallel 8", "eight at once, results in the order of the file"),
            (
                "batch --retries 3 --as-completed < calls.jsonl",
                "results as they come; what may be repeated is, three times",
            ),
        ),
    ),
)
