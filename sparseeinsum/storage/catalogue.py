"""Storage: the table in the database that says which tensors it holds, and where."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from sparseeinsum import assets
from sparseeinsum.engines.engine import Engine, Relation
from sparseeinsum.errors import CatalogueError, EngineError
from sparseeinsum.language.dtypes import Number, is_complex
from sparseeinsum.language.tensors import Axis, Decomposition, Dictionary, StoredTensor, Tensor
from sparseeinsum.statistics.columns import computed_type, is_index_type, is_readable, relation_of, value_type
from sparseeinsum.statistics.dictionaries import SCHEMA
from sparseeinsum.storage.exactness import check_values

TABLE = "tensors"
DICTIONARIES = "dictionaries"  # came later; where that table is, the tensors have columns for them

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
_COLUMNS_OF_DICTIONARIES = ("dictionaries", "holds_keys")


@dataclass(frozen=True, slots=True)
class StoredDictionary:
    """A dictionary of a database.

    Attributes:
        dictionary: Its name, and the type of its keys.
        size: How many keys it has.
    """

    dictionary: Dictionary
    size: int


class Catalogue:
    """The tensors of one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def all(self) -> dict[str, StoredTensor]:
        """All tensors by name, sorted.

        Raises:
            CatalogueError: The table that should list them is another one.
        """
        has_dictionaries = self._engine.has_table(SCHEMA, DICTIONARIES)
        if not has_dictionaries and not self._engine.has_table(SCHEMA, TABLE):
            return {}
        columns = (*_COLUMNS, *_COLUMNS_OF_DICTIONARIES) if has_dictionaries else _COLUMNS
        try:
            rows = self._engine.rows(f"SELECT {', '.join(columns)} FROM {SCHEMA}.{TABLE} ORDER BY name")
        except EngineError as error:
            if not self._engine.lacks_column(error):
                raise
            raise CatalogueError(
                f"the table {SCHEMA}.{TABLE} of this database is not the one in which tensors are recorded; rename it"
            ) from error
        # Who has no right to see dictionaries may have one to see tensors without any.
        has_keys = has_dictionaries and any(_names_of_dictionaries(row) for row in rows)
        dictionaries = self.dictionaries() if has_keys else None
        return {str(row[0]): _stored(row, dictionaries or {}) for row in rows}

    def dictionaries(self) -> dict[str, StoredDictionary] | None:
        """All dictionaries by name, sorted; None where an earlier version made the catalogue, which had none."""
        if not self._engine.has_table(SCHEMA, DICTIONARIES):
            return None
        rows = self._engine.rows(f"SELECT name, key_type, size FROM {SCHEMA}.{DICTIONARIES} ORDER BY name")
        return {
            str(name): StoredDictionary(Dictionary(str(name), str(kind)), int(str(size))) for name, kind, size in rows
        }

    def add(self, stored: StoredTensor) -> None:
        """Record a tensor, in place of one of the same name."""
        self.prepare()
        self.remove(stored.tensor.name)
        source = exp.values([tuple(_literal(value) for value in _values(stored))])
        columns = [*_COLUMNS, *_COLUMNS_OF_DICTIONARIES]
        self._engine.execute(exp.insert(source, exp.to_table(f"{SCHEMA}.{TABLE}"), columns=columns))

    def prepare(self) -> None:
        """Create the tables of the catalogue, or bring those of an earlier version to this one."""
        if self._engine.has_table(SCHEMA, DICTIONARIES):
            return
        is_there = self._engine.has_table(SCHEMA, TABLE)
        if is_there:
            self._keep_fills_as_text()
            for definition in ("dictionaries TEXT[]", "holds_keys BOOLEAN DEFAULT FALSE"):
                self._engine.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ADD COLUMN {definition}")
        else:
            self._engine.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        self._engine.execute(assets.read("sql/catalogue.sql"))

    def remove(self, name: str) -> None:
        """Forget a tensor, whose table stays."""
        self._engine.execute(exp.delete(exp.to_table(f"{SCHEMA}.{TABLE}")).where(exp.column("name").eq(name)))

    def _keep_fills_as_text(self) -> None:
        """Bring the table of the first version, which kept them as DOUBLE, to those after it."""
        (column,) = self._engine.columns(f"SELECT fill FROM {SCHEMA}.{TABLE}")
        if column.sql_type == "DOUBLE":
            self._engine.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ALTER fill TYPE TEXT")


def fingerprint_of_definitions(names: Iterable[str]) -> exp.Select:
    """A query of one number, which changes when tensors of these names are defined anew; for DuckDB.

    The table of the catalogue must be there.
    """
    hashes = exp.func("SUM", exp.func("HASH", *(exp.column(column) for column in _COLUMNS)))
    wanted = exp.column("name").isin(*(exp.convert(name) for name in names))
    fingerprint = exp.alias_(exp.func("COALESCE", hashes, exp.Literal.number(0)), "fingerprint")
    return exp.select(fingerprint).from_(f"{SCHEMA}.{TABLE}").where(wanted)


