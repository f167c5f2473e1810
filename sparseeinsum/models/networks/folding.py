"""Models: computes what is known of a network without its inputs, with the onnx package's own evaluator."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import SemanticsError
from sparseeinsum.operators.dtypes import Array

# Nodes of the same inputs give other outputs each time.
_RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}


def folded(node: Any, inputs: Mapping[str, Array], versions: Mapping[str, int]) -> list[Array]:  # noqa: ANN401
    """The outputs of a node for arrays.

    Args:
        node: The node, an onnx.NodeProto.
        inputs: Its inputs by name.
        versions: The versions of the operator sets by domain.

    Raises:
        SemanticsError: The node is random, or the evaluator does not know it, or returns no arrays.
    """
    if node.op_type in _RANDOM:
        raise SemanticsError("it is random")
    helper: Any = imported("onnx.helper", "onnx", "a network")
    reference: Any = imported("onnx.reference", "onnx", "a network")
    values = [helper.make_tensor_value_info(name, 0, None) for name in dict.fromkeys(filter(None, node.input))]
    results = [helper.make_tensor_value_info(name, 0, None) for name in filter(None, node.output)]
    graph = helper.make_graph([node], "node", values, results)
    sets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    try:
        model = helper.make_model(graph, opset_imports=sets)
        outputs = reference.ReferenceEvaluator(model).run(None, dict(inputs))
    except Exception as error:
        raise SemanticsError(f"onnx cannot compute it: {type(error).__name__}: {error}") from error
    if not all(isinstance(output, np.ndarray | np.generic) for output in outputs):
        raise SemanticsError("it computes no tensor")
    computed = iter(map(np.asarray, outputs))
    return [next(computed) if name else np.empty(0) for name in node.output]
