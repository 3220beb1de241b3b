"""Read one file into profiles. An invalid server is listed as broken, with the reason; the others stay usable."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, structs

from dari.bridge.config import jsonc, yaml_loader
from dari.bridge.config.errors import FieldProblem, config_error, field_names, nearest_name, suggest, to_field_problem
from dari.bridge.config.jsonc import JsonPath as Place
from dari.bridge.config.jsonc import JsonValue, Member, Node, format_path
from dari.bridge.config.normalize import build_profile, check_id
from dari.bridge.config.profile import GatewaySettings, HttpSettings, Input, Layer, Profile, ProfileSource, ServerSet
from dari.bridge.config.schema import (
    FOREIGN_FIELDS,
    DefaultsEntry,
    Document,
    GatewayEntry,
    ImportsEntry,
    InputEntry,
    ServerEntry,
    SetEntry,
)
from dari.bridge.config.secret import SECRET_MARK, Secret, is_sensitive
from dari.errors import DariError, InvalidInput
from dari.paths import read_regular
from dari.struct_types import ready

MAX_CONFIG_BYTES = 4 * 1024 * 1024
MAX_READ_BYTES = 64 * 1024 * 1024
"""Files of other programs are larger than ours: Claude's holds whole conversations."""
VERSIONS = ("1", "2")
YAML_SUFFIXES = (".yaml", ".yml")
SERVER_FIELDS = field_names(ServerEntry)
P = TypeVar("P", bound=Struct)
_DIALECTS = {"servers": "crewx", "mcpServers": "mcpServers", "endpoints": "agenthub"}


class BrokenServer(Struct, frozen=True):
    """A server that is written down and cannot be used."""

    id: str
    source: ProfileSource
    message: str
    hint: str


class FileContents(Struct, frozen=True, kw_only=True):
    """What one file says. `problems` concern the file itself, not one server."""

    path: str
    layer: Layer
    digest: str
    profiles: tuple[Profile, ...] = ()
    broken: tuple[BrokenServer, ...] = ()
    sets: tuple[ServerSet, ...] = ()
    gateway: GatewaySettings | None = None
    imports: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    problems: tuple[str, ...] = ()
    is_readable: bool = True


def read_file(path: Path) -> bytes:
    """The bytes of a configuration file. OSError for a device, a FIFO or an endless file: anybody's project may have a
    link to one, and we read before a person has trusted it."""
    return read_regular(path, MAX_READ_BYTES)


def content_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def parse_document(data: bytes, path: Path) -> Node:
    """The tree of a file, by the ending of its name."""
    if len(data) > MAX_CONFIG_BYTES:
        raise InvalidInput(f"{path} has {len(data)} bytes, more than {MAX_CONFIG_BYTES}", "name another file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} must be UTF-8 text (error at byte {error.start})", "save it as UTF-8") from error
    if path.suffix.lower() in YAML_SUFFIXES:
        return yaml_loader.parse(text, str(path))
    if not text.strip("\ufeff \t\r\n"):
        return Node(1, 0, 0, shape="object")
    return jsonc.parse(text, str(path))


def read_contents(data: bytes, path: Path, layer: Layer, program: str = "") -> FileContents:
    """What the file says; a file that cannot be read is its only problem."""
    digest = content_digest(data)
    try:
        root = parse_document(data, path)
        if root.shape != "object":
            raise InvalidInput(f"{path}:1: the file must hold a JSON object", 'begin with {"servers": [ … ]}')
    except DariError as error:
        problem = _to_problem(error)
        return FileContents(path=str(path), layer=layer, digest=digest, problems=(problem,), is_readable=False)
    return _Loader(root, path, layer, program).contents(digest)


def read_entry(id: str, entry: dict[str, JsonValue], path: Path) -> Profile:
    """The profile of one entry, as it would be read from this file; raises InvalidInput for what cannot be used."""
    data = msgspec.json.encode({"servers": [{"id": id, **entry}]})
    contents = read_contents(data, path.with_suffix(".json"), "user")
    if contents.broken:
        message = contents.broken[0].message.partition(": ")[2]
        raise InvalidInput(message.replace("servers[0]", id, 1), contents.broken[0].hint)
    return contents.profiles[0]


