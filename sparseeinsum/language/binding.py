"""Language: binds a Program to its input tensors, and infers the shapes, dtypes and fills of its results."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from sparseeinsum.errors import SemanticsError, ShapeError
from sparseeinsum.language.eingraph import SELECT, DeclaredTensor, EinGraph, EinSum, Program, matches_registration
from sparseeinsum.language.expression_checks import MOST_NESTED
from sparseeinsum.language.generated import GeneratedTensor, with_axis_bounds
from sparseeinsum.language.index_maps import IndexMap
from sparseeinsum.language.inference import bounds_of, dtype_of, result_tensor, with_bounds
from sparseeinsum.language.scalar import count_function, evaluated_dtype
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import is_complex, is_float
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import Law

# Of truth values the maximum is `any`, and the minimum is `all`.
_LOGICAL_AGGREGATES = {
    name: same
    for name, aggregate in AGGREGATES.items()
    for same, other in AGGREGATES.items()
    if FUNCTIONS[aggregate.combine].law == Law.ORDER and FUNCTIONS[aggregate.combine].bool_equivalent == other.combine
}


def bind(program: Program, inputs: Mapping[str, Tensor]) -> EinGraph:
    """Bind a program to its inputs, and infer the shapes, dtypes and fills of its results.

    Args:
        program: The program.
        inputs: The input tensors by name.

    Raises:
        ShapeError: An operand has more or fewer labels than its tensor has axes, a label has two bounds, or a tensor
            differs from its declaration.
        SemanticsError: numpy has no such operation on values of these dtypes.
    """
    declared = {declaration.tensor.name: declaration for declaration in program.declared}
    for name in declared.keys() & inputs.keys():
        check_declared(declared[name], inputs[name], "the database has")
    tensors = dict(inputs)
    einsums = tuple(bind_einsum(written, tensors, program.generated) for written in program.einsums)
    for name in declared.keys() & (tensors.keys() - inputs.keys()):
        check_declared(declared[name], tensors[name], "computes")
    _check_differentiated(program, tensors)
    return EinGraph(MappingProxyType(tensors), einsums, program.outputs)


def _check_differentiated(program: Program, tensors: Mapping[str, Tensor]) -> None:
    """Refuse derivatives by whole numbers, and of complex numbers that were taken as of real ones."""
    differentiated, complexes = frozenset(program.differentiated), frozenset(program.complexes)
    for einsum in program.einsums:
        for operand in einsum.operands if einsum.output.tensor in differentiated else ():
            name, dtype = operand.tensor, tensors[operand.tensor].dtype
            if is_complex(dtype) and name not in complexes:
                declared = f"tensor {name}[...: {tensors[name].shape[0] if tensors[name].shape else ''}]"
                hint = f"declare it, as in {declared} dtype {dtype}, or name it in complex= of se.gradient"
                raise SemanticsError(
                    f"{name} has the dtype {dtype}, but derivatives of real numbers were taken; {hint}"
                )
            if name in complexes and not is_complex(dtype):
                raise SemanticsError(f"{name} has the dtype {dtype}, but derivatives of complex numbers were taken")
    for name in program.differentiated:
        dtype = tensors[name].dtype if name in tensors else "float64"
        if not is_float(dtype) and not is_complex(dtype):
            hint = "derivatives are taken by and through floating-point and complex numbers"
            raise SemanticsError(f"{name} has the dtype {dtype}, which has no derivatives; {hint}")


def bind_einsum(written: EinSum, tensors: dict[str, Tensor], generated: Iterable[GeneratedTensor | IndexMap]) -> EinSum:
    """An EinSum with numbers in place of bounds; adds its result and the generated tensors it reads to `tensors`.

    Args:
        written: The EinSum as the program has it.
        tensors: All tensors so far by name.
        generated: The generated tensors of the program.

    Raises:
        ShapeError: An operand has more or fewer labels than its tensor has axes, a label has two bounds, or an index
            does not exist.
        SemanticsError: numpy has no such operation on values of these dtypes.
    """
    if not matches_registration(written):
        problem = f"{written.aggregate} was registered again after the program was read, with other states or arguments"
        raise SemanticsError(f"{written.output.tensor}: {problem}; read the program again")
    read = {operand.tensor for operand in written.operands}
    for vector in generated:
        if vector.name in read:
            try:
                tensors[vector.name] = vector.tensor(tensors)
            except ShapeError as error:
                reader = (isinstance(vector, IndexMap) and vector.reader) or written.output.tensor
                raise ShapeError(f"{reader}: {error}") from None
    if written.aggregate == SELECT:
        written = _folding(written, tensors)
    _check_long_sum(written, tensors)
    join = with_axis_bounds(written.join, tensors)
    einsum = _with_logical_operators(replace(written, join=with_bounds(join, bounds_of(written, tensors))), tensors)
    tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
    return einsum


def _folding(selection: EinSum, tensors: Mapping[str, Tensor]) -> EinSum:
    """An EinSum that selects, with an aggregate that ignores its identity, which stands for all other indices.

    The identity is the fill of the tensor, if an aggregate has that, so that its absent entries stay absent.
    """
    _, operand = selection.operands
    tensor = tensors[operand.tensor]
    candidates = ("any", "all") if tensor.dtype == "bool" else ("sum", "min", "max")
    aggregate = next(
        (
            name
            for name in candidates
            if not (name != "sum" and is_complex(tensor.dtype))
            and AGGREGATES[name].identity(tensor.dtype) == tensor.fill
        ),
        candidates[0],
    )
    identity = Literal(AGGREGATES[aggregate].identity(tensor.dtype))
    return replace(selection, join=Call("where", (Operand(0), Operand(1), identity)), aggregate=aggregate)


def _check_long_sum(einsum: EinSum, tensors: Mapping[str, Tensor]) -> None:
    """Refuse long sums of truth values and numbers: true + true is true, but 2 after one of them met a number.

    Raises:
        SemanticsError: Names the sum, whose terms were grouped in halves.
    """
    dtypes = [tensors[operand.tensor].dtype for operand in einsum.operands]
    if (
        "bool" in dtypes
        and count_function(einsum.join, "add") >= MOST_NESTED
        and _adds_truth_to_number(einsum.join, dtypes)
    ):
        raise SemanticsError(
            f"{einsum.output.tensor} adds more than {MOST_NESTED} terms, truth values and numbers; give the truth "
            "values a statement of their own, or multiply them by 1"
        )


def _adds_truth_to_number(expression: Scalar, dtypes: list[str]) -> bool:
    if not isinstance(expression, Call):
        return False
    if expression.function == "add":
        kinds = {evaluated_dtype(argument, dtypes) == "bool" for argument in expression.arguments}
        if len(kinds) > 1:
            return True
    return any(_adds_truth_to_number(argument, dtypes) for argument in expression.arguments)


def _with_logical_operators(einsum: EinSum, tensors: Mapping[str, Tensor]) -> EinSum:
    """The EinSum with logical operators on truth values, because engines would compute with 0 and 1.

    The sum of two truth values becomes `or`, their maximum `any` and their minimum `all`; and `any` and `all` of
    numbers compare these with 0 first.
    """
    dtypes = [tensors[operand.tensor].dtype for operand in einsum.operands]
    join = _with_logical_or(einsum.join, dtypes, einsum)
    aggregate = einsum.aggregate
    if dtype_of(join, dtypes, einsum) == "bool":
        aggregate = _LOGICAL_AGGREGATES.get(str(aggregate), aggregate)
    elif einsum.base_aggregate in AGGREGATES and AGGREGATES[einsum.base_aggregate].returns_bool:
        join = Call("ne", (join, Literal(0)))
    return replace(einsum, join=join, aggregate=aggregate)


def _with_logical_or(expression: Scalar, dtypes: list[str], einsum: EinSum) -> Scalar:
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(_with_logical_or(argument, dtypes, einsum) for argument in expression.arguments)
    is_truth = expression.function == "add" and dtype_of(expression, dtypes, einsum) == "bool"
    return Call("or" if is_truth else expression.function, arguments)


def check_declared(declared: DeclaredTensor, actual: Tensor, origin: str) -> None:
    """Refuse a tensor that differs from its declaration; `origin` says where it is from, for the message.

    Raises:
        ShapeError: It has another shape, dtype or fill than is declared.
    """
    if not declared.matches(actual):
        raise ShapeError(
            f"the program declares {actual.name} with {declared.describe(declared.tensor)}, but {origin} it with "
            f"{declared.describe(actual)}"
        )
