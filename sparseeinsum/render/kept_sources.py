"""Render: where operands are read that are in memory since an earlier run."""

from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Compress, Relation, Stack
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.layouts import HANDLE_COLUMN, kept_array_source
from sparseeinsum.render.relation_names import write_schema
from sparseeinsum.render.sources import SelectSource, plain_source
from sparseeinsum.statistics.columns import array_type


def kept_source(relation: Relation, handle: int | None, dialect: Dialect) -> SelectSource:
    """The query of the handle of an operand, or of its only array; of the value under it in an engine without handles.

    None stands for an operand without entries.
    """
    if not dialect.keeps_residents:
        return _value_source(relation, handle)
    number = exp.cast(exp.null() if handle is None else integer(handle), "bigint")
    number.add_comments([f" {write_schema(relation.schema)}, in memory since an earlier run "])
    if isinstance(relation, Stack):
        return kept_array_source(relation.schema, number)
    query = exp.select(exp.alias_(number, HANDLE_COLUMN))
    return replace(plain_source(query.subquery(), relation.schema), handle=number)


def _value_source(relation: Relation, handle: int | None) -> SelectSource:
    """The source of the array that a session keeps under a handle."""
    kind = array_type("int64" if isinstance(relation, Compress) else relation.schema.tensor.dtype)
    value: exp.Expr = exp.cast(exp.null(), kind)
    if handle is not None:
        value = call("tensor_kept", integer(handle), exp.cast(exp.array(), kind.copy()))
    value.add_comments([f" {write_schema(relation.schema)}, in memory since an earlier run "])
    column = VALUE_COLUMN if isinstance(relation, Stack) else HANDLE_COLUMN
    query = exp.select(exp.alias_(value, column)).offset(0, copy=False)
    return replace(plain_source(query.subquery(), relation.schema), handle=value)
