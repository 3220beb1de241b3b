"""Workspaces: named panes in a layout, from the built-in files or a user's own (TOML or JSON).

A file says either `layout` (a tree of splits) or `arrange` with `order` (a preset over panes in that order):

    description = "…"
    [layout]
    split = "horizontal"                      # side by side; "vertical": one above the other
    [[layout.parts]]
    pane = "code"
    size = "60%"                              # or cells; parts without a size share what is left
    [[layout.parts]]
    pane = "logs"
    [panes.code]                              # all optional
    command = "vim ."
    cwd = "~/project"
    env = { DEBUG = "1" }
    focus = true
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dari.errors import InvalidInput, NotFound
from dari.struct_types import ready
from dari.terminal.layout.cells import Cell, Leaf, Orientation, Split
from dari.terminal.layout.presets import Preset, arrange, cells_of
from dari.terminal.layout.tree import Tree

MAX_PANES = 64
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class WorkspacePart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pane by its name, or a split with parts of its own."""

    pane: str = ""
    split: Literal["horizontal", "vertical", ""] = ""
    size: int | str | None = None
    parts: tuple[WorkspacePart, ...] = ()


class PaneSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The program of a pane; by default the user's shell in the directory of the workspace."""

    command: str = ""
    cwd: str = ""
    title: str = ""
    env: dict[str, str] = {}
    focus: bool = False


