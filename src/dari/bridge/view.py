"""The servers as seen from one place: a working directory and an environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dari.bridge.config.catalog import Catalog, CatalogEntry
from dari.bridge.config.interpolate import InterpolationContext, resolve_profile
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.overrides import apply_overrides, endpoint_profile, parse_headers
from dari.bridge.config.profile import Profile
from dari.bridge.config.reload import ConfigWatcher
from dari.bridge.config.service import ConfigService
from dari.bridge.upstream.resolved import ResolvedServer
from dari.bridge.upstream.upstream import Upstream
from dari.errors import DariError, InvalidInput

GetUpstream = Callable[[ResolvedServer], Upstream]
Retire = Callable[[Upstream], None]


class ServerView:
    """Looks at the files again whenever it is asked; a file that has not changed is not read."""

    def __init__(self, around: ClientEnvironment, book: ConfigService, get: GetUpstream, retire: Retire) -> None:
        self.around = around
        self.book = book
        self._get = get
        self._retire = retire
        self._given: dict[str, Upstream] = {}
        self._watch: ConfigWatcher | None = None
        self._unresolved: tuple[str, ...] = ()

    def catalog(self) -> Catalog:
        if self._watch is None:
            self._watch = ConfigWatcher(self.book)
            return self._watch.catalog
        change = self._watch.poll()
        if change is not None:
            for id in (*change.changed, *change.removed):
                if (old := self._given.pop(id, None)) is not None:
                    self._retire(old)
        return self._watch.catalog

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems in the files, and servers that could not be resolved the last time."""
        return (*self.catalog().problems, *self._unresolved)

    def upstream(
        self,
        id: str | None = None,
        *,
        endpoint: str | None = None,
        key: str | None = None,
        headers: Sequence[str] = (),
        timeout_ms: int | None = None,
    ) -> Upstream:
        """The server that a command means (design 001 §6): the named one, the default one, or an address."""
        given = parse_headers(headers)
        if endpoint is not None:
            if id is not None:
                raise InvalidInput("--server and --endpoint name two servers", "give one of them")
            return self.of(apply_overrides(endpoint_profile(endpoint), key=key, headers=given, timeout_ms=timeout_ms))
        listed = self.catalog().select(id)
        return self._resolved(listed, lambda one: apply_overrides(one, key=key, headers=given, timeout_ms=timeout_ms))

    def of(self, profile: Profile) -> Upstream:
        """A server that stands in no file."""
        return self._get(ResolvedServer.of(resolve_profile(profile, self._context()), self.around))

    def upstreams(self) -> tuple[Upstream, ...]:
        """All that may run. One that cannot be resolved is left out, and named in `problems`."""
        found, unresolved = [], []
        for listed in self.catalog().listed:
            if listed.state != "ready":
                continue
            try:
                found.append(self._resolved(listed, lambda one: one))
            except DariError as error:
                unresolved.append(f"{error.message} ({error.hint})" if error.hint else error.message)
        self._unresolved = tuple(unresolved)
        return tuple(found)

    def _resolved(self, listed: CatalogEntry, change: Callable[[Profile], Profile]) -> Upstream:
        from msgspec import structs

        assert listed.profile is not None
        changed = structs.replace(listed, profile=change(listed.profile))
        upstream = self._get(ResolvedServer.of(self.book.resolve(changed), self.around, listed))
        self._given[listed.id] = upstream
        return upstream

    def _context(self) -> InterpolationContext:
        return InterpolationContext(
            environ=self.around.environ,
            cwd=self.around.cwd,
            home=self.around.home,
            workspace=self.around.cwd,
            inputs=(),
            answers={},
            keyring=None,
        )
