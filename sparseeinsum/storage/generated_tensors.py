"""Storage: tensors that are not stored: the database generates their rows when they are read."""

import math
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.tensors import StoredTensor, Tensor, fully_promoted

_COLUMN = "range"  # the column of DuckDB's table function range(n), which counts from 0


def generated_source(tensor: Tensor, kind: str) -> StoredTensor:
    """Return the relation of a generated vector: `ones` has no column of values, the values of `index` are its keys."""
    (axis,) = tensor.axes
    return _generated(tensor, f"range({axis.bound})", (_COLUMN,), axis.bound, _COLUMN if kind == "index" else None)


def successor_source(tensor: Tensor) -> StoredTensor:
    """Return the relation of a generated matrix that is true if the second index is the first one plus 1."""
    first, second = tensor.axes
    count = max(first.bound - 1, 0)
    following = exp.alias_(exp.column(_COLUMN) + exp.Literal.number(1), second.name)
    query = exp.select(exp.column(_COLUMN), following).from_(f"range({count})")
    return _generated(tensor, query.sql("duckdb"), (_COLUMN, second.name), count)


def index_map_source(tensor: Tensor, index: AffineIndex) -> StoredTensor:
    """Return the relation of an index map, which is true where the last index is an affine index of the others.

    Args:
        tensor: The map, with an axis for every label of the index, and then that which is indexed.
        index: The affine index.
    """
    *axes, indexed = tensor.axes
    names = [axis.name for axis in axes]
    start = index.start(indexed.bound)
    terms: list[exp.Expr] = [exp.Literal.number(start)] if start or not names else []
    for (_, coefficient), name in zip(index.terms, names, strict=True):
        column = exp.column(_COLUMN, table=name)
        terms.append(column if coefficient == 1 else column * exp.Literal.number(coefficient))
    position = reduce(lambda left, right: exp.Add(this=left, expression=right), terms)
    columns = [exp.alias_(exp.column(_COLUMN, table=name), name) for name in names]
    query = exp.select(*columns, exp.alias_(position, indexed.name))
    for axis in axes:
        rows = exp.Table(
            this=exp.Anonymous(this=_COLUMN, expressions=[exp.Literal.number(axis.bound)]),
            alias=exp.TableAlias(this=exp.to_identifier(axis.name)),
        )
        query = query.join(rows, join_type="CROSS") if query.args.get("from_") else query.from_(rows)
    keys = (*names, indexed.name)
    source = _generated(tensor, query.sql("duckdb"), keys, math.prod(axis.bound for axis in axes))
    return replace(source, index=index)


def _generated(
    tensor: Tensor, relation: str, keys: tuple[str, ...], row_count: int, value: str | None = None
) -> StoredTensor:
    return StoredTensor(
        tensor,
        fully_promoted(len(keys)),
        relation,
        keys,
        value,
        casts=False,
        is_owned=False,
        is_generated=True,
        row_count=row_count,
    )
