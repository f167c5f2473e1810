"""Statistics of generated tensors follow from their bounds and equal those of a scan."""

import pytest
from reading import engine_of

import sparseeinsum as se
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.tensors import Axis, StoredTensor, Tensor
from sparseeinsum.statistics.fingerprints import fingerprints
from sparseeinsum.statistics.generated_measurements import measure_generated
from sparseeinsum.statistics.measure import measure
from sparseeinsum.storage.generated_tensors import generated_source, index_map_source, successor_source


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("bound", [0, 1, 2, 7])
@pytest.mark.parametrize("kind", ["ones", "index"])
def test_vectors(db: se.Database, kind: str, bound: int) -> None:
    dtype = "int64" if kind == "index" else "float64"
    check(db, generated_source(Tensor("G", (Axis("i", bound),), dtype, 0), kind))


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("bound", [1, 2, 7])
def test_which_index_follows_which(db: se.Database, bound: int) -> None:
    check(db, successor_source(Tensor("G", (Axis("i", bound), Axis("j", bound)), "bool", False)))


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize(
    ("index", "bounds"),
    [
        (AffineIndex((), -2), (5,)),
        (AffineIndex((("i", 1),), 1), (4, 5)),
        (AffineIndex((("i", -2),), -1), (3, 6)),
        (AffineIndex((("i", 3),), 0), (0, 6)),
    ],
)
def test_index_maps(db: se.Database, index: AffineIndex, bounds: tuple[int, ...]) -> None:
    check(db, index_map(index, bounds))


@pytest.mark.engines("duckdb", "postgresql")
def test_an_index_of_several_labels_identifies_no_row(db: se.Database) -> None:
    stored = index_map(AffineIndex((("i", 2), ("r", 4)), 0), (3, 2, 10))
    generated, measured = measure_generated(stored, None), measure(stored, engine_of(db))
    assert (generated.tuples, generated.statistics.entries, generated.values) == (6, 6, measured.values)
    assert generated.statistics.distinct == (3, 2, 5)  # an estimate, below 6
    assert measured.statistics.distinct == (3, 2, 5)


def index_map(index: AffineIndex, bounds: tuple[int, ...]) -> StoredTensor:
    axes = (*(Axis(label, bound) for label, bound in zip(index.labels, bounds, strict=False)), Axis("j", bounds[-1]))
    return index_map_source(Tensor("G", axes, "bool", False), index)


def check(db: se.Database, stored: StoredTensor) -> None:
    engine = engine_of(db)
    assert measure_generated(stored, None) == measure(stored, engine)
    assert fingerprints([stored], engine) == [stored.tensor.shape]


def test_long_generated_tensors_are_planned_at_once(db: se.Database) -> None:
    """Reading their rows would take years."""
    plan = db.plan("S[] = sum(ones(i: 4000000000000))\nM[] = max(index(j: 4000000000000))")
    assert {tensor.measurement.tuples for tensor in plan.data.inputs.values()} == {4_000_000_000_000}
