"""Loading: reads sparse matrices and arrays of scipy, and of the package sparse (pydata/sparse)."""

import sys
from typing import Any

import numpy as np

from sparseeinsum.loading.sources.input_data import EntryArrays


def is_scipy(data: object) -> bool:
    """Return whether data are a sparse matrix or array of scipy."""
    scipy_sparse: Any = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(data))


def read_scipy(_: str, data: Any) -> EntryArrays:  # noqa: ANN401  # of scipy's, which share no typed base
    """Read the entries that `tocoo()` lists, repeated coordinates included."""
    coo = data.tocoo()
    return EntryArrays(coo.coords, coo.data, tuple(coo.shape))


def is_pydata(data: object) -> bool:
    """Return whether data are an array of the package sparse."""
    package = sys.modules.get("sparse")
    return isinstance(data, getattr(package, "SparseArray", ()))


def read_pydata(_: str, data: Any) -> EntryArrays:  # noqa: ANN401  # the package has no types
    """Read the coordinates, values and fill value of an array."""
    coo = data if hasattr(data, "coords") else data.asformat("coo")
    return EntryArrays(coo.coords, coo.data, tuple(coo.shape), fill=np.asarray(coo.fill_value).item())
