"""Storage: rows as they were given into the table that keeps a tensor: summed, cut into tiles, ordered."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import Convert, Stored
from sparseeinsum.algebra.translate import repartition
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN, Axis, Decomposition, StoredTensor, Tensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.render.statements import relation_query
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.columns import computed_type, coordinate, relation_of, stored_type, type_named, value_of
from sparseeinsum.statistics.measure import check_rows

_GIVEN = temporary_name("given")
_MOST_INT = 1 << 31  # the greatest bound of an axis whose indices are of SQL's INTEGER
_LARGEST_NUMBER = 1 << 62  # coordinates of larger tensors are not numbered


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the rows of a table are to be.

    Attributes:
        decomposition: How they hold the tensor.
        sums: Whether values of a coordinate that is given twice are added up.
        order: Key columns by which they are ordered; else they lie as they are given.
        spread: How they are spread over machines; None where there is one.
    """

    decomposition: Decomposition
    sums: bool = False
    order: tuple[str, ...] = ()
    spread: TableDistribution | None = None


def checked_order(tensor: Tensor, decomposition: Decomposition, order: Sequence[str]) -> tuple[str, ...]:
    """Key columns to order by, in lower case.

    Raises:
        ShapeError: An axis is no key column.
    """
    known = [tensor.axes[position].name for position in decomposition.promoted]
    for axis in order:
        if axis.lower() not in known:
            raise ShapeError(
                f"tensor {tensor.name} has no key column {axis} to order its rows by; it has {', '.join(known)}"
            )
    return tuple(axis.lower() for axis in order)


def arrange(engine: Engine, given: StoredTensor, arrangement: Arrangement, table: exp.Table) -> None:
    """Make the table of rows that are in another one, and are known to be sound, but that coordinates may be repeated.

    Raises:
        DataError: A sum is beyond the dtype.
    """
    if arrangement.sums:
        _check_sums(engine, given)
    query = _summed(engine, given) if arrangement.sums else _entries(engine, given, _value(given))
    if arrangement.decomposition == given.decomposition:
        engine.replace_table(table, _ordered(query, arrangement.order), spread=arrangement.spread)
        return
    temporary = exp.table_(_GIVEN, db=engine.dialect.temporary_schema)
    whole = stored_tensor(given.tensor, given.decomposition, temporary.sql(engine.dialect_name))
    engine.create_temporary(temporary, query)
    cut = repartition(Stored(whole), arrangement.decomposition)
    select = relation_query(Convert(cut) if given.tensor.dtype == "bool" else cut, engine.dialect)
    engine.replace_table(table, _ordered(select, arrangement.order), spread=arrangement.spread)
    engine.execute(exp.Drop(tables=[temporary], kind="TABLE"))


def stored_tensor(tensor: Tensor, decomposition: Decomposition, relation: str) -> StoredTensor:
    """A tensor in a table that was made for it."""
    dtype, is_scalar = tensor.dtype, decomposition.is_scalar
    casts = stored_type(dtype, is_scalar) != computed_type(dtype, is_scalar)
    keys = tuple(tensor.axes[position].name for position in decomposition.promoted)
    return StoredTensor(tensor, decomposition, relation, keys, VALUE_COLUMN, casts, is_owned=True)


def check_repeated(engine: Engine, stored: StoredTensor) -> None:
    """Refuse entries that give a coordinate twice; all else about them was checked before.

    Raises:
        DataError: There is one; the first row whose coordinate an earlier one has is named.
    """
    table = relation_of(stored, engine.dialect_name)
    one = exp.alias_(exp.Literal.number(1), "number")  # for a tensor without axes
    columns = [exp.column(key, quoted=True) for key in stored.keys]
    coordinates = exp.select(*columns, one).from_(table).distinct().subquery("coordinates")
    ((found,),) = engine.rows(exp.select("COUNT(*)").from_(coordinates))
    ((tuples,),) = engine.rows(exp.select("COUNT(*)").from_(table))
    if found != tuples:
        check_rows(stored, engine)


