"""Secrets hidden in what an agent reads: text, URLs, headers, and whole results (`values`, the gate)."""

from dari.redaction.judgement import is_secret
from dari.redaction.names import is_secret_name
from dari.redaction.shapes import MARK
from dari.redaction.text import (
    MAX_CHARS,
    Headers,
    Redacted,
    RedactedHeaders,
    Redactor,
    is_plain,
    redact_body,
    redact_headers,
    redact_text,
    redact_url,
)
from dari.redaction.values import disclose, disclose_error, disclose_text

__all__ = [
    "MARK",
    "MAX_CHARS",
    "Headers",
    "Redacted",
    "RedactedHeaders",
    "Redactor",
    "disclose",
    "disclose_error",
    "disclose_text",
    "is_plain",
    "is_secret",
    "is_secret_name",
    "redact_body",
    "redact_headers",
    "redact_text",
    "redact_url",
]
