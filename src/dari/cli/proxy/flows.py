"""Recorded requests as lines: what the list, the follower and `run` show."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from dari.cli.kit.console import Output
from dari.cli.kit.table import format_duration, format_size, one_line
from dari.cli.proxy.crab import Crab

FIELDS = (
    "id",
    "ts_unix_ms",
    "method",
    "url",
    "status",
    "event",
    "state",
    "duration_ms",
    "request_bytes",
    "response_bytes",
    "mime",
    "error",
    "process",
    "pid",
    "rule_ids",
    "tls",
)
_PAGE = 500
_TOKENS = 2_000_000
"""As good as none: the budget is for models, and 500 rows stay far below what a reply may hold."""
_QUIET = ("upstream", "")

Flow = dict[str, Any]
Paint = Callable[[str, str], str]
"""A text in a style, where its stream shows colours."""


async def pages(crab: Crab, wanted: Flow, most: int | None = None) -> AsyncIterator[list[Flow]]:
    """Flows that fit, newest first, a page at a time."""
    cursor, left = None, most if most is not None else 10**9
    while left > 0:
        found = await crab.call(
            "traffic.search",
            wanted=wanted,
            limit=min(left, _PAGE),
            cursor=cursor,
            fields=list(FIELDS),
            token_budget=_TOKENS,
        )
        yield found["flows"]
        cursor, left = found.get("next_cursor"), left - found["count"]
        if cursor is None:
            return


async def newest(crab: Crab, wanted: Flow, most: int) -> list[Flow]:
    """The newest flows that fit, oldest of them first."""
    found = [flow async for page in pages(crab, wanted, most) for flow in page]
    return found[::-1]


def lines(flows: Iterable[Flow], *, paint: Paint, width: int | None, has_time: bool = True) -> list[str]:
    return [line(flow, paint=paint, width=width, has_time=has_time) for flow in flows]


def line(flow: Flow, *, paint: Paint, width: int | None, has_time: bool = True) -> str:
    """`12:30:01     17  GET      200   12 ms  1.2 kB  https://…`, cut to the width of the terminal."""
    clock = time.strftime("%H:%M:%S", time.localtime(flow["ts_unix_ms"] / 1000)) + "  " if has_time else ""
    status = str(flow.get("status", "-" if flow.get("state") == "done" else "…"))
    head = f"{clock}{flow['id']:>5}  {flow['method']:<7} "
    numbers = f"{format_duration(flow.get('duration_ms')):>8}  {format_size(flow.get('response_bytes', 0)):>7}  "
    tail = one_line(flow.get("url", "")) + _remarks(flow)
    if width is not None:
        room = max(20, width - len(head) - 5 - len(numbers))
        tail = tail if len(tail) <= room else tail[: room - 1] + "…"
    return head + paint(f"{status:>3}", _style(flow)) + "  " + numbers + tail


def _remarks(flow: Flow) -> str:
    found = []
    if flow["method"] == "CONNECT":
        found.append("not decrypted")
    elif flow.get("event") not in _QUIET:
        found.append(flow["event"])
    if flow.get("rule_ids"):
        found.append("rule " + ", ".join(flow["rule_ids"]))
    if flow.get("error"):
        found.append(flow["error"])
    return f"  [{one_line('; '.join(found))}]" if found else ""


def _style(flow: Flow) -> str:
    status = flow.get("status")
    if status is None:
        return "red" if flow.get("error") else "dim"
    return {2: "green", 3: "cyan", 4: "yellow", 5: "red"}.get(status // 100, "")


_TURN_S = 60.0
_RECENT = 200
"""Among so many the ones that are still under way are looked for."""


async def follow(crab: Crab, wanted: dict[str, Any], limit: int, out: Output) -> int:
    """Until the reader has enough; with JSON, one value a line."""
    # First the number of the log, then the flows: what ends in between wakes us and was shown already.
    seq = (await crab.call("traffic.tail", limit=1, max_entries=1, include_headers=False))["next_seq"]
    recent = await newest(crab, wanted, max(limit, _RECENT))
    printed_ids = {flow["id"] for flow in recent if flow["state"] == "done"}
    # Older than this was over, or left out, before the follower came.
    oldest_id = min((flow["id"] for flow in recent if flow["state"] != "done"), default=max(printed_ids, default=0))
    for flow in recent[-limit:] if limit else []:
        if flow["state"] == "done":
            _tell(flow, out)
    while True:
        waited = await crab.call("traffic.wait", _TURN_S + 10, wanted=wanted, timeout_s=_TURN_S, after_seq=seq)
        seq = waited["next_seq"]
        ended = await _ended(crab, wanted, oldest_id, printed_ids)
        for flow in ended:
            printed_ids.add(flow["id"])
            _tell(flow, out)
        oldest_id = _forget(printed_ids, oldest_id)


async def _ended(crab: Crab, wanted: dict[str, Any], oldest_id: int, printed_ids: set[int]) -> list[Flow]:
    found: list[Flow] = []
    async for page in pages(crab, wanted):
        found += [flow for flow in page if flow["id"] not in printed_ids and flow["state"] == "done"]
        if not page or page[-1]["id"] <= oldest_id:
            break
    return [flow for flow in reversed(found) if flow["id"] >= oldest_id]


def _forget(printed_ids: set[int], oldest_id: int) -> int:
    """Keep the set small: beyond some thousand requests ago nothing is still under way that a person waits for."""
    if len(printed_ids) < 5000:
        return oldest_id
    kept = sorted(printed_ids)[-1000:]
    printed_ids.intersection_update(kept)
    return kept[0]


def _tell(flow: Flow, out: Output) -> None:
    out.show(flow, [line(flow, paint=out.paint, width=out.width)])
