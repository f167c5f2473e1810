"""Models: operators of ONNX that interpolate along axes: each axis is a product with a matrix that is known."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import SemanticsError
from sparseeinsum.models.networks.folding import folded
from sparseeinsum.models.networks.movements import taken
from sparseeinsum.models.networks.network_values import NetworkValue
from sparseeinsum.models.networks.operators.linear_operators import contracted
from sparseeinsum.models.networks.operators.record import NetworkOperator, NodeCall
from sparseeinsum.models.networks.writer import Writer
from sparseeinsum.operators.dtypes import Array

_VERSION = 19  # of the operator set that computes the matrices
_OLD = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}  # before version 11
_ATTRIBUTES = (
    "mode",
    "coordinate_transformation_mode",
    "nearest_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "antialias",
)


def _resize(call: NodeCall, writer: Writer) -> NetworkValue:
    call.refuse("keep_aspect_ratio_policy", "stretch")
    attributes = {name: call.attributes[name] for name in _ATTRIBUTES if call.attributes.get(name) is not None}
    if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise SemanticsError("it crops, which is not supported")
    if call.version < 11:
        attributes |= _OLD
    value = call.input(0)
    axes = call.attributes.get("axes") or range(len(value.axes))
    scales = call.attributes.get("scales")
    position = 1 if call.version < 11 else 2
    if scales is None and call.has(position) and call.array(position, "scales").size:
        scales = call.array(position, "scales").tolist()
    sizes = None if scales is not None else call.array(3, "sizes").tolist()
    for number, axis in enumerate(axes):
        target = {"scales": scales[number]} if scales is not None else {"sizes": (sizes or [])[number]}
        value = _interpolated(writer, value, axis % len(value.axes), target, attributes)
    return value


def _interpolated(
    writer: Writer, value: NetworkValue, axis: int, target: Mapping[str, float], attributes: Mapping[str, Any]
) -> NetworkValue:
    """The value with an axis of another size."""
    matrix = _matrix(value.shape[axis], target, attributes)
    if matrix.shape[0] == matrix.shape[1] and (matrix == np.eye(len(matrix))).all():
        return value
    if ((matrix == 0) | (matrix == 1)).all() and (matrix.sum(1) == 1).all():
        return taken(writer, value, axis, matrix.argmax(1).tolist())
    letters = [f"axis{position}" for position in range(len(value.axes))]
    weights = writer.constant(matrix.astype(np.float32), "interpolation")
    result = [*letters[:axis], "new", *letters[axis + 1 :]]
    return contracted(writer, [value, weights], [letters, ["new", letters[axis]]], result)


def _matrix(size: int, target: Mapping[str, float], attributes: Mapping[str, Any]) -> Array:
    """The matrix that resizes a vector of a size: what the evaluator of onnx makes of each unit vector."""
    helper: Any = imported("onnx.helper", "onnx", "a network")
    (name, number), *_ = target.items()
    inputs = ["x", "", "scales", ""] if name == "scales" else ["x", "", "", "sizes"]
    node = helper.make_node("Resize", inputs, ["y"], **attributes)
    known = np.array([number], np.float32 if name == "scales" else np.int64)
    units = np.eye(size, dtype=np.float32)
    columns = [folded(node, {"x": unit, name: known}, {"": _VERSION})[0] for unit in units]
    return np.stack(columns, 1)


def _upsample(call: NodeCall, writer: Writer) -> NetworkValue:
    return _resize(replace(call, version=10), writer)


OPERATORS = (NetworkOperator("Resize", _resize), NetworkOperator("Upsample", _upsample))
