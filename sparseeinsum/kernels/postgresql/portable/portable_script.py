"""Kernels: writes a script that defines the array functions in SQL and PL/pgSQL, for servers that load no libraries.

The files of sql/postgresql/portable compute, once for float8[] and once for bigint[]. The script defines the array
functions that PostgreSQL's extension has, with the same names and arguments; those of complex numbers raise an
error.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache

from sqlglot import exp

from sparseeinsum.environment import assets
from sparseeinsum.kernels import descriptors
from sparseeinsum.kernels.array_functions import ArrayFunction, FunctionKind, ValueType, elementwise_kernels
from sparseeinsum.kernels.kernel_descriptions import DEPTHS
from sparseeinsum.kernels.messages import MESSAGES_BY_CODE
from sparseeinsum.kernels.postgresql.declared_functions import (
    CFunction,
    PostgresAggregate,
    PostgresParameter,
    aggregates,
    scalar_functions,
)
from sparseeinsum.kernels.postgresql.descriptors import LARGEST_RESULT
from sparseeinsum.kernels.postgresql.extension_script import (
    STATE_BYTES,
    description_with_example,
    parameter_declarations,
    parameter_types,
)
from sparseeinsum.kernels.postgresql.portable.operator_texts import operators
from sparseeinsum.kernels.postgresql.portable.udf_constants import constants_of
from sparseeinsum.kernels.postgresql.sqlstates import state_of
from sparseeinsum.kernels.postgresql.templates import literal
from sparseeinsum.kernels.symbols import ARRAY_AND_NUMBER, NUMBER_AND_ARRAY
from sparseeinsum.operators.aggregates import AGGREGATES

MARKER = "Portable variant of sparseeinsum: in SQL and PL/pgSQL, slower than the extension."

_FOLDER = "sql/postgresql/portable"
# The order matters: a body in SQL may call only functions that exist when it is created.
_PARTS = (
    "arrays",
    "real",
    "integers",
    "random_numbers",
    "expression",
    "elementwise",
    "aggregation",
    "contraction",
    "layout",
)
# The modules of udfs/ whose constants the SQL files use as placeholders.
_MODULES = (
    *("aggregation", "contraction", "contraction_plan", "elementwise"),
    *("expression", "integers", "layout", "random_numbers", "tiles"),
)
_NUMBERS = {"f64": "real", "f32": "real", "i64": "integer"}
_ELEMENTS = {"real": "float8", "integer": "bigint"}
_INLINED = (
    "add_number",
    "sub_number",
    "mul_number",
    "div_number",
    "pow_number",
    "threefry_number",
)  # return NULL for NULL anyway; STRICT would prevent inlining
_SINGLE = ("f32",)
_INTEGERS = (ValueType.INTEGER, ValueType.INTEGERS)
_PLACEHOLDER = re.compile(r"@([\w.]+)@")
_SYMBOL = "@extschema@.sparseeinsum_"


def portable_script(version: str, schema: str) -> str:
    """Return the script that creates or replaces the functions in a schema, in one transaction."""
    quoted = exp.to_identifier(schema, quoted=True).sql("postgres")
    values = {"extschema": quoted, "schema_name": literal(quoted), "version": version, "marker": MARKER, **_constants()}
    return _fill_in(_fill_in("".join(_statements()), operators()), values)


def is_portable(function: ArrayFunction) -> bool:
    """Whether there is SQL for the kernel of a function of real numbers or integers."""
    return not _kernels().keys().isdisjoint((function.kernel, f"{function.kernel}_number"))


def _has_sql(function: CFunction) -> bool:
    """Whether there is SQL for a function, or for the aggregate that it is a part of."""
    return function.dtype in _NUMBERS and is_portable(function.function)


def psql_script(version: str, schema: str) -> str:
    """Return the script of `portable_script` for psql, which stops at the first error."""
    return f"\\set ON_ERROR_STOP on\n{portable_script(version, schema)}"


def removing_script() -> str:
    """Return the statement that drops everything that a portable script created."""
    return _fill_in(_read("remove.sql"), {"marker": MARKER})


def _statements() -> Iterator[str]:
    yield _read("header.sql")
    for part in _PARTS:
        yield _read(f"{part}.sql") + "\n"
    for function in scalar_functions():
        if function.function.kind == FunctionKind.CONVERSION:
            continue  # for clusters, which have the extension
        yield (
            _scalar(function) if _has_sql(function) else _unavailable(function, function.returns, function.parameters)
        )
    definitions: dict[str, str] = {}
    for aggregate in aggregates():
        if not _has_sql(aggregate.transition):
            definitions[aggregate.transition.symbol] = _unavailable_transition(aggregate)
            continue
        definitions[aggregate.transition.symbol] = _transition(aggregate)
        definitions[_part_name(aggregate, "combine")] = _combine(aggregate)
        if _has_finish(aggregate):
            definitions[_part_name(aggregate, "finish")] = _finish(aggregate)
    yield from definitions.values()
    for aggregate in aggregates():
        yield _aggregate(aggregate) if _has_sql(aggregate.transition) else _unavailable_aggregate(aggregate)
    yield _read("footer.sql")


def _unavailable(function: CFunction, returns: str, parameters: tuple[PostgresParameter, ...]) -> str:
    """Return the statement that creates a function that only raises an error: it needs the library."""
    return _template(
        "refused.sql",
        name=function.name,
        parameters=parameter_declarations(parameters),
        types=parameter_types(parameters),
        returns=returns,
        caller=literal(function.function.name),
        comment=literal(f"{description_with_example(function.function)} {MARKER}"),
    )


def _unavailable_transition(aggregate: PostgresAggregate) -> str:
    parameters = (PostgresParameter("state", _returns(aggregate)), *aggregate.parameters)
    return _unavailable(aggregate.transition, _returns(aggregate), parameters)


def _unavailable_aggregate(aggregate: PostgresAggregate) -> str:
    return _template(
        "refused_aggregate.sql",
        name=aggregate.function.name,
        parameters=parameter_declarations(aggregate.parameters),
        types=parameter_types(aggregate.parameters),
        transition=aggregate.transition.name,
        state=_returns(aggregate),
        comment=literal(f"{description_with_example(aggregate.function)} {MARKER}"),
    )


def _scalar(function: CFunction) -> str:
    array_function = function.function
    template = "set.sql" if DEPTHS[array_function.returns] == 2 else "function.sql"
    body = _body(function)
    is_inlined = _kernel(function) in _INLINED
    return _template(
        template,
        strict="" if is_inlined else " STRICT",
        name=function.name,
        parameters=parameter_declarations(function.parameters),
        types=parameter_types(function.parameters),
        returns=function.returns,
        body=body if template == "set.sql" else _result(function, body),
        result=_result(function, "part"),
        comment=literal(f"{description_with_example(array_function)} {MARKER}"),
    )


def _transition(aggregate: PostgresAggregate) -> str:
    function, state = aggregate.transition, _state(aggregate)
    arguments = [_quoted(parameter.name) for parameter in aggregate.parameters]
    parameters = (PostgresParameter("state", state), *aggregate.parameters)
    return _template(
        "transition.sql",
        name=function.name,
        parameters=parameter_declarations(parameters),
        types=parameter_types(parameters),
        returns=state,
        is_null=" OR ".join(f"{argument} IS NULL" for argument in arguments),
        body=_body(function),
        comment=_part_comment(function),
    )


def _combine(aggregate: PostgresAggregate) -> str:
    state, caller = _state(aggregate), literal(aggregate.function.name)
    kernel = aggregate.function.kernel
    if f"{kernel}_combine" in _kernels():
        body = _fill_in(_kernels()[f"{kernel}_combine"], {"caller": caller})
    elif aggregate.function.has_background:
        body = f"{_SYMBOL}overlay({caller}, state, other)"
    else:
        fold = kernel if kernel in AGGREGATES else "sum"
        body = f"{_SYMBOL}fold_row({caller}, '{fold}', state, other)"
    parameters = (PostgresParameter("state", state), PostgresParameter("other", state))
    comment = literal(f"Part of the aggregate {aggregate.function.name}: combine. {MARKER}")
    return _function_of_state(_part_name(aggregate, "combine"), parameters, state, body, comment)


def _finish(aggregate: PostgresAggregate) -> str:
    parameters = (PostgresParameter("state", _state(aggregate)),)
    of_state = f"{_SYMBOL}without_background(state)" if aggregate.function.has_background else "state"
    array = _kernels().get(f"{aggregate.function.kernel}_finish", of_state)
    comment = literal(f"Part of the aggregate {aggregate.function.name}: finish. {MARKER}")
    result = _result(aggregate.transition, array)
    return _function_of_state(_part_name(aggregate, "finish"), parameters, _returns(aggregate), result, comment)


def _function_of_state(
    name: str, parameters: tuple[PostgresParameter, ...], returns: str, body: str, comment: str
) -> str:
    return _template(
        "function.sql",
        strict=" STRICT",
        name=name,
        parameters=parameter_declarations(parameters),
        types=parameter_types(parameters),
        returns=returns,
        body=body,
        comment=comment,
    )


def _aggregate(aggregate: PostgresAggregate) -> str:
    finish = _part_name(aggregate, "finish")
    return _template(
        "aggregate.sql",
        name=aggregate.function.name,
        parameters=parameter_declarations(aggregate.parameters),
        types=parameter_types(aggregate.parameters),
        transition=aggregate.transition.name,
        state=_state(aggregate),
        state_bytes=str(STATE_BYTES),
        combine=_part_name(aggregate, "combine"),
        finish=f"\n    FINALFUNC = @extschema@.{finish}," if _has_finish(aggregate) else "",
        comment=literal(f"{description_with_example(aggregate.function)} {MARKER}"),
    )


def _has_finish(aggregate: PostgresAggregate) -> bool:
    """Whether the result differs from the state, so that a final function is needed."""
    return aggregate.function.has_background or _result(aggregate.transition, "state") != "state"


def _part_name(aggregate: PostgresAggregate, role: str) -> str:
    """Return the name of the function of an aggregate that has a role in it."""
    return aggregate.transition.name.removesuffix("transition") + role


def _state(aggregate: PostgresAggregate) -> str:
    """Return the SQL type of a state."""
    is_counting = aggregate.function.returns in _INTEGERS
    return "bigint[]" if is_counting else f"{_ELEMENTS[_NUMBERS[aggregate.transition.dtype]]}[]"


def _returns(aggregate: PostgresAggregate) -> str:
    """Return the SQL type of an aggregate's result."""
    return aggregate.state if aggregate.finish is None else aggregate.finish.returns


