"""Secrets hidden in what an agent reads: text, URLs, headers, and whole results (`values`, the gate)."""

from dari.text.redact.names import is_secret, is_secret_name
from dari.text.redact.patterns import MARK
from dari.text.redact.text import (
    HIDING,
    MAX_CHARS,
    MAX_WHOLE_CHARS,
    OVERLAP_CHARS,
    REVEALED,
    Headers,
    Redacted,
    RedactedHeaders,
    Redactor,
    is_surely_clean,
    redact_body,
    redact_headers,
    redact_text,
    redact_url,
)
from dari.text.redact.values import redact_error, redact_secrets, redact_string

__all__ = [
    "HIDING",
    "REVEALED",
    "MARK",
    "MAX_CHARS",
    "MAX_WHOLE_CHARS",
    "OVERLAP_CHARS",
    "Headers",
    "Redacted",
    "RedactedHeaders",
    "Redactor",
    "redact_secrets",
    "redact_error",
    "redact_string",
    "is_surely_clean",
    "is_secret",
    "is_secret_name",
    "redact_body",
    "redact_headers",
    "redact_text",
    "redact_url",
]
