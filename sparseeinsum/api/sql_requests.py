"""SQL requests: answers the requests of DuckDB's SQL functions, such as einsum, with SQL or another text.

A request arrives while DuckDB plans the query with the function, so the connection of that query is busy. Tensors are
looked up and measured on another connection to the same database, which sees committed data only.
"""

import gc
import json
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

import duckdb
from sqlglot import exp

from sparseeinsum.api.database import Database
from sparseeinsum.api.plans import Plan
from sparseeinsum.engines.duckdb.duckdb_engine import DuckDBEngine
from sparseeinsum.errors import CatalogueError, EngineError, PlanError
from sparseeinsum.kernels.duckdb.sql_functions import REQUEST_FUNCTION
from sparseeinsum.language.sql_texts import parse_bool, parse_number, parse_tiles, write_declaration
from sparseeinsum.pipeline.guarded import guarded_query
from sparseeinsum.pipeline.running import prove_inputs

_NUMBER = "number"  # the request for the number of the database of a connection

# The numbers of databases, by connections to them.
_DATABASE_NUMBERS: "weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, int]" = weakref.WeakKeyDictionary()


def answer(number: int, request: str) -> str:
    """Answer a request of a SQL function.

    Args:
        number: The number of the database of the query, among those that this process has opened.
        request: JSON with `question`, the current `database` and `schema`, and the arguments of the function.

    Raises:
        SparseEinsumError: The function fails; the message says why.
    """
    arguments: dict[str, Any] = json.loads(request)
    question = arguments.pop("question")
    if question == _NUMBER:
        return str(number)
    place = exp.table_(arguments.pop("schema"), db=arguments.pop("database"), quoted=True)
    with closing(_connect_to(number)) as connection:
        connection.execute(exp.Use(this=place).sql("duckdb"))
        engine = DuckDBEngine(connection, is_owned=False)
        try:
            return _ANSWERS[question](engine, arguments)
        except CatalogueError as error:
            raise CatalogueError(
                f"{error} (SQL functions use a connection of their own, which sees neither temporary tables nor "
                "uncommitted changes)"
            ) from None


def _einsum(engine: DuckDBEngine, arguments: Mapping[str, Any]) -> str:
    with engine.transaction():
        plan = _plan(engine, arguments)
        prove_inputs(plan.data, engine)
        return guarded_query(plan.data, plan.only_output(arguments["output"]), engine)


def _sql(engine: DuckDBEngine, arguments: Mapping[str, Any]) -> str:
    return _plan(engine, arguments).sql()


def _explain(engine: DuckDBEngine, arguments: Mapping[str, Any]) -> str:
    return _plan(engine, arguments).explain()


def _plan(engine: DuckDBEngine, arguments: Mapping[str, Any]) -> Plan:
    """The plan of the program in the arguments of a SQL function."""
    if arguments["program"] is None:
        raise PlanError("the program is NULL; give its text, as in 'Y[i] = sum(A[i, j] * X[j])'")
    output = arguments.get("output")
    return Database(engine).plan(
        arguments["program"],
        optimizer=arguments["optimizer"],
        memory_limit=arguments["memory_limit"],
        outputs=[] if output is None else [output],
        nonfinite=arguments["nonfinite"],
        tiles=parse_tiles(arguments["tiles"]),
        estimator=arguments["estimator"],
        rewrite=parse_bool("rewrite", arguments["rewrite"]),
    )


def _tensor_from_table(engine: DuckDBEngine, arguments: Mapping[str, Any]) -> str:
    """Add a tensor to the catalogue; returns its declaration."""
    stored = Database(engine).tensor_from_table(
        arguments["name"],
        arguments["relation"],
        arguments["index_columns"],
        arguments["value_column"],
        arguments["shape"],
        arguments["axes"],
        arguments["dtype"],
        None if arguments["fill"] is None else parse_number(arguments["fill"]),
        arguments["keys"],
    )
    return write_declaration(stored.tensor)


def _iterate(engine: DuckDBEngine, arguments: Mapping[str, Any]) -> str:
    """Run a loop; returns the number of steps, why they ended, and the table of the steps."""
    if arguments["program"] is None:
        raise PlanError("the program is NULL; give its text, as in 'state x; next_x[i] = x[i] / 2'")
    result = Database(engine).iterate(
        arguments["program"],
        arguments["state"],
        arguments["steps"],
        arguments["until"],
        arguments["into_tensors"],
        arguments["history"] or (),
        arguments["optimizer"],
        resume=arguments["resume"],
        commit_seconds=arguments["commit_seconds"],
        progress=False,
        nonfinite=arguments["nonfinite"],
    )
    return f"{result.steps} {result.reason} {result.table}"


_ANSWERS: Mapping[str, Callable[[DuckDBEngine, Mapping[str, Any]], str]] = {
    "einsum": _einsum,
    "einsum_sql": _sql,
    "einsum_explain": _explain,
    "iterate": _iterate,
    "tensor_from_table": _tensor_from_table,
}


def _connect_to(number: int) -> duckdb.DuckDBPyConnection:
    """A new connection to the database with a number.

    The C API gives callbacks no connection, and a connection kept since the opening of the database would keep its file
    locked. But Python has at least one connection, that of the query, from which another one is created.
    """
    for connection in _connections_to(number):
        with suppress(duckdb.Error):  # the connection is closed
            return connection.cursor()
    raise EngineError(
        "SQL functions need an open connection to this database that duckdb.connect() or se.connect() has made"
    )


def _connections_to(number: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """The connections to a database: known ones first, then others among all objects of the interpreter."""
    yield from [connection for connection, assigned in list(_DATABASE_NUMBERS.items()) if assigned == number]
    for connection in [item for item in gc.get_objects() if issubclass(type(item), duckdb.DuckDBPyConnection)]:
        with suppress(duckdb.Error):  # it is closed, or its database was opened before the import
            assigned = _DATABASE_NUMBERS.get(connection)  # perhaps by another thread, since the loop above
            if assigned is None:
                assigned = _DATABASE_NUMBERS[connection] = _number_of(connection)
            if assigned == number:
                yield connection


def _number_of(connection: duckdb.DuckDBPyConnection) -> int:
    """The number of the database of a connection, which its SQL functions know."""
    with connection.cursor() as cursor:
        row = cursor.execute(f"SELECT {REQUEST_FUNCTION}($1)", [json.dumps({"question": _NUMBER})]).fetchone()
    assert row is not None
    return int(row[0])
