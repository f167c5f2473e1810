"""Random edits of the tables of a matrix A and a vector X, in SQL and by calls, and the tensors that tables are then.

Tensors are stored in all ways that loading knows, or are tables and views of a user.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import sparseeinsum as se

Array = NDArray[np.float64]

SIZE = 4  # of every axis
MATRIX = np.array([[0, 1.5, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0], [4, 0, 0, 1]])
VECTOR = np.array([1.0, 2.0, 0.5, -1.0])
VALUES = ("2.5", "-1.0", "0.0", "1e200", "'inf'", "'nan'", "NULL")
TYPES = {"duckdb": ("DOUBLE", "INTEGER", "BIGINT"), "postgresql": ("float8", "int", "bigint")}


@dataclass(frozen=True)
class Layout:
    """How a tensor is stored.

    Attributes:
        tensor: The tensor, A or X.
        table: The table that edits change.
        columns: Its columns with how a row has an index or the value: as it is, in a list, or in an array of all.
        load: Stores an array as the tensor.
    """

    tensor: str
    table: str
    columns: Mapping[str, str]
    load: Callable[[se.Database, Array], object]

    @property
    def keys(self) -> list[str]:
        """The columns with an index in each row."""
        return [column for column, content in self.columns.items() if column != "val" and content == "number"]

    def row(self, indices: Mapping[str, int], value: str, engine: str) -> str:
        """A row as the list of a SELECT, with the value at some indices; arrays have zeros elsewhere."""
        number, integer, _ = TYPES[engine]
        items = []
        for column, content in self.columns.items():
            item, kind = (f"{value}::{number}", number) if column == "val" else (str(indices[column]), integer)
            if content == "array":
                numbers = ["0"] * SIZE
                numbers[indices["j"] % SIZE] = value
                item = f"ARRAY[{', '.join(numbers)}]::{number}[]"
            elif content == "list":
                item = f"ARRAY[{item}]::{kind}[]"
            items.append(f"{item} AS {column}")
        return ", ".join(items)

    def value(self, value: str, engine: str) -> str:
        """A value for the column of values of any row; lists become one element long."""
        number = TYPES[engine][0]
        count = {"number": 0, "list": 1, "array": SIZE}[self.columns["val"]]
        return f"ARRAY[{', '.join([value] * count)}]::{number}[]" if count else f"{value}::{number}"

    def dense(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Array | None:
        """The tensor that rows stand for; None if they are no tensor."""
        if not set(self.columns) <= set(columns):
            return None
        result = np.full((SIZE,) * (2 if self.tensor == "A" else 1), 0.0)
        places = set()
        for row in rows:
            for place, value in self._entries(dict(zip(columns, row, strict=True))):
                is_place = all(isinstance(index, int) and 0 <= index < SIZE for index in place)
                if not is_place or place in places or not isinstance(value, int | float):
                    return None
                places.add(place)
                result[place] = value
        return result

    def _entries(self, cells: Mapping[str, Any]) -> list[tuple[tuple[Any, ...], Any]]:
        """The coordinates and the value of every entry of a row; one without a value if the row is not sound."""
        key, value = tuple(cells[name] for name in self.keys), cells["val"]
        content = self.columns["val"]
        if content == "number":
            return [(key, value)]
        positions = cells["j"] if content == "list" else list(range(SIZE))
        are_lists = isinstance(positions, list) and isinstance(value, list)
        if not are_lists or None in positions or positions != sorted(set(positions)) or len(positions) != len(value):
            return [(key, None)]
        return [((*key, j), number) for j, number in zip(positions, value, strict=True)]


def _loaded(name: str, **options: Any) -> Callable[[se.Database, Array], object]:  # noqa: ANN401  # of db.tensor
    axes = ["i", "j"] if name == "A" else ["j"]
    return lambda db, array: db.tensor(name, array, axes=axes, **options)


def _of_user(name: str, table: str, key: str = "", view_of: str = "") -> Callable[[se.Database, Array], object]:
    """Make a table of the user's, or a view of one, and a tensor of it."""
    axes = ["i", "j"] if name == "A" else ["j"]

    def load(db: se.Database, array: Array) -> object:
        run, rows = db.connection.execute, view_of or table
        number = "DOUBLE" if "duckdb" in type(db.connection).__module__ else "float8"
        run(f"CREATE TABLE {rows} ({', '.join(f'{axis} INTEGER' for axis in axes)}, val {number}{key})")
        for place in zip(*np.nonzero(array), strict=True):
            run(f"INSERT INTO {rows} VALUES ({', '.join(map(str, place))}, {array[place]})")
        if view_of:
            run(f"CREATE VIEW {table} AS SELECT * FROM {view_of}")
        return db.tensor_from_table(name, table, axes, "val", shape=array.shape)

    return load


