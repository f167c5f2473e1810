"""Functions of PostgreSQL's extension sparseeinsum_python: what SQL asks is answered inside the server, both in JSON.

Nothing here may read or write files by names that a caller gives: the server's user does what is done here.
"""

import json
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

from sparseeinsum.api.database import Database
from sparseeinsum.api.plans import Plan
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.postgresql.opening import open_session
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
from sparseeinsum.storage.fills import fill_text
from sparseeinsum.storage.program_inputs import shapes_in

# SQLSTATEs, in PostgreSQL's words: syntax_error, duplicate_table, insufficient_privilege, undefined_table, and so on.
_STATES = {
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


def answer(server: Any, function: str, arguments: str) -> str:  # noqa: ANN401  # the module plpy has no type
    """Call one of the functions.

    Args:
        server: PL/Python's module plpy.
        function: The name of the function.
        arguments: By name, as a JSON object; those that are left out have their defaults.

    Returns:
        A JSON object: the `result`, or the `error` with sqlstate, message, and maybe detail and hint.
    """
    try:
        given = _checked(function, json.loads(arguments))
        engine = open_session(ServerSession(server))
        with engine.transaction():  # on a cluster, what follows in the same one depends on its settings
            return json.dumps({"result": _FUNCTIONS[function](engine, **given)})
    except (SparseEinsumError, ValueError) as error:
        return json.dumps({"error": _described(error)})


def _checked(function: str, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments, of which SQL knows the types, but not all that these allow."""
    for name, parameter in signature(_FUNCTIONS[function]).parameters.items():
        is_needed = parameter.default is Parameter.empty and parameter.kind is not Parameter.VAR_KEYWORD
        if is_needed and name not in ("engine", *given):
            raise ValueError(f"the argument {name} of {function} is NULL; give it a value")
    for name, value in given.items():
        may_lack = (type(None), list) if name != "shape" else list  # dictionaries give bounds
        if isinstance(value, list) and any(isinstance(item, may_lack) for item in value):
            raise ValueError(f"the argument {name} of {function} is no plain list of values; write it as in '{{a, b}}'")
    if not _are_pins(given.get("pin", {})):
        raise ValueError(
            'pin names no labels of results; write it as in \'{"Y": ["i"]}\', or with tiles, {"Y": {"i": 64}}'
        )
    return given


def _are_pins(pin: object) -> bool:
    """Whether it is labels, or labels with tiles, by results."""
    if not isinstance(pin, dict):
        return False
    labels = [label for found in pin.values() if isinstance(found, list) for label in found]
    return all(isinstance(found, list | dict) for found in pin.values()) and all(
        isinstance(each, str) for each in labels
    )


def _einsum(engine: Engine, program: str, replace: bool = False, **options: Any) -> list[dict[str, object]]:  # noqa: ANN401
    kept = store_program(_read(engine, program), engine, _plan_options(options), replace)
    return [
        {
            "tensor": name,
            "table": each.target.name,
            "shape": each.schema.tensor.shape,
            "dtype": each.schema.tensor.dtype,
            "fill": fill_text(each.schema.tensor.fill),
            "tuples": each.tuples,
        }
        for name, each in kept.items()
    ]


def _einsum_sql(engine: Engine, program: str, style: str = "cte", **options: Any) -> str:  # noqa: ANN401
    return _planned(engine, program, options).sql(style)


def _explain(engine: Engine, program: str, run: bool = False, **options: Any) -> list[str]:  # noqa: ANN401
    return _planned(engine, program, options).explain(run).splitlines()


def _planned(engine: Engine, program: str, options: Mapping[str, Any]) -> Plan:
    (plan,) = make_plans(_read(engine, program), engine, _plan_options(options))
    return Plan(plan, engine)


def _read(engine: Engine, program: str) -> Program:
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
    number = parse_number(fill)
    stored = Database(engine).tensor_from_table(name, relation, index_columns, value_column, fill=number, **options)
    return write_declaration(stored.tensor)


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "einsum": _einsum,
    "einsum_sql": _einsum_sql,
    "explain": _explain,
    "tensor_from_table": _tensor_from_table,
}


def _described(error: Exception) -> dict[str, str]:
    """An error in the parts that one of SQL has; messages say what is wrong, then, behind a semicolon, what to do."""
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
    parts = {"detail": "\n".join(filter(None, detail)), "hint": hint}
    return {"sqlstate": _state(error), "message": message} | {name: text for name, text in parts.items() if text}


def _state(error: Exception) -> str:
    given = getattr(error.__cause__, "sqlstate", None)
    return given or next((state for kind, state in _STATES.items() if isinstance(error, kind)), _INVALID_PARAMETER)
