"""A schema compiled and run by `jsonschema-rs`: nothing is fetched, and patterns take time in line with the text."""

from __future__ import annotations

from typing import Any

MAX_COMPLAINTS = 5
MAX_COMPLAINT_CHARS = 500
_PATTERN_BYTES = 1024 * 1024


class BadSchema(ValueError):
    """What a server calls a schema cannot be used as one; the message says why."""


def compiled(schema: Any) -> Any:
    """A validator. Raises ImportError without `jsonschema-rs`, and BadSchema."""
    import jsonschema_rs

    # The engine that knows no look-around and does not backtrack.
    options = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse_to_fetch, pattern_options=options)
    except Exception as error:  # whatever a server calls a schema
        raise BadSchema((str(error).splitlines() or ["no reason given"])[0][:MAX_COMPLAINT_CHARS]) from None


def complaints(validator: Any, value: Any) -> list[str]:
    """What does not fit, with its place; empty when all does."""
    if validator.is_valid(value):
        return []
    found: list[str] = []
    for error in validator.iter_errors(value):
        where = ".".join(str(step) for step in error.instance_path)
        text = f"{where}: {error.message}" if where else str(error.message)
        found.append(text if len(text) <= MAX_COMPLAINT_CHARS else f"{text[:MAX_COMPLAINT_CHARS]}…")
        if len(found) == MAX_COMPLAINTS:
            break
    return found or ["it does not fit the schema"]


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")
