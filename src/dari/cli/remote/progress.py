"""The person at the shell as the caller of a server: progress, forms, approvals, and the server's log lines."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dari.bridge.config.catalog import mask_arguments
from dari.bridge.config.profile import HttpSettings, Profile
from dari.bridge.upstream.caller import Caller
from dari.cli.kit.console import Console, format_json
from dari.cli.kit.table import format_duration
from dari.cli.remote.arguments import read_value
from dari.cli.remote.context import CommandContext
from dari.cli.remote.input_schema import ObjectSchema, Schema, SchemaArgument, choices_of, items_of, type_text, types_of
from dari.core.approvals import Approval, ApprovalEvent
from dari.core.context import LoggingMessage, Progress
from dari.errors import Conflict, DariError, Denied, InvalidInput, NotFound, TimedOut
from dari.mcp.client.callbacks import Elicitation
from dari.mcp.client.decode import read
from dari.mcp.client.errors import RemoteError
from dari.rpc.codec import METHOD_NOT_FOUND
from dari.text.sanitize import escape_hidden
from dari.text.width import truncate

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream


class Deadline:
    """Without a limit the profile's own times count alone. The clock stands still while `paused`."""

    def __init__(self, limit_ms: int | None = None) -> None:
        self._limit_ms = limit_ms
        self._timeout: asyncio.Timeout | None = None
        self._pauses = 0
        self._left_s = 0.0

    @property
    def limit_s(self) -> float | None:
        return None if self._limit_ms is None else self._limit_ms / 1000

    @asynccontextmanager
    async def over(self, what: str) -> AsyncIterator[None]:
        """TimedOut, which is exit code 2, when the block takes longer. Each block has the whole time."""
        if self._limit_ms is None:
            yield
            return
        try:
            async with asyncio.timeout(self.limit_s) as self._timeout:
                yield
        except TimeoutError:
            raise TimedOut(f"{what} was not done in {self._limit_ms} ms", "allow more time: --timeout MS") from None
        finally:
            self._timeout = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While a person is asked."""
        timeout = self._timeout
        if timeout is None:
            yield
            return
        loop = asyncio.get_running_loop()
        if self._pauses == 0:
            self._left_s = max(0.0, (timeout.when() or loop.time()) - loop.time())
            timeout.reschedule(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and self._timeout is timeout and not timeout.expired():
                timeout.reschedule(loop.time() + self._left_s)


class Trace:
    """One exchange with a server: `note` what came of it; the time is measured from its start."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.outcome = ""

    def note(self, outcome: str) -> None:
        self.outcome = outcome

    @property
    def ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000


@contextmanager
def trace_exchange(context: CommandContext, upstream: Upstream, method: str, what: str = "") -> Iterator[Trace]:
    """Log an exchange when `--log` asks for it; errors are logged with their time, and pass through."""
    trace = Trace()
    name = f"{method} {what}".rstrip()
    _log(context, upstream, f"→ {name} · {describe_target(upstream.profile)}")
    hears_no_more = upstream.start_notes.subscribe(lambda note: context.note(f"{upstream.id}: {note}"))
    try:
        yield trace
    except DariError as error:
        _log(context, upstream, f"← {name} · {format_duration(trace.ms)} · {error.name}: {error.message}")
        raise
    except BaseException as error:
        _log(context, upstream, f"← {name} · {format_duration(trace.ms)} · {type(error).__name__}")
        raise
    finally:
        hears_no_more()
    outcome = f" · {trace.outcome}" if trace.outcome else ""
    _log(context, upstream, f"← {name} · {format_duration(trace.ms)}{outcome}")


def describe_target(profile: Profile) -> str:
    """Where requests go: the address with the names of its headers, never their values, or the command line."""
    connection = profile.connection
    if not isinstance(connection, HttpSettings):
        return " ".join((connection.command, *mask_arguments(connection.args)))
    names = [*connection.headers, *(["Authorization"] if connection.auth.type == "bearer" else [])]
    headers = f" with {', '.join(names)}" if names else ""
    return f"POST {profile.address}{headers}"


def _log(context: CommandContext, upstream: Upstream, line: str) -> None:
    if context.logs:
        context.log(mask_secrets(upstream, line))


def mask_secrets(upstream: Upstream, text: str) -> str:
    """Without the profile's secrets, and without what looks like one."""
    from dari.text.redact import redact_text

    return redact_text(upstream.mask(text)).text


_EVERY_S = 0.05
_BAR = 24


