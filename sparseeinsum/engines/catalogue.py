"""Engines: the table in the database that says which tensors it holds, and where."""

from collections.abc import Iterable

from sqlglot import exp

from sparseeinsum import assets
from sparseeinsum.engines.duckdb import DuckDB
from sparseeinsum.errors import CatalogueError, EngineError
from sparseeinsum.language.tensors import Axis, Decomposition, StoredTensor, Tensor

SCHEMA = "sparseeinsum"
TABLE = "tensors"

_COLUMNS = (
    "name",
    "axes",
    "bounds",
    "dtype",
    "fill",
    "tiles",
    "relation",
    "key_columns",
    "value_column",
    "casts",
    "is_owned",
)


class Catalogue:
    """The tensors of one database."""

    def __init__(self, engine: DuckDB) -> None:
        self._engine = engine

    def names(self) -> tuple[str, ...]:
        """Names of all tensors, sorted."""
        return tuple(sorted(self._all()))

    def find(self, name: str) -> StoredTensor:
        """A tensor by name.

        Raises:
            CatalogueError: There is none; the message lists those that there are.
        """
        known = self._all()
        if name in known:
            return known[name]
        other = next((spelled for spelled in known if spelled.lower() == name.lower()), None)
        if other is not None:
            raise CatalogueError(f"there is no tensor {name}, but there is {other}; names are told apart by case here")
        shown = f"known are {', '.join(sorted(known))}" if known else "there are none; load one with db.tensor(...)"
        raise CatalogueError(f"there is no tensor {name} in this database; {shown}")

    def add(self, stored: StoredTensor) -> None:
        """Record a tensor, in place of one of the same name.

        Raises:
            CatalogueError: Another tensor's name differs only in case.
        """
        known = self._all()
        name = stored.tensor.name
        for other in known:
            if other.lower() == name.lower() and other != name:
                raise CatalogueError(
                    f"there is a tensor {other} already; DuckDB does not tell {name} and {other} apart, so choose "
                    "another name"
                )
        self._engine.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        self._engine.execute(assets.read("sql/duckdb/catalogue.sql"))
        values = [_literal(value) for value in _values(stored)]
        table = exp.to_table(f"{SCHEMA}.{TABLE}")
        source = exp.values([tuple(values)])
        self._engine.execute(exp.delete(table).where(exp.column("name").eq(name)))
        self._engine.execute(exp.insert(source, table, columns=list(_COLUMNS)))

    def _all(self) -> dict[str, StoredTensor]:
        exists = self._engine.rows(
            f"SELECT COUNT(*) FROM duckdb_tables() WHERE database_name = current_database() "
            f"AND schema_name = '{SCHEMA}' AND table_name = '{TABLE}'"
        )
        if exists[0][0] == 0:
            return {}
        rows = self._engine.rows(f"SELECT {', '.join(_COLUMNS)} FROM {SCHEMA}.{TABLE}")
        return {str(row[0]): _stored(row) for row in rows}


def require(catalogue: Catalogue, names: Iterable[str]) -> dict[str, StoredTensor]:
    """Several tensors by name, in the order given."""
    return {name: catalogue.find(name) for name in names}


def check_relation(engine: DuckDB, stored: StoredTensor) -> None:
    """Refuse a tensor whose table is gone, or has lost a column.

    Raises:
        CatalogueError: Naming the tensor and what is missing.
    """
    columns = [*stored.keys, *([stored.value] if stored.value else [])]
    query = exp.select(exp.Literal.number(1), *[exp.column(column) for column in columns])
    try:
        engine.rows(query.from_(exp.maybe_parse(stored.relation, into=exp.Table, dialect=engine.dialect)).limit(0))
    except EngineError as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise CatalogueError(
            f"tensor {stored.tensor.name} can no longer be read from {stored.relation}: {reason}"
        ) from None


def _values(stored: StoredTensor) -> tuple[object, ...]:
    tensor = stored.tensor
    return (
        tensor.name,
        [axis.name for axis in tensor.axes],
        list(tensor.shape),
        tensor.dtype,
        tensor.fill,
        list(stored.decomposition.tiles),
        stored.relation,
        list(stored.keys),
        stored.value,
        stored.casts,
        stored.is_owned,
    )


def _literal(value: object) -> exp.Expr:
    if isinstance(value, list):
        return exp.array(*[_literal(item) for item in value])
    return exp.convert(value)


def _stored(row: tuple[object, ...]) -> StoredTensor:
    name, axes, bounds, dtype, fill, tiles, relation, keys, value, casts, is_owned = row
    assert isinstance(axes, list) and isinstance(bounds, list) and isinstance(tiles, list) and isinstance(keys, list)
    named = tuple(Axis(str(axis), int(bound)) for axis, bound in zip(axes, bounds, strict=True))
    return StoredTensor(
        Tensor(str(name), named, str(dtype), float(str(fill))),
        Decomposition(tuple(int(tile) for tile in tiles)),
        str(relation),
        tuple(str(key) for key in keys),
        None if value is None else str(value),
        bool(casts),
        bool(is_owned),
    )