_ENTRIES = {"i": "number", "j": "number", "val": "number"}
MATRICES = {
    "entries": Layout("A", "A", _ENTRIES, _loaded("A", promoted=["i", "j"])),
    "arrays": Layout("A", "A", {"i": "number", "val": "array"}, _loaded("A", promoted=["i"])),
    "lists": Layout("A", "A", {"i": "number", "j": "list", "val": "list"}, _loaded("A", layout="A[I, ~j]")),
    "user's table": Layout("A", "edges", _ENTRIES, _of_user("A", "edges")),
    "user's table with a key": Layout("A", "edges", _ENTRIES, _of_user("A", "edges", key=", PRIMARY KEY (i, j)")),
    "user's view": Layout("A", "base", _ENTRIES, _of_user("A", "edges", view_of="base")),
}
VECTORS = {
    "entries": Layout("X", "X", {"j": "number", "val": "number"}, _loaded("X", promoted=["j"])),
    "array": Layout("X", "X", {"val": "array"}, _loaded("X", promoted=[])),
    "user's table": Layout("X", "weights", {"j": "number", "val": "number"}, _of_user("X", "weights")),
}

# What a user may run, {t} standing for the table; the engine refuses some of it.
_EDITS = (
    "INSERT INTO {t} SELECT {row}",
    "INSERT INTO {t} SELECT {row} WHERE false",
    "INSERT INTO {t} SELECT * FROM {t}",
    "UPDATE {t} SET val = {value} WHERE {condition}",
    "UPDATE {t} SET val = {value}",
    "UPDATE {t} SET val = val",
    "UPDATE {t} SET {key} = {k} WHERE {condition}",
    "DELETE FROM {t} WHERE {condition}",
    "DELETE FROM {t} WHERE {condition}; INSERT INTO {t} SELECT {row}",
    "DELETE FROM {t}",
    "TRUNCATE {t}",
    "ALTER TABLE {t} DROP COLUMN val; ALTER TABLE {t} ADD COLUMN val {val_type} DEFAULT {value}",
    "ALTER TABLE {t} ADD COLUMN extra INTEGER",
    "ALTER TABLE {t} RENAME i TO k; ALTER TABLE {t} RENAME j TO i; ALTER TABLE {t} RENAME k TO j",
    "ALTER TABLE {t} RENAME TO old_rows; CREATE TABLE {t} AS SELECT {row}",
    "ALTER TABLE {t} RENAME TO old_rows; CREATE VIEW {t} AS SELECT {row}",
    "DROP TABLE {t}; CREATE TABLE {t} AS SELECT {row}",
    "DROP TABLE {t}; CREATE VIEW {t} AS SELECT {row}",
    "DROP TABLE {t}",
    "DROP VIEW edges; CREATE VIEW edges AS SELECT {row}",
    "DROP VIEW edges; CREATE TABLE edges AS SELECT {row}",
    "DROP VIEW a_entries; CREATE VIEW a_entries AS SELECT {row}",
    "BEGIN; UPDATE {t} SET val = {value}; ROLLBACK",
    "BEGIN; UPDATE {t} SET val = {value}; COMMIT",
    "BEGIN; DELETE FROM {t} WHERE {condition}; INSERT INTO {t} SELECT {row}; COMMIT",
    "COMMIT",
    "ROLLBACK",
    "UPDATE sparseeinsum.tensors SET statistics = replace(statistics, '1.5', '9.0')",
    "UPDATE sparseeinsum.tensors SET statistics = (SELECT max(statistics) FROM sparseeinsum.tensors)",
    "UPDATE sparseeinsum.tensors SET axis_counts = axis_counts || 'a'",
    "CALL append {tensor} {i} {j} 2.5",
    "CALL load {tensor}",
    "",
)
_EDITS_OF_ENGINE = {
    "duckdb": (
        "INSERT INTO {t} BY NAME SELECT {row}",
        "ALTER TABLE {t} ALTER val TYPE {val_type} USING {value}",
        "ALTER TABLE {t} ALTER {key} TYPE BIGINT USING ({k})",
        "CREATE OR REPLACE TABLE {t} AS SELECT {row}",
        "CREATE OR REPLACE TABLE {t} AS SELECT * REPLACE ({value} AS val) FROM {t}",
        "CREATE OR REPLACE VIEW edges AS SELECT {row}",
        "CREATE OR REPLACE VIEW edges AS SELECT * REPLACE ({value} AS val) FROM base",
        "CREATE OR REPLACE VIEW a_entries AS SELECT {row}",
        "COPY (SELECT {row}) TO '{folder}/rows.parquet'; COPY {t} FROM '{folder}/rows.parquet'",
        "MERGE INTO {t} USING (SELECT {row}) AS s ON {t}.{key} = s.{key} WHEN MATCHED THEN UPDATE SET val = s.val",
        "PREPARE w AS UPDATE {t} SET val = {value} WHERE {condition}; EXECUTE w",
        "DROP TRIGGER sparseeinsum_update ON {t}; UPDATE {t} SET val = {value}",
        "CHECKPOINT",
    ),
    "postgresql": (
        "ALTER TABLE {t} ALTER val TYPE {val_type} USING {value}",
        "ALTER TABLE {t} ALTER {key} TYPE bigint USING {k}",
        "MERGE INTO {t} USING (SELECT {row}) AS s ON {t}.{key} = s.{key} WHEN MATCHED THEN UPDATE SET val = s.val",
        "WITH gone AS (DELETE FROM {t} WHERE {condition} RETURNING 1) SELECT * FROM gone",
        "ALTER TABLE {t} DISABLE TRIGGER ALL; UPDATE {t} SET val = {value}; ALTER TABLE {t} ENABLE TRIGGER ALL",
        "SET session_replication_role = replica; UPDATE {t} SET val = {value}; RESET session_replication_role",
        "BEGIN; UPDATE {t} SET val = {value}; SAVEPOINT s; DELETE FROM {t}; ROLLBACK TO s; COMMIT",
        "CREATE TABLE child () INHERITS ({t}); INSERT INTO child SELECT {row}",
        "UPDATE {t} SET val = {value}; DELETE FROM sparseeinsum.changes",
        "TRUNCATE sparseeinsum.changes",
        "VACUUM FULL {t}",
    ),
}

