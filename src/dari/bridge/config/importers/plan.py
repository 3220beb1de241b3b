"""Import servers of other programs: plan first, skip duplicates, note what cannot be carried over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from dari.bridge.config.importers.formats import translate
from dari.bridge.config.importers.sources import PROGRAMS, ForeignServer, ImportSource, JsonEntry, source_files
from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.loader import BrokenServer, FileContents, content_digest, read_contents, read_entry, read_file
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.normalize import check_id
from dari.bridge.config.profile import HttpSettings, Input, Profile, ProfileSource, StdioSettings
from dari.bridge.config.schema import ProgramName
from dari.bridge.config.writer import ProfileFile
from dari.errors import Conflict, DariError, InvalidInput, NotFound

Status = Literal["new", "duplicate", "conflict", "broken"]
TakenNames = Mapping[str, Profile | None]
"""The servers that are there; None for an entry that cannot be read."""


class ImportCandidate(Struct, frozen=True, kw_only=True):
    """One server that could be imported. `reason` says why it is skipped; `notes` what it loses on the way."""

    id: str
    program: ProgramName | Literal["paste"]
    source: ProfileSource
    status: Status
    entry: JsonEntry
    reason: str = ""
    notes: tuple[str, ...] = ()
    free_id: str = ""
    """A name that is not taken, for a conflict."""
    address: str = ""
    """The command or the URL, without anything secret; `entry` may hold secrets."""

    @property
    def ref(self) -> str:
        """Tells it from every other candidate of a plan."""
        return f"{self.program}:{self.source.file}:{self.id}"

    def __repr__(self) -> str:
        return f"Candidate({self.id!r}, {self.program}, {self.status}, {self.address!r})"


class ImportPlan(Struct, frozen=True):
    candidates: tuple[ImportCandidate, ...]
    inputs: dict[str, JsonEntry] = {}
    notes: tuple[str, ...] = ()
    """About files: unreadable ones, parts of them that are left out."""

    def of(self, status: Status) -> tuple[ImportCandidate, ...]:
        return tuple(one for one in self.candidates if one.status == status)


class ImportChoice(Struct, frozen=True):
    """What a person decided on a candidate; candidates without a choice are left out."""

    ref: str
    name: str
    """Under which it is written."""
    overwrites: bool = False


def plan_import(around: ClientEnvironment, programs: Iterable[ProgramName] | None, existing: TakenNames) -> ImportPlan:
    """What importing would do. Nothing is written, and nothing of the servers is started."""
    known = dict(existing)
    candidates: list[ImportCandidate] = []
    inputs: dict[str, JsonEntry] = {}
    notes: list[str] = []
    for program in PROGRAMS if programs is None else programs:
        for found in source_files(program, around):
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


def plan_entries(entries: Mapping[str, JsonEntry], path: Path, existing: TakenNames) -> ImportPlan:
    """What adding these to the file at `path` would do, for a person who pasted them."""
    known = dict(existing)
    candidates = []
    for id, entry in entries.items():
        source = ProfileSource(str(path), 0, "user")
        candidate = ImportCandidate(id=id, program="paste", source=source, status="new", entry=entry)
        if fact := check_id(id):
            candidates.append(structs.replace(candidate, status="broken", reason=fact))
            continue
        try:
            profile = read_entry(id, entry, path)
        except DariError as error:
            reason = f"{error.message} ({error.hint})" if error.hint else error.message
            candidates.append(structs.replace(candidate, status="broken", reason=reason))
            continue
        candidate = structs.replace(candidate, notes=profile.notes)
        candidates.append(_compared(candidate, profile, known, ""))
        known.setdefault(id, profile)
    return ImportPlan(tuple(candidates))


def apply_import(chosen: ImportPlan, file: ProfileFile, takes_conflicts: bool = False) -> tuple[str, ...]:
    """Write what is new, in one go; conflicts only if asked for, under their free names. Returns the names."""
    choices = [ImportChoice(one.ref, one.id) for one in chosen.of("new")]
    if takes_conflicts:
        choices += [ImportChoice(one.ref, one.free_id) for one in chosen.of("conflict")]
    return apply_choices(chosen, choices, file)


def apply_choices(chosen: ImportPlan, choices: Iterable[ImportChoice], file: ProfileFile) -> tuple[str, ...]:
    """Write what was chosen, in one go; returns the names."""
    by_ref = {one.ref: one for one in chosen.candidates}
    entries: dict[str, JsonEntry] = {}
    replaces: set[str] = set()
    for choice in choices:
        if (found := by_ref.get(choice.ref)) is None:
            raise NotFound(f"no server is found under '{choice.ref[:200]}'", "look at what can be imported again")
        if found.status == "broken":
            raise InvalidInput(f"'{found.id}' cannot be imported: {found.reason}", "leave it out")
        if choice.name in entries:
            raise Conflict(f"two servers would be called '{choice.name}'", "give one of them another name")
        entries[choice.name] = found.entry
        if choice.overwrites:
            replaces.add(choice.name)
    if entries:
        used = msgspec.json.encode(list(entries.values())).decode()
        asked = {id: entry for id, entry in chosen.inputs.items() if f"${{input:{id}}}" in used}
        file.add_all(entries, asked, replaces)
    return tuple(entries)


def read_source(found: ImportSource, data: bytes) -> FileContents:
    """A file of another program as one more layer, for `imports`."""
    layer: Literal["project", "import"] = "project" if found.project else "import"
    profiles: list[Profile] = []
    broken: list[BrokenServer] = []
    try:
        file = translate(found, data)
    except DariError as error:
        return FileContents(
            path=str(found.path), layer=layer, digest=content_digest(data), problems=(error.message,), is_readable=False
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
        digest=content_digest(data),
        profiles=tuple(profiles),
        broken=tuple(broken),
        inputs=tuple(_input(id, entry) for id, entry in file.inputs.items()),
    )


def find_sources(programs: Iterable[str], around: ClientEnvironment) -> Iterator[ImportSource]:
    """Their files, in the order of the programs."""
    for program in programs:
        if program in PROGRAMS:
            yield from source_files(program, around)


def _input(id: str, entry: JsonEntry) -> Input:
    default = entry.get("default")
    return Input(
        id=id,
        description=str(entry.get("description", "")),
        is_password=entry.get("password") is True,
        default=default if isinstance(default, str) else None,
    )


def _data(found: ImportSource, notes: list[str]) -> bytes | None:
    try:
        return read_file(found.path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        notes.append(f"{found.program}: {found.path} cannot be read: {error.strerror}")
        return None


def _read(
    found: ImportSource, foreign: ForeignServer, layer: Literal["project", "import"]
) -> Iterator[Profile | BrokenServer]:
    """Our own reader on the translated server, with the place of the original."""
    section = "servers" if found.shape in ("servers", "settings") else "mcpServers"
    path = found.path.with_name("mcp.json")
    contents = read_contents(msgspec.json.encode({section: {foreign.id: foreign.entry}}), path, layer, found.program)
    source = ProfileSource(str(found.path), foreign.line, layer, found.program)
    for profile in contents.profiles:
        yield structs.replace(profile, source=source, notes=(*foreign.notes, *profile.notes))
    for broken in contents.broken:
        message = f"{source}: {broken.message.partition(': ')[2]}"
        yield BrokenServer(broken.id, source, message, broken.hint)


def _candidate(
    found: ImportSource, foreign: ForeignServer, known: TakenNames
) -> tuple[ImportCandidate, Profile | None]:
    foreign = _anchored(found, foreign)
    (one,) = _read(found, foreign, "import")
    candidate = ImportCandidate(
        id=foreign.id,
        program=found.program,
        source=one.source,
        status="new",
        entry=foreign.entry,
        notes=foreign.notes,
    )
    if isinstance(one, BrokenServer):
        return structs.replace(candidate, status="broken", reason=one.message), None
    return _compared(candidate, one, known, f"-{found.program}"), one


def _compared(candidate: ImportCandidate, one: Profile, known: TakenNames, suffix: str) -> ImportCandidate:
    """With how it stands to the servers that are there."""
    candidate = structs.replace(candidate, address=one.address)
    same = next((id for id, profile in known.items() if profile is not None and _is_same(profile, one)), None)
    if same is not None:
        return structs.replace(candidate, status="duplicate", reason=f"is the same server as '{same}'")
    if one.id in known:
        other = known[one.id]
        what = "an entry that cannot be read" if other is None else f"another server ({other.source})"
        reason = f"the name is taken by {what}"
        return structs.replace(
            candidate, status="conflict", reason=reason, free_id=_free(f"{one.id}{suffix}", one.id, known)
        )
    return candidate


def _free(wanted: str, id: str, known: TakenNames) -> str:
    names = chain([wanted] if wanted != id else [], (f"{wanted}-{number}" for number in count(2)))
    return next(name for name in names if name not in known)


def _is_same(one: Profile, other: Profile) -> bool:
    """The same thing would be run or reached."""
    first, second = one.connection, other.connection
    if isinstance(first, StdioSettings) and isinstance(second, StdioSettings):
        return (first.command, first.args, first.env) == (second.command, second.args, second.env)
    if isinstance(first, HttpSettings) and isinstance(second, HttpSettings):
        return (first.url, first.headers, first.auth.token) == (second.url, second.headers, second.auth.token)
    return False


def _anchored(found: ImportSource, foreign: ForeignServer) -> ForeignServer:
    """What is relative to a project keeps meaning the project once it stands in the person's own file."""
    if found.project is None:
        return foreign
    entry: JsonEntry = {name: _placed(value, found.project) for name, value in foreign.entry.items()}
    if entry.get("command") and not entry.get("cwd"):
        entry["cwd"] = str(found.project)
    return ForeignServer(foreign.id, entry, foreign.line, foreign.notes)


def _placed(value: JsonValue, project: Path) -> JsonValue:
    if isinstance(value, str):
        return value.replace("${workspaceFolder}", str(project))
    if isinstance(value, list):
        return [_placed(one, project) for one in value]
    return {name: _placed(one, project) for name, one in value.items()} if isinstance(value, dict) else value