def fingerprint_of_dictionaries(names: Iterable[str]) -> exp.Select:
    """The same of the dictionaries of these names, which changes when they get keys."""
    columns = [exp.column(column) for column in ("name", "key_type", "size")]
    hashes = exp.func("SUM", exp.func("HASH", *columns))
    wanted = exp.column("name").isin(*(exp.convert(name) for name in names))
    return exp.select(exp.alias_(hashes, "fingerprint")).from_(f"{SCHEMA}.{DICTIONARIES}").where(wanted)


def check_name(name: str, known: Iterable[str], engine: Engine) -> None:
    """Refuse a name that a new tensor cannot have beside those that there are.

    Raises:
        CatalogueError: It is empty, or another tensor's name differs only in case.
    """
    if not name:
        raise CatalogueError("a tensor needs a name of one character or more")
    for other in known:
        if other.lower() == name.lower() and other != name:
            raise CatalogueError(
                f"there is a tensor {other} already; {engine.title} does not tell {name} and {other} apart, so choose "
                "another name"
            )


def require(catalogue: Catalogue, names: Iterable[str]) -> dict[str, StoredTensor]:
    """Several tensors by name, in the order given.

    Raises:
        CatalogueError: One is not there; the message lists those that are.
    """
    known = catalogue.all()
    return {name: find(known, name) for name in names}


def table_named(text: str, dialect: str) -> exp.Table:
    """A table by the name that a user gives, which may have a schema and a database before it.

    Raises:
        CatalogueError: It is no name.
    """
    try:
        table = exp.to_table(text, dialect=dialect)
    except SqlglotError:  # of its parser, and of what splits the text before
        table = None
    if not isinstance(table, exp.Table):
        raise CatalogueError(
            f"{text!r} names no table; write table, schema.table or database.schema.table, keywords in double quotes"
        )
    return normalize_identifiers(table, dialect) if folds_case(dialect) else table


def folds_case(dialect: str) -> bool:
    """Whether names are lower-cased where they are not quoted, and told apart by case where they are."""
    return Dialect.get_or_raise(dialect).normalization_strategy is NormalizationStrategy.LOWERCASE


def table_in(schema: str, name: str, dialect: str, catalog: str | None = None) -> exp.Table:
    """A table by the parts of its name, quoted where it would be read as something else, as VALUES is."""

    def spelled(quoted: bool | None) -> exp.Table:
        this, db, before = (exp.to_identifier(part, quoted=quoted) for part in (name, schema, catalog))
        return exp.table_(this, db=db, catalog=before)

    plain = spelled(None)
    try:
        is_read = exp.maybe_parse(plain.sql(dialect), into=exp.Table, dialect=dialect) is not None
    except ParseError:
        is_read = False
    return plain if is_read else spelled(True)


def table_of_relation(relation: Relation, dialect: str) -> exp.Table:
    """A table or view that the database has, by its whole name."""
    return table_in(relation.schema, relation.name, dialect, relation.catalog)


def find(known: Mapping[str, StoredTensor], name: str) -> StoredTensor:
    """A tensor by its name.

    Raises:
        CatalogueError: It is not there; the message lists those that are.
    """
    if name in known:
        return known[name]
    other = next((spelled for spelled in known if spelled.lower() == name.lower()), None)
    if other is not None:
        raise CatalogueError(f"there is no tensor {name}, but there is {other}; names are told apart by case here")
    shown = f"known are {', '.join(known)}" if known else "there are none; load one with db.tensor(...)"
    raise CatalogueError(f"there is no tensor {name} in this database; {shown}")


def check_relation(engine: Engine, stored: StoredTensor) -> None:
    """Refuse a tensor whose table is gone, has lost a column, or has one that is no longer what it was.

    Raises:
        CatalogueError: Naming the tensor and what is wrong.
        DataError: A value would change when it is read as the tensor's dtype.
    """
    where = f"tensor {stored.tensor.name} can no longer be read from {stored.relation}"
    try:
        _, *types = [column.sql_type for column in engine.columns(_columns_query(stored, engine.dialect))]
    except EngineError as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise CatalogueError(f"{where}: {reason}; bring it back, or define the tensor anew") from error.__cause__
    strange = [found for found in zip(stored.keys, types, strict=False) if not is_index_type(found[1])]
    if stored.value and not _holds_values(stored, types[-1]):
        strange.append((stored.value, types[-1]))
    for column, sql_type in strange:
        raise CatalogueError(
            f"{where}: its column {column} has the type {sql_type} now; change it back, or define the tensor anew"
        )
    if stored.value and stored.decomposition.is_scalar:
        check_values(engine, stored, types[-1])


