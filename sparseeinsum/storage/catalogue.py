"""Storage: the catalogue, which lists the tensors of a database and their tables."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.quoting import literal
from sparseeinsum.errors import CatalogueError, EngineError, RightsError
from sparseeinsum.language.syntax import RULE_OF_NAMES, is_name
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.statistics.columns import computed_type, is_index_type, is_readable, value_type
from sparseeinsum.statistics.dictionary_queries import SCHEMA
from sparseeinsum.statistics.tensor_rows import relation_of
from sparseeinsum.storage.access_rights import check_readable, explaining_missing_rights
from sparseeinsum.storage.catalogue_rows import (
    StoredDictionary,
    axis_dictionaries,
    insertion,
    recorded_values,
    row_of,
    stored_dictionary,
    stored_tensor_of,
)
from sparseeinsum.storage.catalogue_tables import (
    COLUMNS,
    COLUMNS_OF_DICTIONARIES,
    DICTIONARIES,
    TABLE,
    is_present,
    prepare_catalogue,
    tensor_columns,
)
from sparseeinsum.storage.value_checks import check_values

NO_STATISTICS: Mapping[str, str] = MappingProxyType({})
_DEFAULTS = {"holds_keys": "FALSE"}  # and NULL, of columns that an earlier version did not have


class Catalogue:
    """The catalogue of one database, for the length of a transaction: what was found or done in it is not repeated."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_prepared = False
        self._listed: frozenset[str] | None = None  # names of tensors, as they were read last
        self._absent: set[str] = set()  # names of tensors that were removed and not added again

    def all(self) -> Mapping[str, StoredTensor]:
        """Return all tensors by name, sorted.

        Raises:
            CatalogueError: The table with the name of the catalogue is another one.
            RightsError: The user may not read the catalogue.
        """
        return self._engine.scans.of_state("catalogue", self._engine.state_token(), self._read)

    def _read(self) -> dict[str, StoredTensor]:
        with explaining_missing_rights(self._engine):
            columns = tensor_columns(self._engine)
            if columns is None:
                return {}
            self._is_prepared = is_present(columns)
            absent = {name: f"{_DEFAULTS.get(name, 'NULL')} AS {name}" for name in set(COLUMNS) - columns.keys()}
            selected = ", ".join(absent.get(name, name) for name in COLUMNS)
            rows = self._engine.rows(f"SELECT {selected} FROM {SCHEMA}.{TABLE}")
        recorded = sorted(map(row_of, rows), key=lambda row: str(row[0]))  # in less time than the database takes
        self._listed = frozenset(str(row[0]) for row in recorded)
        # A user without the right to read dictionaries may still read tensors without dictionaries.
        dictionaries = (self.dictionaries() or {}) if any(map(axis_dictionaries, recorded)) else {}
        return {str(row[0]): stored_tensor_of(row, dictionaries, self._engine.dialect_name) for row in recorded}

    def dictionaries(self) -> dict[str, StoredDictionary] | None:
        """Return all dictionaries by name, sorted; None if the database has no table of dictionaries."""
        with explaining_missing_rights(self._engine):
            columns = self._engine.catalogue_columns(SCHEMA, DICTIONARIES)
            if columns is None:
                return None
            selected = ", ".join(name if name in columns else f"NULL AS {name}" for name in COLUMNS_OF_DICTIONARIES)
            rows = self._engine.rows(f"SELECT {selected} FROM {SCHEMA}.{DICTIONARIES} ORDER BY name")
        return {str(row[0]): stored_dictionary(row, self._engine.dialect_name) for row in rows}

    def add(self, stored: StoredTensor, statistics: Mapping[str, str] = NO_STATISTICS) -> None:
        """Record a tensor, and replace one of the same name.

        Args:
            stored: The tensor.
            statistics: The columns that keep what is known of its rows; see `kept_statistics`.

        Raises:
            RightsError: A tensor of that name belongs to another role, or the user may not add tensors.
        """
        self.prepare()
        name = stored.tensor.name
        if self._may_have(name):
            self.remove(name)
        values = {**recorded_values(stored, self._engine.dialect_name), **statistics}
        with explaining_missing_rights(self._engine):
            self._engine.execute(insertion(values, self._engine.dialect_name))
        self._absent.discard(name)

    def _may_have(self, name: str) -> bool:
        """Whether there may be a row of a name: other connections add rows between reads of some engines."""
        if name in self._absent:
            return False
        return self._listed is None or name in self._listed or not self._engine.dialect.has_snapshots

    def prepare(self) -> None:
        """Create the tables of the catalogue, or upgrade those of an earlier version."""
        if self._is_prepared:
            return
        with explaining_missing_rights(self._engine):
            prepare_catalogue(self._engine)
        self._is_prepared = True

    def remove(self, name: str) -> None:
        """Remove a tensor from the catalogue, but keep its table.

        Raises:
            RightsError: It belongs to another role, or the user may not remove tensors.
        """
        self.remove_row(TABLE, name, "tensor")
        self._absent.add(name)

    def remove_row(self, table: str, name: str, kind: str) -> None:
        """Remove a row from a table of the catalogue.

        Row-level security hides other roles' rows from DELETE without an error, so that a second query looks for them.

        Args:
            table: The table.
            name: The name of the tensor or dictionary.
            kind: What messages call it: `tensor` or `dictionary`.

        Raises:
            RightsError: The row belongs to another role.
        """
        self.prepare()
        condition = f"FROM {SCHEMA}.{table} WHERE name = {literal(name)}"
        with explaining_missing_rights(self._engine):
            self._engine.execute(f"DELETE {condition}")
            remaining = self._engine.rows(f"SELECT owner {condition}")
        for (owner,) in remaining:
            raise RightsError(
                f"the {kind} {name} belongs to the role {owner}, which can change it, as can members of that role; "
                "choose another name"
            )


