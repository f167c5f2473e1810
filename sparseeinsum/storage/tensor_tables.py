"""Storage: writes the table of a tensor from rows of another table: sums duplicates, cuts tiles, orders rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import Convert, Densify, Relation, Stored
from sparseeinsum.algebra.reading import repartition
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN, Axis, Decomposition, ListLayout, StoredTensor, Tensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.render.statements import relation_query
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.columns import computed_type, index_type, stored_type, type_named, value_of
from sparseeinsum.statistics.row_checks import check_rows
from sparseeinsum.statistics.tensor_rows import relation_of
from sparseeinsum.storage.list_tables import lists_query

_ROWS = temporary_name("given")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How the table of a tensor is written.

    Attributes:
        decomposition: The decomposition of the tensor.
        sum_duplicates: Whether the values of a repeated coordinate are added up.
        order: The key columns that sort the rows; empty to keep the order of the source.
        distribution: How rows are distributed over machines; None if there is one machine.
        lists: How entries are put into lists; None if they are not.
    """

    decomposition: Decomposition
    sum_duplicates: bool = False
    order: tuple[str, ...] = ()
    distribution: TableDistribution | None = None
    lists: ListLayout | None = None


def checked_order(tensor: Tensor, decomposition: Decomposition, order: Sequence[str]) -> tuple[str, ...]:
    """Return the key columns that sort rows, in lower case.

    Raises:
        ShapeError: An axis in `order` is no key column.
    """
    key_columns = [tensor.axes[position].name for position in decomposition.promoted]
    for axis in order:
        if axis.lower() not in key_columns:
            raise ShapeError(
                f"tensor {tensor.name} has no key column {axis} to order its rows by; it has {', '.join(key_columns)}"
            )
    return tuple(axis.lower() for axis in order)


def write_table(engine: Engine, source: StoredTensor, layout: TableLayout, table: exp.Table) -> None:
    """Create the table of a tensor from rows in another table, which are checked except for repeated coordinates.

    Args:
        engine: The engine of both tables.
        source: The tensor in the other table.
        layout: How the table is written.
        table: The table.

    Raises:
        DataError: A sum does not fit into the dtype.
    """
    query = rows_as_written(engine, source, layout)
    if layout.lists is not None:
        engine.replace_table(table, query, distribution=layout.distribution, records_changes=True)
        return
    if layout.decomposition == source.decomposition:
        engine.replace_table(
            table, _ordered(query, layout.order), distribution=layout.distribution, records_changes=True
        )
        return
    temporary = exp.table_(_ROWS, db=engine.dialect.temporary_schema)
    stored = stored_tensor(source.tensor, source.decomposition, temporary.sql(engine.dialect_name))
    engine.create_temporary(temporary, query)
    select = rows_in_layout(engine, stored, layout.decomposition)
    engine.replace_table(table, _ordered(select, layout.order), distribution=layout.distribution, records_changes=True)
    engine.execute(exp.Drop(tables=[temporary], kind="TABLE"))


def rows_as_written(engine: Engine, source: StoredTensor, layout: TableLayout) -> exp.Select:
    """Return a query of the rows of a table of entries or lists, from entries in another table; sums are checked.

    Raises:
        DataError: A sum does not fit into the dtype.
    """
    if layout.sum_duplicates:
        _check_sums(engine, source)
    query = _summed(engine, source) if layout.sum_duplicates else rows_as_stored(engine, source)
    return query if layout.lists is None else lists_query(source.tensor, layout.lists, query)


def rows_as_stored(engine: Engine, source: StoredTensor) -> exp.Select:
    """Return a query of the rows of any tensor, with the columns that a table of its own has in the same layout."""
    return _entries(engine, source, _value(source))


def rows_in_layout(
    engine: Engine,
    source: StoredTensor,
    decomposition: Decomposition,
    keeps_fill: bool = False,
    is_complete: bool = False,
) -> exp.Select:
    """Return a query of the rows that a table of a tensor in another layout has.

    Args:
        engine: The engine of the tensor.
        source: The tensor.
        decomposition: The other layout.
        keeps_fill: Whether there are rows of numbers that are the fill, if the tensor has them.
        is_complete: Whether there is a row for every possible key.
    """
    relation: Relation = repartition(Stored(source), decomposition, keeps_fill)
    relation = Densify(relation) if is_complete else relation
    return relation_query(Convert(relation) if source.tensor.dtype == "bool" else relation, engine.dialect)


