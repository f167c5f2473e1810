"""Storage: creates, extends, reads and drops dictionaries of natural keys, which are tables of the database.

Indices in tensors stay valid, because a dictionary only grows: new keys follow the existing ones, sorted among
themselves. To extend a dictionary, a transaction first updates its row in the catalogue, which locks it: so two
transactions never assign the same index or add the same key.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import CatalogueError, DataError, RightsError
from sparseeinsum.language.tensors import Dictionary
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.statistics.columns import type_named
from sparseeinsum.statistics.dictionary_queries import (
    INDEX_COLUMN,
    KEY_COLUMN,
    SCHEMA,
    comparable_key,
    dictionary_table,
)
from sparseeinsum.storage.access_rights import access_to, explaining_missing_rights
from sparseeinsum.storage.catalogue import Catalogue
from sparseeinsum.storage.catalogue_rows import StoredDictionary
from sparseeinsum.storage.catalogue_tables import DICTIONARIES
from sparseeinsum.storage.natural_keys import KeyColumn, as_keys
from sparseeinsum.storage.table_names import table_in
from sparseeinsum.storage.tensor_description import TensorDescription

_INCOMING = temporary_name("keys")
_GATHERED = temporary_name("gathered_keys")
_NUMBER = "number"
_PREFIX = "dictionary_"
_HAS_INFINITY = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")

IndexArray = NDArray[np.integer[Any]]


class Dictionaries:
    """The dictionaries of one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._catalogue = Catalogue(engine)

    def all(self) -> dict[str, StoredDictionary]:
        """Return all dictionaries by name, sorted."""
        return self._catalogue.dictionaries() or {}

    def find(self, name: str) -> StoredDictionary:
        """Return the dictionary of a name, which may be written in upper or lower case.

        Raises:
            CatalogueError: There is none; the message lists those that exist.
        """
        existing = self.all()
        if name.lower() not in existing:
            raise CatalogueError(f"there is no dictionary {name} in this database; {did_you_mean(name, existing)}")
        return existing[name.lower()]

    def keys(self, dictionary: Dictionary) -> pa.Array:
        """Return all keys of a dictionary, in the order of their indices."""
        self._engine.check_access([access_to(dictionary)])
        query = exp.select(exp.column(KEY_COLUMN)).from_(dictionary_table(dictionary)).order_by(INDEX_COLUMN)
        return as_keys(self._engine.arrow(query).column(0), dictionary.key_type)

    def drop(self, name: str) -> None:
        """Drop a dictionary that no tensor uses.

        Raises:
            CatalogueError: There is none of that name, or a tensor uses it.
        """
        with self._engine.transaction():
            dictionary = self.find(name).dictionary
            for tensor, stored in self._catalogue.all().items():
                if any(axis.dictionary == dictionary for axis in stored.tensor.axes):
                    raise CatalogueError(
                        f"tensor {tensor} has keys of the dictionary {dictionary.name}, which must stay"
                    )
            self._engine.execute(exp.Drop(tables=[dictionary_table(dictionary)], kind="TABLE"))
            self._catalogue.remove_row(DICTIONARIES, dictionary.name, "dictionary")

    def for_axes(self, description: TensorDescription, axes: Sequence[str]) -> list[StoredDictionary | None]:
        """Return the dictionaries of axes that hold indices; None for an axis without one.

        Raises:
            CatalogueError: A dictionary does not exist.
            ShapeError: The user gives a dictionary to an axis that does not exist.
        """
        names = description.dictionary_names(axes, [False] * len(axes))
        return [None if name is None else self.find(name) for name in names]

    def for_columns(
        self, tensor: str, table: exp.Table, columns: Sequence[tuple[str, str | None, str | None]]
    ) -> list[StoredDictionary | None]:
        """Extend dictionaries by the keys of a relation, and return them for its axes.

        Args:
            tensor: The name of the tensor in the relation.
            table: The relation.
            columns: For every axis the column, the name of its dictionary or None, and the type of its keys.

        Raises:
            DataError, CatalogueError: As for `extend`.
        """
        dictionaries = {}
        for dictionary in dict.fromkeys(name for _, name, _ in columns if name is not None):
            keys = [(column, str(key_type)) for column, name, key_type in columns if name == dictionary]
            sources = [exp.select(exp.column(column)).from_(table.copy()) for column, _ in keys]
            dictionaries[dictionary] = self.extend(tensor, dictionary, [key_type for _, key_type in keys], sources)
        return [None if name is None else dictionaries[name] for _, name, _ in columns]

    def indices_of(
        self, tensor: str, columns: Mapping[str, Sequence[KeyColumn]]
    ) -> dict[str, tuple[StoredDictionary, list[IndexArray]]]:
        """Extend dictionaries by the keys of columns, and look up the indices of all rows.

        Args:
            tensor: The name of the tensor that the columns belong to.
            columns: The columns by the names of their dictionaries.

        Returns:
            By name, the dictionary, and for each of its columns the indices of the rows.

        Raises:
            DataError: A dictionary has keys of another type.
            CatalogueError: A dictionary cannot be extended.
        """
        result: dict[str, tuple[StoredDictionary, list[IndexArray]]] = {}
        for name, key_columns in columns.items():
            keys = pa.concat_arrays([column.keys for column in key_columns])
            table = pa.table([np.arange(len(keys)), keys], names=[_NUMBER, KEY_COLUMN])
            with self._engine.registered(table, _INCOMING) as incoming:
                source = exp.select(exp.column(KEY_COLUMN)).from_(incoming.copy())
                stored = self.extend(tensor, name, [column.key_type for column in key_columns], [source])
                indices = self._look_up(stored.dictionary, incoming, len(keys))
            starts = np.cumsum([0, *(len(column.keys) for column in key_columns)])
            result[name] = (
                stored,
                [indices[start:][column.positions] for column, start in zip(key_columns, starts[:-1], strict=True)],
            )
        return result

    def _look_up(self, dictionary: Dictionary, incoming: exp.Table, count: int) -> NDArray[np.int64]:
        """Return the indices of `count` incoming keys, which are numbered from 0."""
        key = comparable_key(exp.column(KEY_COLUMN, table="t"), dictionary)
        same = exp.EQ(this=exp.column(KEY_COLUMN, table="d"), expression=key)
        table = exp.alias_(dictionary_table(dictionary), "d", table=True)
        query = exp.select(exp.column(_NUMBER, table="t"), exp.column(INDEX_COLUMN, table="d"))
        rows = self._engine.arrow(query.from_(exp.alias_(incoming.copy(), "t", table=True)).join(table, on=same))
        indices = np.full(count, -1, np.int64)
        indices[rows.column(0).to_numpy()] = rows.column(1).to_numpy()
        return indices

    def extend(
        self, tensor: str, name: str, key_types: Iterable[str], sources: Sequence[exp.Select]
    ) -> StoredDictionary:
        """Add all keys of some queries except NULL to a dictionary, which is created if there is none.

        Args:
            tensor: The name of the tensor with the keys; an earlier tensor of that name may exist.
            name: The name of the dictionary.
            key_types: The types of the keys.
            sources: Queries of one column, which holds keys.

        Returns:
            The dictionary with its new size.

        Raises:
            DataError: The keys have several types, or another type than those of the dictionary, or one is infinite.
            CatalogueError: The dictionary must not grow, because a tensor has it on an axis that is demoted or tiled.
            RightsError: The dictionary belongs to another role.
        """
        self._catalogue.prepare()
        stored = self.all().get(name)
        kinds = list(dict.fromkeys([*([stored.dictionary.key_type] if stored else []), *key_types]))
        if len(kinds) > 1:
            raise DataError(
                f"tensor {tensor} has keys of type {kinds[1]} for the dictionary {name}, whose keys are of type "
                f"{kinds[0]}; name another dictionary with keys={{axis: dictionary}}, or convert the keys first"
            )
        stored = stored or self._create(name, kinds[0])
        dictionary = stored.dictionary
        with self._gathered(sources) as gathered:
            new = _new_keys(dictionary, gathered)
            if stored.size and not self._engine.rows(new.limit(1)):
                return stored
            start = self._locked_size(stored)
            added = self._engine.insert(dictionary_table(dictionary), _numbered(new, start))
        if added:
            self._check_new_keys(tensor, dictionary, start)
            update = exp.update(
                _dictionaries_table(), {"size": exp.Literal.number(start + added)}, where=_has_name(name)
            )
            self._engine.execute(update)
        return StoredDictionary(dictionary, start + added)

    @contextmanager
    def _gathered(self, sources: Sequence[exp.Select]) -> Iterator[Sequence[exp.Select]]:
        """On a cluster, copy the keys into a temporary table: queries on its machines do not see a new dictionary."""
        if not self._engine.dialect.distributes:
            yield sources
            return
        keys = exp.table_(_GATHERED, db=self._engine.dialect.temporary_schema)
        selects = [
            exp.select(exp.column(source.named_selects[0], table="t").as_(KEY_COLUMN)).from_(source.subquery("t"))
            for source in sources
        ]
        rows = exp.union(*selects, distinct=False) if len(selects) > 1 else selects[0]
        self._engine.create_temporary(keys, exp.select(KEY_COLUMN).distinct().from_(rows.subquery("t")))
        yield [exp.select(exp.column(KEY_COLUMN)).from_(keys.copy())]
        self._engine.execute(exp.Drop(tables=[keys.copy()], kind="TABLE"))

    def _locked_size(self, stored: StoredDictionary) -> int:
        """Lock a dictionary against changes by others until this transaction ends; return its size.

        Raises:
            RightsError: The dictionary belongs to another role.
        """
        name = stored.dictionary.name
        self._engine.check_access([replace(access_to(stored.dictionary), is_written=True)])
        update = exp.update(_dictionaries_table(), {"size": exp.column("size")}, where=_has_name(name))
        update.set("returning", exp.Returning(expressions=[exp.column("size")]))
        with explaining_missing_rights(self._engine):
            for (size,) in self._engine.rows(update):
                return int(str(size))
        raise RightsError(
            f"the dictionary {name} belongs to the role {stored.owner}, which can add keys, as can members of that "
            "role; name another dictionary with keys={axis: dictionary}"
        )

    def _create(self, name: str, key_type: str) -> StoredDictionary:
        """Create a dictionary without keys."""
        table = table_in(self._engine.dialect.dictionary_schema, _PREFIX + name, self._engine.dialect_name)
        dictionary = Dictionary(name, key_type, table.sql(self._engine.dialect_name))
        not_null, unique = exp.NotNullColumnConstraint(), exp.PrimaryKeyColumnConstraint()
        index_constraints = [unique if self._engine.dialect.looks_up_by_index else not_null]
        key_constraints: list[exp.Expr] = [not_null]
        if dictionary.key_type == "TEXT":
            key_constraints.insert(0, exp.CollateColumnConstraint(this=exp.to_identifier("C", quoted=True)))
        columns = [
            _column(INDEX_COLUMN, "BIGINT", index_constraints),
            _column(KEY_COLUMN, dictionary.key_type, key_constraints),
        ]
        relation_parts = exp.array(*(exp.Literal.string(part.name) for part in table.parts))
        row = (exp.convert(name), exp.convert(key_type), exp.convert(0), relation_parts)
        with explaining_missing_rights(self._engine):
            self._engine.execute(exp.Create(this=exp.Schema(this=table.copy(), expressions=columns), kind="TABLE"))
            row_columns = ["name", "key_type", "size", "relation"]
            self._engine.execute(exp.insert(exp.values([row]), _dictionaries_table(), columns=row_columns))
        return StoredDictionary(dictionary, 0)

    def _check_new_keys(self, tensor: str, dictionary: Dictionary, start: int) -> None:
        """Refuse keys from index `start` on if a demoted or tiled axis has the dictionary, or if a key is infinite."""
        for other, stored in self._catalogue.all().items():
            tiles = zip(stored.tensor.axes, stored.decomposition.tiles, strict=True)
            if other != tensor and any(axis.dictionary == dictionary and tile != 1 for axis, tile in tiles):
                raise CatalogueError(
                    f"tensor {tensor} has keys that the dictionary {dictionary.name} lacks, and tensor {other} holds "
                    f"that dictionary inside arrays, which would be too short; load {other} with promoted=[...] that "
                    "names those axes, or use another dictionary"
                )
        if dictionary.key_type in _HAS_INFINITY:
            key = exp.column(KEY_COLUMN)
            is_infinite = exp.Not(this=exp.func("ISFINITE", key))
            query = exp.select(exp.cast(key.copy(), "text")).from_(dictionary_table(dictionary))
            rows = self._engine.rows(query.where(is_infinite, exp.column(INDEX_COLUMN) >= start).limit(1))
            for (text,) in rows:
                raise DataError(
                    f"tensor {tensor} has the key {text}, which frames cannot hold; leave such rows out, or put "
                    "another date in its place"
                )


