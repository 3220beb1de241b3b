"""Servers of other programs: shown before anything is written, duplicates skipped, losses told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from dari.bridge.profiles.entries import ProgramName
from dari.bridge.profiles.foreign import translate
from dari.bridge.profiles.nodes import JsonValue
from dari.bridge.profiles.places import Surroundings
from dari.bridge.profiles.profile import HttpSettings, Input, Profile, Source, StdioSettings
from dari.bridge.profiles.programs import PROGRAMS, Entry, Foreign, Found, files_of
from dari.bridge.profiles.reading import Broken, FileContents, digest_of, read
from dari.bridge.profiles.store import ProfileFile
from dari.errors import DariError

Status = Literal["new", "duplicate", "conflict", "broken"]
MAX_BYTES = 64 * 1024 * 1024


class Candidate(Struct, frozen=True, kw_only=True):
    """One server that could be imported. `reason` says why it is skipped; `notes` what it loses on the way."""

    id: str
    program: ProgramName
    source: Source
    status: Status
    entry: Entry
    reason: str = ""
    notes: tuple[str, ...] = ()
    free_id: str = ""
    """A name that is not taken, for a conflict."""
    address: str = ""
    """The command or the URL, without anything secret; `entry` may hold secrets."""

    def __repr__(self) -> str:
        return f"Candidate({self.id!r}, {self.program}, {self.status}, {self.address!r})"


class ImportPlan(Struct, frozen=True):
    candidates: tuple[Candidate, ...]
    inputs: dict[str, Entry] = {}
    notes: tuple[str, ...] = ()
    """About files: unreadable ones, parts of them that are left out."""

    def of(self, status: Status) -> tuple[Candidate, ...]:
        return tuple(one for one in self.candidates if one.status == status)


def plan(around: Surroundings, programs: Iterable[ProgramName] | None, existing: Iterable[Profile]) -> ImportPlan:
    """What importing would do. Nothing is written, and nothing of the servers is started."""
    known = {profile.id: profile for profile in existing}
    candidates: list[Candidate] = []
    inputs: dict[str, Entry] = {}
    notes: list[str] = []
    for program in PROGRAMS if programs is None else programs:
        for found in files_of(program, around):
            data = _data(found, notes)
            if data is None:
                continue
            try:
                file = translate(found, data)
            except DariError as error:
                notes.append(f"{program}: {error.message}")
                continue
            notes.extend(f"{program}: {note}" for note in file.notes)
            inputs.update(file.inputs)
            for foreign in file.servers:
                candidate, profile = _candidate(found, foreign, known)
                candidates.append(candidate)
                if profile and candidate.status == "new":
                    known[candidate.id] = profile
    return ImportPlan(tuple(candidates), inputs, tuple(notes))


def apply(chosen: ImportPlan, file: ProfileFile, takes_conflicts: bool = False) -> tuple[str, ...]:
    """Write what is new, in one go; conflicts only if asked for, under their free names. Returns the names."""
    entries = {one.id: one.entry for one in chosen.of("new")}
    if takes_conflicts:
        entries.update({one.free_id: one.entry for one in chosen.of("conflict")})
    if entries:
        used = msgspec.json.encode(list(entries.values())).decode()
        asked = {id: entry for id, entry in chosen.inputs.items() if f"${{input:{id}}}" in used}
        file.add_all(entries, asked)
    return tuple(entries)


def contents_of(found: Found, data: bytes) -> FileContents:
    """A file of another program as one more layer, for `imports`."""
    layer: Literal["project", "import"] = "project" if found.project else "import"
    profiles: list[Profile] = []
    broken: list[Broken] = []
    try:
        file = translate(found, data)
    except DariError as error:
        return FileContents(
            path=str(found.path), layer=layer, digest=digest_of(data), problems=(error.message,), is_readable=False
        )
    for foreign in file.servers:
        for one in _read(found, foreign, layer):
            if isinstance(one, Profile):
                profiles.append(one)
            else:
                broken.append(one)
    return FileContents(
        path=str(found.path),
        layer=layer,
        digest=digest_of(data),
        profiles=tuple(profiles),
        broken=tuple(broken),
        inputs=tuple(_input(id, entry) for id, entry in file.inputs.items()),
    )


def found_files(programs: Iterable[str], around: Surroundings) -> Iterator[Found]:
    """Their files, in the order of the programs."""
    for program in programs:
        if program in PROGRAMS:
            yield from files_of(program, around)


def _input(id: str, entry: Entry) -> Input:
    default = entry.get("default")
    return Input(
        id=id,
        description=str(entry.get("description", "")),
        is_password=entry.get("password") is True,
        default=default if isinstance(default, str) else None,
    )


def _data(found: Found, notes: list[str]) -> bytes | None:
    try:
        if found.path.stat().st_size > MAX_BYTES:
            notes.append(f"{found.program}: {found.path} is larger than {MAX_BYTES} bytes")
            return None
        return found.path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        notes.append(f"{found.program}: {found.path} cannot be read: {error.strerror}")
        return None


def _read(found: Found, foreign: Foreign, layer: Literal["project", "import"]) -> Iterator[Profile | Broken]:
    """Our own reader on the translated server, with the place of the original."""
    section = "servers" if found.shape in ("servers", "settings") else "mcpServers"
    path = found.path.with_name("mcp.json")
    contents = read(msgspec.json.encode({section: {foreign.id: foreign.entry}}), path, layer, found.program)
    source = Source(str(found.path), foreign.line, layer, found.program)
    for profile in contents.profiles:
        yield structs.replace(profile, source=source, notes=(*foreign.notes, *profile.notes))
    for broken in contents.broken:
        message = f"{source}: {broken.message.partition(': ')[2]}"
        yield Broken(broken.id, source, message, broken.hint)


def _candidate(found: Found, foreign: Foreign, known: dict[str, Profile]) -> tuple[Candidate, Profile | None]:
    foreign = _anchored(found, foreign)
    (one,) = _read(found, foreign, "import")
    candidate = Candidate(
        id=foreign.id,
        program=found.program,
        source=one.source,
        status="new",
        entry=foreign.entry,
        notes=foreign.notes,
    )
    if isinstance(one, Broken):
        return structs.replace(candidate, status="broken", reason=one.message), None
    candidate = structs.replace(candidate, address=one.address)
    same = next((id for id, profile in known.items() if _is_same(profile, one)), None)
    if same is not None:
        return structs.replace(candidate, status="duplicate", reason=f"is the same server as '{same}'"), one
    if one.id in known:
        reason = f"the name is taken by another server ({known[one.id].source})"
        return structs.replace(candidate, status="conflict", reason=reason, free_id=_free(found, one.id, known)), one
    return candidate, one


def _free(found: Found, id: str, known: dict[str, Profile]) -> str:
    names = (f"{id}-{found.program}", *(f"{id}-{found.program}-{number}" for number in range(2, 1000)))
    return next(name for name in names if name not in known)


def _is_same(one: Profile, other: Profile) -> bool:
    """The same thing would be run or reached."""
    first, second = one.connection, other.connection
    if isinstance(first, StdioSettings) and isinstance(second, StdioSettings):
        return (first.command, first.args, first.env) == (second.command, second.args, second.env)
    if isinstance(first, HttpSettings) and isinstance(second, HttpSettings):
        return (first.url, first.headers, first.auth.token) == (second.url, second.headers, second.auth.token)
    return False


def _anchored(found: Found, foreign: Foreign) -> Foreign:
    """What is relative to a project keeps meaning the project once it stands in the person's own file."""
    if found.project is None:
        return foreign
    entry: Entry = {name: _placed(value, found.project) for name, value in foreign.entry.items()}
    if entry.get("command") and not entry.get("cwd"):
        entry["cwd"] = str(found.project)
    return Foreign(foreign.id, entry, foreign.line, foreign.notes)


def _placed(value: JsonValue, project: Path) -> JsonValue:
    if isinstance(value, str):
        return value.replace("${workspaceFolder}", str(project))
    if isinstance(value, list):
        return [_placed(one, project) for one in value]
    return {name: _placed(one, project) for name, one in value.items()} if isinstance(value, dict) else value
