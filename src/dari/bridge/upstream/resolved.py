"""A profile resolved for one client: what to start or reach, and the keys for sharing and caching it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dari.bridge.config.catalog import CatalogEntry
from dari.bridge.config.interpolate import ResolvedProfile
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.profile import HttpSettings, Profile, StdioSettings
from dari.bridge.config.secret import Mask
from dari.bridge.upstream.cache import cache_key
from dari.errors import InvalidInput, Unavailable
from dari.process.child import ChildSpec
from dari.process.program import NETWORK_NAMES, build_environment, find_program, network_secrets
from dari.sandbox.confinement import UNCONFINED, Confinement, PathRule


class ResolvedServer(Struct, frozen=True):
    """Two clients that resolve a profile to the same value share one server."""

    profile: Profile
    mask: Mask
    key: str
    """Over everything that makes a difference, secrets included: it never leaves this process."""
    memory_key: str
    """Over what is not secret: it names a file."""
    pin_name: str
    """Servers of one name in two projects are two servers: a project's has its folder in the name of its pins."""
    spec: ChildSpec | None = None

    @classmethod
    def of(
        cls, resolved: ResolvedProfile, around: ClientEnvironment, listed: CatalogEntry | None = None
    ) -> ResolvedServer:
        profile = resolved.profile
        connection = profile.connection
        scope = _project_of(listed)
        if isinstance(connection, StdioSettings):
            spec = child_spec(profile.id, connection, around, _cwd(connection, around, listed))
            walls = [repr(spec.confinement), repr(sorted(spec.limits.items()))]
            secret = [*spec.command, str(spec.cwd), *_pairs(spec.env), *walls]
            secret += [_program(spec), *_pairs({name: around.environ.get(name, "") for name in spec.inherit_env})]
            public = ["stdio", *spec.command, str(spec.cwd)]
        else:
            spec = None
            secret = _http_parts(connection)
            public = ["http", connection.url.partition("?")[0]]
        policy = [repr(getattr(profile, name)) for name in _POLICY]
        return cls(
            profile=profile,
            mask=resolved.mask if spec is None else resolved.mask.with_more(network_secrets(around.environ)),
            key=cache_key(profile.id, scope, *secret, *policy),
            memory_key=cache_key(profile.id, scope, *public),
            pin_name=pin_name(profile.id, listed),
            spec=spec,
        )


_POLICY = (
    "timeout_ms",
    "init_timeout_ms",
    "idle_exit_ms",
    "tools_cache_ttl_ms",
    "protocol",
    "isolation",
    "tools",
    "limits",
    "circuit",
)


def child_spec(name: str, settings: StdioSettings, around: ClientEnvironment, cwd: Path) -> ChildSpec:
    return ChildSpec(
        name=name,
        command=(settings.command, *settings.args),
        env={key: value.reveal() for key, value in settings.env.items()},
        inherit_env=(*(NETWORK_NAMES if settings.inherits_network else ()), *settings.inherit_env),
        environ=around.environ,
        cwd=cwd,
        limits=settings.rlimits,
        confinement=confinement_of(settings, cwd),
    )


def confinement_of(settings: StdioSettings, cwd: Path) -> Confinement:
    """The walls that a profile asks for; `off` where it asks for none."""
    if not settings.is_confined:
        return UNCONFINED
    if settings.network.mode == "listed":
        # The kernel filters addresses, not names; half a wall would be taken for a whole one.
        if settings.sandbox == "enforce":
            raise InvalidInput(
                "network with a list of hosts cannot be enforced on this machine", 'use "none", "loopback" or "all"'
            )
        network = "all"
    else:
        network = settings.network.mode
    paths = settings.allowed_paths
    return Confinement(
        mode=settings.sandbox,
        paths=None if paths is None else tuple(PathRule.of(one.path, one.mode, cwd) for one in paths),
        network=network,  # type: ignore[arg-type]
    )


def pin_name(id: str, listed: CatalogEntry | None) -> str:
    """By which name a server is known to the pins."""
    project = _project_of(listed)
    return f"{id}@{project}" if project else id


def _project_of(listed: CatalogEntry | None) -> str:
    """Readable, and different for folders of one name; empty for a server of the person."""
    if listed is None or listed.source.layer != "project":
        return ""
    place = hashlib.sha256(listed.source.file.encode("utf-8", "surrogateescape")).hexdigest()[:6]
    return f"{listed.workspace.name}-{place}"


def _cwd(settings: StdioSettings, around: ClientEnvironment, listed: CatalogEntry | None) -> Path:
    """A server of the person that names no folder runs in their home, so that every project shares it."""
    given = listed.profile.connection if listed is not None and listed.profile is not None else None
    names_one = isinstance(given, StdioSettings) and bool(given.cwd)
    if listed is not None and listed.source.layer == "user" and not names_one:
        return around.home
    return Path(settings.cwd or around.cwd)


def _program(spec: ChildSpec) -> str:
    """Two shells with another PATH mean the same program more often than not."""
    try:
        return str(find_program(spec.command[0], build_environment(spec.env, (), spec.environ), spec.cwd))
    except Unavailable:
        return ""  # reported when it is started


def _http_parts(connection: HttpSettings) -> list[str]:
    auth = connection.auth
    secrets = [value.reveal() if value is not None else "" for value in (auth.token, auth.client_secret)]
    headers = _pairs({name: value.reveal() for name, value in connection.headers.items()})
    plain = [connection.url, connection.fallback_url or "", connection.flavour, str(connection.keep_alive)]
    return [*plain, *headers, auth.type, auth.header, auth.prefix, auth.client_id or "", *secrets]


def _pairs(given: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(given.items())]