def encode_keys(
    dictionaries: Dictionaries,
    description: TensorDescription,
    axes: Sequence[str],
    columns: Sequence[IndexArray | KeyColumn] | NDArray[Any],
) -> tuple[list[IndexArray], list[StoredDictionary | None]]:
    """Return indices for all columns of coordinates, and the dictionaries of the axes; None for an axis without one.

    Args:
        dictionaries: The dictionaries of the database, which are extended by new keys.
        description: What the user says of the tensor. If it gives a dictionary to an axis with indices, these are
            positions in that dictionary, which must exist.
        axes: The names of the axes.
        columns: For every axis indices or natural keys.

    Raises:
        DataError, CatalogueError: As for `Dictionaries.indices_of`.
        ShapeError: The description gives a dictionary to an axis that does not exist.
    """
    names = description.dictionary_names(axes, [isinstance(column, KeyColumn) for column in columns])
    columns_by_dictionary: dict[str, list[KeyColumn]] = {}
    for name, column in zip(names, columns, strict=True):
        if name is not None and isinstance(column, KeyColumn):
            columns_by_dictionary.setdefault(name, []).append(column)
    encoded = dictionaries.indices_of(description.name, columns_by_dictionary)
    remaining = {name: iter(indices) for name, (_, indices) in encoded.items()}
    coordinates: list[IndexArray] = []
    dictionary_of_column: list[StoredDictionary | None] = []
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, KeyColumn):
            assert name is not None
            coordinates.append(next(remaining[name]))
            dictionary_of_column.append(encoded[name][0])
        else:
            coordinates.append(column)
            dictionary_of_column.append(None if name is None else dictionaries.find(name))
    return coordinates, dictionary_of_column