class ProgressLine:
    """Draws on a tty only; at most twenty times a second, and always the last step."""

    def __init__(self, console: Console, name: str) -> None:
        self._console = console
        self._name = escape_hidden(name, one_line=True)
        self._drawn_s = 0.0
        self._is_drawn = False

    def show(self, progress: Progress) -> None:
        if not self._console.stderr_is_tty:
            return
        total = progress.total if isinstance(progress.total, int | float) and progress.total > 0 else None
        is_last = total is not None and progress.progress >= total
        now_s = time.monotonic()
        if now_s - self._drawn_s < _EVERY_S and not is_last:
            return
        self._drawn_s = now_s
        self._is_drawn = True
        self._console.err(f"\r\x1b[K{truncate(self._line(progress, total), max(20, self._console.columns - 1))}")

    def clear(self) -> None:
        """Take the line away, so that what follows starts on an empty one."""
        if self._is_drawn:
            self._is_drawn = False
            self._console.err("\r\x1b[K")

    def _line(self, progress: Progress, total: float | None) -> str:
        said = escape_hidden(progress.message, one_line=True) if isinstance(progress.message, str) else ""
        if total is None:
            return f"{self._name}  {progress.progress:g}  {said}".rstrip()
        share = max(0.0, min(1.0, progress.progress / total))
        full = round(share * _BAR)
        bar = "█" * full + "░" * (_BAR - full)
        return f"{self._name} {bar} {share:4.0%}  {said}".rstrip()


CALLER_NAME = "cli"


@asynccontextmanager
async def open_caller(
    context: CommandContext, upstream: Upstream, name: str, deadline: Deadline
) -> AsyncIterator[Caller]:
    """A caller for one command. What it asked for ends with it: sessions of its own, and questions."""
    person = _Person(context, upstream, name, deadline)
    stop = context.bridge.approvals.subscribe(person.on_approval)
    try:
        yield person.caller
    finally:
        stop()
        person.close()
        if upstream.profile.isolation == "per-client":
            await upstream.end_sessions(lambda key: key == person.caller.session)


class _Person:
    def __init__(self, context: CommandContext, upstream: Upstream, name: str, deadline: Deadline) -> None:
        self._context = context
        self._upstream = upstream
        self._deadline = deadline
        self._meter = ProgressLine(context.console, name)
        self._tasks: set[asyncio.Task[None]] = set()
        self._waits = ExitStack()
        # One prompt at a time: two questions on one line get each other's answers.
        self._turn = asyncio.Lock()
        self.caller = Caller(
            who=CALLER_NAME,
            session=f"cli-{secrets.token_hex(8)}",
            ask=self._ask,
            capabilities={"elicitation": {"form": {}, "url": {}}, "roots": {}},
            on_progress=self._meter.show,
            on_waiting=self._waiting,
            on_log=self._log if context.logs else None,
            log_level="debug" if context.logs else None,
        )

    def on_approval(self, event: ApprovalEvent) -> None:
        """Of every approval; ours are known by the session."""
        if event.approval.session != self.caller.session:
            return
        if event.change != "asked":
            if event.change != "waiting":
                self._waits.close()
            return
        self._waits.enter_context(self._deadline.paused())
        if self._can_ask:
            self._begin(self._approve(event.approval))
        elif self._context.bridge.is_guest:
            self._begin(self._ask_hub(event.approval))
        else:
            self._say_that_it_waits(event.approval.name, event.approval.id)

    def close(self) -> None:
        self._waits.close()
        self._meter.clear()
        for task in self._tasks:
            task.cancel()

    @property
    def _can_ask(self) -> bool:
        return self._context.console.stdin_is_tty and self._context.console.stderr_is_tty

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _say_that_it_waits(self, name: str, id: str) -> None:
        self._meter.clear()
        self._context.warn(
            f"{name} waits for a person (approval {id})", f"in a terminal: {_remote(self._context)} approvals"
        )

    async def _ask_hub(self, question: Approval) -> None:
        """A command without a daemon: people see what waits in the hub's queue alone."""
        from dari.cli.remote.approvals import ask_hub

        queue = self._context.bridge.approvals
        try:
            by = await ask_hub(question, lambda id: self._say_that_it_waits(question.name, id))
            queue.approve(question.id, by=by)
        except (Conflict, NotFound):
            pass  # the time is over
        except DariError as error:  # denied, or nobody can be asked: the call is refused
            queue.deny(question.id, by="the hub", reason=error.message)

    async def _approve(self, question: Approval) -> None:
        async with self._turn:
            self._meter.clear()
            self._context.note(f"{question.name} needs your approval. Its arguments:")
            # As they are: `note` would put our program's name for another one, also inside of a command to approve.
            self._context.console.err(f"{format_json(question.arguments)}\n")
            is_yes = await ask_yes_no(self._context, "Run it?")
        service = self._context.bridge.approval_service
        try:
            service.decide(question.id, approves=is_yes, by="the person at the terminal")
        except (Conflict, NotFound, Denied) as error:
            self._context.warn(error.message)  # it was answered elsewhere, or the time is over

    async def _ask(self, method: str, params: Raw) -> Any:

        with self._deadline.paused():
            async with self._turn:
                self._meter.clear()
                return await answer_server_request(method, params, self._context, self._upstream.id)

    def _waiting(self, question: Approval) -> None:
        self._meter.clear()
        self._context.note(f"{question.name} still waits for a person (approval {question.id})")

    def _log(self, record: LoggingMessage) -> None:
        self._meter.clear()
        source = f"{record.logger}: " if isinstance(record.logger, str) else ""
        data = record.data if isinstance(record.data, str) else format_json(record.data)
        self._context.log(mask_secrets(self._upstream, f"{self._upstream.id} [{record.level}] {source}{data}"))


