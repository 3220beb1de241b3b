"""An int8 ONNX file of a BERT encoder, made from its float weights with `onnx` and numpy alone (no torch).

Weights become int8 per output channel, activations int8 per token: a text has the same vector alone and in a batch, and
one outlying token does not coarsen the others (cosine with float32 .996; .991 with one scale per tensor, as
onnxruntime's own tool has it, at the same speed). Token embeddings are int8 per row. The graph uses fused operators of
onnxruntime, so that a session opens in 0.1 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dari.errors import Failed

if TYPE_CHECKING:
    from numpy import dtype, float32, generic, ndarray
    from numpy.typing import NDArray
    from onnx import NodeProto, TensorProto

    Weights = Mapping[str, NDArray[float32]]
    Array = ndarray[tuple[int, ...], dtype[generic]]

# Raised when the graph or the rounding changes: it is part of the model's hash, since the vectors change with it.
BUILDER_VERSION = 1
# 7 bits: without VNNI the processor adds pairs of u8·s8 products in 16 bits, which 8-bit weights overflow.
MAX_WEIGHT = 63
ONNX_OPSET = 20
IR_VERSION = 10


class BertShape(Struct, frozen=True):
    """What `config.json` of the model says."""

    num_hidden_layers: int
    num_attention_heads: int
    hidden_size: int
    layer_norm_eps: float = 1e-12


def read_safetensors(data: bytes) -> dict[str, NDArray[float32]]:
    """The float32 tensors of a safetensors file; the format is a JSON header and one block of bytes."""
    import msgspec
    import numpy as np

    length = int.from_bytes(data[:8], "little")
    if not 0 < length < len(data) - 8:
        raise Failed("model.safetensors has no valid header", "install the model again")
    header = msgspec.json.decode(data[8 : 8 + length], type=dict[str, dict[str, object]])
    body = memoryview(data)[8 + length :]
    found: dict[str, NDArray[float32]] = {}
    for name, tensor in header.items():
        if tensor.get("dtype") != "F32":
            continue
        start, end = msgspec.convert(tensor["data_offsets"], tuple[int, int])
        shape = msgspec.convert(tensor["shape"], tuple[int, ...])
        found[name] = np.frombuffer(body[start:end], dtype="<f4").reshape(shape)
    return found


def read_onnx_weights(path: Path) -> dict[str, NDArray[float32]]:
    """The same names from a float32 ONNX export, which renames and transposes the matrices."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    found = {
        name: numpy_helper.to_array(tensor) for name, tensor in tensors.items() if name.startswith(("emb", "encoder"))
    }
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in tensors:
            owner = node.name.strip("/").removesuffix("/MatMul").replace("/", ".")
            found[f"{owner}.weight"] = numpy_helper.to_array(tensors[node.input[1]]).T
    return found


def build_int8(weights: Weights, shape: BertShape) -> bytes:
    """An ONNX model: `input_ids`, `attention_mask` (int64, batch × tokens) to `last_hidden_state`."""
    from onnx import TensorProto, helper

    graph = _Graph(weights, shape)
    graph.constants()
    hidden = graph.embeddings()
    for layer in range(shape.num_hidden_layers):
        hidden = graph.layer(hidden, layer)
    graph.node("Identity", [hidden], "last_hidden_state")
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["b", "t"]) for n in ("input_ids", "attention_mask")]
    result = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "t", shape.hidden_size])
    made = helper.make_graph(graph.nodes, "bert", ids, [result], graph.tensors)
    opsets = [helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION)
    return bytes(model.SerializeToString(deterministic=True))


