"""Nodes of every operator of ONNX that networks may have, and the inputs and weights that they read."""

from typing import Any

import numpy as np
from onnx import TensorProto

from bench.onnx_networks import node

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
IMAGES = RANDOM.standard_normal((4, 4, 5, 6)).astype(np.float32)  # onnx computes LRN of as many channels as images
SMALL = (np.abs(X) % 1).astype(np.float32)
WEIGHTS: dict[str, Any] = {
    "row": RANDOM.standard_normal(4).astype(np.float32),
    "column": RANDOM.standard_normal((3, 1)).astype(np.float32),
    "matrix": RANDOM.standard_normal((4, 5)).astype(np.float32),
    "square": RANDOM.standard_normal((4, 4)).astype(np.float32),
    "channels": np.abs(RANDOM.standard_normal(3)).astype(np.float32),
    "kernel": RANDOM.standard_normal((6, 2, 3, 2)).astype(np.float32),
    "turned": RANDOM.standard_normal((4, 3, 3, 2)).astype(np.float32),
    "six": RANDOM.standard_normal(6).astype(np.float32),
    "zero": np.array(0.25, np.float32),
    "one": np.array(1.5, np.float32),
    "two": np.array(2.0, np.float32),
    "first": np.array(0),
    "last": np.array(2),
    "axes": np.array([0, 2]),
    "axis1": np.array([1]),
    "minus1": np.array([-1]),
    "taken": np.array([[1, -1], [0, 2]]),
    "places": np.array([[[0, 1, 2, 0]], [[2, 2, -3, 1]]]),
    "depth": np.array(5),
    "off_on": np.array([-1.0, 2.0], np.float32),
    "new": np.array([2, -1, 2]),
    "other": np.array([4, 0, 2]),
    "wide": np.array([2, 1, 3, 4]),
    "starts": np.array([-1, 3]),
    "ends": np.array([-9, 0]),
    "steps": np.array([-1, -2]),
    "sliced": np.array([1, 2]),
    "parts": np.array([1, 3]),
    "pads": np.array([0, 1, 2, 1, 0, 1]),
    "repeats": np.array([1, 2, 3]),
    "int_like": np.array([3]),
    "scale": np.array([0.5, 0.1, 2], np.float32),
    "level": np.array([100, 128, 200], np.uint8),
    "small": np.array(0.02, np.float32),
    "signed": np.array(-3, np.int8),
    "weight": np.array([[3, -7], [100, 2], [-128, 127], [0, 1]], np.int8),
    "factor": np.array([1, 2.5, 0.6], np.float32),
    "extent": np.array([4, 3, 9]),
    "target": np.array([[[0, 2, -1, 1]]]),
    "added": np.ones((1, 1, 4), np.float32),
    "block": np.array([[1, 0], [0, -1], [1, 0]]),
    "rows": RANDOM.standard_normal((3, 4)).astype(np.float32),
}
# Nodes by group; each reads x, the other inputs of the group, or a weight.
GROUPS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "elements": (
        {"x": X},
        [
            *(node(name, "x", name) for name in ("Abs", "Ceil", "Floor", "Neg", "Relu", "Round", "Sign", "Identity")),
            *(node(name, "x", name) for name in ("Atan", "Cos", "Cosh", "Elu", "Erf", "Exp", "HardSigmoid")),
            *(node(name, "x", name) for name in ("HardSwish", "Mish", "Reciprocal", "Selu", "Sigmoid", "Sin", "Sinh")),
            *(node(name, "x", name) for name in ("Softplus", "Softsign", "Tan", "Tanh", "Asinh", "Gelu", "LeakyRelu")),
            *(node(name, "x", name) for name in ("IsNaN", "IsInf", "ThresholdedRelu", "Celu", "Dropout")),
            node("Shrink", "x", "Shrink", lambd=0.5, bias=0.1),
            node("Gelu", "x", "tanh", approximate="tanh"),
            node("PRelu", "x row", "PRelu"),
        ],
    ),
    "small elements": (
        {"x": SMALL},
        [
            *(node(name, "x", name) for name in ("Acos", "Asin", "Atanh", "Log", "Sqrt")),
            node("Add", "x one", "more"),
            node("Acosh", "more", "Acosh"),
            node("Pow", "x two", "Pow"),
            node("LpNormalization", "x", "LpNormalization", axis=1, p=1),  # the evaluator takes no magnitudes
        ],
    ),
    "pairs": (
        {"x": X, "y": X[:, :1] * 2},
        [
            *(node(name, "x y", name) for name in ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual")),
            *(node(name, "x y", name) for name in ("Less", "LessOrEqual")),
            *(node(name, "x y column", name) for name in ("Max", "Min", "Sum", "Mean")),
            node("Clip", "x zero one", "Clip"),
            node("Clip", "x  one", "below"),
            *(node(name, "Less Greater", name) for name in ("And", "Or", "Xor")),
            node("Not", "Less", "Not"),
            node("Where", "Less x y", "Where"),
            node("Cast", "x", "Cast", to=TensorProto.INT64),
            node("Cast", "Less", "number", to=TensorProto.FLOAT),
            node("CastLike", "x int_like", "CastLike"),
            node("Mod", "x y", "Mod", fmod=1),
            node("Div", "Cast int_like", "whole"),
            node("Mod", "Cast int_like", "rest"),
        ],
    ),
    "reductions": (
        {"x": X},
        [
            *(node(f"Reduce{name}", "x axes", f"Reduce{name}") for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1")),
            *(node(f"Reduce{name}", "x axis1", name, keepdims=0) for name in ("L2", "SumSquare", "LogSumExp")),
            node("Exp", "x", "positive"),
            node("ReduceLogSum", "positive", "ReduceLogSum"),
            node("ReduceSum", "x", "nothing", noop_with_empty_axes=1),
            node("ArgMax", "x", "ArgMax", axis=2, keepdims=0),
            node("ArgMin", "x", "ArgMin", axis=1, select_last_index=1),
            node("CumSum", "x last", "CumSum"),
            node("CumSum", "x last", "reverse", reverse=1, exclusive=1),
            node("Hardmax", "x", "Hardmax", axis=1),
            node("LpNormalization", "x", "euclidean"),
            node("Softmax", "x", "Softmax", axis=1),
            node("LogSoftmax", "x", "LogSoftmax"),
            node("LayerNormalization", "x row row", "LayerNormalization mean deviation"),
            node("LayerNormalization", "x matrix_axes", "two_axes", axis=1),
            node("BatchNormalization", "x channels channels channels channels", "BatchNormalization"),
            node("InstanceNormalization", "x channels channels", "InstanceNormalization"),
        ],
    ),
    "products": (
        {"x": X, "y": RANDOM.standard_normal((3, 4)).astype(np.float32)},
        [
            node("MatMul", "x matrix", "MatMul"),
            node("MatMul", "x row", "vector"),
            node("Transpose", "x", "moved", perm=[0, 2, 1]),
            node("MatMul", "x moved", "batch"),
            node("Gemm", "y square row", "Gemm", alpha=0.5, beta=2.0, transB=1),
            node("Einsum", "x y", "Einsum", equation="bij,kj->bik"),
            node("Einsum", "x square", "further", equation="...i,ii->...i"),
            node("Einsum", "y", "implicit", equation="ij"),
        ],
    ),
    "shapes": (
        {"x": X, "at": np.array([[2, -1, 0]])},
        [
            node("Reshape", "x new", "Reshape"),
            node("Reshape", "x other", "zero_is_kept"),
            node("Flatten", "x", "Flatten", axis=2),
            node("Transpose", "x", "Transpose"),
            node("Unsqueeze", "x axes", "Unsqueeze"),
            node("Squeeze", "Unsqueeze", "Squeeze"),
            node("Expand", "x wide", "Expand"),
            node("Slice", "x starts ends sliced steps", "Slice"),
            node("Split", "x parts", "one_index rest", axis=2),
            node("Split", "x", "half other_half", axis=2, num_outputs=2),
            node("Concat", "x half x", "Concat", axis=2),
            node("Pad", "x pads one", "Pad"),
            node("Pad", "x pads", "reflected", mode="reflect"),
            node("Pad", "x pads", "edges", mode="edge"),
            node("Tile", "x repeats", "Tile"),
            node("Gather", "x taken", "Gather", axis=1),
            node("Gather", "x at", "looked_up", axis=1),
            node("GatherElements", "x places", "GatherElements", axis=1),
            node("OneHot", "at depth off_on", "OneHot"),
            node("Trilu", "x minus_one", "Trilu", upper=0),
            node("Shape", "x", "extents"),
            node("ReduceProd", "extents", "elements"),
        ],
    ),
    "quantisation": (
        {"x": X},
        [
            node("QuantizeLinear", "x scale level", "QuantizeLinear"),
            node("DequantizeLinear", "QuantizeLinear scale level", "DequantizeLinear"),
            node("QuantizeLinear", "x small", "unsigned"),
            node("QuantizeLinear", "x small signed", "narrow"),
            node("DynamicQuantizeLinear", "x", "quantised step origin"),
            node("MatMulInteger", "quantised weight origin signed", "MatMulInteger"),
        ],
    ),
    "coordinates": (
        {"x": X},
        [
            node("ScatterElements", "x target added", "ScatterElements", axis=1),
            node("ScatterElements", "x target added", "sum", axis=1, reduction="add"),
            node("ScatterND", "x block rows", "ScatterND"),
            node("ScatterND", "x block rows", "added_rows", reduction="add"),
            node("GatherND", "x block", "GatherND"),
        ],
    ),
    "resizing": (
        {"x": X},
        [
            node("Resize", "x  factor", "Resize"),
            node("Resize", "x  factor", "linear", mode="linear"),
            node("Resize", "x   extent", "cubic", mode="cubic", coordinate_transformation_mode="align_corners"),
        ],
    ),
    "windows": (
        {"x": IMAGES},
        [
            node("Conv", "x kernel six", "Conv", group=2, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2]),
            node("Conv", "x kernel", "same", group=2, auto_pad="SAME_LOWER"),
            node(
                "ConvTranspose", "x turned", "ConvTranspose", strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 0]
            ),
            node("ConvTranspose", "x turned", "dilated", dilations=[1, 2]),
            node("MaxPool", "x", "MaxPool", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
            node("MaxPool", "x", "up", kernel_shape=[2, 2], strides=[2, 3], ceil_mode=1),
            node("AveragePool", "x", "AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("AveragePool", "x", "padding", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
            node("GlobalAveragePool", "x", "GlobalAveragePool"),
            node("GlobalMaxPool", "x", "GlobalMaxPool"),
            node("LpPool", "x", "LpPool", kernel_shape=[2, 2]),
            node("LRN", "x", "LRN", size=3),
            node("DepthToSpace", "x", "DepthToSpace", blocksize=2),
            node("DepthToSpace", "x", "columns", blocksize=2, mode="CRD"),
            node("SpaceToDepth", "DepthToSpace", "SpaceToDepth", blocksize=2),
        ],
    ),
}
WEIGHTS["matrix_axes"] = RANDOM.standard_normal((3, 4)).astype(np.float32)
WEIGHTS["minus_one"] = np.array(-1)
