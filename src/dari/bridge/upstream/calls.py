"""The steps of a call to a server, the same for every caller:

pin → arguments → a person, where one is asked → audit log → limits → the server → size → hidden characters → audit log
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from decimal import Decimal
from time import perf_counter

from msgspec import Raw

from dari.bridge.children.start_queue import Priority
from dari.bridge.limits.limiter import Limiter
from dari.bridge.limits.results import Excess, limit_result
from dari.bridge.upstream.caller import CURRENT_CALLER, Caller
from dari.bridge.upstream.connect import UpstreamSession
from dari.bridge.upstream.lists import UpstreamLists
from dari.bridge.upstream.resolved import ResolvedServer
from dari.bridge.upstream.sessions import UpstreamSessions, UpstreamSupervisor
from dari.bridge.upstream.tool_view import UpstreamTool
from dari.core.approvals import ApprovalQueue, ProposedCall
from dari.core.audit.calls import outcome_of
from dari.core.audit.log import AuditLog
from dari.core.audit.record import Outcome
from dari.core.pending import PendingResult
from dari.errors import DariError, Denied, InvalidInput, NotFound, TimedOut, Unavailable
from dari.mcp.client.errors import NotSent, RemoteError
from dari.rpc.codec import UNREADABLE, decode_any, encode
from dari.text.invisible import may_contain_hidden
from dari.text.sanitize import sanitize_value_for_model

SET_LEVEL_S = 5.0
Review = Callable[[UpstreamSession], Awaitable[None]]


class UpstreamCalls:
    def __init__(
        self,
        target: ResolvedServer,
        sessions: UpstreamSessions,
        lists: UpstreamLists,
        review: Review,
        approvals: ApprovalQueue,
        audit: AuditLog | None,
    ) -> None:
        profile = target.profile
        self._id = profile.id
        self._identity = target.memory_key
        self._mask = target.mask
        self._sessions = sessions
        self._lists = lists
        self._review = review
        self._approvals = approvals
        self._audit = audit
        self._timeout_s = profile.timeout_ms / 1000
        self._max_bytes = profile.limits.max_result_bytes
        self._asks_roots = profile.roots == "client"
        self.running = 0
        self._idle = asyncio.Event()
        limits, circuit = profile.limits, profile.circuit
        self.limiter = Limiter(
            profile.id,
            rps=limits.rps,
            burst=limits.burst,
            concurrency=limits.concurrency,
            failures=circuit.failures,
            recover_s=circuit.recover_ms / 1000,
        )

    async def tool(self, name: str, arguments: bytes, caller: Caller, timeout_s: float | None) -> Raw:
        started = perf_counter()
        self.running += 1
        try:
            tool = self._lists.tools.get(name)
            if tool is None:
                tool = await self.find(name)
            self._lists.visibility.check_tool(tool.original)
            await tool.check(arguments)
            if tool.needs_confirmation:
                await self._confirmed(tool, arguments, caller)
            if self._audit is not None:
                self._audit.check()
            params = _params(tool, arguments)
            result = await self._sent("tools/call", params, caller, timeout_s, tool)
            return self._accepted(result, name, caller, started, arguments)
        except BaseException as error:
            self._failed(error, name, caller, started, arguments)
            raise
        finally:
            self._left()

    def begin(self, name: str, arguments: bytes, caller: Caller) -> PendingResult | None:
        """`tool` for the usual call: all that may stand in its way is asked at once, and only the answer is waited for.

        None where something does: then `tool` asks the same again, and waits or tells.
        """
        started = perf_counter()
        tool = self._lists.tools.get(name)
        if tool is None or tool.needs_confirmation or caller.on_progress is not None:
            return None
        supervised = self._sessions.made(caller)
        session = None if supervised is None else supervised.session
        if supervised is None or session is None or not session.is_reviewed or not session.hears(caller.log_level):
            return None
        conversation = session.client.pipe
        if conversation is None or (self._asks_roots and session.asking.has_other_roots(caller)):
            return None
        turn = self.limiter.call(caller.session or caller.who)
        try:
            self._lists.visibility.check_tool(tool.original)
            if not tool.check_now(arguments):
                return None
            if self._audit is not None:
                self._audit.check()
            if not turn.enter_now():
                return None
        except DariError:
            return None
        self.running += 1
        supervised.hold()
        callers = session.asking.callers
        callers.append(caller)
        params = _params(tool, arguments)
        request_id, answer = conversation.begin("tools/call", params, self._timeout_s)

        def answered(answer: asyncio.Future[Raw]) -> Raw | PendingResult:
            conversation.end(request_id, answer)
            callers.remove(caller)
            supervised.release()
            if not answer.cancelled() and _may_repeat(answer.exception(), tool):
                again = self._at(None, "tools/call", params, caller, self._timeout_s, tool)
                return PendingResult(asyncio.get_running_loop().create_task(again), ended)
            return ended(answer)

        def ended(answer: asyncio.Future[Raw]) -> Raw:
            error = asyncio.CancelledError() if answer.cancelled() else answer.exception()
            turn.leave(error)
            try:
                if error is not None:
                    raise error
                return self._accepted(answer.result(), name, caller, started, arguments)
            except BaseException as failure:
                self._failed(failure, name, caller, started, arguments)
                raise
            finally:
                self._left()

        return PendingResult(answer, answered)

    async def other(self, method: str, name: str, params: bytes, caller: Caller, timeout_s: float | None) -> Raw:
        """A resource, a prompt or a completion."""
        started = perf_counter()
        self.running += 1
        try:
            if self._audit is not None:
                self._audit.check()
            result = await self._sent(method, params, caller, timeout_s, None)
            result = self._fitted(result, name, caller, cut=False)
        except BaseException as error:
            self._failed(error, method, caller, started, params)
            raise
        finally:
            self._left()
        if method != "completion/complete":  # one for every key that a person presses
            self._record(method, "ok", caller, started, params, size_bytes=len(bytes(result)))
        return result

    async def ended(self) -> None:
        """Wait until no call is running."""
        while self.running:
            self._idle.clear()
            await self._idle.wait()

    async def find(self, name: str) -> UpstreamTool:
        """A tool that is not known yet: the list may be missing or old."""
        lists = self._lists
        if not lists.has("tools") or lists.is_stale("tools"):
            await lists.fetch("tools")
        tool = lists.tools.get(name)
        if tool is not None:
            return tool
        try:
            lists.visibility.check_tool(name)
        except NotFound:
            from difflib import get_close_matches

            close = get_close_matches(name, lists.tools, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"see: dari remote list-tools --server {self._id}"
            raise NotFound(f"{self._id} has no tool {name!r}", hint) from None
        raise Denied(f"the profile of {self._id} does not allow the tool {name!r}", "see tools.allow and tools.deny")

    def _left(self) -> None:
        self.running -= 1
        if not self.running:
            self._idle.set()

    async def _confirmed(self, tool: UpstreamTool, arguments: bytes, caller: Caller) -> None:
        call = ProposedCall(
            server=self._id,
            tool=tool.name,
            arguments=_decode_unambiguous(arguments),
            who=caller.who,
            session=caller.session,
            identity=self._identity,
        )
        wait_s = None if caller.patience == "long" else 0.0
        await self._approvals.ask(call, wait_s=wait_s, on_waiting=caller.on_waiting)

    async def _sent(
        self, method: str, params: bytes, caller: Caller, timeout_s: float | None, tool: UpstreamTool | None
    ) -> Raw:
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        turn = self.limiter.call(caller.session or caller.who)
        if not turn.enter_now():
            await turn.__aenter__()
        try:
            result = await self._tried(method, params, caller, limit_s, tool)
        except BaseException as error:
            turn.leave(error)
            raise
        turn.leave(None)
        return result

    async def _tried(
        self, method: str, params: bytes, caller: Caller, limit_s: float, tool: UpstreamTool | None
    ) -> Raw:
        addresses = self._sessions.addresses
        if addresses is not None:
            return await addresses.run(lambda url: self._at(url, method, params, caller, limit_s, tool))
        try:
            return await self._at(None, method, params, caller, limit_s, tool)
        except Unavailable as error:
            if tool is None or not _may_repeat(error, tool):
                raise
        # It went away during the call. The tool says that once more does no harm, and a new process may work.
        return await self._at(None, method, params, caller, limit_s, tool)

    async def _at(
        self,
        url: str | None,
        method: str,
        params: bytes,
        caller: Caller,
        limit_s: float,
        tool: UpstreamTool | None,
    ) -> Raw:
        supervised = self._sessions.of(caller, url)
        session = await self._acquired(supervised, caller)
        callers = session.asking.callers
        try:
            if tool is not None and not session.is_reviewed:
                await self._reviewed(session)
                self._lists.visibility.check_tool(tool.original)
            if not session.hears(caller.log_level):
                await self._logging(session, caller)
            is_stateless = session.client.era == "stateless"
            CURRENT_CALLER.set(caller if is_stateless else None)
            callers.append(caller)
            try:
                if self._asks_roots and session.asking.has_other_roots(caller):
                    await session.asking.show_roots(caller, session.client.roots_changed)
                return await session.client.request(
                    method,
                    params if not caller.answered or not is_stateless else b"%b,%b}" % (params[:-1], caller.answered),
                    timeout_s=limit_s,
                    progress=caller.on_progress,
                    answer_questions=not caller.takes_questions,
                    capabilities=caller.capabilities,
                )
            finally:
                callers.remove(caller)
        finally:
            supervised.release()
            if supervised.is_passing:
                await self._sessions.finish(supervised)

    async def _acquired(self, supervised: UpstreamSupervisor, caller: Caller) -> UpstreamSession:
        try:
            return await supervised.acquire(Priority.CALL)
        except BaseException as error:
            await self._sessions.finish(supervised)
            if isinstance(error, Unavailable):
                raise NotSent(error.message, error.hint) from error
            raise

    async def _reviewed(self, session: UpstreamSession) -> None:
        """Look at what this session lists before its first call; many calls wait for one look."""
        if session.reviewing is None:
            session.reviewing = asyncio.ensure_future(self._review(session))
            session.reviewing.add_done_callback(lambda _: setattr(session, "reviewing", None))
        await asyncio.shield(session.reviewing)

    async def _logging(self, session: UpstreamSession, caller: Caller) -> None:
        """Ask the server for messages as detailed as its most curious caller wants."""
        assert caller.log_level is not None
        session.level = caller.log_level
        if "logging" in session.client.agreement.capabilities:
            try:
                async with asyncio.timeout(SET_LEVEL_S):
                    await session.client.set_level(caller.log_level)
            except (RemoteError, TimedOut, TimeoutError):
                pass  # it only says that it can

    def _fitted(self, result: Raw, name: str, caller: Caller, *, cut: bool = True) -> Raw:
        data = bytes(result)
        max_bytes = self._max_bytes
        is_large = max_bytes is not None and len(data) > max_bytes
        is_hiding = caller.for_model and may_contain_hidden(data)
        if not is_large and not is_hiding:
            return result
        try:
            value = decode_any(data)
        except UNREADABLE:
            return result
        if is_large and isinstance(value, dict):
            assert max_bytes is not None
            excess: Excess = "truncate" if cut else "refuse"
            value = limit_result(value, max_bytes, on_excess=excess, what=f"the result of {self._id}/{name}")
        if is_hiding:
            value, _ = sanitize_value_for_model(value)
        return Raw(encode(value))

    def _failed(self, error: BaseException, name: str, caller: Caller, started: float, arguments: bytes) -> None:
        self._hide_secrets(error)
        self._record(name, outcome_of(error), caller, started, arguments, error=error)

    def _accepted(self, result: Raw, name: str, caller: Caller, started: float, arguments: bytes) -> Raw:
        """What the caller gets of the result of a tool, recorded."""
        result = self._fitted(result, name, caller)
        data = bytes(result)
        outcome: Outcome = "tool_error" if b'"isError"' in data and _is_error(data) else "ok"
        self._record(name, outcome, caller, started, arguments, size_bytes=len(data))
        return result

    def _hide_secrets(self, error: BaseException) -> None:
        """A child's last words may hold what it was given in its environment."""
        if isinstance(error, DariError):
            error.message, error.hint = self._mask(error.message), self._mask(error.hint)

    def _record(
        self,
        tool: str,
        outcome: Outcome,
        caller: Caller,
        started: float,
        arguments: bytes,
        *,
        size_bytes: int = 0,
        error: BaseException | None = None,
    ) -> None:
        if self._audit is None:
            return
        said = error.message if isinstance(error, DariError) else repr(error) if error else ""
        self._audit.call(
            self._id,
            tool,
            outcome,
            part="bridge",
            who=caller.who,
            session=caller.session,
            ms=(perf_counter() - started) * 1000,
            result_bytes=size_bytes,
            arguments=bytes(arguments),
            error=said[:500],
        )