# DuckDB runs no program in an open transaction, and any error in one, such as of a look at a table, undoes it.
_PLACES = {
    "duckdb": ("here", "here", "another session", "open transaction"),
    "postgresql": ("here", "here", "another session", "open transaction", "open transaction here"),
}


@dataclass(frozen=True)
class Edit:
    """An edit.

    Attributes:
        text: SQL statements.
        where: Who runs them: the session of the database, another one, or one of both that stays in a transaction.
        when: Before the next run, or at this query of it by another session.
    """

    text: str
    where: str
    when: int | None


@st.composite
def edits(draw: st.DrawFn, matrix: Layout, vector: Layout, engine: str, folder: str) -> Edit:
    """An edit of one of the two tables."""
    layout = draw(st.sampled_from([matrix, vector]))
    indices = {axis: draw(st.integers(0, SIZE)) % (SIZE + draw(st.integers(0, 1))) for axis in "ij"}
    value = draw(st.sampled_from(VALUES))
    key = (layout.keys or ["val"])[0]
    number = TYPES[engine][0]
    text = draw(st.sampled_from(_EDITS + _EDITS_OF_ENGINE[engine])).format(
        t=layout.table,
        tensor=layout.tensor,
        i=indices["i"],
        j=indices["j"],
        row=layout.row(indices, value, engine),
        value=layout.value(value, engine),
        val_type=number if layout.columns["val"] == "number" else f"{number}[]",
        condition=f"{key} = {indices['i']}" if layout.keys else "true",
        key=key,
        k=indices["j"],
        folder=folder,
    )
    where = draw(st.sampled_from(_PLACES[engine]))
    is_during = where == "another session" and draw(st.booleans())
    return Edit(text, where, draw(st.integers(1, 12)) if is_during else None)
