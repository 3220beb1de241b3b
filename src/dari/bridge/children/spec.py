"""What to start, and how patient to be with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from dari.sandbox.confinement import UNCONFINED, Confinement


class Patience(Struct, frozen=True):
    """How long each step of an end may take, in seconds; then comes the next, harder one."""

    after_eof_s: float = 2.0
    after_term_s: float = 5.0
    """As design 003 says: SIGTERM, five seconds, SIGKILL."""


class ChildSpec(Struct, frozen=True):
    name: str
    """The server, as people know it."""
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    inherit_env: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None
    """Where inherited names are taken from; None: from our own environment."""
    cwd: Path | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    """Resource limits by their short names: as, nofile, cpu …"""
    confinement: Confinement = UNCONFINED
    patience: Patience = Patience()
