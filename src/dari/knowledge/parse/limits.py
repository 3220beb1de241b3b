"""What a parser may cost, and the error that says why a file was not read."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from dari.errors import Failed

FailureReason = Literal[
    "unsupported",  # no parser for it
    "size_exceeded",  # above a cap on bytes or lines
    "generated",  # its header says that a program wrote it
    "binary",  # named like text, but it is not
    "ocr_unavailable",  # a picture, and no tesseract
    "encrypted",  # needs a password
    "malformed",  # not what its name says, or broken
    "timeout",  # wall time or processor time
    "memory",
    "output_exceeded",  # far more text than a file of its kind holds
    "crashed",  # the parser's process ended
    "io_error",  # the file could not be read
]
SKIP_REASONS: frozenset[FailureReason] = frozenset(
    {"unsupported", "size_exceeded", "generated", "binary", "ocr_unavailable"}
)

MIB = 1 << 20


class ParseLimits(Struct, frozen=True):
    max_file_bytes: int = 64 * MIB
    max_code_bytes: int = 256 << 10
    max_code_lines: int = 5_000
    max_output_bytes: int = 48 * MIB
    """Of the parsed document: text and structure."""
    max_unpacked_bytes: int = 256 * MIB
    """Of all members of an office file together."""
    max_blocks: int = 200_000
    max_pages: int = 5_000
    max_memory_bytes: int = 1024 * MIB
    """Address space of the parser's process."""
    max_cpu_s: int = 30
    max_wall_s: float = 60.0
    ocr: bool = True
    ocr_languages: str = "kor+eng"
    ocr_page_timeout_s: float = 20.0
    max_ocr_pages: int = 50
    skip_generated: bool = True


class ParseFailed(Failed):
    """One file was not read; `reason` is for programs, `is_skip` says that it was left out and not broken."""

    def __init__(self, reason: FailureReason, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.reason = reason

    @property
    def is_skip(self) -> bool:
        return self.reason in SKIP_REASONS
