"""Engines: tensors that nobody stores, as rows that the database makes when they are read."""

from sparseeinsum.language.tensors import StoredTensor, Tensor, entries

_COLUMN = "range"  # of DuckDB's table function range(n), which counts from 0


def generated_source(tensor: Tensor, kind: str) -> StoredTensor:
    """Where a generated vector is read: `ones` have no column of values, the values of `index` are its keys."""
    (axis,) = tensor.axes
    value = _COLUMN if kind == "index" else None
    return StoredTensor(
        tensor, entries(1), f"range({axis.bound})", (_COLUMN,), value, casts=False, is_owned=False, is_generated=True
    )