def is_ascending(engine: Engine, stored: StoredTensor) -> bool:
    """Whether every row of a table of entries has a greater coordinate than the one that is read before it.

    Then no coordinate is there twice, and that took far less time than to look for it. Rows may be read in another
    order than they were written, so that what is not so says nothing.
    """
    tensor = stored.tensor
    if not (tensor.axes and tensor.size < _LARGEST_NUMBER):
        return False
    number = coordinate(_keys(stored), tensor.shape)
    before = exp.Window(this=exp.func("LAG", number.copy()))
    numbers = exp.select(number.as_("number"), before.as_("before")).from_(relation_of(stored, engine.dialect_name))
    is_earlier = exp.LTE(this=exp.column("number"), expression=exp.column("before"))
    found = exp.select(exp.Literal.number(1).as_("one")).from_(numbers.subquery("numbers")).where(is_earlier).limit(1)
    return not engine.rows(found)


def _ordered(query: exp.Select, keys: Sequence[str]) -> exp.Select:
    return query.order_by(*[exp.column(key) for key in keys], append=False) if keys else query


def _summed(engine: Engine, given: StoredTensor) -> exp.Select:
    value = _value(given)
    if given.tensor.dtype == "bool":
        total: exp.Expr = exp.func("bool_or", value)
    elif is_complex(given.tensor.dtype):
        parts = [exp.Bracket(this=value.copy(), expressions=[exp.Literal.number(n)], offset=1) for n in (1, 2)]
        total = exp.array(*[exp.Sum(this=part) for part in parts])
    else:
        total = _total(given)
    summed = _grouped(given, _entries(engine, given, total))
    return summed.order_by(*_keys(given)) if given.keys else summed


def _total(given: StoredTensor) -> exp.Expr:
    """The sum of numbers, in a type that is wider than theirs."""
    value = _value(given)
    return exp.Sum(this=exp.cast(value, "double") if given.tensor.dtype == "float32" else value)


def _value(given: StoredTensor) -> exp.Expr:
    """The value of a row in the type that tables hold."""
    kind = type_named(stored_type(given.tensor.dtype, given.decomposition.is_scalar))
    if given.is_owned:
        return exp.cast(exp.column(VALUE_COLUMN), kind)
    value = value_of(given)
    return value.neq(exp.Literal.number(0)) if given.tensor.dtype == "bool" else exp.cast(value, kind)


def _entries(engine: Engine, given: StoredTensor, value: exp.Expr) -> exp.Select:
    kind = type_named(stored_type(given.tensor.dtype, given.decomposition.is_scalar))
    keys = [
        exp.alias_(exp.cast(key, "int" if axis.bound <= _MOST_INT else "bigint"), axis.name)
        for key, axis in zip(_keys(given), _promoted(given), strict=True)
    ]
    return exp.select(*keys, exp.alias_(exp.cast(value, kind), VALUE_COLUMN)).from_(
        relation_of(given, engine.dialect_name)
    )


def _keys(given: StoredTensor) -> list[exp.Column]:
    return [exp.column(key, quoted=True) for key in given.keys]


def _promoted(given: StoredTensor) -> list[Axis]:
    return [given.tensor.axes[position] for position in given.decomposition.promoted]


def _grouped(given: StoredTensor, select: exp.Select) -> exp.Select:
    """One row for every coordinate, none without any."""
    keys = _keys(given)
    return select.group_by(*keys) if keys else select.having("COUNT(*) > 0")


def _check_sums(engine: Engine, given: StoredTensor) -> None:
    """Refuse sums beyond the dtype; the database adds up int64 and float32 in wider types."""
    dtype = given.tensor.dtype
    if dtype not in ("int64", "float32"):
        return
    total = _total(given)
    fits = exp.TryCast(this=total.copy(), to=type_named(stored_type(dtype, is_scalar=True)))
    rows = exp.select(*_keys(given), total).from_(relation_of(given, engine.dialect_name))
    select = _grouped(given, rows).having(fits.is_(exp.null()))
    for *indices, found in engine.rows(select.order_by(*_keys(given), total.copy()).limit(1)):
        raise DataError(
            f"tensor {given.tensor.name}: the values at the coordinate ({', '.join(map(str, indices))}) add up to "
            f"{found}, which is no {dtype}; pass dtype='float64'"
        )
