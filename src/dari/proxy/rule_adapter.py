"""From rules to the engine: one `Decision` per request, with the files, breakpoints and edits that its rules need."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple

from dari.proxy.api.breakpoints import BreakpointsApi
from dari.proxy.content_coding import recoded
from dari.proxy.credentials import (
    body_without_secrets,
    is_same_origin,
    target_without_secrets,
    without_secrets,
)
from dari.proxy.engine.hooks import PASS, Decision, HeaderEdits, LocalResponse
from dari.proxy.flow import Flow
from dari.proxy.headers import mime
from dari.proxy.local_files import LocalFiles
from dari.proxy.rules.matched import RECORDED, MatchedRules
from dari.proxy.rules.rule import BodyReplaceRule, HeaderEdit, MapLocalRule, MockRule
from dari.proxy.rules.rule_store import RuleStore

Pairs = tuple[tuple[bytes, bytes], ...]


class FoldedEdits(NamedTuple):
    """`replace` puts one header in the place of all of that name, or adds it. A name is in `remove` or `replace`."""

    remove: tuple[bytes, ...] = ()
    replace: Pairs = ()
    add: Pairs = ()


def fold(edits: Iterable[HeaderEdit]) -> FoldedEdits:
    """The same outcome as applying them one after the other, whatever headers there are."""
    cleared: dict[str, bool] = {}
    values: dict[str, list[tuple[bytes, bytes]]] = {}
    for edit in edits:
        key = edit.name.lower()
        mine = values.setdefault(key, [])
        cleared[key] = cleared.get(key, False) or edit.action != "add"
        if edit.action != "add":
            mine.clear()
        if edit.action != "remove":
            mine.append((edit.name.encode("latin-1"), edit.value.encode("latin-1")))
    remove = tuple(key.encode("latin-1") for key, gone in cleared.items() if gone and not values[key])
    replace = tuple(values[key][0] for key, gone in cleared.items() if gone and values[key])
    add = tuple(pair for key, gone in cleared.items() for pair in values[key][1 if gone else 0 :])
    return FoldedEdits(remove, replace, add)


logger = logging.getLogger("dari.proxy")

_TEXT = re.compile(r"json|xml|form-urlencoded|multipart/form-data|^text/|graphql|^$")
_SILENT = Decision(is_recorded=False)
_REFUSED = LocalResponse(502, ((b"Content-Type", b"text/plain; charset=utf-8"),), b"bad gateway\n")


class Sent(NamedTuple):
    """A request that we send through the listener ourselves, known by its peer address."""

    replay_of: int | None
    arrived: asyncio.Future[Flow]


class RuleAdapter:
    """Implements `RulesHook`. Reads `book.current` anew each time: a change counts from the next request."""

    def __init__(self, book: RuleStore, breakpoints: BreakpointsApi, files: LocalFiles) -> None:
        self._book = book
        self._breakpoints = breakpoints
        self._files = files
        self._random = Random()
        self.sent: dict[str, Sent] = {}
        """Requests we send ourselves, by the `peer` they will have."""

    def decide(self, flow: Flow) -> Decision:
        sent = self.sent.get(flow.peer) if self.sent else None
        if sent is not None:
            flow.replay_of = sent.replay_of
            if not sent.arrived.done():
                sent.arrived.set_result(flow)
        rules = self._book.current
        if flow.method == "CONNECT":
            return self._tunnel(flow)
        found = rules.decide(flow.method, flow.scheme, flow.authority, flow.target)
        if found is RECORDED or (found.is_recorded and not found.rule_ids and not found.status_rewrites):
            return PASS
        if not found.is_recorded:
            return _SILENT if sent is None else PASS  # the sender of a request wants to see it
        return self._decision(found, flow)

    def respond(self, flow: Flow, status: int) -> int:
        rules = self._book.current
        if not flow.is_recorded or not rules.rewrites_status:
            return status
        found = rules.preview(flow.method, flow.scheme, flow.authority, flow.target)
        change = rules.status_for(found, status)
        if change is None:
            return status
        flow.status_rewrite = change.rule.matcher
        flow.rule_ids = (*flow.rule_ids, change.rule.id)
        return change.status

    def _tunnel(self, flow: Flow) -> Decision:
        rules = self._book.current
        wanted = rules.decrypts(flow.authority)
        if wanted.wanted:
            return Decision(decrypts=True, reads_plain=True)
        found = rules.decide_tunnel(flow.authority)
        decision = self._decision(found, flow) if found.rule_ids else Decision(reads_plain=wanted.reads_plain)
        decision.reason = wanted.reason
        return decision

    def _decision(self, found: MatchedRules, flow: Flow) -> Decision:
        made = Decision(rule_ids=found.rule_ids)
        if found.block is not None:
            made.block_status = found.block.status_code
            return made
        if found.delay is not None:
            made.delay_s = found.delay.delay_s(self._random)
        if found.fault is not None:
            made.fault = found.fault.mode
            made.truncate_bytes = found.fault.after_bytes
        if found.request_breakpoint is not None:
            made.pause_request = self._breakpoints.pause(found.request_breakpoint)
        if found.response_breakpoint is not None:
            made.pause_response = self._breakpoints.pause(found.response_breakpoint)
        made.request_edits = _edits(found.request_edits)
        made.response_edits = _edits(found.response_edits)
        made.request_body = _body(found.request_bodies, flow, is_request=True)
        made.response_body = _body(found.response_bodies, flow, is_request=False)
        self._answer(made, found, flow)
        return made

    def _answer(self, made: Decision, found: MatchedRules, flow: Flow) -> None:
        if found.map_local is not None:
            made.map_local = found.map_local.matcher
            made.local = self._local(found.map_local)
        elif found.mock is not None:
            made.map_local = found.mock.matcher
            made.local = _mocked(found.mock)
        elif found.map_remote is not None:
            made.map_remote = found.map_remote.matcher
            made.remote_url = found.mapped_url
            if found.mapped_url and not found.map_remote.keeps_credentials:
                _keep_credentials(made, flow, found.mapped_url)

    def _local(self, rule: MapLocalRule) -> LocalResponse:
        headers = ((b"Content-Type", rule.media_type.encode("latin-1", "replace")),)
        if rule.source.kind == "text":
            return LocalResponse(rule.status_code, headers, rule.source.value.encode())
        # Asked again at each use: what the path leads to may have changed since the rule was added.
        real = self._files.resolved(rule.source.value)
        if real is None:
            logger.warning("event=file_refused rule=%s", rule.id)
            return _REFUSED
        return LocalResponse(rule.status_code, headers, file=real)


def _keep_credentials(made: Decision, flow: Flow, url: str) -> None:
    """A request that is sent elsewhere leaves its secrets at home: headers, path, query, and text bodies."""
    if is_same_origin(flow.url, url):
        return
    dropped = tuple(name.encode("latin-1", "replace") for name in without_secrets(flow.request_headers).dropped)
    if dropped:
        before = made.request_edits or HeaderEdits()
        made.request_edits = HeaderEdits((*dropped, *before.remove), before.replace, before.add)
    base, mark, query = url.partition("?")
    path = flow.target.partition("?")[0]
    if target_without_secrets(path) != path:
        base = target_without_secrets(base)
        made.remote_url = base + mark + query
    if mark and flow.target.endswith(mark + query):  # a query of the rule's own is the rule's business
        made.remote_url = base + target_without_secrets(mark + query)
    if _TEXT.search(mime(flow.request_headers)):
        edit = made.request_body or (lambda body: body)
        head = flow.request_headers
        made.request_body = lambda body: body_without_secrets(edit(body), head)
        made.needs_body_edit = True


def _mocked(rule: MockRule) -> LocalResponse:
    headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in rule.headers)
    return LocalResponse(rule.status_code, headers, rule.body)


def _edits(edits: tuple[HeaderEdit, ...]) -> HeaderEdits | None:
    return HeaderEdits(*fold(edits)) if edits else None


def _body(rules: tuple[BodyReplaceRule, ...], flow: Flow, *, is_request: bool) -> Callable[[bytes], bytes] | None:
    if not rules:
        return None

    def replaced(body: bytes) -> bytes:
        for rule in rules:
            body = rule.apply(body)
        return body

    def edit(body: bytes) -> bytes:
        return recoded(body, flow.request_headers if is_request else flow.response_headers, replaced)

    return edit
