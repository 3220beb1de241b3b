"""Arguments that several tools share: their types, with what a model reads about them, and their limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Annotated, TypeVar

from msgspec import Meta

from dari.core.context import Context
from dari.errors import InvalidInput
from dari.proxy.query.filters import TrafficFilter

RequestId = Annotated[str, Meta(description="request_id of a recorded request, such as 17")]
Matcher = Annotated[
    str, Meta(description="URL prefix (https://host/path), host, host/path or /path; * or *.host for allow rules")
]
StatusCode = Annotated[int, Meta(ge=100, le=599, description="HTTP status, such as 404")]
FromStatusCode = Annotated[
    int, Meta(description="only this status; -1 for any", extra_json_schema={"minimum": -1, "maximum": 599})
]
Seq = Annotated[int, Meta(ge=0, description="only what came after this next_seq; 0 for all")]
Records = Annotated[int, Meta(description="log records to look at", extra_json_schema={"minimum": 1, "maximum": 1000})]
Seconds = Annotated[float, Meta(ge=0, le=300, description="seconds to wait at most")]

HttpMethod = Annotated[str, Meta(description="HTTP method, such as GET or POST")]
Headers = Annotated[dict[str, str], Meta(description='headers by name, such as {"Accept": "text/html"}')]
RemovedHeaders = Annotated[list[str], Meta(description='names of headers to leave out, such as ["Cookie"]')]
Switch = Annotated[bool, Meta(description="true switches it on, false off")]
WithHeaders = Annotated[bool, Meta(description="also return request and response headers")]
WithSample = Annotated[bool, Meta(description="also return the first bytes of the bodies as base64")]

Host = Annotated[str, Meta(description="host, with its sub-domains")]
Methods = Annotated[str, Meta(description="GET, or GET,POST")]
Statuses = Annotated[str | int, Meta(description="404, 4xx, 400-499, or several with commas")]
UrlText = Annotated[str, Meta(description="text in the URL")]
Query = Annotated[
    str,
    Meta(description="filter text, such as (host:a.test or /x) -status:2xx time:>500ms"),
]
SinceMs = Annotated[int, Meta(description="began at or after this Unix time in ms")]
HasError = Annotated[bool, Meta(description="failed, or status 400 and above")]


def clamp(name: str, value: int, most: int) -> int:
    """A limit above the largest counts as the largest, as in the original; one below zero is a mistake."""
    if value < 0:
        raise InvalidInput(f"argument '{name}' is {value}: expected int >= 0", f"give 1 to {most}")
    return min(value, most)


def status_or_any(value: int | None) -> int | None:
    """−1 stands for any status."""
    if value is not None and value != -1 and not 100 <= value <= 599:
        raise InvalidInput(
            f"argument 'from_status_code' is {value}: expected -1 or 100 to 599", "-1 stands for any status"
        )
    return value


def make_filter(**conditions: str | int | bool | None) -> TrafficFilter:
    """The conditions that were given, as a filter."""
    return TrafficFilter(**{name: value for name, value in conditions.items() if value is not None})  # type: ignore[arg-type]


T = TypeVar("T")
TICK_S = 2.0


async def report_progress_while(work: Awaitable[T], context: Context, limit_s: float, message: str) -> T:
    """The result of `work`; until then progress in seconds of `limit_s`."""
    task = asyncio.ensure_future(work)
    waited_s = 0.0
    try:
        while not (await asyncio.wait({task}, timeout=TICK_S))[0]:
            waited_s = min(waited_s + TICK_S, limit_s)
            await context.progress(waited_s, limit_s, message)
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})
