"""The protocol revisions we speak, and what each one changes for us."""

from __future__ import annotations

V2024_11 = "2024-11-05"
V2025_03 = "2025-03-26"
V2025_06 = "2025-06-18"
V2025_11 = "2025-11-25"
V2026_07 = "2026-07-28"

HANDSHAKE = (V2024_11, V2025_03, V2025_06, V2025_11)
STATELESS = (V2026_07,)
SUPPORTED = HANDSHAKE + STATELESS
LATEST_HANDSHAKE = V2025_11

# Codes that the stateless revision adds to JSON-RPC's own.
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022


def negotiate(requested: str) -> str:
    """The handshake revision to answer with: the one asked for, else our newest."""
    return requested if requested in HANDSHAKE else LATEST_HANDSHAKE


def has_structured_output(version: str) -> bool:
    """Whether the revision knows `outputSchema` and `structuredContent`.

    Lists for older clients leave `outputSchema` out. Results keep `structuredContent`, which old clients ignore,
    because design 000 §8.1 compares it on 2024-11-05; only those of kebab do not have it there.
    """
    return version not in (V2024_11, V2025_03)