def fingerprint_of_definitions(names: Iterable[str]) -> exp.Select:
    """Return a query of one number, which changes when tensors of these names are defined again; for DuckDB.

    The table of the catalogue must exist.
    """
    hashes = exp.func("SUM", exp.func("HASH", exp.column(TABLE)))  # of whole rows, whatever columns the version has
    condition = exp.column("name").isin(*(exp.convert(name) for name in names))
    fingerprint = exp.alias_(exp.func("COALESCE", hashes, exp.Literal.number(0)), "fingerprint")
    return exp.select(fingerprint).from_(f"{SCHEMA}.{TABLE}").where(condition)


def fingerprint_of_dictionaries(names: Iterable[str]) -> exp.Select:
    """Return a query of one number, which changes when dictionaries of these names get keys; for DuckDB."""
    columns = [exp.column(column) for column in ("name", "key_type", "size")]
    hashes = exp.func("SUM", exp.func("HASH", *columns))
    condition = exp.column("name").isin(*(exp.convert(name) for name in names))
    return exp.select(exp.alias_(hashes, "fingerprint")).from_(f"{SCHEMA}.{DICTIONARIES}").where(condition)


def check_name(name: str, existing: Iterable[str], engine: Engine) -> None:
    """Refuse an invalid name of a new tensor.

    Args:
        name: The name.
        existing: The names of the tensors that exist.
        engine: The engine of the tensors.

    Raises:
        CatalogueError: No program could name the tensor so, or the name differs from another tensor's only in case.
    """
    if not isinstance(name, str):
        raise CatalogueError(f"a tensor is named by a text, and {name!r} is none; give the name first, then the data")
    if not is_name(name):
        raise CatalogueError(
            f"a tensor cannot have the name {name!a}, because no program could name it: {RULE_OF_NAMES}, and begin "
            "with no digit"
        )
    for other in existing:
        if other.lower() == name.lower() and other != name:
            raise CatalogueError(
                f"there is a tensor {other} already; {engine.title} does not distinguish {name} from {other}, so "
                "choose another name"
            )


def require_tensors(engine: Engine, names: Iterable[str]) -> dict[str, StoredTensor]:
    """Return several tensors by name, in the order of `names`; all of them may be read.

    Raises:
        CatalogueError: A tensor does not exist; the message lists those that do.
        RightsError: To read a tensor would run code of other roles.
    """
    stored = Catalogue(engine).all()
    tensors = {name: find_tensor(stored, name) for name in names}
    check_readable(engine, tensors.values())
    return tensors


def find_tensor(tensors: Mapping[str, StoredTensor], name: str) -> StoredTensor:
    """Return the tensor of a name among the tensors of the catalogue, `tensors`.

    Raises:
        CatalogueError: It does not exist; the message lists those that do.
    """
    if name in tensors:
        return tensors[name]
    spelling = next((spelled for spelled in tensors if spelled.lower() == name.lower()), None)
    if spelling is not None:
        raise CatalogueError(f"there is no tensor {name}, but there is {spelling}; names are case-sensitive here")
    hint = did_you_mean(name, tensors, none="there are none; load one with db.tensor(...)")
    raise CatalogueError(f"there is no tensor {name} in this database; {hint}")


def check_relation(engine: Engine, stored: StoredTensor, column_types: Sequence[str] | None = None) -> None:
    """Refuse a tensor whose table was dropped, lacks a column, or has a column of another type than before.

    Args:
        engine: The engine of the tensor.
        stored: The tensor.
        column_types: The present types of its key columns and of its column of values; None if they are not known.

    Raises:
        CatalogueError: Names the tensor and what is wrong.
        DataError: A value would change when it is read as the tensor's dtype.
    """
    where = f"tensor {stored.tensor.name} can no longer be read from {stored.table}"
    types = _column_types(engine, stored, where) if column_types is None else column_types
    mismatched = [column for column in zip(stored.keys, types, strict=False) if not is_index_type(column[1])]
    if stored.value and not _holds_values(stored, types[-1]):
        mismatched.append((stored.value, types[-1]))
    for column, sql_type in mismatched:
        raise CatalogueError(
            f"{where}: its column {column} has the type {sql_type} now; change it back, or define the tensor again"
        )
    if stored.value and stored.decomposition.is_scalar:
        check_values(engine, stored, types[-1])


def _column_types(engine: Engine, stored: StoredTensor, where: str) -> list[str]:
    """Return the types of a tensor's columns; `where` begins the message if they cannot be read."""
    try:
        _, *types = [column.sql_type for column in engine.columns(_columns_query(stored, engine.dialect_name))]
    except EngineError as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise CatalogueError(f"{where}: {reason}; bring it back, or define the tensor again") from error.__cause__
    return types


@lru_cache(maxsize=512)  # called before every run
def _columns_query(stored: StoredTensor, dialect: str) -> str:
    columns = [exp.column(column) for column in (*stored.keys, stored.value) if column]
    query = exp.select(exp.Literal.number(1), *columns)  # the number, because a tensor may have no column at all
    return query.from_(relation_of(stored, dialect)).sql(dialect)


def _holds_values(stored: StoredTensor, sql_type: str) -> bool:
    dtype, is_scalar = stored.tensor.dtype, stored.decomposition.is_scalar
    if stored.casts and is_scalar:
        return is_readable(sql_type, dtype)
    return sql_type == (value_type(stored) if stored.casts else computed_type(dtype, is_scalar))
