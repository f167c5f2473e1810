"""Storage: what rows of the catalogue say of tensors and dictionaries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from sparseeinsum.engines.quoting import literal
from sparseeinsum.errors import CatalogueError
from sparseeinsum.language.tensors import Axis, Decomposition, Dictionary, ListLayout, ListTable, StoredTensor, Tensor
from sparseeinsum.statistics.dictionary_queries import SCHEMA
from sparseeinsum.storage.catalogue_tables import COLUMNS, DICTIONARIES, TABLE
from sparseeinsum.storage.fills import fill_of, fill_text
from sparseeinsum.storage.table_names import parts_of_relation, relation_of_parts

Row = tuple[object, ...]  # of the table of tensors, in the order of COLUMNS, with tuples for arrays
_MOST_ROWS = 4096


@dataclass(frozen=True, slots=True)
class StoredDictionary:
    """A dictionary of a database.

    Attributes:
        dictionary: Its name, the type of its keys, and its table.
        size: The number of its keys.
        owner: The role that created it; None if that is unknown.
    """

    dictionary: Dictionary
    size: int
    owner: str | None = None


def recorded_values(stored: StoredTensor, dialect: str) -> dict[str, object]:
    """Return the row of a tensor in the catalogue, except its statistics, and its owner, the role that adds it."""
    tensor = stored.tensor
    return {
        "name": tensor.name,
        "axes": [axis.name for axis in tensor.axes],
        "bounds": list(tensor.shape),
        "dtype": tensor.dtype,
        "fill": fill_text(tensor.fill),
        "tiles": list(stored.decomposition.tiles),
        "relation": list(parts_of_relation(stored.relation, dialect)),
        "key_columns": list(stored.keys),
        "value_column": stored.value,
        "casts": stored.casts,
        "is_owned": stored.is_owned,
        "dictionaries": [None if axis.dictionary is None else axis.dictionary.name for axis in tensor.axes],
        "holds_keys": stored.holds_keys,
        **_values_of_lists(stored.lists, dialect),
    }


def _values_of_lists(lists: ListTable | None, dialect: str) -> dict[str, object]:
    if lists is None:
        return {}
    return {
        "list_relation": list(parts_of_relation(lists.relation, dialect)),
        "list_tiles": list(lists.layout.tiles),
        "list_axes": list(lists.layout.compressed),
    }


def insertion(values: Mapping[str, object], dialect: str) -> str:
    """Return the statement that adds a row of values by column to the table of tensors."""
    literals = ", ".join(_literal(value, dialect) for value in values.values())
    return f"INSERT INTO {SCHEMA}.{TABLE} ({', '.join(values)}) VALUES ({literals})"


def _literal(value: object, dialect: str) -> str:
    if isinstance(value, list):
        array = f"ARRAY[{', '.join(_literal(item, dialect) for item in value)}]" if value else exp.array().sql(dialect)
        return f"CAST({array} AS TEXT[])" if None in value else array
    if isinstance(value, str):
        return literal(value)
    return "NULL" if value is None else str(value)


def row_of(values: Sequence[object]) -> Row:
    """Return the values of a row so that they can be a key, as what they say is read again before every run."""
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def axis_dictionaries(row: Row) -> tuple[str | None, ...]:
    """Return the name of the dictionary of every axis; nothing if no axis has one."""
    named = row[COLUMNS.index("dictionaries")]
    return named if isinstance(named, tuple) and any(named) else ()


def stored_tensor_of(row: Row, dictionaries: Mapping[str, StoredDictionary], dialect: str) -> StoredTensor:
    """Return the tensor that a row records.

    Args:
        row: The row.
        dictionaries: The dictionaries of the database, by name.
        dialect: The dialect of the database.

    Raises:
        CatalogueError: There is no dictionary of a name in the row, or the fill is no number of the dtype.
    """
    named = axis_dictionaries(row)
    return _tensor(row, tuple(name and _dictionary(str(row[0]), name, dictionaries) for name in named), dialect)


@lru_cache(maxsize=_MOST_ROWS)
def _tensor(row: Row, dictionaries: tuple[StoredDictionary | None, ...], dialect: str) -> StoredTensor:
    by_column = dict(zip(COLUMNS, row, strict=True))
    name, dtype = str(by_column["name"]), str(by_column["dtype"])
    value, owner = by_column["value_column"], by_column["owner"]
    axes, bounds = _items(by_column["axes"]), _items(by_column["bounds"])
    recorded = dictionaries or (None,) * len(axes)
    return StoredTensor(
        Tensor(name, tuple(map(_axis, axes, bounds, recorded)), dtype, fill_of(name, str(by_column["fill"]), dtype)),
        Decomposition(_numbers(by_column["tiles"])),
        _relation(by_column["relation"], dialect),
        tuple(map(str, _items(by_column["key_columns"]))),
        None if value is None else str(value),
        bool(by_column["casts"]),
        bool(by_column["is_owned"]),
        holds_keys=bool(by_column["holds_keys"]),
        owner=None if owner is None else str(owner),
        lists=_lists(by_column, dialect),
    )


def stored_dictionary(values: Sequence[object], dialect: str) -> StoredDictionary:
    """Return the dictionary that a row of the table of dictionaries records."""
    name, key_type, size, relation, owner = row_of(values)
    dictionary = Dictionary(str(name), str(key_type), _relation(relation, dialect))
    return StoredDictionary(dictionary, int(str(size)), None if owner is None else str(owner))


def _lists(by_column: Mapping[str, object], dialect: str) -> ListTable | None:
    relation = by_column["list_relation"]
    if relation is None:
        return None
    layout = ListLayout(_numbers(by_column["list_tiles"]), _numbers(by_column["list_axes"]))
    return ListTable(_relation(relation, dialect), layout)


@lru_cache(maxsize=_MOST_ROWS)
def _relation(recorded: object, dialect: str) -> str:
    """Return the SQL name of a relation from its recorded parts; version 0.1 recorded the SQL name itself."""
    parts = recorded if isinstance(recorded, tuple) else parts_of_relation(str(recorded), dialect)
    return relation_of_parts(tuple(map(str, parts)), dialect).sql(dialect)


def _items(value: object) -> tuple[object, ...]:
    assert isinstance(value, tuple)
    return value


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(int(str(item)) for item in _items(value))


def _axis(name: object, bound: object, dictionary: StoredDictionary | None) -> Axis:
    """Return an axis; if it has a dictionary, its bound is the present number of keys."""
    if dictionary is None:
        return Axis(str(name), int(str(bound)))
    return Axis(str(name), dictionary.size, dictionary.dictionary)


def _dictionary(tensor: str, name: str, dictionaries: Mapping[str, StoredDictionary]) -> StoredDictionary:
    if name not in dictionaries:
        raise CatalogueError(
            f"tensor {tensor} has keys of the dictionary {name}, which {SCHEMA}.{DICTIONARIES} does not list; bring "
            f"that row back, or remove the tensor from {SCHEMA}.{TABLE}"
        )
    return dictionaries[name]
