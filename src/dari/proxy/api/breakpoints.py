"""Requests and responses held at a breakpoint: listed, edited, let go by hand or by the clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, InvalidInput, NotFound
from dari.proxy.content_coding import decode, encoded, text_of
from dari.proxy.credentials import body_without_secrets, is_same_origin, without_secrets
from dari.proxy.engine.hooks import HeadEdit, Pause, Resume
from dari.proxy.flow import Body, Flow, Headers
from dari.proxy.headers import codings, mime
from dari.proxy.replay import header_name, header_value, read_method, read_url, refuse_mark
from dari.proxy.rules.rule import BreakpointRule
from dari.text.redact import Redactor

MAX_HELD_FLOWS = 256
"""Beyond this a request goes on at once: a breakpoint on a busy site must not stop it for good."""
_SHOWN_CHARS = 4096
_DECODED_BYTES = 4 * _SHOWN_CHARS


class HeldFlow(Struct, frozen=True):
    """What is held and for how long; headers and body as an agent may see them."""

    id: str
    request_id: str
    on: Literal["request", "response"]
    rule_id: str
    method: str
    url: str
    status: int | None
    headers: list[list[str]]
    """Name and value of each."""
    body_sample: str
    """The start of the body, without its content coding; a body given to resume is coded again."""
    resumes_in_s: float
    body_note: str = ""
    """Why `body_sample` is not the whole body as text."""


class HeldFlows(Struct, frozen=True):
    held: list[HeldFlow]
    revision: int = 0
    """Another number whenever something is held or goes on."""


class Resumed(Struct, frozen=True):
    id: str
    request_id: str
    ok: bool = True
    dropped_headers: list[str] = []
    """Not sent on, since the new URL is of another origin."""


@dataclass(slots=True, eq=False)
class _Held:
    id: str
    flow: Flow
    rule: BreakpointRule
    resume: Resume
    timer: asyncio.TimerHandle


class BreakpointsApi:
    """Holds what a breakpoint rule caught. Everything goes on by itself after the rule's time limit."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held: dict[str, _Held] = {}
        self._ids = count(1)
        self._revision = 0
        self._change = asyncio.Event()

    def pause(self, rule: BreakpointRule) -> Pause:
        """What the engine calls when a head of such a request is ready to go on."""

        def hold(flow: Flow, resume: Resume) -> None:
            self._forget_finished()
            if len(self._held) >= MAX_HELD_FLOWS:
                resume(None)
                return
            held_id = f"b{next(self._ids)}"
            timer = asyncio.get_running_loop().call_later(rule.time_limit_s, self._let_go, held_id)
            self._held[held_id] = _Held(held_id, flow, rule, resume, timer)
            self._changed()

        return hold

    @expose("breakpoints.list", "read")
    async def held(self) -> HeldFlows:
        """What waits now, longest first."""
        self._forget_finished()
        return HeldFlows([self._shown(held) for held in self._held.values()], self._revision)

    @expose("breakpoints.wait", "read", ends_with_caller=True)
    async def wait(self, timeout_s: float = 30.0, revision: int | None = None) -> HeldFlows:
        """What waits, as soon as something does, or as it differs from `revision`; as it is when the time is over."""
        self._forget_finished()
        try:
            async with asyncio.timeout(min(max(timeout_s, 0), 300)):
                while not self._held if revision is None else self._revision == revision:
                    self._change.clear()
                    await self._change.wait()
                    self._forget_finished()
        except TimeoutError:
            pass
        return await self.held()

    @expose("breakpoints.resume", "control")
    async def resume(
        self,
        id: str,
        method: str | None = None,
        url: str | None = None,
        status: int | None = None,
        set_headers: dict[str, str] | None = None,
        remove_headers: list[str] | None = None,
        body: str | None = None,
        abort: bool = False,
    ) -> Resumed:
        """Let it go on with these changes, or end it with `abort`."""
        held = self._find(id)
        _check(held, method, url, status)
        for what, given in (("url", url), ("body", body)):
            refuse_mark(what, given or "")
        url = None if url is None else read_url(url)
        edit = HeadEdit(method=method, url=url, status=status, abort=abort)
        if set_headers or remove_headers:
            edit.headers = _edited(held, set_headers or {}, remove_headers or [])
        if body is not None:
            edit.body, edit.headers = encoded(body, edit.headers if edit.headers is not None else _head(held))
        elif edit.headers is not None and codings(edit.headers) != codings(_head(held)):
            raise InvalidInput(
                "Content-Encoding describes the body, and the body stays as it is",
                "give body as text with it: it is coded as the header says",
            )
        dropped: list[str] = []
        if edit.url is not None and not edit.abort and not is_same_origin(held.flow.url, edit.url):
            if edit.body is None:
                await _refuse_secrets_in_body(held.flow, edit.url)
                held = self._find(id)  # it may have gone on meanwhile
            dropped = _drop_secret_headers(held, edit, set_headers or {})
        self._release(held, edit)
        return Resumed(held.id, str(held.flow.id), dropped_headers=dropped)

    def resume_all(self) -> None:
        """At the end of a run: nothing stays held."""
        for held in list(self._held.values()):
            self._release(held, None)

    def _release(self, held: _Held, edit: HeadEdit | None) -> None:
        del self._held[held.id]
        held.timer.cancel()
        self._changed()
        held.resume(edit)

    def _let_go(self, held_id: str) -> None:
        held = self._held.get(held_id)
        if held is not None:
            self._release(held, None)

    def _find(self, held_id: str) -> _Held:
        self._forget_finished()
        held = self._held.get(held_id)
        if held is None:
            waiting = ", ".join(self._held) or "nothing waits"
            raise NotFound(
                f"nothing is held under '{held_id}'", f"waiting now: {waiting}; it may have gone on by itself"
            )
        return held

    def _forget_finished(self) -> None:
        """A client that hung up ended its flow; nobody needs to resume it."""
        for held in [held for held in self._held.values() if held.flow.state == "done"]:
            del self._held[held.id]
            held.timer.cancel()
            self._changed()

    def _changed(self) -> None:
        self._revision += 1
        self._change.set()

    def _shown(self, held: _Held) -> HeldFlow:
        flow, is_request = held.flow, held.rule.on == "request"
        head = _head(held)
        sample, note = _sample(flow.request_body if is_request else flow.response_body, head, self._redactor)
        return HeldFlow(
            id=held.id,
            request_id=str(flow.id),
            on=held.rule.on,
            rule_id=held.rule.id,
            method=flow.method,
            url=self._redactor.url(flow.url),
            status=None if is_request else flow.status or flow.upstream_status,
            headers=[[name.decode("latin-1"), value.decode("latin-1")] for name, value in self._redactor.headers(head)],
            body_sample=sample,
            resumes_in_s=round(max(held.timer.when() - asyncio.get_running_loop().time(), 0), 1),
            body_note=note,
        )


