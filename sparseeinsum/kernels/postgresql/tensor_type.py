"""Kernels: writes the SQL of PostgreSQL's type tensor: its casts and operators, whose functions are array functions."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from sparseeinsum.environment import assets
from sparseeinsum.kernels.array_functions import ValueType
from sparseeinsum.kernels.postgresql.declared_functions import CFunction, scalar_functions
from sparseeinsum.kernels.postgresql.descriptors import FLOAT8
from sparseeinsum.kernels.postgresql.linking_names import TYPE_SYMBOLS, link_symbol
from sparseeinsum.kernels.postgresql.templates import fill, literal
from sparseeinsum.operators.functions import FUNCTIONS

_ARRAY = "double precision[]"
_OTHER_ARRAYS = ("real[]", "numeric[]", "bigint[]", "integer[]")
_TYPES = {ValueType.TENSOR: "tensor", ValueType.NUMBER: "double precision"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operator:
    """An operator and its function.

    Attributes:
        symbol: The operator.
        left: The type of its left operand, "" if it has none.
        right: The type of its right operand.
        returns: The type of its result.
        function: The name of its function.
        comment: What it does.
        sql: The expression in SQL that the function returns, or "".
        internal: The name of the function of the server that it is, or "".
        symbol_of_library: The symbol of the library that it is, or "".
        options: Further clauses of CREATE OPERATOR.
    """

    symbol: str
    left: str = ""
    right: str
    returns: str
    function: str
    comment: str
    sql: str = ""
    internal: str = ""
    symbol_of_library: str = ""
    options: str = ""


def type_statements(version: str) -> Iterator[str]:
    """Yield the statements that create the type where it does not exist, and create or replace its functions."""
    yield fill("type.sql", **{symbol: link_symbol(symbol, version) for symbol in TYPE_SYMBOLS})
    for array in _OTHER_ARRAYS:
        yield fill("cast.sql", array=array)
    for array in (_ARRAY, *_OTHER_ARRAYS):
        yield _cast(array, "tensor", "array_to_tensor", "ASSIGNMENT")
    yield _cast("tensor", _ARRAY, "tensor_to_array", "IMPLICIT")
    for operator in (*_arithmetic(version), *_listed()):
        yield _operator(operator)
    yield fill("operator_classes.sql")


def _cast(source: str, target: str, function: str, context: str) -> str:
    return fill("create_cast.sql", source=source, target=target, function=function, context=context)


def _listed() -> Iterator[_Operator]:
    return (_Operator(**entry) for entry in tomllib.loads(assets.read("sql/postgresql/operators.toml"))["operator"])


def _arithmetic(version: str) -> Iterator[_Operator]:
    """Yield the operators of array functions that apply a function with a symbol element by element."""
    for function in scalar_functions():
        scalar = function.function.elementwise_function
        if scalar and FUNCTIONS[scalar].symbol and set(function.declared_types) == {FLOAT8}:
            yield _operator_of(function, scalar, version)


def _operator_of(function: CFunction, scalar: str, version: str) -> _Operator:
    left, right = (_TYPES[argument.type] for argument in function.function.arguments)
    record = FUNCTIONS[scalar]
    return _Operator(
        symbol=record.symbol,
        left=left,
        right=right,
        returns="tensor",
        function=function.name,
        comment=function.function.description,
        symbol_of_library=link_symbol(function.symbol, version),
        options=f"COMMUTATOR = {record.symbol}" if record.is_commutative else "",
    )


def _operator(operator: _Operator) -> str:
    language, definition = _definition(operator)
    options = {"FUNCTION": operator.function, "LEFTARG": operator.left, "RIGHTARG": operator.right}
    clauses = [f"{name} = {value}" for name, value in options.items() if value]
    return fill(
        "operator.sql",
        symbol=operator.symbol,
        left=operator.left or "NONE",
        right=operator.right,
        function=operator.function,
        parameters=", ".join(filter(None, (operator.left, operator.right))),
        returns=operator.returns,
        language=language,
        definition=definition,
        options=", ".join((*clauses, *filter(None, (operator.options,)))),
        comment=literal(operator.comment),
    )


def _definition(operator: _Operator) -> tuple[str, str]:
    """Return the language of an operator's function, and its body."""
    if operator.sql:
        return "sql", f"RETURN {operator.sql}"
    if operator.internal:
        return "internal", f"AS '{operator.internal}'"
    return "C", f"AS 'MODULE_PATHNAME', '{operator.symbol_of_library}'"
