"""`se.partition` cuts programs among workers without seeing their data."""

import math

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.api.examples import MATRIX_CHAIN, MULTI_HEAD_ATTENTION
from sparseeinsum.api.graphs import GCN

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
SQUARES = {"A": (4096, 4096), "B": (4096, 4096)}


def test_a_product_of_squares() -> None:
    partitioning = se.partition(PRODUCT, 64, SQUARES)
    assert partitioning.vectors == {"C": {"i": 4, "k": 4, "j": 4}}
    assert partitioning.workers == 64
    assert partitioning.floats == 64 * 2 * 1024**2 + 16 * 3 * 1024**2


def test_explanation_has_vectors_floats_and_other_partitions() -> None:
    optimum = se.partition(MATRIX_CHAIN, 16, dict.fromkeys("ABCDE", (4096, 4096)), objective="bound")
    text = optimum.explain({"rows": {"A": "i"}, "columns": {"E": 1}})
    assert text == str(optimum.explain({"rows": {"A": "i"}, "columns": {"E": 1}}))
    assert "EinSums cut among 16 workers; no other vectors move fewer floats" in text
    assert "Y_sum[i, k] = sum(A[i, j] * B[j, k])       │ i 4, k 4 │    16 │ 134,217,728 │" in text
    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in text.splitlines() if line.startswith("│")}
    assert rows["this"][0].strip() == f"{round(optimum.floats):,}"
    for name, partitioning in {"even": optimum.even(), "rows": optimum.along({"A": 0})}.items():
        assert rows[name][0].strip() == f"{round(partitioning.floats):,}"
        assert rows[name][1].strip() == f"{partitioning.floats / optimum.floats:.2f}"
    assert repr(optimum) == optimum.explain()


def test_kinds_of_floats_add_up() -> None:
    partitioning = se.partition(MATRIX_CHAIN, 16, dict.fromkeys("ABCDE", (64, 64)))
    for alternative in (partitioning.best, partitioning.even(), partitioning.along({"D": "m"})):
        assert (
            alternative.floats
            == alternative.join + alternative.aggregation + alternative.repartition
            == sum(step.floats for step in alternative.steps)
        )


def test_declared_shapes_and_programs_that_were_read_before() -> None:
    text = f"tensor A[row: 64, column: 32]\ntensor B[column: 32, class: 8]\n{PRODUCT}"
    partitioning = se.partition(se.program(text), 4)
    assert partitioning.vectors == se.partition(PRODUCT, 4, {"A": (64, 32), "B": (32, 8)}).vectors
    assert partitioning.along({"A": "row"}).steps[0].pieces == (("i", 4), ("k", 1), ("j", 1))


def test_sparse_tensors_get_other_partitions() -> None:
    """A matrix of few entries is replicated rather than a dense one."""
    dense = se.partition(PRODUCT, 16, {"A": (4096, 4096), "B": (4096, 512)})
    sparse = se.partition(PRODUCT, 16, {"A": (4096, 4096), "B": (4096, 512)}, entries={"A": 4096})
    assert dense.vectors["C"] == {"i": 8, "k": 2, "j": 1} or dense.vectors["C"]["i"] > dense.vectors["C"]["k"]
    assert sparse.vectors["C"]["k"] == 16
    assert sparse.floats < dense.floats / 5


def test_graph_convolutions() -> None:
    shapes = {"A": (2708, 2708), "D": (2708, 2708), "X": (2708, 1433), "W1": (1433, 256), "W2": (256, 16)}
    partitioning = se.partition(GCN, 8, shapes, entries={"A": 13264, "D": 2708, "X": 49216})
    assert set(partitioning.vectors) >= {"T0", "T1", "H", "Y"}
    assert partitioning.floats < se.partition(GCN, 8, shapes).floats / 5
    assert 0 < partitioning.replay().total.floats < partitioning.floats


def test_attention_for_several_workers() -> None:
    shapes = {"X": (512, 512), **dict.fromkeys(("WQ", "WK", "WV"), (512, 8, 64)), "WO": (8, 64, 512)}
    partitioning = se.partition(MULTI_HEAD_ATTENTION, 8, shapes, objective="bound", rewrite=False)
    heads, sequence = partitioning.along({"WQ": "h"}), partitioning.along({"X": "s"})
    assert partitioning.floats <= min(heads.floats, sequence.floats, partitioning.even().floats)
    assert dict(heads.steps[0].pieces)["h"] == dict(sequence.steps[0].pieces)["s"] == 8


