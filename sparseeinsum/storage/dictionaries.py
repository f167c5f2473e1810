"""Storage: dictionaries of natural keys in tables of the database: made, extended, read and dropped.

A dictionary only ever grows, so that indices that tensors hold stay right: new keys come after those that are there, in
sort order among themselves. Who extends one updates its row in the catalogue before looking for what is new, so that
two never give an index or a key twice.
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
from sparseeinsum.statistics.columns import type_named
from sparseeinsum.statistics.dictionaries import INDEX_COLUMN, KEY_COLUMN, SCHEMA, compared, dictionary_table
from sparseeinsum.storage.access import explaining_missing_rights, reading_of
from sparseeinsum.storage.catalogue import Catalogue, StoredDictionary
from sparseeinsum.storage.catalogue_tables import DICTIONARIES
from sparseeinsum.storage.natural_keys import KeyColumn, as_keys
from sparseeinsum.storage.table_names import table_in
from sparseeinsum.storage.tensor_description import TensorDescription

_INCOMING = temporary_name("keys")
_GATHERED = temporary_name("gathered_keys")
_NUMBER = "number"
_PREFIX = "dictionary_"
_HAS_INFINITY = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")

Indices = NDArray[np.integer[Any]]


class Dictionaries:
    """The dictionaries of one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._catalogue = Catalogue(engine)

    def all(self) -> dict[str, StoredDictionary]:
        """All of them by name, sorted."""
        return self._catalogue.dictionaries() or {}

    def find(self, name: str) -> StoredDictionary:
        """One by its name, in whatever case.

        Raises:
            CatalogueError: It is not there; the message lists those that are.
        """
        known = self.all()
        if name.lower() not in known:
            shown = f"known are {', '.join(known)}" if known else "there are none"
            raise CatalogueError(f"there is no dictionary {name} in this database; {shown}")
        return known[name.lower()]

    def keys(self, dictionary: Dictionary) -> pa.Array:
        """All keys, in the order of their indices."""
        self._engine.check_access([reading_of(dictionary)])
        query = exp.select(exp.column(KEY_COLUMN)).from_(dictionary_table(dictionary)).order_by(INDEX_COLUMN)
        return as_keys(self._engine.arrow(query).column(0), dictionary.key_type)

    def drop(self, name: str) -> None:
        """Drop one that no tensor uses.

        Raises:
            CatalogueError: It is not there, or a tensor uses it.
        """
        with self._engine.transaction():
            found = self.find(name).dictionary
            for tensor, stored in self._catalogue.all().items():
                if any(axis.dictionary == found for axis in stored.tensor.axes):
                    raise CatalogueError(f"tensor {tensor} has keys of the dictionary {found.name}, which must stay")
            self._engine.execute(exp.Drop(tables=[dictionary_table(found)], kind="TABLE"))
            self._catalogue.remove_row(DICTIONARIES, found.name, "dictionary")

    def of_axes(self, description: TensorDescription, axes: Sequence[str]) -> list[StoredDictionary | None]:
        """Dictionaries, which must be there, of axes whose indices are positions in them.

        Raises:
            CatalogueError: One is not there.
            ShapeError: The user gives one to an axis that there is not.
        """
        names = description.dictionary_names(axes, [False] * len(axes))
        return [None if name is None else self.find(name) for name in names]

    def of_columns(
        self, tensor: str, table: exp.Table, columns: Sequence[tuple[str, str | None, str | None]]
    ) -> list[StoredDictionary | None]:
        """Dictionaries that have all keys of a relation.

        Args:
            tensor: That the relation holds.
            table: The relation.
            columns: For every axis the column, the name of its dictionary or None, and the type of its keys.

        Raises:
            DataError, CatalogueError: As for `extended`.
        """
        found = {}
        for wanted in dict.fromkeys(name for _, name, _ in columns if name is not None):
            of_it = [(column, str(key_type)) for column, name, key_type in columns if name == wanted]
            sources = [exp.select(exp.column(column)).from_(table.copy()) for column, _ in of_it]
            found[wanted] = self.extended(tensor, wanted, [key_type for _, key_type in of_it], sources)
        return [None if name is None else found[name] for _, name, _ in columns]

    def indices_of(
        self, tensor: str, columns: Mapping[str, Sequence[KeyColumn]]
    ) -> dict[str, tuple[StoredDictionary, list[Indices]]]:
        """Dictionaries that know all keys of some columns, and for each of those the indices of its rows.

        Args:
            tensor: That they belong to.
            columns: By the name of the dictionary.

        Raises:
            DataError: A dictionary has keys of another type.
            CatalogueError: It cannot be extended.
        """
        found: dict[str, tuple[StoredDictionary, list[Indices]]] = {}
        for name, each in columns.items():
            keys = pa.concat_arrays([column.keys for column in each])
            table = pa.table([np.arange(len(keys)), keys], names=[_NUMBER, KEY_COLUMN])
            with self._engine.registered(table, _INCOMING) as incoming:
                source = exp.select(exp.column(KEY_COLUMN)).from_(incoming.copy())
                stored = self.extended(tensor, name, [column.key_type for column in each], [source])
                indices = self._looked_up(stored.dictionary, incoming, len(keys))
            starts = np.cumsum([0, *(len(column.keys) for column in each)])
            found[name] = (
                stored,
                [indices[start:][column.positions] for column, start in zip(each, starts[:-1], strict=True)],
            )
        return found

    def _looked_up(self, dictionary: Dictionary, incoming: exp.Table, count: int) -> NDArray[np.int64]:
        """The indices of the incoming keys, by their numbers."""
        key = compared(exp.column(KEY_COLUMN, table="t"), dictionary)
        same = exp.EQ(this=exp.column(KEY_COLUMN, table="d"), expression=key)
        table = exp.alias_(dictionary_table(dictionary), "d", table=True)
        query = exp.select(exp.column(_NUMBER, table="t"), exp.column(INDEX_COLUMN, table="d"))
        rows = self._engine.arrow(query.from_(exp.alias_(incoming.copy(), "t", table=True)).join(table, on=same))
        indices = np.full(count, -1, np.int64)
        indices[rows.column(0).to_numpy()] = rows.column(1).to_numpy()
        return indices

    def extended(
        self, tensor: str, name: str, key_types: Iterable[str], sources: Sequence[exp.Select]
    ) -> StoredDictionary:
        """A dictionary that has all keys of some queries, but for NULL; it is made where there is none.

        Args:
            tensor: That the keys belong to, which may be there in an earlier form.
            name: Of the dictionary.
            key_types: Of the keys.
            sources: Queries of one column, the keys.

        Raises:
            DataError: The keys are of several types, or it has keys of another one, or a key is infinite.
            CatalogueError: It must not grow, because a tensor holds it inside arrays.
            RightsError: It belongs to another role.
        """
        self._catalogue.prepare()
        known = self.all().get(name)
        kinds = list(dict.fromkeys([*([known.dictionary.key_type] if known else []), *key_types]))
        if len(kinds) > 1:
            raise DataError(
                f"tensor {tensor} has keys of type {kinds[1]} for the dictionary {name}, whose keys are of type "
                f"{kinds[0]}; name another dictionary with keys={{axis: dictionary}}, or convert the keys first"
            )
        known = known or self._created(name, kinds[0])
        dictionary = known.dictionary
        with self._on_one_machine(sources) as gathered:
            new = _new_keys(dictionary, gathered)
            if known.size and not self._engine.rows(new.limit(1)):
                return known
            start = self._locked_size(known)
            added = self._engine.insert(dictionary_table(dictionary), _numbered(new, start))
        if added:
            self._check_new(tensor, dictionary, start)
            update = exp.update(_list(), {"size": exp.Literal.number(start + added)}, where=_is_named(name))
            self._engine.execute(update)
        return StoredDictionary(dictionary, start + added)

    @contextmanager
    def _on_one_machine(self, sources: Sequence[exp.Select]) -> Iterator[Sequence[exp.Select]]:
        """The same keys in a temporary table, where queries of several machines do not see a dictionary that is new."""
        if not self._engine.dialect.distributes:
            yield sources
            return
        keys = exp.table_(_GATHERED, db=self._engine.dialect.temporary_schema)
        named = [
            exp.select(exp.column(source.named_selects[0], table="t").as_(KEY_COLUMN)).from_(source.subquery("t"))
            for source in sources
        ]
        rows = exp.union(*named, distinct=False) if len(named) > 1 else named[0]
        self._engine.create_temporary(keys, exp.select(KEY_COLUMN).distinct().from_(rows.subquery("t")))
        yield [exp.select(exp.column(KEY_COLUMN)).from_(keys.copy())]
        self._engine.execute(exp.Drop(tables=[keys.copy()], kind="TABLE"))

    def _locked_size(self, known: StoredDictionary) -> int:
        """Keep others from extending a dictionary until this transaction ends; returns its size.

        Raises:
            RightsError: It belongs to another role.
        """
        name = known.dictionary.name
        self._engine.check_access([replace(reading_of(known.dictionary), is_written=True)])
        update = exp.update(_list(), {"size": exp.column("size")}, where=_is_named(name))
        update.set("returning", exp.Returning(expressions=[exp.column("size")]))
        with explaining_missing_rights(self._engine):
            for (size,) in self._engine.rows(update):
                return int(str(size))
        raise RightsError(
            f"the dictionary {name} belongs to the role {known.owner}, which can add keys, as can members of that "
            "role; name another dictionary with keys={axis: dictionary}"
        )

    def _created(self, name: str, key_type: str) -> StoredDictionary:
        """A new dictionary without keys."""
        table = table_in(self._engine.dialect.dictionary_schema, _PREFIX + name, self._engine.dialect_name)
        dictionary = Dictionary(name, key_type, table.sql(self._engine.dialect_name))
        is_given, is_unique = exp.NotNullColumnConstraint(), exp.PrimaryKeyColumnConstraint()
        of_index = [is_unique if self._engine.dialect.looks_up_by_index else is_given]
        of_key: list[exp.Expr] = [is_given]
        if dictionary.key_type == "TEXT":
            of_key.insert(0, exp.CollateColumnConstraint(this=exp.to_identifier("C", quoted=True)))
        columns = [
            _column(INDEX_COLUMN, "BIGINT", of_index),
            _column(KEY_COLUMN, dictionary.key_type, of_key),
        ]
        parts = exp.array(*(exp.Literal.string(part.name) for part in table.parts))
        row = (exp.convert(name), exp.convert(key_type), exp.convert(0), parts)
        with explaining_missing_rights(self._engine):
            self._engine.execute(exp.Create(this=exp.Schema(this=table.copy(), expressions=columns), kind="TABLE"))
            columns_of_list = ["name", "key_type", "size", "relation"]
            self._engine.execute(exp.insert(exp.values([row]), _list(), columns=columns_of_list))
        return StoredDictionary(dictionary, 0)

    def _check_new(self, tensor: str, dictionary: Dictionary, start: int) -> None:
        """Refuse keys that were added where there must be no more, or such that frames lack."""
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
            found = exp.select(exp.cast(key.copy(), "text")).from_(dictionary_table(dictionary))
            rows = self._engine.rows(found.where(is_infinite, exp.column(INDEX_COLUMN) >= start).limit(1))
            for (text,) in rows:
                raise DataError(
                    f"tensor {tensor} has the key {text}, which frames cannot hold; leave such rows out, or put "
                    "another date in its place"
                )