def _params(tool: UpstreamTool, arguments: bytes) -> bytes:
    return b'{"name":%b,"arguments":%b}' % (encode(tool.original), arguments)


def _decode_unambiguous(arguments: bytes) -> object:
    """The arguments as a person is shown them. The server reads the bytes themselves: of two values under one name it
    may take the other one, and of a number digits that a float does not hold."""

    def check(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise InvalidInput(
                    f"the arguments name {name[:60]!r} twice", "name it once, with the value that is meant"
                )
            seen.add(name)

    def check_float(text: str) -> None:
        if not math.isfinite(float(text)) or Decimal(text) != Decimal(repr(float(text))):
            raise InvalidInput(f"a 64-bit float must hold every number exactly, got {text[:40]}", "send it as text")

    try:
        json.loads(arguments, object_pairs_hook=check, parse_float=check_float)
        return decode_any(arguments)
    except (*UNREADABLE, ValueError) as error:
        raise InvalidInput(f"a person must be able to read the arguments: {str(error)[:80]}", "send less") from None


def _may_repeat(error: BaseException | None, tool: UpstreamTool) -> bool:
    """It went away during the call, and the tool says that once more does no harm."""
    return isinstance(error, Unavailable) and tool.is_repeatable and not isinstance(error, NotSent)


def _is_error(data: bytes) -> bool:
    try:
        value = decode_any(data)
    except UNREADABLE:
        return False
    return isinstance(value, dict) and value.get("isError") is True