class _Loader:
    def __init__(self, root: Node, path: Path, layer: Layer, program: str) -> None:
        self._root = root
        self._file = str(path)
        self._layer = layer
        self._program = program
        self._problems: list[str] = []
        self._defaults: DefaultsEntry | InvalidInput = DefaultsEntry()

    def contents(self, digest: str) -> FileContents:
        self._check_names()
        self._defaults = self._read_defaults()
        profiles: list[Profile] = []
        broken: list[BrokenServer] = []
        first_lines: dict[str, int] = {}
        for place, id, dialect, member in self._servers():
            source = ProfileSource(self._file, member.line, self._layer, self._program)
            try:
                if id in first_lines:
                    fact = f"the name '{id}' is used already in line {first_lines[id]}"
                    raise FieldProblem(() if dialect == "vscode" else ("id",), fact, "choose another name")
                first_lines[id] = source.line
                profiles.append(self._server(id, dialect, member.value, source))
            except FieldProblem as problem:
                error = config_error(self._file, self._root, (*place, *problem.path), problem.fact, problem.hint)
                broken.append(BrokenServer(id, source, error.message, error.hint))
            except InvalidInput as error:
                broken.append(BrokenServer(id, source, error.message, error.hint))
        return FileContents(
            path=self._file,
            layer=self._layer,
            digest=digest,
            profiles=tuple(profiles),
            broken=tuple(broken),
            sets=tuple(self._sets()),
            gateway=self._gateway(),
            imports=self._imports(),
            inputs=tuple(self._inputs()),
            problems=tuple(self._problems),
        )

    def _servers(self) -> Iterator[tuple[Place, str, str, Member]]:
        """Every server with its place, name and dialect, in the order of the file."""
        places: list[Place] = [("servers",), ("mcpServers",), ("mcp", "endpoints")]
        for place in places:
            node: Node | None = self._root
            for step in place:
                node = node.get(step) if node else None
            if node is None or (node.shape == "scalar" and node.scalar is None):
                continue
            dialect = _DIALECTS[str(place[-1])]
            if node.shape == "object":
                for member in node.members:
                    yield (*place, member.key), member.key, "vscode" if dialect == "crewx" else dialect, member
            elif node.shape == "array" and dialect != "mcpServers":
                for index, member in enumerate(node.members):
                    yield (*place, index), _name_in(member.value, dialect, index), dialect, member
            else:
                self._complain(place, "is neither a list nor an object of servers", "see docs/guide/profiles.md")

    def _server(self, id: str, dialect: str, node: Node, source: ProfileSource) -> Profile:
        if isinstance(self._defaults, InvalidInput):
            raise self._defaults  # what they would have said is unknown: running without could drop a wall
        raw = node.plain()
        if not isinstance(raw, dict):
            raise FieldProblem((), "must be an object", "see docs/guide/profiles.md")
        if dialect == "crewx" and "id" not in raw:
            raise FieldProblem((), "field 'id' is missing", "add 'id'")
        if fact := check_id(id):
            raise FieldProblem(() if dialect in ("vscode", "mcpServers") else ("id",), fact, "choose another name")
        if dialect == "agenthub" and str(raw.get("type", "")).lower() == "mcp":
            del raw["type"]  # AgentHub's kinds of endpoint are MCP and A2A
        notes = []
        for name in [name for name in raw if name not in SERVER_FIELDS]:
            notes.append(self._unknown(name, dialect))
            del raw[name]
        try:
            entry = msgspec.convert(raw, ready(ServerEntry))
        except msgspec.ValidationError as error:
            raise to_field_problem(error, ServerEntry) from error
        notes = [note for note in notes if note]
        return build_profile(entry, id, source, self._defaults, dialect, tuple(notes))

    def _unknown(self, name: str, dialect: str) -> str:
        """A note on a field we do not know; what looks like a typo, or stands in our own dialect, is refused."""
        if name.startswith(("x-", "_", "$", "//")):
            return ""
        if name in FOREIGN_FIELDS:
            return f"'{name}' is not used: {FOREIGN_FIELDS[name]}"
        if dialect == "crewx" or nearest_name(name, SERVER_FIELDS):
            raise FieldProblem((name,), "unknown field", suggest(name, SERVER_FIELDS))
        return f"'{name}' is not known here and is not used"

    def _check_names(self) -> None:
        known = ("$schema", *(name for name in field_names(Document) if name != "schema"))
        version = self._root.get("version")
        if version is not None and str(version.scalar) not in VERSIONS:
            self._complain(("version",), "is newer than this release", f"known: {', '.join(VERSIONS)}")
        for member in self._root.members:
            if member.key not in known and (close := nearest_name(member.key, known)):
                self._complain((member.key,), "unknown field", f"did you mean '{close}'?")

    def _read_defaults(self) -> DefaultsEntry | InvalidInput:
        node = self._root.get("defaults")
        if node is None:
            return DefaultsEntry()
        try:
            return msgspec.convert(node.plain(), ready(DefaultsEntry))
        except msgspec.ValidationError as error:
            problem = to_field_problem(error, DefaultsEntry)
            found = config_error(self._file, self._root, ("defaults", *problem.path), problem.fact, problem.hint)
            self._problems.append(_to_problem(found))
            return found

    def _sets(self) -> Iterator[ServerSet]:
        node = self._root.get("profiles")
        for member in node.members if node else ():
            if fact := check_id(member.key):
                self._complain(("profiles", member.key), fact, "choose another name")
                continue
            entry = self._part(("profiles", member.key), member.value, SetEntry)
            if entry:
                servers = ("*",) if entry.servers is UNSET else tuple(entry.servers)
                yield ServerSet(member.key, servers, entry.mode)

    def _gateway(self) -> GatewaySettings | None:
        node = self._root.get("gateway")
        entry = self._part(("gateway",), node, GatewayEntry) if node else None
        if entry is None:
            return None
        if self._layer == "project":
            self._complain(("gateway",), "is not used in a project", "there is one per person: move it to ~/.config")
            return None
        return GatewaySettings(
            listen=entry.listen,
            unix=entry.unix,
            tokens=entry.auth.tokens,
            separator=entry.separator,
            prefix=entry.prefix,
            mode=entry.mode,
            audit=entry.audit,
            otel=entry.otel,
        )

    def _inputs(self) -> Iterator[Input]:
        node = self._root.get("inputs")
        for index, member in enumerate(node.members if node else ()):
            entry = self._part(("inputs", index), member.value, InputEntry)
            if entry is None:
                continue
            if entry.type == "command":
                self._complain(("inputs", index), "would run a command, which is never done", "use promptString")
                continue
            options = [one if isinstance(one, str) else one.get("value", "") for one in entry.options]
            yield Input(
                id=entry.id,
                description=entry.description,
                is_password=entry.password,
                default=entry.default,
                options=tuple(options),
            )

    def _part(self, place: Place, node: Node, kind: type[P]) -> P | None:
        try:
            return msgspec.convert(node.plain(), ready(kind))
        except msgspec.ValidationError as error:
            problem = to_field_problem(error, kind)
            self._complain((*place, *problem.path), problem.fact, problem.hint)
            return None

    def _imports(self) -> tuple[str, ...]:
        node = self._root.get("imports")
        if node is None:
            return ()
        entry = self._part((), Node(1, 0, 0, members=[Member("imports", node, 0, 0, 1)], shape="object"), ImportsEntry)
        return tuple(entry.imports) if entry else ()

    def _complain(self, place: Place, fact: str, hint: str) -> None:
        self._problems.append(_to_problem(config_error(self._file, self._root, place, fact, hint)))


