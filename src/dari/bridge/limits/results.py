"""Limit the size of results: cut with a note, or refuse.

text            cut between characters, the note says how much is left out
image, blob …   left out whole: half a picture is none
structured      left out whole: half an object would lie about its schema
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dari.errors import Failed

JsonObject = dict[str, Any]
Excess = Literal["truncate", "refuse"]
MAX_NOTE_BYTES = 400
"""Kept free for what was left out."""

_encode = msgspec.json.encode


def fits(size_bytes: int, max_bytes: int | None) -> bool:
    """The check of the hot path, on the size of the bytes that came."""
    return max_bytes is None or size_bytes <= max_bytes


def limit_result(
    result: JsonObject, max_bytes: int, *, on_excess: Excess = "truncate", what: str = "the result"
) -> JsonObject:
    """The `tools/call` result itself when it fits, else a smaller one; `refuse` raises `Failed`."""
    size_bytes = len(_encode(result))
    if size_bytes <= max_bytes:
        return result
    if on_excess == "refuse":
        raise Failed(
            f"{what} has {size_bytes} bytes, the limit is {max_bytes}",
            "ask for less (a filter, a page, a shorter range), or raise limits.maxResultBytes of the server",
        )
    kept = {key: value for key, value in result.items() if key not in ("content", "structuredContent")}
    left_out: list[str] = []
    if len(_encode(kept)) > max_bytes // 2:
        left_out.append(f"fields {', '.join(sorted(kept))[:80]}")
        kept = {"isError": result["isError"]} if isinstance(result.get("isError"), bool) else {}
    budget = max_bytes - len(_encode(kept)) - MAX_NOTE_BYTES
    structured = result.get("structuredContent")
    if structured is not None:
        cost = len(_encode(structured)) + len(',"structuredContent":')
        if cost <= budget // 2:
            budget -= cost
            kept["structuredContent"] = structured
        else:
            left_out.append(f"structured content of {cost} bytes")
    blocks, lost = _fitting(result.get("content"), budget)
    note = f"[Cut by the bridge: {what} has {size_bytes} bytes, the limit is {max_bytes}. Left out: "
    note += "; ".join((left_out + lost)[:4]) + (
        f"; and {len(left_out + lost) - 4} more" if len(left_out + lost) > 4 else ""
    )
    kept["content"] = [*blocks, {"type": "text", "text": note + ". Ask for less to see all.]"}]
    return kept


def _fitting(content: object, budget: int) -> tuple[list[JsonObject], list[str]]:
    """The blocks that fit, in their order, and what does not."""
    kept: list[JsonObject] = []
    lost: list[str] = []
    for block in content if isinstance(content, list) else []:
        cost = len(_encode(block)) + 1
        if cost <= budget:
            budget -= cost
            kept.append(block)
            continue
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        head = ""
        if isinstance(text, str):
            frame = len(_encode({**block, "text": ""})) + 1
            head = truncate_text(text, budget - frame)
        if head:
            kept.append({**block, "text": head})
            budget = 0
            lost.append(f"{len(str(text)) - len(head)} of {len(str(text))} characters of text")
        else:
            kind = block.get("type", "block") if isinstance(block, dict) else "block"
            lost.append(f"{str(kind)[:20]} of {cost} bytes")
    return kept, lost


def truncate_text(text: str, max_bytes: int) -> str:
    """The longest beginning that takes `max_bytes` inside a JSON string, by halving."""
    low, high = 0, min(len(text), max(0, max_bytes))
    while low < high:
        middle = (low + high + 1) // 2
        if len(_encode(text[:middle])) - 2 <= max_bytes:
            low = middle
        else:
            high = middle - 1
    return text[:low]
