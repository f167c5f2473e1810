"""What several places must know alike: functions.toml, the sources of udfs/, the language."""

import re

import pytest

import sparseeinsum as se
from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels import descriptors
from sparseeinsum.kernels.catalogue import Kind, ValueType, functions
from sparseeinsum.kernels.compiled import measures
from sparseeinsum.kernels.compiled.arithmetic import numbers_of
from sparseeinsum.kernels.compiled.row_kernels import row_kernels
from sparseeinsum.kernels.messages import MESSAGES_BY_CODE
from sparseeinsum.language.dtypes import AGGREGATES
from sparseeinsum.language.scalar import FUNCTIONS, Call, Literal, Operand, evaluate, write
from sparseeinsum.render.values import MAX_LABELS_INSIDE

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL's kernels come of the same catalogue and cache")

KERNELS = ("aggregation", "complexes", "contraction", "elementwise", "expression", "integers", "layout", "tiles")


def test_scalar_functions_of_language_and_kernels_agree() -> None:
    expression, evaluation = load_kernels("expression"), load_kernels("evaluation")
    assert tuple(FUNCTIONS) == expression.FUNCTIONS
    assert tuple(function.operands for function in FUNCTIONS.values()) == expression.OPERANDS
    operators = [function for function in FUNCTIONS.values() if function.symbol]
    assert tuple(function.symbol for function in operators) == expression.SYMBOLS
    assert tuple(function.precedence for function in operators) == expression.PRECEDENCES
    codes = {name: getattr(evaluation, name.upper()) for name in FUNCTIONS}
    assert codes == {name: code for code, name in enumerate(FUNCTIONS)}


@pytest.mark.parametrize("name", ["integers", "complexes"])
def test_codes_of_other_numbers_agree(name: str) -> None:
    """Each file of kernels stands alone, so that they repeat the codes of operations, functions and literals."""
    evaluation, expression = vars(load_kernels("evaluation")), vars(load_kernels("expression"))
    public = vars(load_kernels("aggregation")) | vars(load_kernels("elementwise"))
    own = {name: value for name, value in vars(load_kernels(name)).items() if name.isupper()}
    private = evaluation | {name: expression[name] for name in ("WHOLE", "IMAGINARY")}
    for constant, code in own.items():
        if constant.startswith("_") and constant[1:] in private:
            assert code == private[constant[1:]]
        elif constant in ("SUM", "PROD", "MAX", "MIN", "ANY", "ALL", "ADD", "SUBTRACT", "MULTIPLY"):
            assert code == public[constant]
    assert {"_ADD", "_WHERE", "ADD", "SUM", "ANY"} <= set(own)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_scalar_function_is_one_in_sql(shared_db: se.Database, name: str) -> None:
    operands = (Operand(0), Operand(1), Literal(0.5))[: FUNCTIONS[name].operands]
    call = write(Call(name, operands))
    query = "SELECT tensor_reduce('prod', $1, ',->', [2.5], [1.5], [])"
    ((found,),) = shared_db.connection.execute(query, [call]).fetchall()
    assert found == [pytest.approx(float(evaluate(Call(name, operands), (2.5, 1.5))))]


def test_messages_and_descriptions_list_every_scalar_function() -> None:
    expression = load_kernels("expression")
    names = expression.CALLABLE
    assert f"known: {' '.join(names)}; functions of users" in MESSAGES_BY_CODE[expression.UNKNOWN_NAME]
    (described,) = {
        listed
        for function in functions()
        if function.name == "tensor_map"
        for listed in re.findall(r"Functions: (.*); operators: (.*)\.", function.description)
    }
    assert described == (", ".join(names), " ".join(dict.fromkeys(expression.SYMBOLS)))


def test_aggregates_agree() -> None:
    assert tuple(AGGREGATES) == load_kernels("aggregation").AGGREGATES
    assert {f"tensor_{aggregate}" for aggregate in AGGREGATES} <= {function.name for function in functions()}
    listed = MESSAGES_BY_CODE[load_kernels("aggregation").UNKNOWN_AGGREGATE]
    assert listed.endswith(", ".join(AGGREGATES))


def test_limits_agree() -> None:
    labels = load_kernels("contraction").MAX_LABELS
    assert labels == MAX_LABELS_INSIDE == load_kernels("layout").MAX_AXES
    assert f"more than {labels} labels" in MESSAGES_BY_CODE[load_kernels("contraction").TOO_MANY_LABELS]
    assert 1 + labels == descriptors.SHAPE_WORDS
    assert f"more than {labels}" in MESSAGES_BY_CODE[descriptors.TOO_MANY_EXTENTS]
    assert max(len(function.arguments) for function in functions()) <= descriptors.MAX_ARGUMENTS
    expression = load_kernels("expression")
    table_entry = (expression.ENTRY_WORDS, expression.MAX_NAME)
    assert table_entry == (descriptors.USERS_FUNCTION_WORDS, descriptors.MAX_FUNCTION_NAME)


def test_every_error_code_has_a_message_of_its_own() -> None:
    codes = [
        value
        for module in (*map(load_kernels, KERNELS), descriptors)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int) and value < 0 and not name.startswith("_")
    ]
    assert sorted(codes) == sorted(MESSAGES_BY_CODE)
    for message in MESSAGES_BY_CODE.values():
        shown = re.findall(r"%lld|%\.\*s", message)  # a number, or a text, which takes its length and its address
        assert len(re.findall("%", message)) == len(shown)
        assert sum(1 if each == "%lld" else 2 for each in shown) <= descriptors.MESSAGE_WORDS


def test_every_function_has_kernels_and_no_kernel_is_idle() -> None:
    kernels = row_kernels(numbers_of("f32"))
    computing = [function for function in functions() if function.kind != Kind.VIEW]
    assert {function.kernel for function in computing} == set(kernels)
    for function in computing:
        assert hasattr(measures, f"measure_{function.measure}")
        kernel = kernels[function.kernel]
        returns_parts = function.returns in (ValueType.TENSORS, ValueType.COMPLEX_TENSORS)
        assert returns_parts == (kernel.part_size is not None)
        assert function.is_aggregate == (kernel.initialise is not None) == (kernel.combine is not None)
        assert function.is_aggregate or not function.has_background
        if function.kind == Kind.CHECK:
            assert function.returns == function.arguments[1].type
        assert set(function.dtypes) in ({"f64", "f32"}, {"f64", "f32", "i64"}, {"c128", "c64"})


def test_overloads_differ_in_their_arguments() -> None:
    signatures = [(function.name, *(argument.type for argument in function.arguments)) for function in functions()]
    assert len(set(signatures)) == len(signatures)
    kinds = {(function.name, function.is_aggregate) for function in functions()}
    assert len(kinds) == len({name for name, _ in kinds})
