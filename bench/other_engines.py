"""Engines that run SQL of plans without arrays, each in this process: tables in, rows out."""

import importlib
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa

Rows = list[tuple[Any, ...]]


class OtherEngine(Protocol):
    """An engine with tables in memory."""

    def load(self, name: str, table: pa.Table) -> None:
        """Make a table, in place of one of the same name."""

    def rows(self, query: str) -> Rows:
        """The rows of a query."""

    def close(self) -> None:
        """End it."""


class SQLite:
    """SQLite of Python's standard library."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")

    def load(self, name: str, table: pa.Table) -> None:
        """Make a table."""
        types = {"int32": "INTEGER", "int64": "INTEGER", "bool": "BOOLEAN", "double": "REAL", "float": "REAL"}
        columns = ", ".join(f'"{field.name}" {types[str(field.type)]}' for field in table.schema)
        self._connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        self._connection.execute(f'CREATE TABLE "{name}" ({columns})')
        places = ", ".join("?" * table.num_columns)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        self._connection.executemany(f'INSERT INTO "{name}" VALUES ({places})', rows)

    def rows(self, query: str) -> Rows:
        """The rows of a query."""
        return self._connection.execute(query).fetchall()

    def close(self) -> None:
        """End it."""
        self._connection.close()


class DataFusion:
    """Apache DataFusion, by the package datafusion."""

    def __init__(self) -> None:
        self._context = importlib.import_module("datafusion").SessionContext()

    def load(self, name: str, table: pa.Table) -> None:
        """Make a table."""
        self._context.deregister_table(f'"{name}"')
        self._context.register_record_batches(f'"{name}"', [table.to_batches() or _no_rows(table)])

    def rows(self, query: str) -> Rows:
        """The rows of a query."""
        return _rows_of(self._context.sql(query).collect())

    def close(self) -> None:
        """Nothing needs to end."""


class ClickHouse:
    """ClickHouse, by the package chdb."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._session = importlib.import_module("chdb.session").Session(self._folder.name)

    def load(self, name: str, table: pa.Table) -> None:
        """Make a table."""
        types = {"int32": "Int32", "int64": "Int64", "bool": "Bool", "double": "Float64", "float": "Float32"}
        columns = ", ".join(f"`{field.name}` {types[str(field.type)]}" for field in table.schema)
        self._session.query(f"DROP TABLE IF EXISTS `{name}`")
        self._session.query(f"CREATE TABLE `{name}` ({columns}) ENGINE = Memory")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
        if values:
            self._session.query(f"INSERT INTO `{name}` VALUES {values}")

    def rows(self, query: str) -> Rows:
        """The rows of a query."""
        try:
            arrow = self._session.query(query, "ArrowStream").bytes()
        except RuntimeError:
            self._session.query("SELECT 1")  # the query after one that failed returns no rows
            raise
        return _rows_of(pa.ipc.open_stream(arrow)) if arrow else []

    def close(self) -> None:
        """End it."""
        self._session.close()
        self._folder.cleanup()


class Spark:
    """Apache Spark on one thread, by the package pyspark and a Java runtime."""

    def __init__(self) -> None:
        builder = (
            importlib.import_module("pyspark.sql")
            .SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
        )
        builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.log.level", "OFF")
        self._session = builder.getOrCreate()

    def load(self, name: str, table: pa.Table) -> None:
        """Make a table."""
        self._session.createDataFrame(table).createOrReplaceTempView(name)

    def rows(self, query: str) -> Rows:
        """The rows of a query."""
        return [tuple(row) for row in self._session.sql(query).collect()]

    def close(self) -> None:
        """End it."""
        self._session.stop()


# By the name of the dialect: the class, and the package that it needs.
OTHER_ENGINES: Mapping[str, tuple[Callable[[], OtherEngine], str]] = MappingProxyType(
    {
        "sqlite": (SQLite, "sqlite3"),
        "datafusion": (DataFusion, "datafusion"),
        "clickhouse": (ClickHouse, "chdb"),
        "spark": (Spark, "pyspark"),
    }
)


def engines_here() -> dict[str, Callable[[], OtherEngine]]:
    """The engines whose packages are installed, by the name of the dialect."""
    return {name: engine for name, (engine, package) in OTHER_ENGINES.items() if find_spec(package) is not None}


def _no_rows(table: pa.Table) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist([], schema=table.schema)]


def _rows_of(batches: Sequence[pa.RecordBatch] | pa.RecordBatchReader) -> Rows:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
