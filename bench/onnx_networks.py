"""Makes small networks in the ONNX format: a perceptron, a convolutional network, and a block of a transformer."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_OPSET, _FORMAT = 20, 10

Shapes = Mapping[str, Sequence[int | str | None]]  # by name; None for an axis without a size and a name


def model(
    nodes: Iterable[Any],
    inputs: Shapes,
    outputs: Iterable[str],
    weights: dict[str, NDArray[Any]],
    whole: Sequence[str] = (),
    version: int = _OPSET,
) -> onnx.ModelProto:
    """A model of some nodes.

    Args:
        nodes: The nodes.
        inputs: The shapes of the inputs.
        outputs: The names of the outputs.
        weights: The arrays of the model.
        whole: The inputs that are of int64, and not of float32.
        version: The version of the operator set.
    """
    graph = helper.make_graph(
        list(nodes),
        "network",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64 if name in whole else TensorProto.FLOAT, shape)
            for name, shape in inputs.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=_FORMAT)


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401  # as onnx takes them
    """A node; its inputs and outputs are names with blanks between them."""
    return helper.make_node(operator, inputs.split(" "), outputs.split(" "), name=outputs.split(" ")[0], **attributes)


def perceptron(random: np.random.Generator, sizes: Sequence[int], batch: int | str = "batch") -> onnx.ModelProto:
    """Layers of Gemm and Relu, and a softmax at the end; the input is x, the output y."""
    nodes, weights, name = [], {}, "x"
    layers = list(itertools.pairwise(sizes))
    for number, (before, after) in enumerate(layers):
        weights[f"layer.{number}.weight"] = _normal(random, after, before) / np.float32(before**0.5)
        weights[f"layer.{number}.bias"] = _normal(random, after)
        parameters = f"layer.{number}.weight layer.{number}.bias"
        nodes.append(node("Gemm", f"{name} {parameters}", f"sum{number}", transB=1))
        name = f"sum{number}"
        if number < len(layers) - 1:
            nodes.append(node("Relu", name, f"hidden{number}"))
            name = f"hidden{number}"
    nodes.append(node("Softmax", name, "y"))
    return model(nodes, {"x": [batch, sizes[0]]}, ["y"], weights)


def convolutional(random: np.random.Generator, size: int, channels: int, classes: int) -> onnx.ModelProto:
    """Two convolutions with normalisation and pools, and a linear layer; x has shape (batch, 3, size, size)."""
    flat = 2 * channels * (size // 4) ** 2
    weights = {
        "first": _normal(random, channels, 3, 3, 3) / np.float32(5),
        "first_bias": _normal(random, channels),
        "scale": _normal(random, channels),
        "shift": _normal(random, channels),
        "mean": _normal(random, channels),
        "variance": _normal(random, channels) ** 2 + np.float32(0.5),
        "second": _normal(random, 2 * channels, channels // 2, 3, 3) / np.float32(channels),
        "last": _normal(random, flat, classes) / np.float32(flat**0.5),
    }
    nodes = [
        node("Conv", "x first first_bias", "c1", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c1 scale shift mean variance", "n1"),
        node("Relu", "n1", "a1"),
        node("MaxPool", "a1", "p1", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Conv", "p1 second", "c2", pads=[1, 1, 1, 1], group=2),
        node("HardSwish", "c2", "a2"),
        node("AveragePool", "a2", "p2", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p2", "flat"),
        node("MatMul", "flat last", "scores"),
        node("LogSoftmax", "scores", "y"),
    ]
    return model(nodes, {"x": ["batch", 3, size, size]}, ["y"], weights)


def transformer_block(random: np.random.Generator, length: int, width: int, heads: int, words: int) -> onnx.ModelProto:
    """Embeddings, attention with a causal mask, and a perceptron, each normalised; tokens have shape (1, length)."""
    depth, inner = width // heads, 4 * width
    scale = np.float32(width**0.5)
    weights = {
        "words": _normal(random, words, width),
        "places": _normal(random, length, width),
        "qkv": _normal(random, width, 3 * width) / scale,
        "qkv_bias": _normal(random, 3 * width),
        "out": _normal(random, width, width) / scale,
        "up": _normal(random, width, inner) / scale,
        "up_bias": _normal(random, inner),
        "down": _normal(random, inner, width) / (2 * scale),
        "scale": np.array(depth**-0.5, np.float32),
        "mask": np.triu(np.full((length, length), -np.inf, np.float32), 1),
        "by_head": np.array([1, length, heads, depth], np.int64),
        "merged": np.array([1, length, width], np.int64),
        **{f"gain{number}": _normal(random, width) for number in (1, 2)},
        **{f"shift{number}": _normal(random, width) for number in (1, 2)},
    }
    nodes = [
        node("Gather", "words tokens", "embedded"),
        node("Add", "embedded places", "x"),
        node("LayerNormalization", "x gain1 shift1", "n1"),
        node("MatMul", "n1 qkv", "projected"),
        node("Add", "projected qkv_bias", "biased"),
        node("Split", "biased", "q k v", axis=-1, num_outputs=3),
        *(node("Reshape", f"{name} by_head", f"{name}1") for name in "qkv"),
        *(node("Transpose", f"{name}1", f"{name}2", perm=[0, 2, 1, 3]) for name in "qv"),
        node("Transpose", "k1", "k2", perm=[0, 2, 3, 1]),
        node("MatMul", "q2 k2", "products"),
        node("Mul", "products scale", "scaled"),
        node("Add", "scaled mask", "masked"),
        node("Softmax", "masked", "attention"),
        node("MatMul", "attention v2", "mixed"),
        node("Transpose", "mixed", "mixed1", perm=[0, 2, 1, 3]),
        node("Reshape", "mixed1 merged", "mixed2"),
        node("MatMul", "mixed2 out", "attended"),
        node("Add", "x attended", "x1"),
        node("LayerNormalization", "x1 gain2 shift2", "n2"),
        node("MatMul", "n2 up", "h"),
        node("Add", "h up_bias", "h1"),
        node("Gelu", "h1", "h2"),
        node("MatMul", "h2 down", "h3"),
        node("Add", "x1 h3", "y"),
    ]
    return model(nodes, {"tokens": [1, length]}, ["y"], weights, whole=["tokens"])


def _normal(random: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return random.standard_normal(shape, np.float32)
