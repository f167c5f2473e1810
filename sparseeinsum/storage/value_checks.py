"""Storage: finds values in columns of users that the dtype of a tensor cannot represent."""

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.dtypes import is_complex, is_float
from sparseeinsum.statistics.columns import dtype_of, stored_type, type_named
from sparseeinsum.statistics.tensor_rows import relation_of

# The bits of integers of an SQL type, and the bits of integers that a dtype represents exactly.
_BITS = {"BOOLEAN": 1, "TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_BITS |= {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32}
_EXACT_BITS = {"bool": 1, "float32": 24, "float64": 53, "int64": 63}

_VALUE = exp.column("value")


def check_values(engine: Engine, stored: StoredTensor, sql_type: str) -> None:
    """Refuse a column with a value that would change when it is read as the tensor's dtype.

    Numbers with decimals may be rounded to a floating-point dtype; integers may not.

    Args:
        engine: The engine of the column.
        stored: A tensor with a column of values, one entry per row.
        sql_type: The type of that column.

    Raises:
        DataError: There is such a value; the message names the first one.
    """
    assert stored.value is not None
    changed = change_condition(engine, sql_type, stored.tensor.dtype)
    if changed is None:
        return
    column = exp.alias_(exp.column(stored.value), "value")
    values = exp.select(column).from_(relation_of(stored, engine.dialect_name))
    if not engine.rows(_first(values, changed, "value")):
        return
    number = exp.Window(this=exp.RowNumber()) - exp.Literal.number(1)
    # In a second query, because only a single thread can number rows.
    for row, value in engine.rows(_first(values.select(exp.alias_(number, "row")), changed, "row", "value")):
        raise DataError(f"tensor {stored.tensor.name}, row {row} (counted from 0): {_described(stored, value)}")


def _first(values: exp.Select, changed: exp.Expr, *columns: str) -> exp.Select:
    select = exp.select(*columns).from_(values.subquery("column_values")).where(changed.copy()).limit(1)
    return select.order_by("row") if "row" in columns else select


def change_condition(engine: Engine, sql_type: str, dtype: str) -> exp.Expr | None:
    """Return a condition: the column `value` of type `sql_type` changes as `dtype`; None if no value does."""
    if is_complex(dtype):
        pair = exp.TryCast(this=_VALUE.copy(), to=type_named(stored_type(dtype, is_scalar=True)))
        counts = [exp.func("len", pair.copy()), exp.func("list_count", pair.copy())]  # list_count leaves out NULL
        is_changed: exp.Expr = exp.or_(
            *[exp.NullSafeNEQ(this=count, expression=exp.Literal.number(2)) for count in counts]
        )
    elif is_float(dtype) and is_float(dtype_of(sql_type) or ""):
        if (sql_type, dtype) != ("DOUBLE", "float32"):
            return None
        is_changed = engine.overflows_float32(_VALUE.copy())
    else:
        if sql_type in _BITS and _BITS[sql_type] <= _EXACT_BITS[dtype]:
            return None
        is_changed = engine.is_changed_by_cast(_VALUE.copy(), sql_type, dtype)
    return exp.and_(exp.Not(this=_VALUE.is_(exp.null())), is_changed)


def _described(stored: StoredTensor, value: object) -> str:
    dtype = stored.tensor.dtype
    problem = f"the value {stored.value} is {value}, which is no {dtype}"
    if is_complex(dtype):
        return f"{problem}; give an array of two numbers, [real, imaginary]"
    if dtype == "float64":
        return f"{problem}; choose another dtype, or round it in a view, CAST({stored.value} AS DOUBLE)"
    return f"{problem}; pass dtype='float64', or round it in a view"
