"""Render: how an engine spells what plans without arrays need, as data; most is the same in all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from sqlglot import exp, parse_one

from sparseeinsum.render.calls import in_parentheses

# Numbers of at least this size are whole. To add it rounds what is smaller to a whole number, of two to the even one.
_WHOLE = "4.503599627370496e15"
# The remainder of u and v with the sign of v; `%` has that of u.
REMAINDER = "CASE WHEN u % v <> 0 AND (u % v < 0) <> (v < 0) THEN u % v + v ELSE u % v END"
_PRODUCT = (
    "CASE WHEN MIN(ABS(u)) = 0 THEN 0e0 WHEN SUM(CASE WHEN u < 0 THEN 1 ELSE 0 END) % 2 = 1 "
    "THEN -EXP(SUM(LN(CASE WHEN u = 0 THEN 1e0 ELSE ABS(u) END))) "
    "ELSE EXP(SUM(LN(CASE WHEN u = 0 THEN 1e0 ELSE ABS(u) END))) END"
)

# SQL of functions of the numbers u, v and w of floating point, where most engines agree.
_FUNCTIONS = {
    **{name: f"{name.upper()}(u)" for name in ("exp", "sqrt", "tanh", "sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: f"{name.upper()}(u)" for name in ("sinh", "cosh", "floor", "ceil")},
    "log": "LN(u)",
    "pow": "POWER(u, v)",
    "mod": REMAINDER,
    "sign": "CASE WHEN u > 0 THEN 1e0 WHEN u < 0 THEN -1e0 ELSE 0e0 END",
    "sigmoid": "1e0 / (1e0 + EXP(-u))",
    "logaddexp": "CASE WHEN u = v THEN u + 0.6931471805599453e0 WHEN u > v THEN u + LN(1e0 + EXP(v - u)) "
    "ELSE v + LN(1e0 + EXP(u - v)) END",
    "round": f"CASE WHEN ABS(u) >= {_WHOLE} THEN u WHEN u < 0 THEN {_WHOLE} - ({_WHOLE} - u) "
    f"ELSE (u + {_WHOLE}) - {_WHOLE} END",
}
# An engine without infinity raises an error for the exponential of a large number.
STABLE_SIGMOID = "CASE WHEN u < 0 THEN EXP(u) / (1e0 + EXP(u)) ELSE 1e0 / (1e0 + EXP(-u)) END"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """The SQL of an engine on which this package does not run; texts are in its own SQL.

    Attributes:
        engine: The name of the engine, for messages.
        numbers: A SELECT of {count} whole numbers from 0 to {last}, in the column `range`.
        most_numbers: The most numbers that it gives; None if there is no limit.
        integer_quotient: The quotient of the integers u and v, both at least 0, without its fraction.
        functions: Functions by name that differ from other engines; an empty text if the engine has none.
        gives_null: Functions that return NULL outside of their domain, where others return infinity, NaN or an error.
        error: A number that raises an error with the text `message` and the number u, where `is_wrong` is true.
        infinity: Infinity, as text that is cast to DOUBLE, or else a number.
        casts_literals: Whether numbers with an exponent are decimals, and must be cast to DOUBLE.
        has_nan: Whether there is NaN; without, an expression that would be NaN is NULL.
        has_float32: Whether there are numbers of 32 bits.
        distinguishes_zeros: Whether a comparison finds -0 and 0 to be different.
        checks_integers: Whether integers beyond int64 raise an error, or remain exact.
        settings: Settings of every statement.
        quotes_names: Whether quotes leave the case of a name as tables of users have it.
    """

    engine: str
    numbers: str
    integer_quotient: str
    most_numbers: int | None = None
    functions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    gives_null: frozenset[str] = frozenset()
    error: str = "CAST(CONCAT(message, COALESCE(CAST(u AS TEXT), 'NULL')) AS DOUBLE)"
    infinity: str = "'inf'"
    casts_literals: bool = False
    has_nan: bool = True
    has_float32: bool = True
    distinguishes_zeros: bool = False
    checks_integers: bool = False
    settings: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    quotes_names: bool = True

    def function(self, name: str) -> str:
        """The SQL of a function of floating point; empty if the engine has none."""
        return self.functions.get(name, _FUNCTIONS.get(name, ""))

    @property
    def product(self) -> str:
        """The SQL of the product of the numbers u of a group, by way of logarithms."""
        return _PRODUCT


def filled(template: str, dialect: str, **parts: exp.Expr) -> exp.Expr:
    """The SQL of a template, with expressions in the place of its columns.

    Args:
        template: The text.
        dialect: The dialect of sqlglot in which it is written.
        parts: The expressions, by the names of the columns.
    """

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name in parts:
            part = parts[node.name].copy()
            return part if isinstance(node.parent, exp.Func) else in_parentheses(part)
        return node

    return _parsed(template, dialect).transform(replaced)


@cache
def _parsed(template: str, dialect: str) -> exp.Expr:
    parsed: exp.Expr = parse_one(template, read=dialect)
    return parsed
