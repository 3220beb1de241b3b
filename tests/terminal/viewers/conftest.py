"""Every test has a home of its own: shells read no file of the user's."""

from __future__ import annotations

from tests.terminal.service.conftest import own_home

__all__ = ["own_home"]