def test_generated_tensors_and_products_of_several_operands() -> None:
    text = "P[i, k] = sum(A[i, j] * B[j, l] * C[l, k]) * index(i)\nM[i] = argmax[k](P[i, k])"
    partitioning = se.partition(text, 4, {"A": (64, 32), "B": (32, 16), "C": (16, 8)})
    assert all(step.calls == 4 for step in partitioning.best.steps if step.einsum.output.labels)


THROUGH_T = "T[i, k] = sum(B[i, j] * C[j, k])\ny[i] = sum(T[i, k] * x[k])"
LOSS = "L[] = sum((X[i, j] - sum(U[i, r] * V[j, r])) ^ 2)"
BY_HAND = """
S[] = sum(X[i, j] * X[i, j])
P[i, r] = sum(X[i, j] * V[j, r])
G[r, q] = sum(U[i, r] * U[i, q])
H[r, q] = sum(V[j, r] * V[j, q])
L[] = S[] - 2 * sum(U[i, r] * P[i, r]) + sum(G[p, q] * H[p, q])
"""


def test_products_are_reordered_as_in_plans() -> None:
    shapes = {"B": (4096, 4096), "C": (4096, 4096), "x": (4096,)}
    as_one = se.partition("y[i] = sum(B[i, j] * C[j, k] * x[k])", 8, shapes)
    rewritten, written = (se.partition(THROUGH_T, 8, shapes, rewrite=rewrite) for rewrite in (True, False))
    assert rewritten.floats == as_one.floats
    assert rewritten.vectors.keys() == {"y_1", "y"}
    assert written.vectors.keys() == {"T", "y"}
    assert rewritten.floats < written.floats / 3
    assert rewritten.replay().total.floats < written.replay().total.floats / 1000
    assert "without T (rewrite=False keeps to what is written)" in str(rewritten)
    assert "rewrite" not in str(written)


def test_formulas_are_replaced_as_in_plans() -> None:
    """With a sparse X, neither a dense product nor a dense difference is computed."""
    shapes, entries = {"X": (4000, 4000), "U": (4000, 20), "V": (4000, 20)}, {"X": 160_000}
    written = se.partition(LOSS, 4, shapes, entries, rewrite=False)
    rewritten, by_hand = (se.partition(text, 4, shapes, entries, objective="bound") for text in (LOSS, BY_HAND))
    assert rewritten.floats == pytest.approx(by_hand.floats, rel=1e-3)
    assert rewritten.floats < written.floats / 10
    assert "computed by an equal formula" in str(rewritten)


def test_programs_stay_as_written_where_rewriting_sends_more() -> None:
    """Of a dense X, the difference is joined where the product is; the formula that is faster on one machine is not."""
    shapes = {"X": (4000, 4000), "U": (4000, 20), "V": (4000, 20)}
    assert se.partition(LOSS, 4, shapes).vectors == se.partition(LOSS, 4, shapes, rewrite=False).vectors
    assert se.partition(BY_HAND, 4, shapes).floats > se.partition(LOSS, 4, shapes).floats


def test_graphs_of_partitions_are_those_of_plans() -> None:
    """Rewriting is the same with the data and from shapes alone."""
    rng = np.random.default_rng(0)
    arrays = {"B": rng.normal(size=(300, 300)), "C": rng.normal(size=(300, 300)), "x": rng.normal(size=300)}
    with se.connect() as db:
        for name, array in arrays.items():
            db.tensor(name, array)
        for rewrite in (True, False):
            plan = db.plan(THROUGH_T, workers=4, rewrite=rewrite)
            assert plan.partitioned is not None
            partition = se.partition(THROUGH_T, 4, {name: a.shape for name, a in arrays.items()}, rewrite=rewrite)
            assert plan.partitioned.best.graph.einsums == partition.best.graph.einsums


def test_equal_statements_are_computed_once() -> None:
    text = f"{PRODUCT}\nD[i, k] = sum(A[i, j] * B[j, k])\nE[i, k] = C[i, k] + D[i, k]"
    partition = se.partition(text, 4, SQUARES, rewrite=False)
    assert "D: the same as C, which is computed once for both" in str(partition)
    assert partition.best.join < 2 * se.partition(PRODUCT, 4, SQUARES).best.join