class _Graph:
    """Nodes and tensors in the order they run."""

    def __init__(self, weights: Weights, shape: BertShape) -> None:
        self._weights = weights
        self._shape = shape
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def embeddings(self) -> str:
        words, scale = _per_row(self._weight("embeddings.word_embeddings.weight"))
        self._tensor("words", words)
        self._tensor("words.scale", scale)
        # Every text is one segment: its embedding is a constant that positions can carry.
        positions = self._weight("embeddings.position_embeddings.weight")
        self._tensor("positions", positions + self._weight("embeddings.token_type_embeddings.weight")[0])
        self.node("Gather", ["words", "input_ids"], "words.int8", axis=0)
        self.node("Cast", ["words.int8"], "words.float", to=1)
        self.node("Gather", ["words.scale", "input_ids"], "words.scales", axis=0)
        self.node("Mul", ["words.float", "words.scales"], "words.found")
        self.node("Shape", ["input_ids"], "length", start=1, end=2)
        self.node("Slice", ["positions", "zero", "length", "zero"], "positions.used")
        self.node("Cast", ["attention_mask"], "mask", to=6)
        self.node("Add", ["words.found", "positions.used"], "embedded")
        gamma, beta = self._norm("embeddings.LayerNorm")
        eps = self._shape.layer_norm_eps
        return self.node("LayerNormalization", ["embedded", gamma, beta], "hidden", axis=-1, epsilon=eps)

    def constants(self) -> None:
        import numpy as np

        self._tensor("one", np.array(1, dtype=np.float32))
        self._tensor("127", np.array(127, dtype=np.float32))
        self._tensor("128", np.array(128, dtype=np.uint8))
        self._tensor("last_axis", np.array([-1], dtype=np.int64))
        self._tensor("zero", np.array([0], dtype=np.int64))
        self._tensor("qkv", np.array([self._shape.hidden_size] * 3, dtype=np.int64))

    def layer(self, hidden: str, number: int) -> str:
        import numpy as np

        at = f"encoder.layer.{number}"
        parts = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
        joined = np.concatenate([self._weight(f"{part}.weight") for part in parts])
        bias = np.concatenate([self._weight(f"{part}.bias") for part in parts])
        states = self._linear(hidden, f"{at}.qkv", joined, bias)
        split = [f"{at}.{part}" for part in "qkv"]
        self.nodes.append(_node("Split", [states, "qkv"], split, axis=-1))
        heads = self._shape.num_attention_heads
        mixed = self.node("MultiHeadAttention", [*split, "", "mask"], f"{at}.mixed", num_heads=heads)
        after = self._joined(self._dense(mixed, f"{at}.attention.output.dense"), hidden, f"{at}.attention.output")
        wide = self.node("Gelu", [self._dense(after, f"{at}.intermediate.dense")], f"{at}.gelu")
        return self._joined(self._dense(wide, f"{at}.output.dense"), after, f"{at}.output")

    def node(self, kind: str, inputs: list[str], output: str, **attributes: float) -> str:
        self.nodes.append(_node(kind, inputs, [output], **attributes))
        return output

    def _joined(self, value: str, skip: str, at: str) -> str:
        gamma, beta = self._norm(f"{at}.LayerNorm")
        eps = self._shape.layer_norm_eps
        return self.node("SkipLayerNormalization", [value, skip, gamma, beta], f"{at}.hidden", epsilon=eps)

    def _dense(self, value: str, at: str) -> str:
        return self._linear(value, at, self._weight(f"{at}.weight"), self._weight(f"{at}.bias"))

    def _linear(self, value: str, at: str, weight: NDArray[float32], bias: NDArray[float32]) -> str:
        rows, scale = _per_row(weight, MAX_WEIGHT)
        self._tensor(f"{at}.int8", rows.T.copy())
        self._tensor(f"{at}.scale", scale[:, 0])
        self._tensor(f"{at}.bias", bias)
        self.node("Abs", [value], f"{at}.abs")
        self.node("ReduceMax", [f"{at}.abs", "last_axis"], f"{at}.largest", keepdims=1)
        self.node("Div", [f"{at}.largest", "127"], f"{at}.tokens")
        self.node("Div", [value, f"{at}.tokens"], f"{at}.unit")
        self.node("QuantizeLinear", [f"{at}.unit", "one", "128"], f"{at}.uint8")
        inputs = [f"{at}.uint8", f"{at}.int8", "one", f"{at}.scale", "128"]
        self.node("MatMulIntegerToFloat", inputs, f"{at}.product")
        self.node("Mul", [f"{at}.product", f"{at}.tokens"], f"{at}.scaled")
        return self.node("Add", [f"{at}.scaled", f"{at}.bias"], f"{at}.out")

    def _norm(self, at: str) -> tuple[str, str]:
        self._tensor(f"{at}.gamma", self._weight(f"{at}.weight"))
        self._tensor(f"{at}.beta", self._weight(f"{at}.bias"))
        return f"{at}.gamma", f"{at}.beta"

    def _weight(self, name: str) -> NDArray[float32]:
        for found in (name, f"bert.{name}"):
            if found in self._weights:
                return self._weights[found]
        raise Failed(f"the weights have no tensor {name}", "only BERT encoders can be made int8 here")

    def _tensor(self, name: str, value: Array) -> None:
        from onnx import numpy_helper

        self.tensors.append(numpy_helper.from_array(value, name))


_FUSED = frozenset({"MatMulIntegerToFloat", "MultiHeadAttention", "SkipLayerNormalization"})


def _node(kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> NodeProto:
    from onnx import helper

    domain = "com.microsoft" if kind in _FUSED else ""
    return helper.make_node(kind, inputs, outputs, name=outputs[0], domain=domain, **attributes)


def _per_row(values: NDArray[float32], most: int = 127) -> tuple[Array, NDArray[float32]]:
    """Rows as int8 and what to multiply each with."""
    import numpy as np

    largest = np.abs(values).max(axis=1, keepdims=True)
    scale = (np.where(largest == 0, 1, largest) / most).astype(np.float32)
    return np.rint(values / scale).astype(np.int8), scale
