"""All profiles of all layers as one immutable catalogue: which counts, which is shadowed, broken or untrusted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from dari.bridge.profiles.profile import GatewaySettings, Input, Layer, Profile, ServerSet, Source
from dari.bridge.profiles.reading import FileContents
from dari.errors import Conflict, Denied, InvalidInput, NotFound

State = Literal["ready", "disabled", "broken", "untrusted"]


class LoadedFile(Struct, frozen=True):
    """One file that was there, and whether what it names may run."""

    contents: FileContents
    workspace: Path
    is_trusted: bool = True
    changes: tuple[str, ...] = ()
    """What is different from the version that was trusted."""
    is_kept: bool = False
    """The file cannot be read right now; this is its last good version."""


class Listed(Struct, frozen=True, kw_only=True):
    """One name in the catalogue."""

    id: str
    source: Source
    state: State
    profile: Profile | None = None
    message: str = ""
    hint: str = ""
    shadows: tuple[Source, ...] = ()
    """The same name in other layers, which does not count."""
    workspace: Path
    inputs: tuple[Input, ...] = ()

    @property
    def kind(self) -> str:
        return self.profile.kind if self.profile else ""


class Catalog(Struct, frozen=True, kw_only=True):
    listed: tuple[Listed, ...] = ()
    files: tuple[LoadedFile, ...] = ()
    default_id: str | None = None
    sets: tuple[ServerSet, ...] = ()
    gateway: GatewaySettings = GatewaySettings()
    problems: tuple[str, ...] = ()

    def ready(self) -> tuple[Profile, ...]:
        """The profiles that may run."""
        return tuple(one.profile for one in self.listed if one.state == "ready" and one.profile)

    def find(self, id: str) -> Listed:
        found = next((one for one in self.listed if one.id == id), None)
        if found is None:
            raise NotFound(f"there is no server '{id}'", self._known(id))
        return found

    def usable(self, id: str) -> Listed:
        """The server if it may run, else the error that says what to do."""
        found = self.find(id)
        if found.state == "broken":
            raise InvalidInput(found.message, found.hint)
        if found.state == "untrusted":
            raise Denied(found.message, found.hint)
        if found.state == "disabled":
            raise Conflict(f"the server '{id}' is disabled ({found.source})", f"dari remote enable {id}")
        return found

    def select(self, id: str | None = None) -> Listed:
        """Design 001 §6: the named server, else the default one."""
        if id is not None:
            return self.usable(id)
        if self.default_id is None:
            raise InvalidInput(
                "no server is named and none is the default", "use --server <id> or --endpoint <url>, or set 'default'"
            )
        return self.usable(self.default_id)

    def _known(self, id: str) -> str:
        from difflib import get_close_matches

        names = [one.id for one in self.listed]
        if close := get_close_matches(id, names, n=1):
            return f"did you mean '{close[0]}'?"
        return f"known: {', '.join(names)}" if names else "add one: dari remote add"


def join(files: Iterable[LoadedFile]) -> Catalog:
    """These files, strongest first, as one. A name counts where it first stands, unless that is not trusted."""
    files = tuple(files)
    listed: dict[str, Listed] = {}
    sets: dict[str, ServerSet] = {}
    gateway: GatewaySettings | None = None
    problems: list[str] = []
    for file in files:
        problems.extend(file.contents.problems)
        problems.extend(_twice(file.contents))
        for one in _listed(file):
            first = listed.get(one.id)
            if first is None:
                listed[one.id] = one
            elif first.state == "untrusted" and one.state != "untrusted":
                # A cloned project must not take the name of a server that works.
                problems.append(f"{first.source}: '{one.id}' is not trusted; the one in {one.source} is used")
                listed[one.id] = structs.replace(one, shadows=(first.source,))
            else:
                listed[one.id] = structs.replace(first, shadows=(*first.shadows, one.source))
        if not file.is_trusted:
            continue
        for chosen in file.contents.sets:
            sets.setdefault(chosen.name, chosen)
        gateway = gateway or file.contents.gateway
    return Catalog(
        listed=tuple(listed.values()),
        files=files,
        default_id=_default(files, listed),
        sets=tuple(sets.values()),
        gateway=gateway or GatewaySettings(),
        problems=tuple(problems),
    )


def _listed(file: LoadedFile) -> list[Listed]:
    contents = file.contents
    found: list[Listed] = []
    for profile in contents.profiles:
        state: State = "ready" if profile.is_enabled else "disabled"
        message = hint = ""
        if not file.is_trusted:
            state = "untrusted"
            message = f"the server '{profile.id}' is named in {contents.path}, which is not trusted"
            hint = f"look at the file, then: dari remote trust {contents.path}"
        found.append(
            Listed(
                id=profile.id,
                source=profile.source,
                state=state,
                profile=profile,
                message=message,
                hint=hint,
                workspace=file.workspace,
                inputs=contents.inputs,
            )
        )
    names = {one.id for one in found}
    for broken in contents.broken:
        if broken.id not in names:
            found.append(
                Listed(
                    id=broken.id,
                    source=broken.source,
                    state="broken",
                    message=broken.message,
                    hint=broken.hint,
                    workspace=file.workspace,
                )
            )
    return sorted(found, key=lambda one: one.source.line)


def _twice(contents: FileContents) -> list[str]:
    """Servers that are not listed because their name stands before them in the same file."""
    names = {profile.id for profile in contents.profiles}
    return [broken.message for broken in contents.broken if broken.id in names]


def _default(files: tuple[LoadedFile, ...], listed: dict[str, Listed]) -> str | None:
    """The last `default: true` of the strongest layer that has one (design 001 §5)."""
    order: tuple[Layer, ...] = ("env", "project", "user", "import")
    for layer in order:
        chosen = None
        for file in files:
            if file.contents.layer != layer or not file.is_trusted:
                continue
            for profile in file.contents.profiles:
                if profile.is_default and profile.is_enabled and listed[profile.id].source == profile.source:
                    chosen = profile.id
        if chosen:
            return chosen
    return None
