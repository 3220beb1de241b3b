"""The models on this machine, and which of them is active in a knowledge base.

A model is a folder `<name>-<hash>` that appears whole, by one rename. `model.json` in the data folder names the one
active model, and whether a person chose it or the languages of the documents did.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dari.errors import Conflict, InvalidInput
from dari.knowledge.errors import ModelNotInstalled
from dari.knowledge.models.catalog import CATALOG, preferred
from dari.knowledge.models.manifest import ModelManifest, model_key, read_manifest, recipe_hash, sha256_of
from dari.knowledge.models.settings import EmbeddingSettings
from dari.knowledge.paths import DataPaths
from dari.knowledge.wire.reports import ModelV1
from dari.paths import private_dir, read_regular, write_private
from dari.struct_types import ready

STAGING_PREFIX = ".staging-"
_FALLBACK_ORDER = ("use-m", "gte-small", "minilm", "potion-ml")


class InstalledModel(Struct, frozen=True):
    """A complete model and its folder."""

    folder: Path
    manifest: ModelManifest

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def size_bytes(self) -> int:
        return sum(entry.stat().st_size for entry in os.scandir(self.folder) if entry.is_file())


class ActiveModel(Struct, frozen=True, kw_only=True):
    """`model.json`."""

    name: str
    chosen_by: Literal["person", "languages"]
    path: str = ""
    """A folder of the person's own; empty: an installed model."""
    hash: str = ""
    stamp: tuple[int, ...] = ()
    """Sizes and times of the own folder's files when `hash` was computed."""


def models_dir(settings: EmbeddingSettings, data_dir: Path) -> Path:
    """Where installed models are; `load_settings` has made a configured folder absolute."""
    return Path(settings.models_dir) if settings.models_dir else DataPaths(data_dir).models


def installed_models(folder: Path) -> list[InstalledModel]:
    """By name. A folder that is being made, or that somebody damaged, is not one."""
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.name.startswith(".") or not path.is_dir():
            continue
        try:
            found.append(InstalledModel(path, read_manifest(path)))
        except InvalidInput:
            continue
    return found


def find_installed(folder: Path, name: str) -> InstalledModel | None:
    return next((model for model in installed_models(folder) if model.name == name), None)


def read_active(data_dir: Path) -> ActiveModel | None:
    """None where nothing was chosen yet, or the file cannot be read."""
    try:
        return msgspec.json.decode(read_regular(DataPaths(data_dir).active_model, 64 * 1024), type=ready(ActiveModel))
    except (OSError, msgspec.MsgspecError):
        return None


def use_installed(settings: EmbeddingSettings, data_dir: Path, name: str) -> InstalledModel:
    """Make an installed model the active one; chunks get its vectors in the background."""
    model = find_installed(models_dir(settings, data_dir), name)
    if model is None:
        is_known = any(one.name == name for one in CATALOG)
        hint = f"run `kebab models install {name}`" if is_known else "`kebab models list` shows what is"
        raise ModelNotInstalled(f"the model {name} is not installed", hint, model=name)
    _write_active(data_dir, ActiveModel(name=name, chosen_by="person"))
    return model


def use_folder(data_dir: Path, folder: Path) -> InstalledModel:
    """Make a folder of the person's own the active model. It stays where it is."""
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        raise InvalidInput(f"{folder} must be a folder with an ONNX model", "name the folder that holds manifest.json")
    model, active = _own_folder(folder, None)
    _write_active(data_dir, active)
    return model


def use_for_languages(settings: EmbeddingSettings, data_dir: Path, languages: Mapping[str, int]) -> str | None:
    """Called after an ingest: choose by the documents' languages unless a person chose. Returns the new active name.

    None when nothing changes.
    """
    active = read_active(data_dir)
    if active is not None and active.chosen_by == "person":
        return None
    names = [model.name for model in installed_models(models_dir(settings, data_dir))]
    name = preferred(languages, names)
    if name is None or (active is not None and active.name == name):
        return None
    _write_active(data_dir, ActiveModel(name=name, chosen_by="languages"))
    return name