def encoded(
    dictionaries: Dictionaries,
    description: TensorDescription,
    axes: Sequence[str],
    columns: Sequence[Indices | KeyColumn] | NDArray[Any],
) -> tuple[list[Indices], list[StoredDictionary | None]]:
    """Indices for all columns of coordinates, and the dictionaries of those that have one.

    Indices of an axis that `keys` gives a dictionary are positions in it, which must be there.

    Raises:
        DataError, CatalogueError: As for `Dictionaries.indices_of`.
        ShapeError: `keys` names an axis that there is not.
    """
    names = description.dictionary_names(axes, [isinstance(each, KeyColumn) for each in columns])
    wanted: dict[str, list[KeyColumn]] = {}
    for name, column in zip(names, columns, strict=True):
        if name is not None and isinstance(column, KeyColumn):
            wanted.setdefault(name, []).append(column)
    found = dictionaries.indices_of(description.name, wanted)
    waiting = {name: iter(indices) for name, (_, indices) in found.items()}
    coordinates: list[Indices] = []
    known: list[StoredDictionary | None] = []
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, KeyColumn):
            assert name is not None
            coordinates.append(next(waiting[name]))
            known.append(found[name][0])
        else:
            coordinates.append(column)
            known.append(None if name is None else dictionaries.find(name))
    return coordinates, known


