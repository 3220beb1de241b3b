"""Arguments that several tools share: their types, with what a model reads about them, and their limits."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.errors import InvalidInput
from dari.proxy.traffic.filters import Filter

RequestId = Annotated[str, Meta(description="request_id of a recorded request, such as 17")]
Matcher = Annotated[
    str, Meta(description="URL prefix (https://host/path), host, host/path or /path; * or *.host for allow rules")
]
StatusCode = Annotated[int, Meta(ge=100, le=599, description="HTTP status, such as 404")]
FromStatusCode = Annotated[
    int, Meta(description="only this status; -1 for any", extra_json_schema={"minimum": -1, "maximum": 599})
]
Seq = Annotated[int, Meta(ge=0, description="only what came after this next_seq of an earlier call; 0 for all")]
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
SinceMs = Annotated[int, Meta(description="began at or after this Unix time in ms")]
HasError = Annotated[bool, Meta(description="failed, or status 400 and above")]


def clamped(name: str, value: int, most: int) -> int:
    """A limit above the largest counts as the largest, as in the original; one below zero is a mistake."""
    if value < 0:
        raise InvalidInput(f"argument '{name}' is {value}: expected int >= 0", f"give 1 to {most}")
    return min(value, most)


def status_or_any(name: str, value: int | None) -> int | None:
    """−1 stands for any status."""
    if value is not None and value != -1 and not 100 <= value <= 599:
        raise InvalidInput(f"argument '{name}' is {value}: expected -1 or 100 to 599", "-1 stands for any status")
    return value


def wanted(**conditions: str | int | bool | None) -> Filter:
    """The conditions that were given, as a filter."""
    return Filter(**{name: value for name, value in conditions.items() if value is not None})  # type: ignore[arg-type]
