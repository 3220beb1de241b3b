"""The int8 graph computes what the float weights say, and a text's vector does not depend on its neighbours."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dari.errors import Failed
from dari.knowledge.models.bert_onnx import BertShape, build_int8, read_onnx_weights, read_safetensors
from dari.knowledge.models.manifest import read_manifest
from dari.knowledge.models.onnx import OnnxModel
from tests.support.tiny_models import SHAPE, Weights, bert_weights, own_folder, safetensors

Matrix = NDArray[np.float32]


def test_the_int8_graph_is_close_to_the_float_model_computed_with_numpy() -> None:
    weights, ids = bert_weights(), np.array([[2, 4, 5, 7, 9, 3]])
    expected, found = _bert(weights, ids[0]), _run(build_int8(weights, SHAPE), ids)[0]
    cosines = (expected * found).sum(axis=1) / np.linalg.norm(expected, axis=1) / np.linalg.norm(found, axis=1)
    assert cosines.min() > 0.995


def test_a_text_has_the_same_vector_alone_and_beside_longer_ones(tmp_path: Path) -> None:
    folder = own_folder(tmp_path)
    model = OnnxModel(folder, read_manifest(folder), threads=1)
    texts = ["the cat", "the dog ran under a tree", "mat", "the cat sat on the mat on the mat on the mat"]
    together = model.embed_passages(texts)
    alone = np.concatenate([model.embed_passages([text]) for text in texts])
    assert np.array_equal(together, alone)


def test_safetensors_are_read_as_they_were_written() -> None:
    weights = bert_weights()
    read = read_safetensors(safetensors(weights))
    assert read.keys() == weights.keys()
    assert all(np.array_equal(read[name], weights[name]) for name in weights)


@pytest.mark.parametrize("data", [b"", b"\xff" * 64, (1 << 40).to_bytes(8, "little") + b"{}"])
def test_a_damaged_safetensors_file_is_refused(data: bytes) -> None:
    with pytest.raises(Failed):
        read_safetensors(data)


def test_weights_without_a_layer_are_refused() -> None:
    with pytest.raises(Failed, match=r"encoder\.layer\.2"):
        build_int8(bert_weights(), BertShape(3, 4, 32))


def test_an_onnx_export_has_its_matrices_turned_back(tmp_path: Path) -> None:
    """Exporters write x·Wᵀ with W transposed under a made-up name, and the layer's name only on the node."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensors = [
        numpy_helper.from_array(weight.T.copy(), "onnx::MatMul_7"),
        numpy_helper.from_array(np.ones(2, np.float32), "encoder.layer.0.output.dense.bias"),
    ]
    node = helper.make_node("MatMul", ["x", "onnx::MatMul_7"], ["y"], name="/encoder/layer.0/output/dense/MatMul")
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    graph = helper.make_graph([node], "g", sides[:1], sides[1:], tensors)
    onnx.save(helper.make_model(graph), str(tmp_path / "m.onnx"))
    read = read_onnx_weights(tmp_path / "m.onnx")
    assert np.array_equal(read["encoder.layer.0.output.dense.weight"], weight)
    assert "encoder.layer.0.output.dense.bias" in read


def _run(data: bytes, ids: NDArray[np.int64]) -> Matrix:
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    found: Matrix = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
    return found


def _bert(weights: Weights, ids: NDArray[np.int64]) -> Matrix:
    """The encoder as its paper has it, in float64."""

    def dense(value: Matrix, at: str) -> Matrix:
        return value @ weights[f"{at}.weight"].T + weights[f"{at}.bias"]

    def norm(value: Matrix) -> Matrix:
        return (value - value.mean(-1, keepdims=True)) / np.sqrt(value.var(-1, keepdims=True) + 1e-12)

    positions = weights["embeddings.position_embeddings.weight"][: len(ids)]
    kind = weights["embeddings.token_type_embeddings.weight"][0]
    hidden = norm(weights["embeddings.word_embeddings.weight"][ids] + positions + kind)
    heads, size = SHAPE.num_attention_heads, SHAPE.hidden_size // SHAPE.num_attention_heads
    for number in range(SHAPE.num_hidden_layers):
        at = f"encoder.layer.{number}"
        parts = [dense(hidden, f"{at}.attention.self.{part}") for part in ("query", "key", "value")]
        query, key, value = (part.reshape(len(ids), heads, size).swapaxes(0, 1) for part in parts)
        scores = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(size))
        mixed = (scores / scores.sum(-1, keepdims=True) @ value).swapaxes(0, 1).reshape(len(ids), -1)
        hidden = norm(dense(mixed, f"{at}.attention.output.dense") + hidden)
        wide = dense(hidden, f"{at}.intermediate.dense")
        gelu = wide * np.vectorize(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))))(wide)
        hidden = norm(dense(gelu, f"{at}.output.dense") + hidden)
    return hidden
