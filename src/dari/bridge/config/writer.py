"""Write profiles to a file: one writer at a time, atomically, keeping every field that is not ours."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dari.bridge.config.json_edit import JsonText
from dari.bridge.config.jsonc import JsonPath as Place
from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.loader import YAML_SUFFIXES, read_contents, read_entry, read_file
from dari.bridge.config.normalize import check_id
from dari.errors import Conflict, Failed, InvalidInput, NotFound, TimedOut
from dari.os_errors import describe_os_error, suggest_next_step
from dari.paths import make_dirs

LOCK_TIMEOUT_S = 10.0
_LOCK_POLL_S = 0.005


@contextmanager
def folder_lock(folder: Path, wait_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the folder. It blocks: call it from a thread when a loop runs. The kernel lets go if we die."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimedOut(
                        f"another process has been writing in {folder} for {wait_s:g} s", "try again"
                    ) from None
                time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(file)


EMPTY_CONFIG = '{\n  "version": "1",\n  "servers": []\n}\n'
JsonEntry = dict[str, JsonValue]


class ProfileFile:
    """One JSON file of profiles. Its mode and, behind a link, its place stay as they are."""

    def __init__(self, path: Path, mode: int = 0o600) -> None:
        self.path = path
        self._mode = mode
        """Of a file that is made anew."""
        self.replaced: bytes | None = None
        """What the last change found; None when there was no file."""
        self.written: bytes | None = None

    def add(self, id: str, entry: JsonEntry, replaces: bool = False) -> bytes:
        """Add one server; the new text is what the file then holds. A name in use is refused unless it `replaces`."""
        return self.add_all({id: entry}, {}, replaces)

    def add_all(
        self, entries: dict[str, JsonEntry], inputs: dict[str, JsonEntry], replaces: bool | Collection[str] = False
    ) -> bytes:
        """Add several servers, and the inputs that they ask for, in one write. `replaces` may name those that may."""
        for id, entry in entries.items():
            _check(id, entry, self.path)

        def change(text: JsonText) -> None:
            for id, entry in entries.items():
                _put(text, id, entry, replaces if isinstance(replaces, bool) else id in replaces, self.path)
            known = {found.get("id") for found in _inputs(text)}
            for name, asked in inputs.items():
                if name not in known:
                    if text.root.get("inputs") is None:
                        text.set(("inputs",), [])
                    text.append(("inputs",), asked)

        return self._change(change, makes=True)

    def remove(self, id: str) -> bytes:
        def change(text: JsonText) -> None:
            text.remove(_place_of(text, id, self.path))
            for name, index in _set_uses(text, id):
                text.remove(("profiles", name, "servers", index))

        return self._change(change)

    def rename(self, id: str, new_id: str) -> bytes:
        """The server keeps its place; sets that name it follow."""
        if fact := check_id(new_id):
            raise InvalidInput(f"'{new_id}': {fact}", "choose another name")
        return self._change(lambda text: _rename(text, id, new_id, self.path))

    def replace(self, id: str, entry: JsonEntry, new_id: str) -> bytes:
        """Another entry for a server, under the same name or a new one, in one write."""
        _check(new_id, entry, self.path)

        def change(text: JsonText) -> None:
            if new_id != id:
                _rename(text, id, new_id, self.path)
            _put(text, new_id, entry, True, self.path)

        return self._change(change)

    def put_back(self, id: str, entry: JsonEntry, sets: Sequence[str]) -> bytes:
        """A server that was removed, also into the sets that named it, as far as they are still there."""
        _check(id, entry, self.path)

        def change(text: JsonText) -> None:
            _put(text, id, entry, False, self.path)
            for name in sets:
                if _has(text, ("profiles", name, "servers")):
                    text.append(("profiles", name, "servers"), id)

        return self._change(change, makes=True)

    def entry(self, id: str) -> tuple[JsonEntry, tuple[str, ...]]:
        """A server as the file has it, without its name, and the sets that name it."""
        text = JsonText(_decoded(_content(self.path, self._mode)[0], self.path), str(self.path))
        node = text.root
        for step in _place_of(text, id, self.path):
            below = node.get(step)
            assert below is not None
            node = below
        plain = node.plain()
        if not isinstance(plain, dict):
            raise InvalidInput(f"'{id}' in {self.path} must be an object", "correct the file by hand")
        sets = dict.fromkeys(name for name, _ in _set_uses(text, id))
        return {field: value for field, value in plain.items() if field not in ("id", "name")}, tuple(sets)

    def enable(self, id: str) -> bytes:
        return self._change(lambda text: _switch(text, _place_of(text, id, self.path), True))

    def disable(self, id: str) -> bytes:
        return self._change(lambda text: _switch(text, _place_of(text, id, self.path), False))

    def ids(self) -> tuple[str, ...]:
        """The names in the file, broken servers included."""
        try:
            contents = read_contents(read_file(self.path), self.path, "user")
        except FileNotFoundError:
            return ()
        return (*(one.id for one in contents.profiles), *(one.id for one in contents.broken))

    def _change(self, change: Callable[[JsonText], None], makes: bool = False) -> bytes:
        if self.path.suffix.lower() in YAML_SUFFIXES:
            raise InvalidInput(
                f"Dari does not write YAML files, and {self.path} is one", "edit it by hand, or use mcp.json"
            )
        path = Path(os.path.realpath(self.path))
        try:
            if makes:
                make_dirs(path.parent, 0o700 if self._mode == 0o600 else 0o755)
            with folder_lock(path.parent):
                self.replaced, mode = _content(path, self._mode)
                if self.replaced is None and not makes:
                    raise FileNotFoundError
                text = JsonText(_decoded(self.replaced, self.path), str(self.path))
                if text.root.shape != "object":
                    raise InvalidInput(
                        f"{self.path}:1: the file must hold a JSON object", 'begin with {"servers": [ … ]}'
                    )
                change(text)
                self.written = text.text.encode()
                _replace(path, self.written, mode)
                return self.written
        except FileNotFoundError:
            raise NotFound(f"{self.path} does not exist", "add a server first") from None
        except OSError as error:
            raise Failed(
                f"cannot write {self.path}: {describe_os_error(error)}",
                suggest_next_step(error, "check the folder and its owner"),
            ) from error


def _check(id: str, entry: JsonEntry, path: Path) -> None:
    """Refuse to write what could not be read again."""
    if fact := check_id(id):
        raise InvalidInput(f"'{id}': {fact}", "choose another name")
    read_entry(id, entry, path)


def _put(text: JsonText, id: str, entry: JsonEntry, replaces: bool, path: Path) -> None:
    place = _find(text, id)
    if place is not None:
        if not replaces:
            raise Conflict(f"{path} has a server '{id}' already", "choose another name, or remove that one first")
        text.set(place, {"id": id, **entry} if isinstance(place[-1], int) else entry)
        return
    servers = text.root.get("servers")
    if (servers is None or not servers.members) and (mcp := text.root.get("mcpServers")) and mcp.shape == "object":
        text.set(("mcpServers", id), entry)
    elif servers is not None and servers.shape == "object":
        text.set(("servers", id), entry)
    else:
        if servers is None:
            text.set(("servers",), [])
        text.append(("servers",), {"id": id, **entry})


def _find(text: JsonText, id: str) -> Place | None:
    root = text.root
    endpoints: list[Place] = [("servers",), ("mcpServers",), ("mcp", "endpoints")]
    for place in endpoints:
        node = root.get(place[0])
        for step in place[1:]:
            node = node.get(step) if node else None
        for index, member in enumerate(node.members if node else ()):
            named = member.value.get("name") if place[0] == "mcp" else None
            named = named or member.value.get("id")
            if member.key == id and node is not None and node.shape == "object":
                return (*place, id)
            if node is not None and node.shape == "array" and named is not None and named.scalar == id:
                return (*place, index)
    return None


def _place_of(text: JsonText, id: str, path: Path) -> Place:
    place = _find(text, id)
    if place is None:
        raise NotFound(f"{path} has no server '{id}'", "list them: dari remote servers")
    return place


def _rename(text: JsonText, id: str, new_id: str, path: Path) -> None:
    place = _place_of(text, id, path)
    if new_id != id and _find(text, new_id) is not None:
        raise Conflict(f"{path} has a server '{new_id}' already", "choose another name")
    if isinstance(place[-1], str):
        text.rename(place, new_id)
    else:
        field = "name" if place[0] == "mcp" and _has(text, (*place, "name")) else "id"
        text.set((*place, field), new_id)
    for name, index in _set_uses(text, id):
        text.set(("profiles", name, "servers", index), new_id)


def _has(text: JsonText, place: Place) -> bool:
    node = text.root
    for step in place:
        below = node.get(step)
        if below is None:
            return False
        node = below
    return True


def _switch(text: JsonText, place: Place, is_on: bool) -> None:
    """`enabled` where the file uses it, else `disabled`, which is left out when it is false."""
    if _has(text, (*place, "enabled")):
        text.set((*place, "enabled"), is_on)
    if not is_on and not _has(text, (*place, "enabled")):
        text.set((*place, "disabled"), True)
    elif _has(text, (*place, "disabled")):
        text.remove((*place, "disabled"))


def _set_uses(text: JsonText, id: str) -> list[tuple[str, int]]:
    """Where named sets speak of the server, last first, so that places stay right while they are removed."""
    found = []
    sets = text.root.get("profiles")
    for member in sets.members if sets else ():
        servers = member.value.get("servers")
        for index, one in enumerate(servers.members if servers else ()):
            if one.value.scalar == id:
                found.append((member.key, index))
    return found[::-1]


def _inputs(text: JsonText) -> list[JsonEntry]:
    node = text.root.get("inputs")
    plain = node.plain() if node else []
    return [one for one in plain if isinstance(one, dict)] if isinstance(plain, list) else []


def _content(path: Path, mode: int) -> tuple[bytes | None, int]:
    try:
        return read_file(path), stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None, mode


def _decoded(data: bytes | None, path: Path) -> str:
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} must be UTF-8 text (error at byte {error.start})", "save it as UTF-8") from error
    return text if text.strip("\ufeff \t\r\n") else EMPTY_CONFIG


def _replace(path: Path, data: bytes, mode: int) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            _keep_owner(stream.fileno(), path)
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _keep_owner(file: int, path: Path) -> None:
    """Root may edit what is somebody else's, who must be able to read it afterwards."""
    if os.geteuid() != 0:
        return
    with suppress(OSError):  # a new file, or an owner that is unknown in this namespace
        before = os.stat(path)
        os.fchown(file, before.st_uid, before.st_gid)
