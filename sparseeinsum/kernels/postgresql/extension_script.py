"""Kernels: writes the control file and scripts of PostgreSQL's extension from the templates in sql/postgresql."""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from sparseeinsum.kernels.array_functions import ArrayFunction
from sparseeinsum.kernels.postgresql.declared_functions import (
    CFunction,
    PostgresAggregate,
    PostgresParameter,
    aggregates,
    c_functions,
)
from sparseeinsum.kernels.postgresql.linking_names import KEPT_SYMBOLS, link_symbol
from sparseeinsum.kernels.postgresql.templates import fill, literal
from sparseeinsum.kernels.postgresql.tensor_type import type_statements

EXTENSION = "sparseeinsum"
PYTHON_EXTENSION = "sparseeinsum_python"  # which plans programs in the server

STATE_BYTES = 4096  # the size of a state that PostgreSQL's planner assumes; the real one depends on the data


def control_file(version: str) -> str:
    """Return the text of `sparseeinsum.control`."""
    return fill("sparseeinsum.control", version=version)


def install_script(version: str) -> str:
    """Return the script of `CREATE EXTENSION`: all functions and aggregates with comments."""
    return "".join(_statements(version, ""))


def update_script(version: str) -> str:
    """Return the script of `ALTER EXTENSION ... UPDATE`, which is the same for every earlier version.

    It replaces functions and aggregates in place, so that views that use them stay; it drops those that are gone.
    """
    symbols = link_symbol("", version).replace("_", "\\_") + "%"
    return "".join((*_statements(version, " OR REPLACE"), fill("footer_of_update.sql", symbols=symbols)))


def _statements(version: str, or_replace: str) -> Iterator[str]:
    yield fill("header.sql", version=version, or_replace=or_replace, symbol=link_symbol("version", version))
    for function in c_functions():
        yield _function(function, version, or_replace)
    for aggregate in aggregates():
        yield _aggregate(aggregate, or_replace)
    yield fill("sum_of_numbers.sql", or_replace=or_replace)
    yield from type_statements(version)
    kept_symbols = {symbol: link_symbol(symbol, version) for symbol in KEPT_SYMBOLS}
    yield fill("kept_arrays.sql", or_replace=or_replace, **kept_symbols)


def _function(function: CFunction, version: str, or_replace: str) -> str:
    array_function = function.function
    role = f"Part of the aggregate {array_function.name}: {function.role}."
    return fill(
        "function.sql",
        or_replace=or_replace,
        name=function.name,
        parameters=parameter_declarations(function.parameters),
        types=parameter_types(function.parameters),
        returns=function.returns,
        symbol=link_symbol(function.symbol, version),
        strict=" STRICT" if function.is_strict else "",
        cost=function.cost,
        comment=literal(role if function.role else description_with_example(array_function)),
    )


def _aggregate(aggregate: PostgresAggregate, or_replace: str) -> str:
    array_function, combine, finish = aggregate.function, aggregate.combine, aggregate.finish
    return fill(
        "aggregate.sql",
        or_replace=or_replace,
        name=array_function.name,
        parameters=parameter_declarations(aggregate.parameters),
        types=parameter_types(aggregate.parameters),
        transition=aggregate.transition.name,
        state=aggregate.state,
        state_bytes=STATE_BYTES,
        combine="" if combine is None else f"\n    COMBINEFUNC = {combine.name},",
        finish="" if finish is None else f"\n    FINALFUNC = {finish.name},",
        comment=literal(description_with_example(array_function)),
    )


def description_with_example(function: ArrayFunction) -> str:
    """Return the description of a function, with an example in PostgreSQL's SQL."""
    description = function.description
    tree = sqlglot.parse_one(function.example, read="duckdb")
    arrays = [part for part in tree.args.get("expression", exp.Array()).expressions if isinstance(part, exp.Array)]
    if arrays:  # a set of arrays
        return f"{description} One row each. Example: {_sql(tree.this)} gives {' and '.join(map(_sql, arrays))}"
    return f"{description} Example: {_sql(tree)}"


def _sql(tree: exp.Expr) -> str:
    return tree.sql("postgres", normalize_functions=False)


def parameter_declarations(parameters: tuple[PostgresParameter, ...]) -> str:
    """Return the declarations of parameters in SQL: names and types."""
    names = (exp.to_identifier(parameter.name, quoted=True).sql("postgres") for parameter in parameters)
    return ", ".join(f"{name} {parameter.type}" for name, parameter in zip(names, parameters, strict=True))


def parameter_types(parameters: tuple[PostgresParameter, ...]) -> str:
    """Return the types of parameters in SQL."""
    return ", ".join(parameter.type for parameter in parameters)
