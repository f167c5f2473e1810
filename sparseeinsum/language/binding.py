"""Language: a Program and its input tensors in, an EinGraph whose tensors all have shapes, dtypes and fills out."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from sparseeinsum.errors import SemanticsError, ShapeError
from sparseeinsum.language.eingraph import DeclaredTensor, EinGraph, EinSum, Program, matches_registration
from sparseeinsum.language.generated import GeneratedTensor, with_axis_bounds
from sparseeinsum.language.inference import bounds_of, dtype_of, result_tensor, with_bounds
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import Law

# Of truth, the greatest is whether any is true, the least whether all are.
_OF_TRUTH = {
    name: same
    for name, aggregate in AGGREGATES.items()
    for same, other in AGGREGATES.items()
    if FUNCTIONS[aggregate.combine].law == Law.ORDER and FUNCTIONS[aggregate.combine].bool_equivalent == other.combine
}


def bind(program: Program, inputs: Mapping[str, Tensor]) -> EinGraph:
    """Give every tensor of a program its shape, dtype and fill, inferring those of results.

    Args:
        program: Statements in order.
        inputs: The input tensors by name.

    Raises:
        ShapeError: A reference has another number of labels than its tensor has axes, a label two bounds, or a tensor
            another shape, dtype or fill than is declared.
        SemanticsError: numpy has no such operation on values of these dtypes.
    """
    declared = {each.tensor.name: each for each in program.declared}
    for name in declared.keys() & inputs.keys():
        check_declared(declared[name], inputs[name], "the database has")
    tensors = dict(inputs)
    einsums = tuple(bind_einsum(written, tensors, program.generated) for written in program.einsums)
    for name in declared.keys() & (tensors.keys() - inputs.keys()):
        check_declared(declared[name], tensors[name], "computes")
    return EinGraph(MappingProxyType(tensors), einsums, program.outputs)


def bind_einsum(written: EinSum, tensors: dict[str, Tensor], generated: Iterable[GeneratedTensor]) -> EinSum:
    """An EinSum with all bounds as numbers; what it computes, and what it reads of generated tensors, joins `tensors`.

    Raises:
        ShapeError: A reference has another number of labels than its tensor has axes, or a label two bounds.
        SemanticsError: numpy has no such operation on values of these dtypes.
    """
    if not matches_registration(written):
        problem = f"{written.aggregate} was registered anew since the program was read, with other states or arguments"
        raise SemanticsError(f"{written.output.tensor}: {problem}; read the program again")
    read = {operand.tensor for operand in written.operands}
    for each in generated:
        if each.name in read:
            tensors[each.name] = each.tensor(tensors)
    join = with_axis_bounds(written.join, tensors)
    einsum = _of_truth(replace(written, join=with_bounds(join, bounds_of(written, tensors))), tensors)
    tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
    return einsum


def _of_truth(einsum: EinSum, tensors: Mapping[str, Tensor]) -> EinSum:
    """The same without what engines, which compute truth as 0 and 1, would take for arithmetic.

    `any` and `all` of numbers ask whether they are not 0; of two truth values the sum is `or`, of many the greatest is
    `any` and the least `all`.
    """
    dtypes = [tensors[operand.tensor].dtype for operand in einsum.operands]
    join = _with_or(einsum.join, dtypes, einsum)
    aggregate = einsum.aggregate
    if dtype_of(join, dtypes, einsum) == "bool":
        aggregate = _OF_TRUTH.get(str(aggregate), aggregate)
    elif einsum.base_aggregate in AGGREGATES and AGGREGATES[einsum.base_aggregate].returns_bool:
        join = Call("ne", (join, Literal(0)))
    return replace(einsum, join=join, aggregate=aggregate)


def _with_or(expression: Scalar, dtypes: list[str], einsum: EinSum) -> Scalar:
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(_with_or(argument, dtypes, einsum) for argument in expression.arguments)
    is_truth = expression.function == "add" and dtype_of(expression, dtypes, einsum) == "bool"
    return Call("or" if is_truth else expression.function, arguments)


def check_declared(declared: DeclaredTensor, found: Tensor, origin: str) -> None:
    """Refuse a tensor that is another than the text says.

    Raises:
        ShapeError: It has another shape, dtype or fill.
    """
    if not declared.fits(found):
        raise ShapeError(
            f"the program declares {found.name} with {declared.describe(declared.tensor)}, but {origin} it with "
            f"{declared.describe(found)}"
        )