class Workspace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    description: str = ""
    cwd: str = ""
    layout: WorkspacePart | None = None
    arrange: Preset | None = None
    order: tuple[str, ...] = ()
    main_size: int | str | None = None
    panes: dict[str, PaneSpec] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The panes in their order."""
        return self.order if self.layout is None else tuple(_names(self.layout))

    @property
    def focused(self) -> str:
        return next((name for name in self.names if name in self.panes and self.panes[name].focus), self.names[0])

    def spec(self, name: str) -> PaneSpec:
        return self.panes.get(name, PaneSpec())

    def tree(self, cols: int, rows: int, ids: Mapping[str, str] | None = None) -> Tree:
        """The tree in a window of this size; `ids` maps names to pane ids. Too small a window is refused."""
        ids = {name: name for name in self.names} if ids is None else ids
        if self.layout is not None:
            return Tree(_cell(self.layout, cols, rows, ids, "layout"), cols, rows)
        if len(self.order) == 1:
            return Tree.of(ids[self.order[0]], cols, rows)
        # The preset looks only at the panes, so the sizes before it do not matter.
        loose = Split("vertical", tuple(Leaf(ids[name], 1, 1) for name in self.order), cols, rows)
        tree = arrange(Tree(loose, cols, rows), self.arrange or "tiled", self.main_size)
        if tree.root.cols > cols or tree.root.rows > rows:
            raise InvalidInput(f"{len(self.order)} panes do not fit into {cols} × {rows} cells", "use a larger window")
        return tree


def presets() -> dict[str, Workspace]:
    """The built-in workspaces by name."""
    found = {}
    for entry in sorted(resources.files(__package__).joinpath("workspaces").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            name = entry.name.removesuffix(".toml")
            found[name] = parse_workspace(entry.read_bytes(), entry.name, name)
    return found


def load_workspace(name_or_path: str, folders: tuple[Path, ...] = ()) -> Workspace:
    """A file by its path, else `<name>.toml` or `.json` in one of the folders, else a built-in one."""
    path = Path(name_or_path).expanduser()
    if path.suffix in (".toml", ".json") or "/" in name_or_path:
        return _read(path)
    for folder in folders:
        for suffix in (".toml", ".json"):
            if (folder / (name_or_path + suffix)).is_file():
                return _read(folder / (name_or_path + suffix))
    built_in = presets()
    if name_or_path in built_in:
        return built_in[name_or_path]
    own = sorted(path.stem for folder in folders for path in folder.glob("*.[tj][os][mo][ln]"))
    raise NotFound(f"no workspace {name_or_path!r}", "one of " + ", ".join([*own, *built_in]) + ", or a path to a file")


def parse_workspace(data: bytes, source: str, name: str = "") -> Workspace:
    """A checked workspace; errors name the file and the field."""
    try:
        if source.endswith(".json"):
            raw = msgspec.json.decode(data)
        else:
            raw = tomllib.loads(data.decode())
        workspace = msgspec.convert(raw, ready(Workspace))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.DecodeError) as error:
        fact = re.sub(r"`\$\.?", "`", str(error))
        raise InvalidInput(f"{source}: {fact}", "see the guide of workspaces for the fields") from error
    problem = _problem(workspace)
    if problem:
        raise InvalidInput(f"{source}: {problem[0]}", problem[1])
    return msgspec.structs.replace(workspace, name=workspace.name or name)


def _read(path: Path) -> Workspace:
    try:
        with path.open("rb") as stream:
            data = stream.read(1 << 20)
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist", "name a file, or one of " + ", ".join(presets())) from error
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}", "name a file that you may read") from error
    return parse_workspace(data, str(path), path.stem)


def _problem(workspace: Workspace) -> tuple[str, str] | None:
    if (workspace.layout is None) == (workspace.arrange is None and not workspace.order):
        return "`layout` or `arrange` with `order`, one of them", "see the built-in workspaces"
    if workspace.layout is not None and (problem := _part_problem(workspace.layout, "layout")):
        return problem
    names = workspace.names
    if not names or len(names) > MAX_PANES:
        return f"{len(names)} panes", f"use 1 to {MAX_PANES}"
    for name in names:
        if not _NAME.fullmatch(name):
            return f"a pane name must have letters, digits, - and _ only, got {name!r}", "rename the pane"
        if names.count(name) > 1:
            return f"the pane {name!r} is there twice", "give each pane a name of its own"
    for name, spec in workspace.panes.items():
        if name not in names:
            return f"panes.{name} is not in the layout", "panes: " + ", ".join(names)
        for key in spec.env:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
                return (
                    f"panes.{name}.env: a name must have letters, digits and _ only, got {key!r}",
                    "rename the variable",
                )
    if sum(spec.focus for spec in workspace.panes.values()) > 1:
        return "two panes have the focus", "set focus for one pane"
    for where, size in (("main_size", workspace.main_size), *_sizes(workspace.layout, "layout")):
        if size is not None and not re.fullmatch(r"[1-9]\d{0,4}|([1-9]\d?|100)%", str(size)):
            return f"{where}: size must be cells such as 20 or a share such as 30%, got {size!r}", "correct the size"
    return None


def _part_problem(part: WorkspacePart, where: str) -> tuple[str, str] | None:
    if bool(part.pane) == bool(part.split):
        return f"{where}: `pane` or `split`, one of them", 'write pane = "name", or split = "horizontal" and parts'
    if part.pane and part.parts:
        return f"{where}: a pane has no parts", "write split instead of pane"
    if part.split and len(part.parts) < 2:
        return f"{where}: a split of {len(part.parts)} parts", "give it two or more"
    for index, child in enumerate(part.parts):
        if problem := _part_problem(child, f"{where}.parts[{index}]"):
            return problem
    return None


def _sizes(part: WorkspacePart | None, where: str) -> list[tuple[str, int | str | None]]:
    if part is None:
        return []
    inner = [found for index, child in enumerate(part.parts) for found in _sizes(child, f"{where}.parts[{index}]")]
    return [(f"{where}.size", part.size), *inner]


def _names(part: WorkspacePart) -> list[str]:
    return [part.pane] if part.pane else [name for child in part.parts for name in _names(child)]


def _cell(part: WorkspacePart, cols: int, rows: int, ids: Mapping[str, str], where: str) -> Cell:
    if part.pane:
        return Leaf(ids[part.pane], cols, rows)
    way: Orientation = "horizontal" if part.split == "horizontal" else "vertical"
    room = (cols if way == "horizontal" else rows) - (len(part.parts) - 1)
    sizes = [None if child.size is None else max(1, cells_of(child.size, room)) for child in part.parts]
    open_count = sizes.count(None)
    left = room - sum(size for size in sizes if size is not None)
    if left < open_count or room < len(part.parts):
        raise InvalidInput(f"{where}: {len(part.parts)} parts do not fit into {room} cells", "use a larger window")
    if open_count == 0 and left:
        sizes[-1] = (sizes[-1] or 0) + left
    each, extra = divmod(left, open_count) if open_count else (0, 0)
    children: list[Cell] = []
    for index, (child, given) in enumerate(zip(part.parts, sizes, strict=True)):
        size = each if given is None else given
        if given is None and extra:
            size, extra = size + 1, extra - 1
        inner = (size, rows) if way == "horizontal" else (cols, size)
        children.append(_cell(child, *inner, ids, f"{where}.parts[{index}]"))
    return Split(way, tuple(children), cols, rows)