def _body(function: CFunction) -> str:
    """Return the SQL call that computes a function, from its entry in kernels.toml."""
    numbers = _NUMBERS[function.dtype]
    values = {
        "caller": literal(function.function.name),
        "state": "state",
        "numbers": numbers,
        "likes": f"'{{}}'::{_ELEMENTS[numbers]}[]",
        "single": str(function.dtype in _SINGLE).lower(),
    }
    own = function.parameters[len(function.parameters) - len(function.function.arguments) :]
    for index, (parameter, argument) in enumerate(zip(own, function.function.arguments, strict=True)):
        values[str(index + 1)] = _argument(function, index + 1, parameter, argument.type)
    return _fill_in(_kernels()[_kernel(function)], values)


def _kernel(function: CFunction) -> str:
    """Return the name of a function's entry in kernels.toml; some kernels have another one for numbers."""
    name = f"{function.function.kernel}_number"
    return name if function.function.returns == ValueType.NUMBER and name in _kernels() else function.function.kernel


def _argument(function: CFunction, number: int, parameter: PostgresParameter, value_type: ValueType) -> str:
    """Return the SQL of argument `number` as the kernel needs it: checked, flat, and of the type it computes in."""
    name, caller = _quoted(parameter.name), literal(function.function.name)
    if value_type in (ValueType.TEXT, ValueType.INTEGER):
        return name
    if value_type in (ValueType.INTEGERS, ValueType.POSITIONS):
        return f"{_SYMBOL}flat({caller}, {number}, {name})"
    element = "bigint" if _NUMBERS[function.dtype] == "integer" else "float8"
    if value_type == ValueType.NUMBER:
        value = f"{name}::{element}"
        return f"ARRAY[{value}]" if function.function.kernel == "place" and number == 1 else value
    array = f"{name}::{element}[]"  # as it is where it is only looked at
    return array if function.function.kind == FunctionKind.CHECK else f"{_SYMBOL}flat({caller}, {number}, {array})"