def test_bounds_can_be_the_objective() -> None:
    """The least bound moves 20% more than SQRT here."""
    squares = dict.fromkeys("ABCDE", (20480, 20480))
    by_bound, by_floats = (se.partition(MATRIX_CHAIN, 16, squares, objective=name) for name in ("bound", "floats"))
    assert by_floats.moved <= by_bound.replay(by_bound.even()).total.floats < by_bound.moved / 1.1
    assert by_bound.floats < by_floats.floats
    assert by_bound.best.is_optimal
    assert not by_floats.best.is_optimal
    assert math.prod(by_floats.vectors["Y"].values()) == 16


@pytest.mark.parametrize("workers", [3, 4, 16])
def test_replayed_floats_are_no_more_than_those_of_a_rule(workers: int) -> None:
    shapes = {"X": (512, 512), **dict.fromkeys(("WQ", "WK", "WV"), (512, 8, 64)), "WO": (8, 64, 512)}
    by_floats = se.partition(MULTI_HEAD_ATTENTION, workers, shapes, objective="floats")
    by_bound = se.partition(MULTI_HEAD_ATTENTION, workers, shapes, objective="bound")
    rules = (by_bound.best, by_bound.even(), by_bound.along({"WQ": "h"}), by_bound.along({"X": "s"}))
    moved = [by_bound.replay(partitioning).total.floats for partitioning in rules]
    assert by_floats.replay().total.floats <= min(moved) * (1 + 1e-9)


def test_the_objective_chooses_between_written_and_rewritten() -> None:
    """The rewritten loss has the lower bound, and the written one moves less."""
    shapes, entries = {"X": (4000, 4000), "U": (4000, 20), "V": (4000, 20)}, {"X": 160_000}
    by_bound = se.partition(LOSS, 4, shapes, entries, objective="bound")
    by_floats = se.partition(LOSS, 4, shapes, entries, objective="floats")
    assert len(by_bound.vectors) > len(by_floats.vectors)
    assert by_floats.replay().total.floats < by_bound.replay().total.floats


def test_unknown_objectives_are_refused() -> None:
    with pytest.raises(se.PlanError, match="objective is 'seconds'; choose one of floats, bound"):
        se.partition(PRODUCT, 4, SQUARES, objective="seconds")


def test_one_worker_gets_every_tensor_once() -> None:
    assert se.partition(PRODUCT, 1, {"A": (8, 4), "B": (4, 2)}).floats == 8 * 4 + 4 * 2


@pytest.mark.parametrize(
    ("shapes", "entries", "message"),
    [
        ({"A": (4, 4)}, {}, 'B has no shape; declare it, as in tensor B\\[i: 100\\], or give it, as in shapes={"B"'),
        ({"A": (4, 4), "B": (5, 4)}, {}, "label j"),
        ({"A": (4,), "B": (4, 4)}, {}, "A"),
        ({"A": (4, 4), "B": (4, 4), "D": (1,)}, {}, "the program reads no tensor D; it reads A, B"),
        ({"A": (4, 4), "B": (4, 4)}, {"D": 1}, "the program reads no tensor D"),
        ({"A": (4, 4), "B": (4, 4)}, {"A": 17}, "A cannot have 17 entries; it has 16 places"),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict[str, tuple[int, ...]], entries: dict[str, int], message: str) -> None:
    with pytest.raises(se.ShapeError, match=message):
        se.partition(PRODUCT, 4, shapes, entries)


@pytest.mark.parametrize("workers", [3, 5, 6, 12])
def test_numbers_of_workers_other_than_powers_of_two(workers: int) -> None:
    """All workers have as much to do; more workers than there are pieces of a label cut several."""
    partition = se.partition(PRODUCT, workers, {"A": (3600, 3600), "B": (3600, 3600)})
    assert math.prod(partition.vectors["C"].values()) == workers
    replayed = partition.replay()
    assert len(replayed.operations) == workers
    assert replayed.imbalance == 1
    assert 0 < replayed.total.floats < partition.floats <= partition.even().floats


def test_workers_are_a_whole_number() -> None:
    with pytest.raises(se.PlanError, match="workers is 0; give a whole number of 1 or more"):
        se.partition(PRODUCT, 0, SQUARES)
