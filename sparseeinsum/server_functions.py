"""The functions of the PostgreSQL extension sparseeinsum_python: they run inside the server, and exchange JSON.

This code runs with the rights of the server's operating-system user, so it must not read or write files that callers
name.
"""

import json
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from math import inf
from typing import Any

from sqlglot import exp

from sparseeinsum.api.database import Database
from sparseeinsum.api.plans import Plan
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.postgresql.postgresql_engine import PostgreSQLEngine
from sparseeinsum.engines.postgresql.postgresql_opening import open_session
from sparseeinsum.engines.postgresql.server_session import ServerSession
from sparseeinsum.errors import (
    CatalogueError,
    DataError,
    EngineError,
    NameTakenError,
    ParseError,
    PlanError,
    RightsError,
    SemanticsError,
    SparseEinsumError,
)
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.sql_texts import parse_number, parse_tiles, write_declaration
from sparseeinsum.pipeline.plan_options import plan_options
from sparseeinsum.pipeline.planning import make_plans
from sparseeinsum.pipeline.storing import store_program
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.storage.fills import fill_text
from sparseeinsum.storage.program_inputs import shapes_in

# SQLSTATEs; in PostgreSQL's words: syntax_error, duplicate_table, insufficient_privilege, undefined_table, and so on.
_SQLSTATES = {
    ParseError: "42601",
    NameTakenError: "42P07",
    RightsError: "42501",
    CatalogueError: "42P01",
    DataError: "22000",
    SemanticsError: "0A000",
    PlanError: "54000",
    EngineError: "55000",
}
_INVALID_PARAMETER = "22023"
_NARROW = ("SMALLINT", "INTEGER")  # types of indices besides BIGINT
_STABLE = frozenset(("einsum", "einsum_columns"))  # their statements all see the data of their caller's statement


def answer(server: Any, function: str, arguments: str) -> str:  # noqa: ANN401  # the module plpy has no type
    """Call one of the functions.

    Args:
        server: PL/Python's module plpy.
        function: The name of the function.
        arguments: A JSON object with the arguments by name; missing ones have their defaults.

    Returns:
        A JSON object with the `result`; or with the `error`: sqlstate, message, and possibly detail and hint.
    """
    try:
        values = _checked(function, json.loads(arguments))
        engine = open_session(ServerSession(server, is_stable=function in _STABLE))
        with engine.transaction():  # on a cluster, later statements of the transaction depend on its settings
            return json.dumps({"result": _FUNCTIONS[function](engine, **values)})
    except (SparseEinsumError, ValueError) as error:
        return json.dumps({"error": _describe(error)})


