"""Tensors of torch load and read back where torch is installed; it is too large to be a dependency of tests."""

from typing import Any

import numpy as np
import pytest
from reading import read_back

import sparseeinsum as se

torch: Any = pytest.importorskip("torch", exc_type=ImportError)

pytestmark = [
    pytest.mark.engines("duckdb", "postgresql"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

MATRIX = np.array([[0.0, 1.5, 0.0, 0.0], [2.0, 0.0, -3.0, 0.0]])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int32", "uint8", "bool", "complex64"])
def test_dense(shared_db: se.Database, dtype: str) -> None:
    tensor = torch.tensor(np.abs(MATRIX)).to(getattr(torch, dtype))
    shared_db.tensor("A", tensor)
    np.testing.assert_array_equal(read_back(shared_db, "A"), tensor.to(torch.complex128).numpy())


@pytest.mark.parametrize(
    "make", ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "clone"]
)
def test_layouts(shared_db: se.Database, make: str) -> None:
    block = ((1, 2),) if make.endswith(("bsr", "bsc")) else ()
    shared_db.tensor("A", getattr(torch.tensor(MATRIX), make)(*block))
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_hybrids_and_repeated_entries(shared_db: se.Database) -> None:
    values = torch.tensor([[1.0, 2.0], [4.0, 8.0], [16.0, 0.0]])
    tensor = torch.sparse_coo_tensor([[0, 2, 0]], values, (3, 2))
    shared_db.tensor("A", tensor)
    np.testing.assert_array_equal(read_back(shared_db, "A"), tensor.to_dense().numpy())


def test_views_and_gradients(shared_db: se.Database) -> None:
    parameter = torch.nn.Parameter(torch.tensor(MATRIX))
    shared_db.tensor("A", parameter)
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)
    assert parameter.requires_grad
    shared_db.tensor("A", (parameter * 2).T[::2])
    np.testing.assert_array_equal(read_back(shared_db, "A"), (2 * MATRIX).T[::2])
    shared_db.tensor("A", torch.tensor([1 + 2j]).conj())
    np.testing.assert_array_equal(read_back(shared_db, "A"), [1 - 2j])


def test_quantized_tensors_are_refused(shared_db: se.Database) -> None:
    with pytest.raises(se.DataError, match="quantized tensor of torch"):
        shared_db.tensor("A", torch.quantize_per_tensor(torch.tensor(MATRIX).float(), 0.1, 0, torch.qint8))