def stored_tensor(tensor: Tensor, decomposition: Decomposition, relation: str) -> StoredTensor:
    """Return a tensor that is stored in a table of its own, `relation`."""
    dtype, is_scalar = tensor.dtype, decomposition.is_scalar
    casts = stored_type(dtype, is_scalar) != computed_type(dtype, is_scalar)
    keys = tuple(tensor.axes[position].name for position in decomposition.promoted)
    return StoredTensor(tensor, decomposition, relation, keys, VALUE_COLUMN, casts, is_owned=True)


def check_duplicates(engine: Engine, stored: StoredTensor) -> None:
    """Refuse repeated coordinates; everything else was checked before.

    Raises:
        DataError: A coordinate is repeated; the message names the first row that repeats one.
    """
    table = relation_of(stored, engine.dialect_name)
    constant = exp.alias_(exp.Literal.number(1), "number")  # for a tensor without axes
    columns = [exp.column(key, quoted=True) for key in stored.keys]
    coordinates = exp.select(*columns, constant).from_(table).distinct().subquery("coordinates")
    ((distinct,),) = engine.rows(exp.select("COUNT(*)").from_(coordinates))
    ((tuples,),) = engine.rows(exp.select("COUNT(*)").from_(table))
    if distinct != tuples:
        check_rows(stored, engine)


def _ordered(query: exp.Select, keys: Sequence[str]) -> exp.Select:
    return query.order_by(*[exp.column(key) for key in keys], append=False) if keys else query


def _summed(engine: Engine, source: StoredTensor) -> exp.Select:
    """Return a query of the entries of a tensor in which values of a repeated coordinate are added up."""
    value = _value(source)
    if source.tensor.dtype == "bool":
        total: exp.Expr = exp.func("bool_or", value)
    elif is_complex(source.tensor.dtype):
        components = [exp.Bracket(this=value.copy(), expressions=[exp.Literal.number(n)], offset=1) for n in (1, 2)]
        total = exp.array(*[exp.Sum(this=part) for part in components])
    else:
        total = _total(source)
    summed = _grouped(source, _entries(engine, source, total))
    return summed.order_by(*_keys(source)) if source.keys else summed


def _total(source: StoredTensor) -> exp.Expr:
    """Return the sum of a group of numbers, in a type that is wider than theirs."""
    value = _value(source)
    return exp.Sum(this=exp.cast(value, "double") if source.tensor.dtype == "float32" else value)


def _value(source: StoredTensor) -> exp.Expr:
    """Return the value of a row in the type in which tables store it."""
    kind = type_named(stored_type(source.tensor.dtype, source.decomposition.is_scalar))
    if source.is_owned:
        return exp.cast(exp.column(VALUE_COLUMN), kind)
    value = value_of(source)
    return value.neq(exp.Literal.number(0)) if source.tensor.dtype == "bool" else exp.cast(value, kind)


def _entries(engine: Engine, source: StoredTensor, value: exp.Expr) -> exp.Select:
    """Return a query of the key columns of a tensor, named as its axes, and of `value`, in the types of tables."""
    kind = type_named(stored_type(source.tensor.dtype, source.decomposition.is_scalar))
    keys = [
        exp.alias_(exp.cast(key, index_type(axis.bound)), axis.name)
        for key, axis in zip(_keys(source), _promoted(source), strict=True)
    ]
    return exp.select(*keys, exp.alias_(exp.cast(value, kind), VALUE_COLUMN)).from_(
        relation_of(source, engine.dialect_name)
    )


def _keys(source: StoredTensor) -> list[exp.Column]:
    return [exp.column(key, quoted=True) for key in source.keys]


def _promoted(source: StoredTensor) -> list[Axis]:
    return [source.tensor.axes[position] for position in source.decomposition.promoted]


def _grouped(source: StoredTensor, select: exp.Select) -> exp.Select:
    """Return a query of one row per coordinate; of no rows if the source has none, also for a tensor without axes."""
    keys = _keys(source)
    return select.group_by(*keys) if keys else select.having("COUNT(*) > 0")


def _check_sums(engine: Engine, source: StoredTensor) -> None:
    """Refuse sums that do not fit into the dtype; the database adds up int64 and float32 in wider types."""
    dtype = source.tensor.dtype
    if dtype not in ("int64", "float32"):
        return
    total = _total(source)
    fits = exp.TryCast(this=total.copy(), to=type_named(stored_type(dtype, is_scalar=True)))
    query = exp.select(*_keys(source), total).from_(relation_of(source, engine.dialect_name))
    sums_query = _grouped(source, query).having(fits.is_(exp.null()))
    for *indices, value in engine.rows(sums_query.order_by(*_keys(source), total.copy()).limit(1)):
        raise DataError(
            f"tensor {source.tensor.name}: the values at the coordinate ({', '.join(map(str, indices))}) add up to "
            f"{value}, which is no {dtype}; pass dtype='float64'"
        )
