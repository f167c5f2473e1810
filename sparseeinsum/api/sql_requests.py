"""SQL requests: what the SQL functions of DuckDB ask Python: a question and its arguments in, SQL or another text out.

The query that asks is being planned, so that its connection is busy. Tensors are looked up and measured on another
connection to the same database, which sees what is committed.
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
from sparseeinsum.engines.duckdb import DuckDBEngine
from sparseeinsum.errors import CatalogueError, EngineError, PlanError
from sparseeinsum.kernels.catalogue import functions
from sparseeinsum.kernels.duckdb.sql_functions import REQUEST_FUNCTION
from sparseeinsum.language.sql_texts import parse_bool, parse_number, parse_tiles, write_declaration
from sparseeinsum.pipeline.guarded import guarded_query

_NUMBER = "number"  # the question which database a connection is to

# Numbers of databases, by connections to them.
_KNOWN: "weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, int]" = weakref.WeakKeyDictionary()


def answer(number: int, request: str) -> str:
    """Answer a request.

    Args:
        number: Of the database that asks, among those that this process opened.
        request: JSON: `question`, `database` and `schema` in which the session stands, and the arguments.

    Raises:
        SparseEinsumError: The message says why there is no answer.
    """
    asked: dict[str, Any] = json.loads(request)
    question = asked.pop("question")
    if question == _NUMBER:
        return str(number)
    place = exp.table_(asked.pop("schema"), db=asked.pop("database"), quoted=True)
    with closing(_connect_to(number)) as connection:
        connection.execute(exp.Use(this=place).sql("duckdb"))
        engine = DuckDBEngine(connection, is_owned=False)
        try:
            return _ANSWERS[question](engine, asked)
        except CatalogueError as error:
            raise CatalogueError(
                f"{error} (SQL functions look for tensors on a connection of their own, which sees neither temporary "
                "tables nor what a transaction that is still open has made)"
            ) from None


def _einsum(engine: DuckDBEngine, asked: Mapping[str, Any]) -> str:
    with engine.transaction():
        plan = _plan(engine, asked)
        return guarded_query(plan.data, _output(plan, asked["output"]), engine)


def _output(plan: Plan, wanted: str | None) -> str:
    shown = ", ".join(plan.outputs)
    if wanted is None and len(plan.outputs) > 1:
        raise PlanError(
            f"the program returns {shown}, and einsum one result; say which, as in output := '{plan.outputs[0]}'"
        )
    if wanted is not None and wanted not in plan.outputs:
        raise PlanError(f"the program returns no {wanted}; it returns {shown}")
    return plan.outputs[0] if wanted is None else wanted


def _sql(engine: DuckDBEngine, asked: Mapping[str, Any]) -> str:
    return _plan(engine, asked).sql()


def _explain(engine: DuckDBEngine, asked: Mapping[str, Any]) -> str:
    return _plan(engine, asked).explain()


def _plan(engine: DuckDBEngine, asked: Mapping[str, Any]) -> Plan:
    if asked["program"] is None:
        raise PlanError("the program is NULL; give its text, as in 'Y[i] = sum(A[i, j] * X[j])'")
    output = asked.get("output")
    return Database(engine).plan(
        asked["program"],
        optimizer=asked["optimizer"],
        memory_limit=asked["memory_limit"],
        outputs=[] if output is None else [output],
        nonfinite=asked["nonfinite"],
        tiles=parse_tiles(asked["tiles"]),
        estimator=asked["estimator"],
        rewrite=parse_bool("rewrite", asked["rewrite"]),
    )


def _tensor_from_table(engine: DuckDBEngine, asked: Mapping[str, Any]) -> str:
    stored = Database(engine).tensor_from_table(
        asked["name"],
        asked["relation"],
        asked["index_columns"],
        asked["value_column"],
        asked["shape"],
        asked["axes"],
        asked["dtype"],
        None if asked["fill"] is None else parse_number(asked["fill"]),
        asked["keys"],
    )
    return write_declaration(stored.tensor)


def _tensor_functions(engine: DuckDBEngine, asked: Mapping[str, Any]) -> str:
    del engine, asked
    rows = [
        (
            function.name,
            ", ".join(f"{argument.name} {argument.type.lower()}" for argument in function.arguments),
            function.returns.lower(),
            ", ".join(function.dtypes),
            function.is_aggregate,
            function.description,
            function.example,
        )
        for function in functions()
    ]
    names = ["name", "arguments", "returns", "dtypes", "is_aggregate", "description", "example"]
    return exp.select("*").from_(exp.values(rows, alias="functions", columns=names)).sql("duckdb")


_ANSWERS: Mapping[str, Callable[[DuckDBEngine, Mapping[str, Any]], str]] = {
    "einsum": _einsum,
    "einsum_sql": _sql,
    "einsum_explain": _explain,
    "tensor_from_table": _tensor_from_table,
    "tensor_functions": _tensor_functions,
}


def _connect_to(number: int) -> duckdb.DuckDBPyConnection:
    """A connection of our own to a database.

    The C API gives a callback none, and one that is kept from the opening of the database would keep its file locked.
    But Python has one, that which asks, from which others are made.
    """
    for connection in _connections_to(number):
        with suppress(duckdb.Error):  # it is closed
            return connection.cursor()
    raise EngineError(
        "SQL functions need an open connection to this database that duckdb.connect() or se.connect() has made"
    )


def _connections_to(number: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connections to a database: those known first, else all that the interpreter has."""
    yield from [connection for connection, known in list(_KNOWN.items()) if known == number]
    kind = duckdb.DuckDBPyConnection
    for found in [each for each in gc.get_objects() if issubclass(type(each), kind) and each not in _KNOWN]:
        with suppress(duckdb.Error):  # it is closed, or its database was opened before the import
            _KNOWN[found] = _number_of(found)
            if _KNOWN[found] == number:
                yield found


def _number_of(connection: duckdb.DuckDBPyConnection) -> int:
    """The number of the database that a connection is to."""
    with connection.cursor() as cursor:
        row = cursor.execute(f"SELECT {REQUEST_FUNCTION}($1)", [json.dumps({"question": _NUMBER})]).fetchone()
    assert row is not None
    return int(row[0])
