"""Find, read, resolve, write, import and trust profiles. Knows nothing of MCP and starts no process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from dari.bridge.config.built_in import built_in_servers
from dari.bridge.config.catalog import Catalog, CatalogEntry, LoadedFile, join_layers
from dari.bridge.config.interpolate import InterpolationContext, KeyringLookup, ResolvedProfile, resolve_profile
from dari.bridge.config.loader import (
    FileContents,
    is_writable_by_others,
    read_contents,
    read_file,
    warn_if_readable,
)
from dari.bridge.config.locations import ClientEnvironment, ConfigLocation
from dari.bridge.config.profile import Layer, Profile
from dari.bridge.config.trust import TrustedFile, TrustState, TrustStore
from dari.bridge.config.writer import JsonEntry, ProfileFile
from dari.errors import Denied, InvalidInput, NotFound

if TYPE_CHECKING:
    from dari.bridge.config.importers.plan import ImportChoice, ImportPlan
    from dari.bridge.config.schema import ProgramName

Edit = Callable[[ProfileFile], object]
ABSENT = (FileNotFoundError, NotADirectoryError)


class RemovedServer(Struct, frozen=True):
    """What a removal took away; the entry may hold secrets."""

    id: str
    path: Path
    entry: JsonEntry
    sets: tuple[str, ...]

    def __repr__(self) -> str:
        return f"RemovedServer({self.id!r}, {self.path})"


class ConfigService:
    """Reads anew at every `load`; keeps nothing but where to look. All calls block on files for a moment; one that
    writes waits while another process does (LOCK_TIMEOUT_S): call it from a thread when a loop runs."""

    def __init__(
        self,
        around: ClientEnvironment | None = None,
        trust: TrustStore | None = None,
        keyring: KeyringLookup | None = None,
    ) -> None:
        self.around = around or ClientEnvironment.of_process()
        self.store = trust or TrustStore()
        self._keyring = keyring

    def load(self, previous: Catalog | None = None) -> Catalog:
        """All profiles. A file that became unreadable keeps its `previous` version, with a problem that says so."""
        kept = {file.contents.path: file for file in previous.files} if previous else {}
        files: list[LoadedFile] = []
        problems: list[str] = []
        for place in self.around.places():
            try:
                data = read_file(place.path)
            except OSError as error:
                if place.is_asked_for:
                    problems.append(f"{place.path} is named by CREWX_MCP_JSON and cannot be read")
                elif not isinstance(error, ABSENT):
                    problems.append(f"{place.path} cannot be read: {error.strerror}")
                continue
            files.append(self._loaded(place, data, kept))
        files.extend(self._imported(files, kept))
        catalog = join_layers(files)
        return structs.replace(catalog, problems=(*problems, *catalog.problems), built_in=built_in_servers(self.around))

    def resolve(self, listed: CatalogEntry, answers: Mapping[str, str] | None = None) -> ResolvedProfile:
        """The profile with every reference filled in, for the moment it is used."""
        if listed.profile is None:
            raise InvalidInput(listed.message, listed.hint)
        if listed.state == "untrusted":
            raise Denied(listed.message, listed.hint)
        context = InterpolationContext(
            environ=self.around.environ,
            cwd=self.around.cwd,
            home=self.around.home,
            workspace=listed.workspace,
            inputs=listed.inputs,
            answers=answers or {},
            keyring=self._keyring,
        )
        return resolve_profile(listed.profile, context)

    def add(self, id: str, entry: JsonEntry, layer: Layer = "user", replaces: bool = False) -> Path:
        """Write a server down; returns the file. Names of stronger layers still win."""
        return self.add_all({id: entry}, layer, replaces)

    def add_all(self, entries: Mapping[str, JsonEntry], layer: Layer = "user", replaces: bool = False) -> Path:
        """Write all of these servers down, or none."""
        path = self.around.file_of(layer)
        self._edit(path, lambda file: file.add_all(dict(entries), {}, replaces))
        return path

    def remove(self, id: str) -> Path:
        return self._edit_where(id, lambda file: file.remove(id))

    def enable(self, id: str) -> Path:
        return self._edit_where(id, lambda file: file.enable(id))

    def disable(self, id: str) -> Path:
        return self._edit_where(id, lambda file: file.disable(id))

    def rename(self, id: str, new_id: str) -> Path:
        return self._edit_where(id, lambda file: file.rename(id, new_id))

    def entry(self, id: str) -> tuple[Path, JsonEntry]:
        """A server as its file has it, secrets included, and that file."""
        path = self._own_file(id)
        return path, ProfileFile(path).entry(id)[0]

    def replace(self, id: str, entry: JsonEntry, new_id: str) -> Path:
        """Another entry for a server that is there, under the same name or a new one."""
        return self._edit_where(id, lambda file: file.replace(id, entry, new_id))

    def take_out(self, id: str) -> RemovedServer:
        """`remove`, with what `put_back` needs."""
        path = self._own_file(id)
        entry, sets = ProfileFile(path).entry(id)
        self._edit(path, lambda file: file.remove(id))
        return RemovedServer(id, path, entry, sets)

    def put_back(self, removed: RemovedServer) -> Path:
        self._edit(removed.path, lambda file: file.put_back(removed.id, removed.entry, removed.sets))
        return removed.path

    def plan_import(self, programs: Iterable[ProgramName] | None = None) -> ImportPlan:
        """What an import from these programs, or from all, would do; nothing is written."""
        from dari.bridge.config.importers import plan

        return plan.plan_import(self.around, programs, self._taken_names())

    def plan_entries(self, entries: Mapping[str, JsonEntry]) -> ImportPlan:
        """What adding these to the person's own file would do; nothing is written."""
        from dari.bridge.config.importers import plan

        return plan.plan_entries(entries, self.around.file_of("user"), self._taken_names())

    def run_choices(
        self, chosen: ImportPlan, choices: Iterable[ImportChoice], layer: Layer = "user"
    ) -> tuple[str, ...]:
        """Write what a person chose of a plan; returns the names."""
        from dari.bridge.config.importers import plan

        names: list[str] = []
        path = self.around.file_of(layer)
        self._edit(path, lambda file: names.extend(plan.apply_choices(chosen, choices, file)))
        return tuple(names)

    def run_import(self, chosen: ImportPlan, layer: Layer = "user", takes_conflicts: bool = False) -> tuple[str, ...]:
        """Write what is new; returns the names."""
        from dari.bridge.config.importers import plan

        names: list[str] = []
        self._edit(
            self.around.file_of(layer),
            lambda file: names.extend(plan.apply_import(chosen, file, takes_conflicts)),
        )
        return tuple(names)

    def trust(self, path: Path | None = None, sha256: str | None = None) -> TrustedFile:
        """Pin a project's file. With `sha256`, of the content that was shown, another content is refused."""
        path, data = self._project_file(path)
        contents = self.contents(path, data)
        if not contents.is_readable:
            raise InvalidInput(contents.problems[0], "correct the file first")
        if sha256 is not None and sha256 != contents.digest:
            raise InvalidInput(f"{path} has changed since it was shown", "look at it again")
        return self.store.trust(path, data)

    def trust_state(self, path: Path | None = None) -> tuple[Path, str, TrustState]:
        """The file, its hash, and how it stands to what was pinned."""
        path, data = self._project_file(path)
        return path, self.contents(path, data).digest, self.store.state(path, data)

    def contents(self, path: Path, data: bytes) -> FileContents:
        """A project's file as it would be read: one of ours, or one of another program in its own format."""
        from dari.bridge.config.importers import plan
        from dari.bridge.config.importers.sources import PROGRAMS

        for folder in (self.around.cwd, path.parent, path.parent.parent):
            around = structs.replace(self.around, cwd=folder)
            for found in plan.find_sources(PROGRAMS, around):
                if found.path == path and found.project is not None:
                    return plan.read_source(found, data)
        return read_contents(data, path, "project")

    def distrust(self, path: Path | None = None) -> bool:
        return self.store.distrust(path or self._project_file(None)[0])

    def watched(self, catalog: Catalog | None = None) -> tuple[Path, ...]:
        """Every file whose change can change the catalogue; without one, those that are there in any case."""
        files = catalog.files if catalog is not None else ()
        imports = dict.fromkeys(name for file in files for name in file.contents.imports)
        foreign: list[Path] = []
        if imports:
            from dari.bridge.config.importers import plan

            foreign = [found.path for found in plan.find_sources(imports, self.around)]
        return (*(place.path for place in self.around.places()), *foreign, self.store.path)

    def _loaded(self, place: ConfigLocation, data: bytes, kept: dict[str, LoadedFile]) -> LoadedFile:
        contents = read_contents(data, place.path, place.layer)
        return self._judged(place.path, data, contents, place.workspace, kept)

    def _judged(
        self, path: Path, data: bytes, contents: FileContents, workspace: Path, kept: dict[str, LoadedFile]
    ) -> LoadedFile:
        if not contents.is_readable and (good := kept.get(contents.path)) and good.contents.is_readable:
            problems = (*contents.problems, f"{contents.path}: the last good version is used")
            is_trusted = good.is_trusted
            if good.contents.layer == "project" or is_writable_by_others(path):
                is_trusted = self.store.is_pinned(path, good.contents.digest)  # a person may have taken it back
            kept_contents = structs.replace(good.contents, problems=problems)
            return structs.replace(good, contents=kept_contents, is_trusted=is_trusted, is_kept=True)
        if contents.layer != "project" and not is_writable_by_others(path):
            return LoadedFile(warn_if_readable(path, contents), workspace)
        state = self.store.state(path, data)
        return LoadedFile(contents, workspace, state.state == "trusted", state.changes)

    def _imported(self, files: list[LoadedFile], kept: dict[str, LoadedFile]) -> Iterator[LoadedFile]:
        """Files of other programs that trusted files ask for; a project's ones have to be trusted themselves."""
        wanted = dict.fromkeys(name for file in files if file.is_trusted for name in file.contents.imports)
        if not wanted:
            return
        from dari.bridge.config.importers import plan  # eight formats that most people never need

        for found in plan.find_sources(wanted, self.around):
            data = _read_bytes(found.path)
            if data is not None:
                contents = plan.read_source(found, data)
                yield self._judged(found.path, data, contents, found.project or self.around.cwd, kept)

    def _taken_names(self) -> dict[str, Profile | None]:
        return {one.id: one.profile for one in self.load().listed if one.state != "untrusted"}

    def _edit_where(self, id: str, change: Edit) -> Path:
        path = self._own_file(id)
        self._edit(path, change)
        return path

    def _own_file(self, id: str) -> Path:
        """The file that a server stands in, where it is one that Dari writes."""
        source = self.load().find(id).source
        if source.layer == "built-in":
            raise InvalidInput(
                f"'{id}' is built in: no file names it", f"dari remote add {id} … writes a profile that wins over it"
            )
        if source.program:
            raise InvalidInput(
                f"'{id}' is in a file of {source.program} ({source.file})", "import it, then change the copy"
            )
        return Path(source.file)

    def _edit(self, path: Path, change: Edit) -> None:
        """Write; a project's file that was trusted, or is made by this, stays trusted: its owner wrote it."""
        is_project = path == self.around.file_of("project")
        file = ProfileFile(path, 0o644 if is_project else 0o600)
        change(file)
        if not is_project or file.written is None:
            return
        if file.replaced is None or self.store.state(path, file.replaced).state == "trusted":
            self.store.trust(path, file.written)

    def _project_file(self, path: Path | None) -> tuple[Path, bytes]:
        if path is None:
            there = [place.path for place in self.around.places() if place.layer == "project" and place.path.exists()]
            path = there[0] if there else self.around.file_of("project")
        try:
            return path, read_file(path)
        except ABSENT:
            raise NotFound(f"{path} does not exist", "name the file to trust") from None
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}", "name a file of servers") from None


def _read_bytes(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except OSError:
        return None
