"""Networks in the ONNX format compute what the evaluator of the onnx package computes with numpy."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_nodes import GROUPS, IMAGES, RANDOM, WEIGHTS, X

import sparseeinsum as se
from bench.onnx_networks import convolutional, model, node, perceptron, transformer_block
from sparseeinsum import cli
from sparseeinsum.models.networks.onnx_graphs import OF_TYPES
from sparseeinsum.models.networks.operators.table import OPERATORS


def check(db: se.Database, network_model: onnx.ModelProto, inputs: dict[str, Any], **sizes: int) -> se.Network:
    """Compare the outputs of a model with those of the evaluator."""
    network = se.read_onnx(network_model, **sizes)
    network.load(db)
    network.load_inputs(db, inputs)
    results = db.run(network.program, nonfinite="allow")
    expected = ReferenceEvaluator(network_model).run(None, inputs)
    for (name, tensor), array in zip(network.outputs.items(), expected, strict=True):
        computed = results[tensor].to_numpy()
        assert computed.shape == np.shape(array), name
        np.testing.assert_allclose(computed, array, rtol=1e-4, atol=1e-5, err_msg=name)
    return network


def outputs_of(db: se.Database, network_model: onnx.ModelProto, x: NDArray[Any]) -> dict[str, Any]:
    """The outputs of a model for an input x."""
    network = se.read_onnx(network_model)
    network.load(db)
    network.load_inputs(db, {"x": x})
    return {name: result.to_numpy() for name, result in db.run(network.program).items()}


def model_of(nodes: Sequence[Any], inputs: dict[str, Any]) -> onnx.ModelProto:
    """A model of nodes and of the weights that they read; all results are outputs."""
    read = {name for node in nodes for name in node.input}
    weights = {name: array for name, array in WEIGHTS.items() if name in read}
    whole = [name for name, array in inputs.items() if array.dtype == np.int64]
    outputs = [name for each in nodes for name in each.output]
    return model(nodes, {name: array.shape for name, array in inputs.items()}, outputs, weights, whole)


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("group", GROUPS)
def test_operators(db: se.Database, group: str) -> None:
    inputs, nodes = GROUPS[group]
    check(db, model_of(nodes, inputs), inputs)


def test_every_operator_is_tested() -> None:
    tested = {each.op_type for _, nodes in GROUPS.values() for each in nodes}
    assert set(OPERATORS) <= tested | {"CumProd", "GlobalLpPool", "Upsample"}  # which have tests of their own


def test_the_documentation_lists_the_operators() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    table = page.partition("### What is supported")[2].partition("Operators that ONNX defines by others")[0]
    listed = [name for row in table.strip().splitlines()[2:] for name in row.rpartition(" | ")[2].strip(" |").split()]
    assert sorted(listed) == sorted({*OPERATORS, *OF_TYPES})


def test_other_versions_of_operators(db: se.Database) -> None:
    """CumProd is new, Upsample is old, and the evaluator has no GlobalLpPool."""
    nodes = [
        node("CumProd", "x last", "y", exclusive=1),
        node("CumProd", "x last", "z", reverse=1),
    ]
    check(db, model(nodes, {"x": X.shape}, ["y", "z"], {"last": WEIGHTS["last"]}, version=26), {"x": X})
    old = model([node("Upsample", "x s", "y")], {"x": [3, 4]}, ["y"], {"s": np.array([2, 1.5], np.float32)}, version=9)
    assert np.array_equal(outputs_of(db, old, X[0])["y"], X[0][np.arange(6) // 2][:, [0, 0, 1, 2, 2, 3]])
    pooled = outputs_of(db, model([node("GlobalLpPool", "x", "y", p=3)], {"x": IMAGES.shape}, ["y"], {}), IMAGES)["y"]
    np.testing.assert_allclose(pooled, (np.abs(IMAGES) ** 3).sum((2, 3), keepdims=True) ** (1 / 3), rtol=1e-5)


def test_rows_are_inputs(db: se.Database) -> None:
    network_model = perceptron(RANDOM, (4, 3), batch=2)
    x = np.zeros((2, 4), np.float32)
    x[1, 2] = 1.5
    network = se.read_onnx(network_model)
    network.load(db)
    network.load_inputs(db, {"x": pd.DataFrame({"row": [1], "column": [2], "value": [1.5]})})
    (expected,) = ReferenceEvaluator(network_model).run(None, {"x": x})
    np.testing.assert_allclose(db.run(network.program)["y"].to_numpy(), np.asarray(expected), rtol=1e-5)


def test_old_operator_sets_are_refused() -> None:
    with pytest.raises(se.SemanticsError, match="the model is of operator set 6, and sets before 7 differ"):
        se.read_onnx(model([node("Relu", "x", "y")], {"x": [2]}, ["y"], {}, version=6))


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("kind", ["perceptron", "convolutional", "transformer"])
def test_networks(db: se.Database, kind: str) -> None:
    if kind == "perceptron":
        check(db, perceptron(RANDOM, (6, 5, 3)), {"x": RANDOM.standard_normal((4, 6), np.float32)}, batch=4)
    elif kind == "convolutional":
        images = RANDOM.standard_normal((2, 3, 8, 8), np.float32)
        check(db, convolutional(RANDOM, 8, 4, 3), {"x": images}, batch=2)
    else:
        check(db, transformer_block(RANDOM, 6, 8, 2, 20), {"tokens": RANDOM.integers(0, 20, (1, 6))})


def test_the_program_of_a_network() -> None:
    network = se.read_onnx(perceptron(RANDOM, (6, 5, 3)), batch=4)
    assert network.text == (
        "tensor x[axis0: 4, axis1: 6] dtype float32\n"
        "gemm[i, j] = sum(x[i, k] * layer_0_weight[j, k])\n"
        "relu[i, j] = relu(gemm[i, j] + layer_0_bias[j])\n"
        "gemm_2[i, j] = sum(relu[i, k] * layer_1_weight[j, k])\n"
        "gemm_3[i, j] = gemm_2[i, j] + layer_1_bias[j]\n"
        "softmax[i, j] = softmax[j](gemm_3[i, j])\n"
        "y[i, j] = softmax[i, j]\n"
    )
    assert list(network.inputs) == ["x"]
    assert network.outputs == {"y": "y"}
    assert list(network.weights) == ["layer_0_weight", "layer_0_bias", "layer_1_weight", "layer_1_bias"]


shapes = st.sampled_from([(24,), (2, 12), (4, 6), (3, 8), (2, 3, 4), (4, 3, 2), (2, 2, 6), (1, 8, 3), (2, 3, 2, 2)])


@settings(max_examples=8)
@given(start=shapes, steps=st.lists(st.tuples(st.booleans(), shapes, st.randoms(use_true_random=False)), max_size=4))
def test_any_reshapes_and_transposes(start: tuple[int, ...], steps: list[tuple[bool, tuple[int, ...], Any]]) -> None:
    array = np.arange(math.prod(start), dtype=np.float32).reshape(start)
    shape, nodes, weights, name = start, [], {}, "x"
    for number, (reshapes, wanted, random) in enumerate(steps):
        if reshapes:
            weights[f"shape{number}"], shape = np.array(wanted), wanted
            nodes.append(node("Reshape", f"{name} shape{number}", f"v{number}"))
        else:
            order = random.sample(range(len(shape)), len(shape))
            shape = tuple(shape[axis] for axis in order)
            nodes.append(node("Transpose", name, f"v{number}", perm=order))
        name = f"v{number}"
    nodes.append(node("Mul", f"{name} {name}", "y"))
    with se.connect() as db:
        check(db, model(nodes, {"x": start}, ["y"], weights), {"x": array})


def test_functions_of_a_model_and_known_values(db: se.Database) -> None:
    """A function of the model is inlined; the shape of an input is known, and so is what follows from it."""
    twice = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    nodes = [
        node("Shape", "x", "shape", start=1),
        node("Cast", "shape", "count", to=TensorProto.FLOAT),
        helper.make_node("Twice", ["x"], ["double"], domain="own"),
        node("Div", "double count", "y"),
        node("Neg", "count", "unused"),
    ]
    network_model = model(nodes, {"x": [2, 4]}, ["y", "count"], {})
    network_model.functions.append(twice)
    network_model.opset_import.append(helper.make_opsetid("own", 1))
    network = check(db, network_model, {"x": X[0, :2]})
    assert list(network.outputs) == ["y", "count"]


def test_pads_below_zero_cut_off(db: se.Database) -> None:
    """The evaluator of the onnx package lacks them."""
    network_model = model([node("Pad", "x cut", "y")], {"x": [3, 4]}, ["y"], {"cut": np.array([-1, 1, 1, -2])})
    expected = np.pad(X[0, 1:, :2], ((0, 1), (1, 0)))
    np.testing.assert_array_equal(outputs_of(db, network_model, X[0])["y"], expected)


def test_outputs_that_are_inputs_or_weights(db: se.Database) -> None:
    nodes = [node("Identity", "x", "copy"), node("Identity", "w", "weight"), node("Transpose", "x", "turned")]
    check(db, model(nodes, {"x": [1, 3]}, ["copy", "weight", "turned"], {"w": np.ones(2)}), {"x": X[0, :1, :3]})


def test_files(db: se.Database, tmp_path: Path) -> None:
    network_model = perceptron(RANDOM, (4, 3), batch=2)
    onnx.save(network_model, tmp_path / "model.onnx")
    network = se.read_onnx(tmp_path / "model.onnx")
    assert network.text == se.read_onnx(network_model.SerializeToString()).text
    assert repr(network) == f"<network of {len(network.program.einsums)} EinSums: x -> y>"
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(se.DataError, match=r"text.onnx is no model of ONNX"):
        se.read_onnx(tmp_path / "text.onnx")
    with pytest.raises(FileNotFoundError):
        se.read_onnx(tmp_path / "missing.onnx")


def test_at_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network_model = perceptron(RANDOM, (4, 3))
    onnx.save(network_model, tmp_path / "model.onnx")
    arguments = ["load-network", str(tmp_path / "model.onnx"), "--database", str(tmp_path / "models.duckdb")]
    assert cli.main([*arguments, "--sizes", "batch=2"]) == 0
    assert capsys.readouterr().out == se.read_onnx(network_model, batch=2).text
    program = tmp_path / "model.ein"
    assert cli.main([*arguments, "--sizes", "batch=2", "--output", str(program)]) == 0
    x = RANDOM.standard_normal((2, 4), np.float32)
    with se.connect(tmp_path / "models.duckdb") as db:
        db.tensor("x", x)
        computed = db.run(se.read_program(program))["y"].to_numpy()
    (expected,) = ReferenceEvaluator(network_model).run(None, {"x": x})
    np.testing.assert_allclose(computed, np.asarray(expected), rtol=1e-5)
    assert cli.main(arguments) == 1
    with pytest.raises(SystemExit):
        cli.main([*arguments, "--sizes", "batch=two"])


def test_refused_sizes_and_inputs(db: se.Database) -> None:
    network_model = perceptron(RANDOM, (4, 3))
    with pytest.raises(se.SemanticsError, match="axis 0 of the input x has no fixed size; give one, as in batch=1"):
        se.read_onnx(network_model)
    with pytest.raises(se.SemanticsError, match="no axis of an input has the name rows"):
        se.read_onnx(network_model, batch=2, rows=3)
    unnamed = model([node("Relu", "first.x", "y")], {"first.x": [None, 3]}, ["y"], {})
    with pytest.raises(se.SemanticsError, match="give one, as in first_x_0=1"):
        se.read_onnx(unnamed)
    assert se.read_onnx(unnamed, first_x_0=2).inputs["first.x"] == se.NetworkInput("first_x", (2, 3), "float32")
    network = se.read_onnx(network_model, batch=2)
    with pytest.raises(se.ShapeError, match=r"shape \(3, 4\); give it that shape, or read the network with the sizes"):
        network.load_inputs(db, {"x": np.ones((3, 4))})
    with pytest.raises(se.DataError, match="the network has no input y; it has x"):
        network.load_inputs(db, {"y": 1})
    network.load(db)
    db.tensor("x", np.ones((3, 4), np.float32))
    with pytest.raises(se.ShapeError):
        db.run(network.program)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("NonZero", "x", "y")], r"the node NonZero y cannot .*: the operator is not supported"),
        ([node("Reshape", "x s", "y")], "the node Reshape y .*: its new shape depend on the data"),
        ([node("Dropout", "x half yes", "y")], "drops values at random"),
        ([node("MaxPool", "x", "z y", kernel_shape=[2])], "the indices of its greatest values"),
        ([node("Cast", "x", "y", to=TensorProto.INT8)], "it casts to dtype 3 of ONNX"),
        ([node("Add", "x three", "y")], "axes of 3 and 4 indices do not fit together"),
        ([node("Unknown", "x", "y")], "ONNX does not define the operator Unknown"),
        ([node("RandomNormal", "", "y", shape=[2])], "it is random"),
    ],
)
def test_refused_nodes(nodes: Sequence[Any], message: str) -> None:
    weights = {"half": np.array(0.5, np.float32), "yes": np.array(True), "three": np.ones(3, np.float32)}
    network_model = model(nodes, {"x": [2, 3, 4], "s": [3]}, ["y"], weights, whole=["s"])
    with pytest.raises(se.SemanticsError, match=message):
        se.read_onnx(network_model)
