"""Engines: tensors into tables of the database, and tables of the user's as tensors."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from sqlglot import exp

from sparseeinsum.algebra.operators import Convert, Stored
from sparseeinsum.algebra.translate import repartition
from sparseeinsum.engines.arguments import Description
from sparseeinsum.engines.catalogue import SCHEMA, TABLE, Catalogue, check_name, folds_case, table_in, table_named
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.exactness import check_values
from sparseeinsum.engines.existing_tables import described, metadata_of_relation, relation_named
from sparseeinsum.engines.loading import Columns
from sparseeinsum.engines.tensor_metadata import completed
from sparseeinsum.errors import CatalogueError, DataError, ShapeError
from sparseeinsum.language.dtypes import is_complex
from sparseeinsum.language.tensors import VALUE_COLUMN, Decomposition, StoredTensor, Tensor
from sparseeinsum.render.statements import relation_query
from sparseeinsum.statistics.columns import (
    computed_type,
    stored_type,
    type_named,
)
from sparseeinsum.statistics.measure import check_rows, measure

_INCOMING = "sparseeinsum_incoming"
_GIVEN = "sparseeinsum_given"


def load(engine: Engine, columns: Columns, sums_duplicates: bool, order: Sequence[str] = ()) -> StoredTensor:
    """Store a tensor in a table of its own name, in place of one loaded before, and record it in the catalogue.

    Args:
        engine: Where.
        columns: What.
        sums_duplicates: Whether values of a coordinate that is given twice are added up.
        order: Key columns by which to order the rows of the table; else they lie as they are given.

    Raises:
        CatalogueError: A table or view of that name is there that was not made by loading.
        ShapeError: An axis to order by is no key column.
        DataError: The data are no tensor; the database is as it was.
    """
    name = columns.tensor.name
    keys = _checked_order(columns, order)
    sums = sums_duplicates and columns.may_repeat
    is_as_wanted = not sums and not keys and columns.wanted == columns.decomposition
    incoming = nullcontext() if is_as_wanted else engine.registered(columns.table, _INCOMING)
    with incoming, engine.transaction():
        catalogue = Catalogue(engine)
        known = catalogue.all()
        check_name(name, known, engine)
        table = table_of(engine, name)
        relation = table.sql(engine.dialect)
        replaced = _owned(known, name)
        if replaced is None or replaced.relation != relation:
            _check_free(engine, name)
            drop_table_of(engine, replaced)
        stored = stored_as(columns.tensor, columns.wanted, relation)
        if sums:
            _check_sums(engine, columns)
        query = _summed(columns) if sums else _selected(columns)
        given = stored
        if is_as_wanted:
            engine.load_table(table, columns.table)
        elif columns.wanted == columns.decomposition:
            engine.replace_table(table, _ordered(query, keys))
        else:
            given = _cut(engine, table, columns, query, keys)
        if columns.may_repeat and not sums:
            _check_repeated(engine, given)
        if given is not stored:
            engine.execute(f"DROP TABLE {given.relation}")
        catalogue.add(stored)
    return stored


def _checked_order(columns: Columns, order: Sequence[str]) -> list[exp.Column]:
    known = [columns.tensor.axes[position].name for position in columns.wanted.promoted]
    for axis in order:
        if axis.lower() not in known:
            raise ShapeError(
                f"tensor {columns.tensor.name} has no key column {axis} to order its rows by; it has {', '.join(known)}"
            )
    return [exp.column(axis.lower()) for axis in order]


def _ordered(query: exp.Select, keys: Sequence[exp.Column]) -> exp.Select:
    return query.order_by(*[key.copy() for key in keys], append=False) if keys else query


def _cut(
    engine: Engine, table: exp.Table, columns: Columns, query: exp.Select, keys: Sequence[exp.Column]
) -> StoredTensor:
    """Store a tensor in another decomposition than it is given in; returns it as given, in a temporary table."""
    temporary = exp.table_(_GIVEN, db=engine.sql.temporary_schema)
    given = stored_as(columns.tensor, columns.decomposition, temporary.sql(engine.dialect))
    engine.create_temporary(temporary, query)
    cut = repartition(Stored(given), columns.wanted)
    select = relation_query(Convert(cut) if columns.tensor.dtype == "bool" else cut, engine.sql)
    engine.replace_table(table, _ordered(select, keys))
    return given


def stored_as(tensor: Tensor, decomposition: Decomposition, relation: str) -> StoredTensor:
    """A tensor in a table that was made for it."""
    dtype, is_scalar = tensor.dtype, decomposition.is_scalar
    casts = stored_type(dtype, is_scalar) != computed_type(dtype, is_scalar)
    keys = tuple(tensor.axes[position].name for position in decomposition.promoted)
    return StoredTensor(tensor, decomposition, relation, keys, VALUE_COLUMN, casts, is_owned=True)


def _check_repeated(engine: Engine, stored: StoredTensor) -> None:
    """Refuse entries that give a coordinate twice; all else about them was checked before."""
    table = table_named(stored.relation, engine.dialect)
    one = exp.alias_(exp.Literal.number(1), "number")  # for a tensor without axes
    coordinates = (
        exp.select(*(exp.column(key) for key in stored.keys), one).from_(table).distinct().subquery("coordinates")
    )
    ((found,),) = engine.rows(exp.select("COUNT(*)").from_(coordinates))
    ((tuples,),) = engine.rows(exp.select("COUNT(*)").from_(table))
    if found != tuples:
        check_rows(stored, engine)


def check_target(engine: Engine, result: str, table: str) -> tuple[str, ...]:
    """The whole name of a table that is to take a result, in lower case.

    Raises:
        CatalogueError: It must not be replaced: a tensor was loaded into it, or it is the catalogue.
    """
    database, schema = (name.lower() for name in engine.location())

    def whole_name(text: str) -> tuple[str, ...]:
        parts = table_named(text, engine.dialect).parts
        return _whole_name(tuple(part.name.lower() for part in parts), database, schema, engine.sql.default_schema)

    target = whole_name(table)
    if target == (SCHEMA, TABLE):
        raise CatalogueError(f"{table} is where tensors are recorded; choose another table for {result}")
    for name, stored in Catalogue(engine).all().items():
        if stored.is_owned and whole_name(stored.relation) == target:
            raise CatalogueError(
                f"{table} is the table that tensor {name} was loaded into; choose another table for {result}"
            )
    return target


def _whole_name(parts: tuple[str, ...], database: str, schema: str, default: str | None) -> tuple[str, ...]:
    """Schema and name; before them the database where it is not the current one."""
    if len(parts) > (2 if default is None else 1) and parts[0] == database:
        parts, schema = parts[1:], default or schema
    return (schema, *parts) if len(parts) == 1 else parts


def table_of(engine: Engine, name: str) -> exp.Table:
    """The table in which a tensor of a name is kept, unless the user says otherwise."""
    _, schema = engine.location()
    return table_in(schema, name.lower() if folds_case(engine.dialect) else name, engine.dialect)


def _owned(known: Mapping[str, StoredTensor], name: str) -> StoredTensor | None:
    """The tensor of that name, if loading made its table."""
    stored = known.get(name)
    return stored if stored is not None and stored.is_owned else None


def drop_table_of(engine: Engine, replaced: StoredTensor | None) -> None:
    """Drop the table of a tensor that another takes the place of, if there is one."""
    if replaced is not None:
        table = table_named(replaced.relation, engine.dialect)
        engine.execute(exp.Drop(tables=[table], kind="TABLE", exists=True))


def _check_free(engine: Engine, name: str) -> None:
    """A table may be replaced only if loading made it."""
    for found in engine.relations_named(name):
        raise CatalogueError(
            f"there is a table or view {found.name} that was not loaded as a tensor; choose another name, or make a "
            f"tensor of it with db.tensor_from_table({name!r}, {found.name!r}, index=[...])"
        )


def _selected(columns: Columns) -> exp.Select:
    return _entries(columns, exp.column(VALUE_COLUMN))


def _summed(columns: Columns) -> exp.Select:
    value = exp.column(VALUE_COLUMN)
    if columns.tensor.dtype == "bool":
        total: exp.Expr = exp.func("bool_or", value)
    elif is_complex(columns.tensor.dtype):
        parts = [exp.Bracket(this=value.copy(), expressions=[exp.Literal.number(n)], offset=1) for n in (1, 2)]
        total = exp.array(*[exp.Sum(this=part) for part in parts])
    else:
        total = _total(columns)
    return _ordered(_grouped(columns, _entries(columns, total)), _keys(columns))


def _total(columns: Columns) -> exp.Expr:
    """The sum of numbers, in a type that is wider than theirs."""
    value = exp.column(VALUE_COLUMN)
    return exp.Sum(this=exp.cast(value, "double") if columns.tensor.dtype == "float32" else value)


def _entries(columns: Columns, value: exp.Expr) -> exp.Select:
    kind = stored_type(columns.tensor.dtype, columns.decomposition.is_scalar)
    return exp.select(*_keys(columns), exp.alias_(exp.cast(value, type_named(kind)), VALUE_COLUMN)).from_(_INCOMING)


def _keys(columns: Columns) -> list[exp.Column]:
    return [exp.column(key) for key in columns.table.column_names[:-1]]


def _grouped(columns: Columns, select: exp.Select) -> exp.Select:
    """One row for every coordinate, none without any."""
    keys = _keys(columns)
    return select.group_by(*keys) if keys else select.having("COUNT(*) > 0")


def _check_sums(engine: Engine, columns: Columns) -> None:
    """Refuse sums beyond the dtype; the database adds up int64 and float32 in wider types."""
    dtype = columns.tensor.dtype
    if dtype not in ("int64", "float32"):
        return
    total = _total(columns)
    fits = exp.TryCast(this=total.copy(), to=type_named(stored_type(dtype, is_scalar=True)))
    select = _grouped(columns, exp.select(*_keys(columns), total).from_(_INCOMING)).having(fits.is_(exp.null()))
    for *coordinate, found in engine.rows(select.order_by(*_keys(columns), total.copy()).limit(1)):
        raise DataError(
            f"tensor {columns.tensor.name}: the values at the coordinate ({', '.join(map(str, coordinate))}) add up to "
            f"{found}, which is no {dtype}; pass dtype='float64'"
        )


def refer(
    engine: Engine, description: Description, relation: str, index: Sequence[str], value: str | None
) -> StoredTensor:
    """Record a table, view or file as a tensor; nothing is copied.

    Raises:
        CatalogueError: The relation cannot be read or lacks a column.
        DataError: A column has a wrong type, or the rows are no tensor.
    """
    name = description.name
    with engine.transaction():
        catalogue = Catalogue(engine)
        known = catalogue.all()
        check_name(name, known, engine)
        table = relation_named(engine, relation)
        text = table.sql(engine.dialect)
        replaced = _owned(known, name)
        if replaced is not None and replaced.relation == text:
            raise CatalogueError(
                f"{relation} is the table that tensor {name} was loaded into; choose another name for the tensor"
            )
        drop_table_of(engine, replaced)
        told = completed(description, metadata_of_relation(relation), index)
        stored, value_type = described(engine, told, relation, table, index, value)
        if value_type is not None:
            check_values(engine, stored, value_type)
        measure(stored, engine)
        catalogue.add(stored)
    return stored