def _name_in(node: Node, dialect: str, index: int) -> str:
    """The name of a server that stands in a list; a nameless one is listed by its place."""
    for field in ("name", "id") if dialect == "agenthub" else ("id",):
        found = node.get(field)
        if found is not None and isinstance(found.scalar, str):
            return found.scalar
    return format_path(("servers" if dialect == "crewx" else "endpoints", index))


def _to_problem(error: DariError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def is_writable_by_others(path: Path) -> bool:
    """Could another user put a command into the file? Then its content has to be trusted like a project's."""
    try:
        info = os.stat(path)
    except OSError:
        return False
    return info.st_uid not in (os.geteuid(), 0) or bool(info.st_mode & stat.S_IWOTH)


def warn_if_readable(path: Path, contents: FileContents) -> FileContents:
    """The contents, with a problem if others may read keys that are written out in the file."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return contents
    if not mode & (stat.S_IRGRP | stat.S_IROTH):
        return contents
    open_ones = [profile.id for profile in contents.profiles if _holds_keys(profile)]
    if not open_ones:
        return contents
    warning = f"{path}: others may read the keys of {', '.join(open_ones)} (chmod 600, or use ${{keyring:…}})"
    return structs.replace(contents, problems=(*contents.problems, warning))


def _holds_keys(profile: Profile) -> bool:
    connection = profile.connection
    if isinstance(connection, HttpSettings):
        named = {**connection.headers, "token": connection.auth.token, "secret": connection.auth.client_secret}
    else:
        named = {**connection.env}
    return any(
        isinstance(value, Secret) and value.shown == SECRET_MARK and is_sensitive(name) for name, value in named.items()
    )
