"""Storage: tensors that are not stored: the database generates their rows when they are read."""

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor, Tensor, fully_promoted

_COLUMN = "range"  # the column of DuckDB's table function range(n), which counts from 0


def generated_source(tensor: Tensor, kind: str) -> StoredTensor:
    """Return the relation of a generated vector: `ones` has no column of values, the values of `index` are its keys."""
    (axis,) = tensor.axes
    value = _COLUMN if kind == "index" else None
    return StoredTensor(
        tensor,
        fully_promoted(1),
        f"range({axis.bound})",
        (_COLUMN,),
        value,
        casts=False,
        is_owned=False,
        is_generated=True,
    )


def successor_source(tensor: Tensor) -> StoredTensor:
    """Return the relation of a generated matrix that is true if the second index is the first one plus 1."""
    first, second = tensor.axes
    count = max(first.bound - 1, 0)
    following = exp.alias_(exp.column(_COLUMN) + exp.Literal.number(1), second.name)
    query = exp.select(exp.column(_COLUMN), following).from_(f"range({count})").sql("duckdb")
    keys = (_COLUMN, second.name)
    return StoredTensor(tensor, fully_promoted(2), query, keys, None, casts=False, is_owned=False, is_generated=True)
