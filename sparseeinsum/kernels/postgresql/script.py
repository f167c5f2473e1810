"""Kernels: the catalogue in, PostgreSQL's control file and scripts out; their templates are in sql/postgresql."""

from collections.abc import Iterator
from string import Template

import sqlglot
from sqlglot import exp

from sparseeinsum import assets
from sparseeinsum.kernels.catalogue import Function
from sparseeinsum.kernels.postgresql.functions import Aggregate, CFunction, Parameter, aggregates, c_functions
from sparseeinsum.kernels.postgresql.linking_names import link_symbol

EXTENSION = "sparseeinsum"
PYTHON_EXTENSION = "sparseeinsum_python"  # which plans programs in the server

STATE_BYTES = 4096  # what the planner thinks a state takes; it cannot know better


def control_file(version: str) -> str:
    """Text of `sparseeinsum.control`."""
    return _fill("sparseeinsum.control", version=version)


def install_script(version: str) -> str:
    """The script of `CREATE EXTENSION`: every function and aggregate, each with a comment."""
    return "".join(_statements(version, ""))


def update_script(version: str) -> str:
    """The script of `ALTER EXTENSION ... UPDATE`, the same from whichever version before.

    Functions and aggregates stay who they are, so that views may go on using them; those that are no more are dropped.
    """
    symbols = link_symbol("", version).replace("_", "\\_") + "%"
    return "".join((*_statements(version, " OR REPLACE"), _fill("footer_of_update.sql", symbols=symbols)))


def _statements(version: str, or_replace: str) -> Iterator[str]:
    yield _fill("header.sql", version=version, or_replace=or_replace, symbol=link_symbol("version", version))
    for function in c_functions():
        yield _function(function, version, or_replace)
    for aggregate in aggregates():
        yield _aggregate(aggregate, or_replace)
    yield _fill("sum_of_numbers.sql", or_replace=or_replace)


def _function(function: CFunction, version: str, or_replace: str) -> str:
    known = function.function
    role = f"Part of the aggregate {known.name}: {function.role}."
    return _fill(
        "function.sql",
        or_replace=or_replace,
        name=function.name,
        parameters=declared(function.parameters),
        types=types_of(function.parameters),
        returns=function.returns,
        symbol=link_symbol(function.symbol, version),
        strict=" STRICT" if function.is_strict else "",
        cost=function.cost,
        comment=literal(role if function.role else described(known)),
    )


def _aggregate(aggregate: Aggregate, or_replace: str) -> str:
    known, finish = aggregate.function, aggregate.finish
    return _fill(
        "aggregate.sql",
        or_replace=or_replace,
        name=known.name,
        parameters=declared(aggregate.parameters),
        types=types_of(aggregate.parameters),
        transition=aggregate.transition.name,
        state=aggregate.state,
        state_bytes=STATE_BYTES,
        combine=aggregate.combine.name,
        finish="" if finish is None else f"\n    FINALFUNC = {finish.name},",
        comment=literal(described(known)),
    )


def described(function: Function) -> str:
    """What a function does, with an example in PostgreSQL's words."""
    description = function.description
    tree = sqlglot.parse_one(function.example, read="duckdb")
    parts = [part for part in tree.args.get("expression", exp.Array()).expressions if isinstance(part, exp.Array)]
    if parts:  # a set of arrays
        return f"{description} One row each. Example: {_sql(tree.this)} gives {' and '.join(map(_sql, parts))}"
    return f"{description} Example: {_sql(tree)}"


def _sql(tree: exp.Expr) -> str:
    return tree.sql("postgres", normalize_functions=False)


def declared(parameters: tuple[Parameter, ...]) -> str:
    """Parameters with their names."""
    names = (exp.to_identifier(each.name, quoted=True).sql("postgres") for each in parameters)
    return ", ".join(f"{name} {each.type}" for name, each in zip(names, parameters, strict=True))


def types_of(parameters: tuple[Parameter, ...]) -> str:
    """Parameters without them."""
    return ", ".join(each.type for each in parameters)


def literal(text: str) -> str:
    """A text in SQL."""
    return exp.Literal.string(text).sql("postgres")


def _fill(template: str, /, **values: object) -> str:
    return Template(assets.read(f"sql/postgresql/{template}")).substitute(values)