def active_model(settings: EmbeddingSettings, data_dir: Path) -> InstalledModel | None:
    """The active local model; None where none is installed. InvalidInput when the person's own folder is damaged."""
    folder, active = models_dir(settings, data_dir), read_active(data_dir)
    if active is not None and active.path:
        return _own_folder(Path(active.path), active)[0]
    if active is not None and (found := find_installed(folder, active.name)) is not None:
        return found
    models = {model.name: model for model in installed_models(folder)}
    return next((models[name] for name in (*_FALLBACK_ORDER, *models) if name in models), None)


def remove_model(settings: EmbeddingSettings, data_dir: Path, name: str) -> int:
    """Delete an installed model; returns the bytes that were freed. Its vectors stay until `kebab reset --vector-only`.

    Refused for the active one that a person chose.
    """
    active = read_active(data_dir)
    folder = models_dir(settings, data_dir)
    models = [model for model in installed_models(folder) if model.name == name]
    if not models:
        raise ModelNotInstalled(f"the model {name} is not installed", "`kebab models list` shows what is", model=name)
    if active is not None and active.chosen_by == "person" and active.name == name and not active.path:
        raise Conflict(f"{name} is the active model", "choose another first: kebab models use NAME")
    freed = 0
    for model in models:
        freed += model.size_bytes
        # Away from its name first: a reader sees the whole model or none.
        doomed = folder / f"{STAGING_PREFIX}removed-{os.urandom(4).hex()}"
        os.rename(model.folder, doomed)
        shutil.rmtree(doomed, ignore_errors=True)
    return freed


def model_rows(settings: EmbeddingSettings, data_dir: Path) -> list[ModelV1]:
    """The catalogue with what is installed, then folders of the person's own."""
    installed = {model.name: model for model in installed_models(models_dir(settings, data_dir))}
    active = active_model(settings, data_dir)
    rows = []
    for entry in CATALOG:
        found = installed.pop(entry.name, None)
        manifest = found.manifest if found else entry.manifest
        rows.append(
            ModelV1(
                name=entry.name,
                key=model_key(entry.name, manifest.hash) if found else "",
                dim=manifest.dim,
                languages=manifest.languages,
                size_bytes=found.size_bytes if found else entry.installed_bytes,
                download_bytes=entry.archive_bytes,
                licence=manifest.licence,
                about=entry.about,
                is_installed=found is not None,
                is_active=found is not None and active is not None and active.folder == found.folder,
                lexical_weight=manifest.lexical_weight,
                path=str(found.folder) if found else "",
            )
        )
    others = list(installed.values())
    if active is not None and active.folder.parent != models_dir(settings, data_dir):
        others.append(active)
    return rows + [_other_row(model, active) for model in others]


def _other_row(model: InstalledModel, active: InstalledModel | None) -> ModelV1:
    return ModelV1(
        name=model.name,
        key=model_key(model.name, model.manifest.hash),
        dim=model.manifest.dim,
        languages=model.manifest.languages,
        size_bytes=model.size_bytes,
        download_bytes=0,
        licence=model.manifest.licence,
        about="a folder of your own",
        is_installed=True,
        is_active=active is not None and active.folder == model.folder,
        lexical_weight=model.manifest.lexical_weight,
        path=str(model.folder),
    )


def _own_folder(folder: Path, known: ActiveModel | None) -> tuple[InstalledModel, ActiveModel]:
    """With its hash, which is computed again only when a file changed, once a process: a large model takes seconds."""
    manifest = read_manifest(folder)
    files = [folder / name for name in (manifest.model_file, manifest.tokenizer_file) if name]
    stamp = tuple(number for file in files for number in (file.stat().st_size, file.stat().st_mtime_ns))
    if known is not None and known.stamp == stamp and known.hash:
        weights = known.hash
    else:
        weights = _hash_of(tuple(files), stamp)
    manifest = msgspec.structs.replace(manifest, hash=recipe_hash(manifest, weights))
    active = ActiveModel(name=manifest.name, chosen_by="person", path=str(folder), hash=weights, stamp=stamp)
    return InstalledModel(folder, manifest), active


@lru_cache(maxsize=8)
def _hash_of(files: tuple[Path, ...], stamp: tuple[int, ...]) -> str:
    del stamp  # by which the same files with other content are told apart
    return "+".join(sha256_of(file) for file in files)


def _write_active(data_dir: Path, active: ActiveModel) -> None:
    private_dir(data_dir)
    write_private(DataPaths(data_dir).active_model, msgspec.json.encode(active))
