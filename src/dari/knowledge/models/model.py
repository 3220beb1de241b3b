"""What makes vectors: the one interface of local models, static tables and servers of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

import msgspec

from dari.knowledge.errors import ModelNotInstalled
from dari.knowledge.models.catalog import ENGLISH_NAME, MULTILINGUAL_NAME
from dari.knowledge.models.installed import InstalledModel, active_model, find_installed, models_dir
from dari.knowledge.models.manifest import ModelManifest
from dari.knowledge.models.settings import AUTO, NONE, EmbeddingSettings

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]


_OPENING = Lock()
_OPEN: WeakValueDictionary[tuple[Path, ModelManifest, int], EmbeddingModel] = WeakValueDictionary()
"""Of this process; one that nobody holds any more is closed."""


class EmbeddingModel(Protocol):
    """Safe to call from several threads. Making one is cheap: weights are read by the first text."""

    @property
    def key(self) -> str:
        """Name and hash, such as `use-m-1f2e3d4c5b6a`: vectors of two keys never mix."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def lexical_weight(self) -> float:
        """The weight of the lexical half when hybrid search fuses it with this model's cosine."""

    @property
    def max_tokens(self) -> int:
        """What one window holds; longer passages are embedded as the mean of their windows. 0: not known."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One unit row of float32 a text; a text without a known token is a row of zeros."""

    def embed_query(self, text: str) -> Vectors:
        """One unit vector; the last queries are remembered."""


def load_model(settings: EmbeddingSettings, data_dir: Path) -> EmbeddingModel | None:
    """The active model, or None where none is installed or wanted. A named one that is missing is ModelNotInstalled."""
    if settings.model == NONE:
        return None
    if settings.provider != "local":
        from dari.knowledge.models.http import HttpModel

        return HttpModel(settings, data_dir)
    if settings.model == AUTO:
        found = active_model(settings, data_dir)
    else:
        found = find_installed(models_dir(settings, data_dir), settings.model)
        if found is None:
            raise ModelNotInstalled(
                f"the model {settings.model} is not installed",
                f"run `kebab models install {settings.model}`",
                model=settings.model,
            )
    return None if found is None else open_model(found, settings)


def english_beside(model: EmbeddingModel | None, settings: EmbeddingSettings, data_dir: Path) -> EmbeddingModel | None:
    """The installed English model that `ask` hears beside a multilingual local one."""
    if model is None or settings.provider != "local" or model.name != MULTILINGUAL_NAME:
        return None
    found = find_installed(models_dir(settings, data_dir), ENGLISH_NAME)
    return None if found is None else open_model(found, settings)


def open_model(found: InstalledModel, settings: EmbeddingSettings) -> EmbeddingModel:
    """The model in this folder, with the weight that the settings give it. All who have the same one open at a time
    share it: in kebabd the searches and the making of vectors, whose weights are 120 MB or more."""
    manifest = found.manifest
    if settings.lexical_weight is not None:
        manifest = msgspec.structs.replace(manifest, lexical_weight=settings.lexical_weight)
    key = (found.folder, manifest, settings.threads)
    with _OPENING:
        model = _OPEN.get(key)
        if model is None:
            model = _OPEN[key] = _make(*key)
    return model


def _make(folder: Path, manifest: ModelManifest, threads: int) -> EmbeddingModel:
    if manifest.kind == "static":
        from dari.knowledge.models.static import StaticModel

        return StaticModel(folder, manifest)
    from dari.knowledge.models.onnx import OnnxModel

    return OnnxModel(folder, manifest, threads)
