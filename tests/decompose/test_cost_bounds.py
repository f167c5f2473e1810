"""Predicted seconds of EinSums are at most what a bound says that takes no time to compute."""

import math

import numpy as np
import pytest
from opt_einsum.testing import rand_equation

from sparseeinsum.decompose.cost_bounds import seconds_predictor
from sparseeinsum.decompose.cost_constants import constants_for
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import PRODUCT
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.ranges import finite_range
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.estimate import Statistics

PREDICTOR = seconds_predictor(constants_for("duckdb"))


def annotator_of(shapes: dict[str, tuple[int, ...]], density: float = 1.0, has_fill: bool = False) -> GraphAnnotator:
    """Tensors of these shapes with so many entries, which may be all there are."""
    tensors = {
        name: Tensor(name, tuple(Axis(f"dim_{place}", bound) for place, bound in enumerate(shape)), "float64", 0.0)
        for name, shape in shapes.items()
    }
    statistics = {}
    for name, shape in shapes.items():
        entries = max(math.prod(shape) * density, 1.0)
        statistics[name] = Statistics(entries, tuple(min(float(bound), entries) for bound in shape), shape)
    values = dict.fromkeys(shapes, ValueFacts(finite_range("float64"), has_fill))
    return GraphAnnotator.for_inputs(tensors, statistics, values)


@pytest.mark.parametrize("largest", [3, 40])
@pytest.mark.parametrize("seed", range(4))
def test_the_parts_of_networks_take_no_longer(seed: int, largest: int) -> None:
    subscripts, shapes = rand_equation(12, 3, n_out=2, d_max=largest, seed=seed)
    inputs, output = subscripts.split("->")
    names = [f"M{number}" for number in range(len(shapes))]
    annotator = annotator_of(dict(zip(names, shapes, strict=True)))
    join: Scalar = Operand(0)
    for number in range(1, len(names)):
        join = Call("mul", (join, Operand(number)))
    operands = tuple(Reference(name, tuple(labels)) for name, labels in zip(names, inputs.split(","), strict=True))
    product = EinSum(Reference("R", tuple(output)), operands, join, "sum")
    tensors = {**annotator.plain_tensors(), "R": annotator_of({"R": (1,) * len(output)}).tensors["R"].tensor}
    annotated = binarise(EinGraph(tensors, (product,), ("R",)), annotator)
    seconds = PREDICTOR.seconds_by_result(annotated)
    most = {name: PREDICTOR.most_seconds(einsum) for name, einsum in annotated.annotated.items()}
    assert len(most) > 10
    assert all(seconds[name] <= most[name] < math.inf for name in most)
    if largest == 3:  # the bound is near enough to tell that nothing takes much longer than starting an operator
        assert max(most.values()) < 1.01 * PREDICTOR.least_seconds_of(1)


@pytest.mark.parametrize("density", [1.0, 0.01])
def test_products_of_sparse_tensors_take_no_longer(density: float) -> None:
    annotator = annotator_of({"A": (300, 200), "B": (200, 100)}, density, has_fill=True)
    product = EinSum(
        Reference("R", ("i", "k")), (Reference("A", ("i", "j")), Reference("B", ("j", "k"))), PRODUCT, "sum"
    )
    annotated = annotator.graph_of([product], ("R",))
    assert PREDICTOR.seconds(annotated) <= PREDICTOR.most_seconds(annotated.annotated["R"]) < math.inf


def test_nothing_is_known_where_absent_entries_count() -> None:
    annotator = annotator_of({"A": (30, 20), "B": (30, 20)}, 0.1, has_fill=True)
    both = (Reference("A", ("i", "j")), Reference("B", ("i", "j")))
    added = EinSum(Reference("R", ("i", "j")), both, Call("add", (Operand(0), Operand(1))), None)
    promoted = EinSum(Reference("S", ("i", "j")), both, PRODUCT, None, promoted=frozenset({("i", 1)}))
    annotated = annotator.graph_of([added, promoted], ("R", "S")).annotated
    assert np.isinf([PREDICTOR.most_seconds(annotated[name]) for name in ("R", "S")]).all()
