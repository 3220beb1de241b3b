"""`dari proxy traffic --follow`: new requests as they end, each once."""

from __future__ import annotations

from typing import Any

from dari.cli.proxy import flows
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.output import Output

_TURN_S = 60.0
_RECENT = 200
"""Among so many the ones that are still under way are looked for."""


async def follow(crab: Crab, wanted: dict[str, Any], limit: int, out: Output) -> int:
    """Until the reader has enough; with JSON, one value a line."""
    # First the number of the log, then the flows: what ends in between is woken up for, and found to be told already.
    seq = (await crab.call("traffic.tail", limit=1, max_entries=1, include_headers=False))["next_seq"]
    recent = await flows.newest(crab, wanted, max(limit, _RECENT))
    told = {flow["id"] for flow in recent if flow["state"] == "done"}
    # Older than this was over, or left out, before the follower came.
    oldest_id = min((flow["id"] for flow in recent if flow["state"] != "done"), default=max(told, default=0))
    for flow in recent[-limit:] if limit else []:
        if flow["state"] == "done":
            _tell(flow, out)
    while True:
        waited = await crab.call("traffic.wait", _TURN_S + 10, wanted=wanted, timeout_s=_TURN_S, after_seq=seq)
        seq = waited["next_seq"]
        ended = await _ended(crab, wanted, oldest_id, told)
        for flow in ended:
            told.add(flow["id"])
            _tell(flow, out)
        oldest_id = _forget(told, oldest_id)


async def _ended(crab: Crab, wanted: dict[str, Any], oldest_id: int, told: set[int]) -> list[flows.Flow]:
    found: list[flows.Flow] = []
    async for page in flows.pages(crab, wanted):
        found += [flow for flow in page if flow["id"] not in told and flow["state"] == "done"]
        if not page or page[-1]["id"] <= oldest_id:
            break
    return [flow for flow in reversed(found) if flow["id"] >= oldest_id]


def _forget(told: set[int], oldest_id: int) -> int:
    """Keep the set small: beyond some thousand requests ago nothing is still under way that a person waits for."""
    if len(told) < 5000:
        return oldest_id
    kept = sorted(told)[-1000:]
    told.intersection_update(kept)
    return kept[0]


def _tell(flow: flows.Flow, out: Output) -> None:
    out.show(flow, [flows.line(flow, is_coloured=out.is_coloured, width=out.width)])