def _result(function: CFunction, value: str) -> str:
    """Return the SQL that converts a result to the declared type."""
    returns = function.function.returns
    if function.dtype in _SINGLE and returns not in _INTEGERS:
        value = f"{_SYMBOL}narrow({value})"
    return value


def _part_comment(function: CFunction) -> str:
    return literal(f"Part of the aggregate {function.function.name}: {function.role}. {MARKER}")


@cache
def _kernels() -> Mapping[str, str]:
    folds = {name: f"{_SYMBOL}fold_row(@caller@, {literal(name)}, @state@, @1@)" for name in AGGREGATES}
    return {**tomllib.loads(_read("kernels.toml")), **folds, **_elementwise_kernels()}


def _elementwise_kernels() -> Mapping[str, str]:
    """Return the calls of elementwise functions of two arrays, or of an array and a number, which is repeated."""
    repeated = "array_fill({0}, ARRAY[cardinality({1})])"
    arguments = {
        "": "@1@, @2@",
        f"_{ARRAY_AND_NUMBER}": f"@1@, {repeated.format('@2@', '@1@')}",
        f"_{NUMBER_AND_ARRAY}": f"{repeated.format('@1@', '@2@')}, @2@",
    }
    return {
        f"{kernel}{operands}": f"{_SYMBOL}combine(@caller@, {literal(name)}, {values})"
        for kernel, name in elementwise_kernels().items()
        for operands, values in arguments.items()
    }