def _remote(context: CommandContext) -> str:
    return context.program if context.program.endswith("remote") else f"{context.program} remote"


_TRIES = 3
_DECLINED = {"action": "decline"}
_NOTHING = object()


class AnswerDeclined(Exception):
    """The person gave no answer to a field that must have one."""


async def answer_server_request(method: str, params: Raw, context: CommandContext, server: str) -> Any:
    """The result of `elicitation/create`; sampling is refused, because a shell has no model."""
    if method == "elicitation/create":
        return await _elicit(read(params, Elicitation, "elicitation/create request"), context, server)
    if method == "roots/list":
        return {"roots": [{"uri": context.view.around.cwd.as_uri()}]}
    if method == "sampling/createMessage":
        context.warn(
            f"server '{server}' asked for a language model; a shell has none, so it was declined",
            "call the tool through an agent that offers sampling (dari up, dari mcp)",
        )
        raise Denied("the person at the shell has no model to sample from", "connect an agent that offers sampling")
    raise RemoteError(METHOD_NOT_FOUND, f"a shell does not answer {method}", {"method": method})


async def _elicit(asked: Elicitation, context: CommandContext, server: str) -> dict[str, Any]:
    message = escape_hidden(asked.message)
    if not context.console.stdin_is_tty:
        context.warn(
            f"server '{server}' asked: {message} – declined, because no person is at a terminal", "run it in one"
        )
        return _DECLINED
    context.note(f"Server '{server}' asks: {message}")
    if asked.mode == "url":
        context.note(f"  Open this page yourself if you trust it: {asked.url}")
        is_yes = await ask_yes_no(context, "  Have you opened it, and go on?")
        return {"action": "accept"} if is_yes else _DECLINED
    shape = ObjectSchema(asked.requested_schema)
    content: dict[str, Any] = {}
    try:
        for field in shape.arguments:
            value = await _field(field, shape.root, context)
            if value is not _NOTHING:
                content[field.name] = value
        if not shape.arguments and not await ask_yes_no(context, "  Accept?"):
            return _DECLINED
    except AnswerDeclined:
        context.note("  declined")
        return _DECLINED
    return {"action": "accept", "content": content}


async def ask_yes_no(context: CommandContext, question: str) -> bool:
    """Whether "yes" or "y" was typed."""
    return (await context.console.ask(f"{question} [y/N] ")).strip().lower() in ("y", "yes")


async def _field(field: SchemaArgument, root: Schema, context: CommandContext) -> Any:
    """The value that was typed, `_NOTHING` for an optional field left empty. Declined when one is needed."""
    default = field.schema.get("default", _NOTHING)
    for _ in range(_TRIES):
        line = await context.console.ask(_prompt(field, root, default))
        if not line.strip():
            if default is not _NOTHING:
                return default
            if field.is_required:
                raise AnswerDeclined
            return _NOTHING
        try:
            return _typed(line, field, root)
        except InvalidInput as error:
            context.note(f"  {error.message}; {error.hint}")
    raise AnswerDeclined


def _typed(line: str, field: SchemaArgument, root: Schema) -> Any:
    types = types_of(field.schema, root)
    if "array" in types and not line.lstrip().startswith("["):
        items = items_of(field.schema, root)
        return [_one(part.strip(), items, root, field.name) for part in line.split(",") if part.strip()]
    if types == {"boolean"} and line.strip().lower() in ("y", "n"):
        return line.strip().lower() == "y"
    return _one(line if types == {"string"} else line.strip(), field.schema, root, field.name)


def _one(text: str, schema: Schema, root: Schema, name: str) -> Any:
    choices = choices_of(schema, root)
    if choices and text.isdecimal() and text not in map(str, choices) and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    return read_value(text, schema, root, name)


def _prompt(field: SchemaArgument, root: Schema, default: Any) -> str:
    title = field.schema.get("title")
    name = f"{title} ({field.name})" if isinstance(title, str) and title != field.name else field.name
    said = f" – {field.description}" if field.description else ""
    kind = type_text(field.schema, root) + (", separated by commas" if "array" in types_of(field.schema, root) else "")
    if default is not _NOTHING:
        ending = f"default {json.dumps(default, ensure_ascii=False)}"
    else:
        ending = "required; empty declines" if field.is_required else "empty leaves it out"
    return escape_hidden(f"  {name}{said} [{kind}; {ending}]: ", one_line=True)
