"""Kernels: records of functions and aggregates in, what the portable variant says of them in PL/pgSQL out."""

import re
from collections.abc import Mapping

from sparseeinsum.kernels.postgresql.script import literal
from sparseeinsum.operators.aggregates import AGGREGATES, aggregates_without, has_aggregate
from sparseeinsum.operators.dtypes import as_number
from sparseeinsum.operators.functions import FUNCTIONS, built_in, functions_without
from sparseeinsum.operators.records import ScalarFunction

_OPERAND = re.compile(r"\b[uvw]\b")
_OWN_FUNCTION = re.compile(r"@(?=\w+\()")
_TRUTH = "CASE WHEN {} THEN units[1] ELSE units[2] END"  # 1 and 0 of the numbers computed with


def operators() -> Mapping[str, str]:
    """Texts of the parts' placeholders: names, operands and precedences, and branches that compute."""
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
    }


def _without(part: str) -> str:
    """Names of functions that lack a part of their records."""
    return _array([literal(function.name) for function in functions_without(part)]) + "::text[]"


def _identities(dtype: str, kind: str) -> str:
    """Branches that give what folding nothing gives."""
    numbers = "integer" if dtype == "int64" else "real"
    values = {name: each.identity(dtype) for name, each in AGGREGATES.items() if has_aggregate(name, numbers)}
    return " ".join(f"WHEN {literal(name)} THEN '{as_number(value, dtype)}'::{kind}" for name, value in values.items())


def _evaluation(function: ScalarFunction) -> str:
    """The branch that puts a function of operands on the stack in the place of the first one."""
    if function.sql is None:
        return ""
    value = _written(function, {"u": "stack[a + i]", "v": "stack[b + i]", "w": "stack[c + i]"})
    loop = f"FOR i IN 1..n LOOP stack[a + i] := {value}; END LOOP;"
    return f"WHEN {literal(function.name)} THEN\n            {loop}\n        "


def _fold(name: str) -> str:
    """The branch that folds terms by an aggregate."""
    value = _written(FUNCTIONS[AGGREGATES[name].combine], {"u": "w[t]", "v": "terms[i]"})
    loop = ("FOR i IN 1..n LOOP", "    t := coalesce(targets[i], i);", f"    w[t] := {value};", "END LOOP;")
    return f"WHEN {literal(name)} THEN\n" + "".join(f"        {line}\n" for line in loop) + "    "


def _written(function: ScalarFunction, operands: Mapping[str, str]) -> str:
    """SQL of a function of operands."""
    sql = _OPERAND.sub(lambda name: operands[name[0]], str(function.sql))
    sql = _OWN_FUNCTION.sub("@extschema@.sparseeinsum_", sql)
    return _TRUTH.format(sql) if function.returns_bool else sql


def _array(elements: list[str]) -> str:
    return f"ARRAY[{', '.join(elements)}]"
