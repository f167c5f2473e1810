"""functions.toml, the kernels of udfs/ and the language agree on functions, codes, messages and limits."""

import re

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import descriptors
from sparseeinsum.kernels.array_functions import FunctionKind, ValueType, array_functions, postgresql_functions
from sparseeinsum.kernels.compiled import measures
from sparseeinsum.kernels.compiled.arithmetic import arithmetic_of
from sparseeinsum.kernels.compiled.row_kernels import row_kernels
from sparseeinsum.kernels.messages import MESSAGES_BY_CODE
from sparseeinsum.language.scalar import evaluate, write
from sparseeinsum.language.tensors import MOST_ARRAY_AXES
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.operators.functions import FUNCTIONS, built_in

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL's kernels come of the same table and cache")

KERNELS = (
    *(
        "aggregation",
        "complexes",
        "compressed_rows",
        "contraction",
        "contraction_plan",
        "elementwise",
        "evaluation",
        "expression",
        "integers",
        "inverse",
        "layout",
        "matched_rows",
    ),
    *("ordering", "reals", "tiles"),
)


def test_operators_come_first() -> None:
    """Therefore their symbols have the same codes as the functions."""
    has_symbol = [bool(function.symbol) for function in built_in()]
    assert has_symbol == sorted(has_symbol, reverse=True)


@pytest.mark.parametrize("dtype", ["i64", "f64", "f32", "c128", "c64"])
def test_kernels_refuse_unknown_functions(dtype: str) -> None:
    """A code that is neither of a record nor an address computes nothing and calls nothing."""
    numbers = arithmetic_of(dtype)
    values = np.ones(4, str(numbers.dtype))
    blocks = np.zeros(numbers.block * 16, values.dtype)
    constants = np.zeros(load_kernels("expression").CONSTANT_WORDS)
    for code in (len(built_in()), 1 << 15, (1 << 16) - 1, -1):
        program = np.array([2, 0, 4 * code + 1])
        assert numbers.evaluate_block(program, constants, values, values, values.size, blocks) == -16
    unknown = len(AGGREGATES)
    assert numbers.fold(unknown, values, values) == load_kernels("aggregation").UNKNOWN_AGGREGATE


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_scalar_function_is_one_in_sql(shared_db: se.Database, name: str) -> None:
    operands = (Operand(0), Operand(1), Literal(0.5))[: FUNCTIONS[name].operands]
    call = write(Call(name, operands))
    query = "SELECT tensor_reduce('prod', $1, ',->', [2.5], [1.5], [])"
    ((result,),) = shared_db.connection.execute(query, [call]).fetchall()
    assert result == [pytest.approx(float(evaluate(Call(name, operands), (2.5, 1.5))), nan_ok=True)]


def test_messages_and_descriptions_list_every_operator() -> None:
    unknown = MESSAGES_BY_CODE[load_kernels("expression").UNKNOWN_NAME]
    (described,) = (
        listed_function.description
        for listed_function in array_functions()
        if listed_function.name == "tensor_map" and listed_function.is_placed
    )
    for function in built_in():
        assert function.display_name in described
        assert function.symbol or function.name in unknown
    listed = MESSAGES_BY_CODE[load_kernels("aggregation").UNKNOWN_AGGREGATE]
    assert listed.endswith(", ".join(AGGREGATES))
    assert {f"tensor_{aggregate}" for aggregate in AGGREGATES} <= {function.name for function in array_functions()}


def test_limits_agree() -> None:
    labels = load_kernels("contraction_plan").MAX_LABELS
    assert labels == MOST_ARRAY_AXES == load_kernels("layout").MAX_AXES
    assert f"more than {labels} labels" in MESSAGES_BY_CODE[load_kernels("contraction_plan").TOO_MANY_LABELS]
    assert 1 + labels == descriptors.SHAPE_WORDS
    assert f"more than {labels}" in MESSAGES_BY_CODE[descriptors.TOO_MANY_EXTENTS]
    assert max(len(function.arguments) for function in array_functions()) <= descriptors.MAX_ARGUMENTS
    expression = load_kernels("expression")
    table_entry = (expression.ENTRY_WORDS, expression.MAX_NAME)
    assert table_entry == (descriptors.USER_FUNCTION_WORDS, descriptors.MAX_FUNCTION_NAME)


def test_every_error_code_has_a_message_of_its_own() -> None:
    codes = [
        value
        for module in (*map(load_kernels, KERNELS), descriptors)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int) and value < 0 and not name.startswith("_")
    ]
    assert sorted(codes) == sorted(MESSAGES_BY_CODE)
    for message in MESSAGES_BY_CODE.values():
        placeholders = re.findall(r"%lld|%\.\*s", message)  # a number, or a text by its length and address
        assert len(re.findall("%", message)) == len(placeholders)
        assert sum(1 if placeholder == "%lld" else 2 for placeholder in placeholders) <= descriptors.MESSAGE_WORDS


def test_every_function_has_kernels_and_every_kernel_is_used() -> None:
    kernels = row_kernels(arithmetic_of("f32"))
    computing = [function for function in array_functions() if function.kernel]
    without = {function.name for function in array_functions() if not function.kernel}
    conversions = {"tensor_bytes", "tensor_of_bytes"}
    written = {"tensor_reserved", "tensor_resident"}
    of_handles = {"tensor_row", "tensor_collected", "tensor_compressed", "tensor_keep", "tensor_matched_row", *written}
    of_entries = {"tensor_entries", "tensor_at_rows", "tensor_at_positions"}
    assert without == conversions | of_handles | of_entries
    assert {function.kernel for function in (*computing, *postgresql_functions())} - {""} == set(kernels)
    of_memory = (FunctionKind.GATHER, FunctionKind.ROW_PRODUCT)
    for function in computing:
        if function.kind in of_memory or function.arguments[0].type == ValueType.COMPRESSED:
            continue
        assert hasattr(measures, f"measure_{function.measure}")
        kernel = kernels[function.kernel]
        returns_parts = function.returns in (ValueType.TENSORS, ValueType.COMPLEX_TENSORS)
        assert returns_parts == (kernel.part_size is not None)
        assert function.is_aggregate == (kernel.initialise is not None) == (kernel.combine is not None)
        assert function.is_aggregate or not function.has_background
        if function.kind == FunctionKind.CHECK:
            assert function.returns == function.arguments[1].type
        of_users = [{"f64"}] if function.is_embedded else []
        assert set(function.dtypes) in ({"f64", "f32"}, {"f64", "f32", "i64"}, {"c128", "c64"}, *of_users)


def test_overloads_differ_in_their_arguments() -> None:
    signatures = [
        (function.name, *(argument.type for argument in function.arguments)) for function in array_functions()
    ]
    assert len(set(signatures)) == len(signatures)
    kinds = {(function.name, function.is_aggregate) for function in array_functions()}
    assert len(kinds) == len({name for name, _ in kinds})