def _head(held: _Held) -> Headers:
    return held.flow.request_headers if held.rule.on == "request" else held.flow.response_headers


def _sample(body: Body, head: Headers, redactor: Redactor) -> tuple[str, str]:
    """The first characters as text, without its secrets, and what is missing from them."""
    decoded = decode((bytes(body.sample),), codings(head), _DECODED_BYTES)
    found = text_of(decoded.data, head) if decoded.data else ("", "")
    if found is None or (decoded.problem is not None and not decoded.data and body.sample):
        why = decoded.problem or mime(head) or "binary data"
        return "", f"{body.size_bytes} bytes are not shown as text: {why}"
    text = found[0]
    is_cut = len(text) > _SHOWN_CHARS or decoded.is_cut or body.size_bytes > len(body.sample)
    # Hidden before the cut: half a token is found by no pattern.
    shown = redactor.body(text, mime(head))[:_SHOWN_CHARS]
    return shown, f"the first {_SHOWN_CHARS} characters at most" if is_cut else ""


async def _refuse_secrets_in_body(flow: Flow, url: str) -> None:
    """Conflict unless all of the request's body is known and holds no secret: it would go to another origin."""
    body, head = flow.request_body, flow.request_headers
    there = urlsplit(url).netloc
    hint = "give a body of your own with it, or leave the scheme, host and port as they are"
    if body.outcome != "complete" or len(body.sample) != body.size_bytes:
        raise Conflict(
            f"the body may hold secrets for {flow.authority}, and {there} is another origin: "
            f"{len(body.sample)} bytes of the body were kept, so the rest cannot be searched for them",
            hint,
        )
    # In a thread: 16 KB may be 16 MB when they are unpacked, and the proxy has others to serve.
    safe = await asyncio.to_thread(body_without_secrets, body.sample, head)
    if safe != body.sample or without_secrets(body.trailers or []).dropped:
        raise Conflict(f"the body holds secrets for {flow.authority}, and {there} is another origin", hint)


def _drop_secret_headers(held: _Held, edit: HeadEdit, given: dict[str, str]) -> list[str]:
    """The names of the headers that hold secrets and stay here; headers that were set now go along."""
    own = {name.lower().encode() for name in given}
    block = edit.headers if edit.headers is not None else _head(held)
    kept, dropped = without_secrets([field for field in block if field[0].lower() not in own])
    edit.headers = [*kept, *(field for field in block if field[0].lower() in own)]
    return dropped


def _check(held: _Held, method: str | None, url: str | None, status: int | None) -> None:
    """Report a wrong edit to the caller that resumes; the engine could only report it to the client."""
    if held.rule.on == "request" and status is not None:
        raise InvalidInput(f"status {status}: {held.id} is a request", "change the status at a response breakpoint")
    if held.rule.on == "response" and (method is not None or url is not None):
        raise InvalidInput(
            f"{held.id} is a response: its method and URL are in the past", "change status, headers, body"
        )
    if status is not None and not 200 <= status <= 599:
        raise InvalidInput(f"status {status} is out of range", "give an HTTP status between 200 and 599")
    if method is not None:
        read_method(method)


def _edited(held: _Held, changes: dict[str, str], removed: list[str]) -> list[tuple[bytes, bytes]]:
    head = _head(held)
    gone = {header_name(name).lower() for name in (*changes, *removed)}
    kept = [(name, value) for name, value in head if name.lower() not in gone]
    return kept + [(header_name(name), header_value(name, value)) for name, value in changes.items()]