@lru_cache(maxsize=512)  # asked before every run
def _columns_query(stored: StoredTensor, dialect: str) -> str:
    columns = [exp.column(column) for column in (*stored.keys, stored.value) if column]
    query = exp.select(exp.Literal.number(1), *columns)  # the number, because a tensor may have no column at all
    return query.from_(relation_of(stored, dialect)).sql(dialect)


def _holds_values(stored: StoredTensor, sql_type: str) -> bool:
    dtype, is_scalar = stored.tensor.dtype, stored.decomposition.is_scalar
    if stored.casts and is_scalar:
        return is_readable(sql_type, dtype)
    return sql_type == (value_type(stored) if stored.casts else computed_type(dtype, is_scalar))


def _values(stored: StoredTensor) -> tuple[object, ...]:
    tensor = stored.tensor
    return (
        tensor.name,
        [axis.name for axis in tensor.axes],
        list(tensor.shape),
        tensor.dtype,
        fill_text(tensor.fill),
        list(stored.decomposition.tiles),
        stored.relation,
        list(stored.keys),
        stored.value,
        stored.casts,
        stored.is_owned,
        [None if axis.dictionary is None else axis.dictionary.name for axis in tensor.axes],
        stored.holds_keys,
    )


_TRUTHS = {"true": True, "false": False}


def fill_text(fill: Number) -> str:
    """A fill as text from which it is read back exactly, as in 0.5, -inf, 3, true or (1+2j)."""
    return repr(fill).lower()


def fill_from_text(text: str, dtype: str) -> Number:
    """What `fill_text` wrote.

    Raises:
        KeyError, ValueError: The text is no number of the dtype.
    """
    if dtype == "bool":
        return _TRUTHS[text]
    if dtype == "int64":
        return int(text)
    return complex(text) if is_complex(dtype) else float(text)


def fill_of(tensor: str, text: str, dtype: str) -> Number:
    """A fill from its text.

    Raises:
        CatalogueError: It is none of the dtype.
    """
    try:
        return fill_from_text(text, dtype)
    except (KeyError, ValueError):
        raise CatalogueError(
            f"the table {SCHEMA}.{TABLE} says that tensor {tensor} has dtype {dtype} and fill {text}, which is no "
            "such number; define the tensor anew"
        ) from None


def _literal(value: object) -> exp.Expr:
    if isinstance(value, list):
        array = exp.array(*[_literal(item) for item in value])
        return exp.cast(array, "text[]") if None in value else array
    return exp.convert(value)


def _stored(row: tuple[object, ...], dictionaries: Mapping[str, StoredDictionary]) -> StoredTensor:
    name, axes, bounds, dtype, fill, tiles, relation, keys, value, casts, is_owned, *of_dictionaries = row
    assert isinstance(axes, list) and isinstance(bounds, list) and isinstance(tiles, list) and isinstance(keys, list)
    _, holds_keys = of_dictionaries or (None, False)
    named = _names_of_dictionaries(row) or [None] * len(axes)
    known = [None if each is None else _dictionary(str(name), each, dictionaries) for each in named]
    return StoredTensor(
        Tensor(
            str(name), tuple(map(_axis, axes, bounds, known)), str(dtype), fill_of(str(name), str(fill), str(dtype))
        ),
        Decomposition(tuple(int(tile) for tile in tiles)),
        str(relation),
        tuple(str(key) for key in keys),
        None if value is None else str(value),
        bool(casts),
        bool(is_owned),
        holds_keys=bool(holds_keys),
    )


def _names_of_dictionaries(row: tuple[object, ...]) -> list[str | None]:
    """Of every axis of a tensor; none where no axis has one."""
    named = row[len(_COLUMNS)] if len(row) > len(_COLUMNS) else None
    return named if isinstance(named, list) and any(named) else []


def _axis(name: object, bound: object, found: StoredDictionary | None) -> Axis:
    """An axis; that of a dictionary has as many indices as there are keys by now."""
    if found is None:
        return Axis(str(name), int(str(bound)))
    return Axis(str(name), found.size, found.dictionary)


def _dictionary(tensor: str, name: str, dictionaries: Mapping[str, StoredDictionary]) -> StoredDictionary:
    if name not in dictionaries:
        raise CatalogueError(
            f"tensor {tensor} has keys of the dictionary {name}, which {SCHEMA}.{DICTIONARIES} does not list; bring "
            f"that row back, or remove the tensor from {SCHEMA}.{TABLE}"
        )
    return dictionaries[name]
