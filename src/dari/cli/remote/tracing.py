"""`--log`: method, URL or command, latency, on stderr, with secrets masked (design 001 §9)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dari.bridge.config.catalog import mask_arguments
from dari.bridge.config.profile import HttpSettings, Profile
from dari.cli.remote.world import World
from dari.errors import DariError

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream


class Trace:
    """One exchange with a server: `note` what came of it; the time is measured from its start."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.outcome = ""

    def note(self, outcome: str) -> None:
        self.outcome = outcome

    @property
    def ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000


@contextmanager
def traced(world: World, upstream: Upstream, method: str, what: str = "") -> Iterator[Trace]:
    """Tell of an exchange when `--log` asks for it; errors pass through, and are told with their time."""
    trace = Trace()
    name = f"{method} {what}".rstrip()
    _log(world, upstream, f"→ {name} · {place(upstream.profile)}")
    hears_no_more = upstream.start_notes.subscribe(lambda note: world.note(f"{upstream.id}: {note}"))
    try:
        yield trace
    except DariError as error:
        _log(world, upstream, f"← {name} · {duration(trace.ms)} · {error.name}: {error.message}")
        raise
    except BaseException as error:
        _log(world, upstream, f"← {name} · {duration(trace.ms)} · {type(error).__name__}")
        raise
    finally:
        hears_no_more()
    outcome = f" · {trace.outcome}" if trace.outcome else ""
    _log(world, upstream, f"← {name} · {duration(trace.ms)}{outcome}")


def place(profile: Profile) -> str:
    """Where requests go: the address with the names of its headers, never their values, or the command line."""
    connection = profile.connection
    if not isinstance(connection, HttpSettings):
        return " ".join((connection.command, *mask_arguments(connection.args)))
    names = [*connection.headers, *(["Authorization"] if connection.auth.type == "bearer" else [])]
    headers = f" with {', '.join(names)}" if names else ""
    return f"POST {profile.address}{headers}"


def duration(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _log(world: World, upstream: Upstream, line: str) -> None:
    if world.logs:
        world.log(masked(upstream, line))


def masked(upstream: Upstream, text: str) -> str:
    """Without the profile's secrets, and without what looks like one."""
    from dari.text.redact import redact_text

    return redact_text(upstream.mask(text)).text