def sizes_of(dictionaries: Iterable[StoredDictionary | None]) -> list[int | None]:
    """Return the numbers of keys of dictionaries; None where there is no dictionary."""
    return [None if dictionary is None else dictionary.size for dictionary in dictionaries]


def dictionaries_of(stored: Iterable[StoredDictionary | None]) -> list[Dictionary | None]:
    """Return dictionaries without their sizes and owners."""
    return [None if dictionary is None else dictionary.dictionary for dictionary in stored]


def _dictionaries_table() -> exp.Table:
    return exp.table_(DICTIONARIES, db=SCHEMA)


def _has_name(name: str) -> exp.Expr:
    return exp.EQ(this=exp.column("name"), expression=exp.Literal.string(name))


def _column(name: str, sql_type: str, constraints: Sequence[exp.Expr]) -> exp.ColumnDef:
    kinds = [exp.ColumnConstraint(kind=constraint.copy()) for constraint in constraints]
    return exp.ColumnDef(this=exp.to_identifier(name), kind=type_named(sql_type), constraints=kinds)


def _new_keys(dictionary: Dictionary, sources: Sequence[exp.Select]) -> exp.Select:
    """Return a query of the keys that the dictionary lacks, without duplicates."""
    selects = []
    for source in sources:
        key = exp.column(source.named_selects[0], table="t")
        rows = exp.select(comparable_key(key.copy(), dictionary).as_(KEY_COLUMN)).from_(source.subquery("t"))
        selects.append(rows.where(exp.Not(this=key.is_(exp.null()))))
    incoming = exp.union(*selects, distinct=True) if len(selects) > 1 else selects[0].distinct()
    same = exp.EQ(this=exp.column(KEY_COLUMN, table="d"), expression=exp.column(KEY_COLUMN, table="given"))
    table = exp.alias_(dictionary_table(dictionary), "d", table=True)
    keys = exp.select(exp.column(KEY_COLUMN, table="given")).from_(incoming.subquery("given"))
    return keys.join(table, on=same, join_type="LEFT").where(exp.column(INDEX_COLUMN, table="d").is_(exp.null()))


def _numbered(keys: exp.Select, start: int) -> exp.Select:
    """Return a query of sorted keys with their indices, which begin at `start`."""
    number = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[exp.column(KEY_COLUMN)]))
    index = number + exp.Literal.number(start - 1)
    return exp.select(index.as_(INDEX_COLUMN), exp.column(KEY_COLUMN)).from_(keys.subquery("new_keys"))
