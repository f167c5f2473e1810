"""Kernels: writes the PL/pgSQL of scalar functions and aggregates from their records, for the portable variant."""

import re
from collections.abc import Mapping

from sparseeinsum.kernels.postgresql.templates import literal
from sparseeinsum.operators import normal_quantile, random_numbers
from sparseeinsum.operators.aggregates import AGGREGATES, aggregates_without, has_aggregate
from sparseeinsum.operators.dtypes import as_number
from sparseeinsum.operators.functions import FUNCTIONS, built_in, functions_without
from sparseeinsum.operators.records import ScalarFunction

_OPERAND = re.compile(r"\b[uvw]\b")
_OWN_FUNCTION = re.compile(r"@(?=\w+\()")
_TRUTH = "CASE WHEN {} THEN units[1] ELSE units[2] END"  # `units` are 1 and 0 in the type of the operands


def operators() -> Mapping[str, str]:
    """Return the texts for the placeholders @operators....@ of the SQL files: names, precedences, CASE branches."""
    symbols = [function for function in built_in() if function.symbol]
    return {
        "operators.FUNCTIONS": _array([literal(function.name) for function in built_in()]),
        "operators.OPERANDS": _array([str(function.operands) for function in built_in()]),
        "operators.SYMBOLS": _array([literal(function.symbol) for function in symbols]),
        "operators.PRECEDENCES": _array([str(function.precedence) for function in symbols]),
        "operators.AGGREGATES": _array([literal(name) for name in AGGREGATES]),
        "operators.NOT_OF_INTEGERS": _without("integer"),
        "operators.NOT_PORTABLE": _without("sql"),
        "operators.AGGREGATES_NOT_OF_INTEGERS": _array([*map(literal, aggregates_without("integer"))]) + "::text[]",
        "operators.IDENTITIES_OF_REALS": _identities("float64", "float8"),
        "operators.IDENTITIES_OF_INTEGERS": _identities("int64", "bigint"),
        "operators.EVALUATIONS": "".join(map(_evaluation, built_in())),
        "operators.FOLDS": "".join(_fold(name) for name in AGGREGATES if name != "sum"),
        "operators.LARGEST": str(random_numbers.LARGEST),
        **{f"operators.{name}": _floats(value) for name, value in vars(normal_quantile).items() if name.isupper()},
    }


def _floats(value: float | tuple[float, ...]) -> str:
    """Return a number or an array of type float8 in SQL."""
    if isinstance(value, float):
        return f"{literal(repr(value))}::float8"
    return f"{_array([literal(repr(number)) for number in value])}::float8[]"


def _without(part: str) -> str:
    """Return an SQL array of the names of functions that a part of their records does not define."""
    return _array([literal(function.name) for function in functions_without(part)]) + "::text[]"


def _identities(dtype: str, kind: str) -> str:
    """Return the CASE branches with the identities of aggregates, as numbers of SQL type `kind`."""
    numbers = "integer" if dtype == "int64" else "real"
    defined = [aggregate for name, aggregate in AGGREGATES.items() if has_aggregate(name, numbers)]
    values = {aggregate.name: as_number(aggregate.identity(dtype), dtype) for aggregate in defined}
    return " ".join(f"WHEN {literal(name)} THEN '{value}'::{kind}" for name, value in values.items())


def _evaluation(function: ScalarFunction) -> str:
    """Return the CASE branch that computes a function of operands on the stack, in place of the first one."""
    if function.sql is None:
        return ""
    value = _sql_of(function, {"u": "stack[a + i]", "v": "stack[b + i]", "w": "stack[c + i]"})
    loop = f"FOR i IN 1..n LOOP stack[a + i] := {value}; END LOOP;"
    return f"WHEN {literal(function.name)} THEN\n            {loop}\n        "


def _fold(name: str) -> str:
    """Return the CASE branch that folds terms with an aggregate."""
    value = _sql_of(FUNCTIONS[AGGREGATES[name].combine], {"u": "w[t]", "v": "terms[i]"})
    loop = ("FOR i IN 1..n LOOP", "    t := coalesce(targets[i], i);", f"    w[t] := {value};", "END LOOP;")
    return f"WHEN {literal(name)} THEN\n" + "".join(f"        {line}\n" for line in loop) + "    "


def _sql_of(function: ScalarFunction, operands: Mapping[str, str]) -> str:
    """Return the SQL of a function, with SQL expressions for its operands."""
    sql = _OPERAND.sub(lambda name: operands[name[0]], str(function.sql))
    sql = _OWN_FUNCTION.sub("@extschema@.sparseeinsum_", sql)
    return _TRUTH.format(sql) if function.returns_bool else sql


def _array(elements: list[str]) -> str:
    return f"ARRAY[{', '.join(elements)}]"
