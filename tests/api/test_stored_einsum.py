"""`db.einsum` computes with stored tensors and arrays what numpy computes, and leaves the database as it was."""

import numpy as np
import pytest
import scipy.sparse
import sparse as pydata
from numpy_einsum import DTYPES, FORMS, filled

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

STRETCHED = {subscripts for subscripts, shapes in FORMS if any(1 in shape for shape in shapes)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("subscripts, shapes", [form for form in FORMS if form[0] not in STRETCHED][::5])
def test_forms(shared_db: se.Database, subscripts: str, shapes: list[tuple[int, ...]], dtype: str) -> None:
    arrays = [filled(*shape, seed=at, dtype=dtype) for at, shape in enumerate(shapes)]
    for at, array in enumerate(arrays):
        shared_db.tensor(f"Stored{at}", array)
    operands = [f"Stored{at}" if at % 2 == 0 else array for at, array in enumerate(arrays)]
    result = shared_db.einsum(subscripts, *operands).to_numpy()
    expected = np.asarray(np.einsum(subscripts, *arrays))
    tolerance = 2e-5 if dtype in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * 10)


def test_joins_aggregates_and_sparse_arrays(db: se.Database) -> None:
    lengths = np.array([[0, 1, np.inf], [np.inf, 0, 2], [5, np.inf, 0]])
    db.tensor("L", lengths, fill=np.inf)
    paths = (lengths[:, :, None] + lengths[None]).min(axis=1)
    np.testing.assert_array_equal(db.einsum("ij,jk->ik", "L", "L", join="+", agg="min").to_numpy(), paths)
    sparse = scipy.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(3, 3))
    np.testing.assert_array_equal(db.einsum("ij,jk", sparse, np.eye(3)).to_numpy(), sparse.toarray())
    of_sparse = pydata.COO(np.array([[0], [1]]), np.array([5.0]), shape=(3, 3), fill_value=np.inf)
    paths = (of_sparse.todense()[:, :, None] + lengths[None]).min(axis=1)
    np.testing.assert_array_equal(db.einsum("ij,jk->ik", of_sparse, "L", join="+", agg="min").to_numpy(), paths)
    assert list(db.tensors()) == ["L"]


@pytest.mark.parametrize(
    ("operands", "error", "message"),
    [
        (("A", "B"), se.CatalogueError, "there is no tensor B"),
        (("A", "a"), se.CatalogueError, "there is A"),
        (("A", np.ones((3, 3))), se.ShapeError, "label j .* has two sizes: 2 in operand 1, 3 in operand 2"),
        (("A", np.ones((1, 3))), se.ShapeError, "axis 0 of operand 2 .* has size 1"),
        (("A", [1, 2]), se.DataError, "operand 2 is a list"),
        (("A", np.array([["x"]])), se.DataError, "operand 2 of einsum has dtype"),
        (("A",), se.ParseError, "2 operands, but 1"),
    ],
)
def test_errors(db: se.Database, operands: tuple[object, ...], error: type[Exception], message: str) -> None:
    db.tensor("A", np.eye(2))
    with pytest.raises(error, match=message):
        db.einsum("ij,jk->ik", *operands)
    assert list(db.tensors()) == ["A"]