def _checked(function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, after checks that their SQL types do not include: NULLs, nested arrays, and the form of pins."""
    for name, parameter in signature(_FUNCTIONS[function]).parameters.items():
        is_needed = parameter.default is Parameter.empty and parameter.kind is not Parameter.VAR_KEYWORD
        if is_needed and name not in ("engine", *arguments):
            raise ValueError(f"the argument {name} of {function} is NULL; give it a value")
    for name, value in arguments.items():
        refused = (type(None), list) if name != "shape" else list  # bounds can be NULL where a dictionary has them
        if isinstance(value, list) and any(isinstance(item, refused) for item in value):
            raise ValueError(f"the argument {name} of {function} must be a plain list of values, as in '{{a, b}}'")
    if not _is_pin(arguments.get("pin", {})):
        raise ValueError(
            'pin must name labels of results, as in \'{"Y": ["i"]}\', or with tiles, as in {"Y": {"i": 64}}'
        )
    return arguments


def _is_pin(pin: object) -> bool:
    """Whether a value has the form of a pin: lists of labels, or labels with tiles, by result."""
    if not isinstance(pin, dict):
        return False
    labels = [label for choice in pin.values() if isinstance(choice, list) for label in choice]
    return all(isinstance(choice, list | dict) for choice in pin.values()) and all(
        isinstance(label, str) for label in labels
    )


def _einsum(
    engine: PostgreSQLEngine,
    program: str,
    columns: str,
    output: str | None = None,
    **options: Any,  # noqa: ANN401
) -> dict[str, object]:
    """Plan a program for the data that the caller's statement sees.

    Args:
        engine: The database.
        program: The text of the program.
        columns: The column definition list of the caller, "" if there is none.
        output: The result that is returned, where the program has several.
        options: The options of the plan.

    Returns:
        The `query` of the result, and the `settings` with which to run it.

    Raises:
        PlanError: The column definition list is not that of the result.
    """
    with engine.snapshot(is_reading=True):
        name, query = _output_query(engine, program, output, options)
        _check_columns(name, columns, engine.column_definitions(query))
        return {"query": write_sql(query, engine.dialect), "settings": dict(engine.settings())}


def _einsum_columns(engine: PostgreSQLEngine, program: str, output: str | None = None) -> str:
    """Return the column definition list with which einsum returns the rows of a program."""
    with engine.snapshot(is_reading=True):
        return engine.column_definitions(_output_query(engine, program, output, {})[1])


def _output_query(
    engine: PostgreSQLEngine, program: str, output: str | None, options: Mapping[str, Any]
) -> tuple[str, exp.Select]:
    """Plan a program; return the name of the result that is asked for, and its query."""
    if engine.cluster() is not None:
        raise PlanError(
            "einsum returns no rows on a Citus cluster, whose machines share no snapshot; store the result, as in "
            "SELECT * FROM sparseeinsum.einsum_into(...)"
        )
    outputs = [] if output is None else [output]
    plan = _make_plan(engine, program, {**options, "outputs": outputs})
    name = plan.only_output(output)
    return name, _with_wide_indices(plan.data.statements.single(name).query, engine)


def _with_wide_indices(query: exp.Select, engine: Engine) -> exp.Select:
    """The query with all its indices as BIGINT: its tables and its plan, which may change, decide what they are."""
    columns = engine.columns(query)
    if not any(column.sql_type in _NARROW for column in columns):
        return query
    selected = [
        exp.alias_(exp.cast(exp.column(name), "BIGINT"), name) if column.sql_type in _NARROW else exp.column(name)
        for column in columns
        for name in [exp.to_identifier(column.name, quoted=True)]
    ]
    return exp.select(*selected).from_(query.subquery("result"))


def _check_columns(name: str, declared: str, actual: str) -> None:
    """Compare the column definition list of a call with that of the result `name`."""
    if not declared:
        raise PlanError(f"einsum is called where it cannot return rows; write SELECT * FROM einsum(...) AS t({actual})")
    if declared != actual:
        raise PlanError(f"{name} has the columns ({actual}), and is declared as ({declared}); write AS t({actual})")


def _einsum_into(engine: Engine, program: str, replace: bool = False, **options: Any) -> list[dict[str, object]]:  # noqa: ANN401
    """Run a program, store its outputs in tables, and describe these."""
    tables = store_program(_parse(engine, program), engine, _plan_options(options), replace)
    return [
        {
            "tensor": name,
            "table": table.target.name,
            "shape": table.schema.tensor.shape,
            "dtype": table.schema.tensor.dtype,
            "fill": fill_text(table.schema.tensor.fill),
            "tuples": table.tuples,
        }
        for name, table in tables.items()
    ]


def _iterate(
    engine: Engine,
    program: str,
    into_tensors: dict[str, str] | None = None,
    **options: Any,  # noqa: ANN401
) -> dict[str, object]:
    """Run a loop in the transaction of the caller; describe its end."""
    result = Database(engine).iterate(program, into=into_tensors, progress=False, commit_seconds=inf, **options)
    return {"steps": result.steps, "reason": result.reason, "history": result.table}


def _einsum_sql(engine: Engine, program: str, style: str = "cte", **options: Any) -> str:  # noqa: ANN401
    return _make_plan(engine, program, options).sql(style)


def _explain(engine: Engine, program: str, run: bool = False, **options: Any) -> list[str]:  # noqa: ANN401
    return _make_plan(engine, program, options).explain(run).splitlines()


def _make_plan(engine: Engine, program: str, options: Mapping[str, Any]) -> Plan:
    (plan,) = make_plans(_parse(engine, program), engine, _plan_options(options))
    return Plan(plan, engine)


def _parse(engine: Engine, program: str) -> Program:
    return lower_text(program, shapes=shapes_in(engine))


def _plan_options(options: Mapping[str, Any]) -> PlanOptions:
    return plan_options(**{**options, "tiles": parse_tiles(options.get("tiles"))})


def _tensor_from_table(
    engine: Engine,
    name: str,
    relation: str,
    index_columns: list[str],
    value_column: str | None = None,
    fill: str = "0",
    **options: Any,  # noqa: ANN401
) -> str:
    """Add a tensor to the catalogue; returns its declaration."""
    number = parse_number(fill)
    stored = Database(engine).tensor_from_table(name, relation, index_columns, value_column, fill=number, **options)
    return write_declaration(stored.tensor)


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "einsum": _einsum,
    "einsum_columns": _einsum_columns,
    "einsum_into": _einsum_into,
    "einsum_sql": _einsum_sql,
    "explain": _explain,
    "iterate": _iterate,
    "tensor_from_table": _tensor_from_table,
}


def _describe(error: Exception) -> dict[str, str]:
    """An error in the parts of a SQL error. Our messages say what is wrong and, after a semicolon, what to do."""
    statement = error.statement if isinstance(error, EngineError) else None
    shown = "" if statement is None else f"in the statement:\n{statement}"
    message, _, more = str(error).removesuffix(f"\n{shown}").partition("\n")
    detail, hint = [more, shown], ""
    from_server = getattr(error.__cause__, "spidata", None) if isinstance(error, EngineError) else None
    if from_server is None:
        message, _, hint = message.partition("; ")
    else:
        detail.insert(0, from_server[1] or "")
        hint = from_server[2] or ""
    fields = {"detail": "\n".join(filter(None, detail)), "hint": hint}
    return {"sqlstate": _state(error), "message": message} | {name: text for name, text in fields.items() if text}


def _state(error: Exception) -> str:
    sqlstate = getattr(error.__cause__, "sqlstate", None)
    return sqlstate or next(
        (state for kind, state in _SQLSTATES.items() if isinstance(error, kind)), _INVALID_PARAMETER
    )