def sizes_of(dictionaries: Iterable[StoredDictionary | None]) -> list[int | None]:
    """How many keys dictionaries have."""
    return [None if each is None else each.size for each in dictionaries]


def dictionaries_of(stored: Iterable[StoredDictionary | None]) -> list[Dictionary | None]:
    """Dictionaries without what is stored of them."""
    return [None if each is None else each.dictionary for each in stored]


def _list() -> exp.Table:
    return exp.table_(DICTIONARIES, db=SCHEMA)


def _is_named(name: str) -> exp.Expr:
    return exp.EQ(this=exp.column("name"), expression=exp.Literal.string(name))


def _column(name: str, sql_type: str, constraints: Sequence[exp.Expr]) -> exp.ColumnDef:
    kinds = [exp.ColumnConstraint(kind=each.copy()) for each in constraints]
    return exp.ColumnDef(this=exp.to_identifier(name), kind=type_named(sql_type), constraints=kinds)


def _new_keys(dictionary: Dictionary, sources: Sequence[exp.Select]) -> exp.Select:
    """Keys that the dictionary lacks, each once."""
    selects = []
    for source in sources:
        key = exp.column(source.named_selects[0], table="t")
        rows = exp.select(compared(key.copy(), dictionary).as_(KEY_COLUMN)).from_(source.subquery("t"))
        selects.append(rows.where(exp.Not(this=key.is_(exp.null()))))
    given = exp.union(*selects, distinct=True) if len(selects) > 1 else selects[0].distinct()
    same = exp.EQ(this=exp.column(KEY_COLUMN, table="d"), expression=exp.column(KEY_COLUMN, table="given"))
    table = exp.alias_(dictionary_table(dictionary), "d", table=True)
    keys = exp.select(exp.column(KEY_COLUMN, table="given")).from_(given.subquery("given"))
    return keys.join(table, on=same, join_type="LEFT").where(exp.column(INDEX_COLUMN, table="d").is_(exp.null()))


def _numbered(keys: exp.Select, start: int) -> exp.Select:
    """Keys with their indices, in sort order."""
    number = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[exp.column(KEY_COLUMN)]))
    index = number + exp.Literal.number(start - 1)
    return exp.select(index.as_(INDEX_COLUMN), exp.column(KEY_COLUMN)).from_(keys.subquery("new_keys"))