@cache
def _constants() -> Mapping[str, str]:
    """Return the values of the placeholders for constants of udfs/ and for messages, in SQL."""
    modules = {name: constants_of(name) for name in _MODULES} | {"descriptors": vars(descriptors)}
    named = {f"{module}.{name}": _sql(value) for module, names in modules.items() for name, value in names.items()}
    last = -min(MESSAGES_BY_CODE)
    messages = [MESSAGES_BY_CODE.get(-code, "internal error") for code in range(1, last + 1)]
    return {
        **{name: text for name, text in named.items() if text is not None},
        "messages": _array([re.sub(r"%(lld|\.\*s)", "%s", message) for message in messages]),
        "sqlstates": _array([state_of(-code) for code in range(1, last + 1)]),
        "largest_result": str(LARGEST_RESULT),
    }


def _sql(value: object) -> str | None:
    """Return a number or a tuple in SQL; None for other values."""
    match value:
        case int():
            return str(value)
        case tuple():
            return _array(value)
    return None


def _array(values: object) -> str:
    assert isinstance(values, list | tuple)
    return f"ARRAY[{', '.join(literal(value) if isinstance(value, str) else str(value) for value in values)}]"


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("postgres")


def _template(name: str, /, **values: str) -> str:
    return _fill_in(_read(name), values)


def _fill_in(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders of `values` in a text; other placeholders stay."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _read(name: str) -> str:
    return assets.read(f"{_FOLDER}/{name}")
