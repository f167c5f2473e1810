"""What workers send each other is one number: from shapes, plans, tuples, relations, tables and moved blocks."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from partitioned_execution import Cluster
from program_expressions import expressions_of

import sparseeinsum as se
from sparseeinsum.api.examples import FEED_FORWARD, MATRIX_CHAIN, MULTI_HEAD_ATTENTION
from sparseeinsum.decompose.eindecomp.moves import Moves
from sparseeinsum.decompose.search_tasks import total_cost
from sparseeinsum.plans.expression_partition import partition_expressions
from sparseeinsum.semantics.dense import evaluate_program

TRAINING_STEP = """
H[b, h] = relu(sum(X[b, m] * W1[m, h]))
D2[b, o] = sum(H[b, h] * W2[h, o]) - L[b, o]
D1[b, h] = sum(D2[b, o] * W2[h, o]) * (H[b, h] > 0)
V1[m, h] = W1[m, h] - 0.1 * sum(X[b, m] * D1[b, h])
V2[h, o] = W2[h, o] - 0.1 * sum(H[b, h] * D2[b, o])
"""
PROGRAMS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "chain": (MATRIX_CHAIN, {"A": (32, 4), "B": (4, 64), "C": (32, 8), "D": (8, 128), "E": (128, 64)}),
    "loss of a factorisation": (
        "L[] = sum((X[i, j] - sum(U[i, r] * V[j, r])) ^ 2)",
        {"X": (64, 32), "U": (64, 4), "V": (32, 4)},
    ),
    "product, then a vector": (
        "T[i, k] = sum(B[i, j] * C[j, k])\ny[i] = sum(T[i, k] * x[k])",
        {"B": (64, 64), "C": (64, 64), "x": (64,)},
    ),
    "attention": (
        MULTI_HEAD_ATTENTION,
        {"X": (16, 24), **dict.fromkeys(("WQ", "WK", "WV"), (24, 4, 8)), "WO": (4, 8, 24)},
    ),
    "feed forward": (FEED_FORWARD, {"X": (64, 16), "W1": (16, 32), "B1": (32,), "W2": (32, 8), "B2": (8,)}),
    "training step": (TRAINING_STEP, {"X": (16, 64), "W1": (64, 32), "W2": (32, 8), "L": (16, 8)}),
}


@pytest.mark.parametrize("sites", [4, 2, 6, 16, 64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_number_from_every_way_in(name: str, sites: int) -> None:
    text, shapes = PROGRAMS[name]
    rng = np.random.default_rng(0)
    inputs = {tensor: rng.uniform(0.5, 1.0, shape) for tensor, shape in shapes.items()}
    partitioned = se.partition(text, sites, shapes)
    with se.connect() as db:
        for tensor, array in inputs.items():
            db.tensor(tensor, array)
        plan = db.plan(text, workers=sites, objective="floats")
        assert plan.partitioned is not None
        numbers = (plan.partitioned.moved, plan.distributed(sites).moved)
        assert numbers == pytest.approx((partitioned.moved,) * 2, rel=1e-12)
        assert f"{partitioned.moved:,.0f}" in plan.explain()
        assert f"{partitioned.moved:,.0f}" in partitioned.explain()
    assert moved_as_relations(text, sites, shapes, {}) == pytest.approx(partitioned.moved, rel=1e-12)
    model, replayed = partitioned.task.model, partitioned.replay()
    vectors = {step.einsum.output.tensor: (step.choice,) for step in partitioned.best.steps}
    cluster = Cluster(Moves.of_vectors(model, vectors, sites), replayed.choices, inputs)
    expected = evaluate_program(model.graph, inputs)
    for result, array in cluster.run().items():
        np.testing.assert_allclose(array, expected[result], rtol=1e-9, atol=1e-12)
    assert sum(cluster.moved.values()) == pytest.approx(partitioned.moved, rel=1e-12)
    others = [partitioned.even(), *(partitioned.along({tensor: 0}) for tensor, shape in shapes.items() if shape)]
    assert all(partitioned.moved <= partitioned.replay(other).total.floats * (1 + 1e-12) for other in others)
    bound = se.partition(text, sites, shapes, objective="bound")
    assert partitioned.moved <= bound.moved * (1 + 1e-12)


def moved_as_relations(text: str, sites: int, shapes: Mapping[str, Sequence[int]], entries: Mapping[str, int]) -> float:
    """The floats of the same program, written in the relational algebra."""
    written = se.partition(text, 2, shapes, entries, rewrite=False).best.graph
    return partition_expressions(expressions_of(written, entries), sites, {}).moved


@pytest.mark.parametrize("sites", [4, 2, 16])
def test_one_number_of_relations_with_arrays(sites: int) -> None:
    """Blocks of matrices, whose products and sum are written by hand."""
    text, shapes = PROGRAMS["chain"]
    blocks = {"A": (8, 1), "B": (1, 4), "C": (8, 1), "D": (1, 8), "E": (8, 4)}
    with se.connect() as db:
        for tensor, shape in shapes.items():
            tiles = (-(-bound // count) for bound, count in zip(shape, blocks[tensor], strict=True))
            db.tensor(tensor, np.ones(shape), promoted=dict(zip(("dim_0", "dim_1"), tiles, strict=True)))
        a, b, c, d, e = map(db.relation, "ABCDE")

        def product(left: se.TensorRelation, right: se.TensorRelation) -> se.TensorRelation:
            return left.join(right, on=[(1, 0)], kernel="w[i, k] = sum(u[i, j] * v[j, k])").aggregate(by=[0, 2])

        result = product(a, b).join(product(c, product(d, e)), on=[(0, 0), (1, 1)], kernel="add")
        by_hand = result.distributed(sites, objective="floats")
        plan = db.plan(text, workers=sites, objective="floats")
        assert plan.partitioned is not None
        assert by_hand.moved == pytest.approx(plan.partitioned.moved, rel=1e-12)


@pytest.mark.parametrize("sites", [16, 64])
@pytest.mark.parametrize("name", ["training step", "attention"])
def test_no_other_choice_of_one_call_or_sending_moves_less(name: str, sites: int) -> None:
    text, shapes = PROGRAMS[name]
    partitioned = se.partition(text, sites, shapes, rewrite=False)
    vectors = {step.einsum.output.tensor: (step.choice,) for step in partitioned.best.steps}
    moves = Moves.of_vectors(partitioned.task.model, vectors, sites)
    best = partitioned.replay().choices
    least = total_cost(moves, moves.vertices, best, {})
    assert least == pytest.approx(partitioned.moved, rel=1e-12)
    for vertex, choices in moves.choices.items():
        for choice in choices:
            assert total_cost(moves, moves.vertices, {**best, vertex: choice}, {}) >= least * (1 - 1e-9)


@pytest.mark.parametrize("sites", [6, 16])
def test_one_number_of_sparse_tensors(sites: int) -> None:
    """Where entries are taken to be spread evenly, by plans as well as from shapes."""
    text, shapes = PROGRAMS["loss of a factorisation"]
    rng = np.random.default_rng(1)
    entries = np.where((np.add.outer(np.arange(64), np.arange(32)) % 16) == 0, 1.0, 0.0)
    partitioned = se.partition(text, sites, shapes, {"X": int(entries.sum())})
    with se.connect() as db:
        db.tensor("X", entries)
        for tensor in "UV":
            db.tensor(tensor, rng.normal(size=shapes[tensor]))
        plan = db.plan(text, workers=sites, objective="floats", estimator="uniform")
        assert plan.partitioned is not None
        assert (plan.partitioned.moved, plan.distributed(sites).moved) == pytest.approx((partitioned.moved,) * 2)
    assert moved_as_relations(text, sites, shapes, {"X": int(entries.sum())}) == pytest.approx(partitioned.moved)
