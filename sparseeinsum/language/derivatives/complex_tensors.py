"""Derivatives: which tensors of a program hold complex numbers, by what it declares and computes."""

from collections.abc import Iterable, Iterator, Sequence

from sparseeinsum.language.derivatives.rules import is_complex_valued
from sparseeinsum.language.eingraph import SELECT, DeclaredTensor, EinSum, Program
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES


def complex_inputs(program: Program) -> Iterator[str]:
    """The tensors that a program declares, or took before, to be complex."""
    yield from program.complexes
    yield from declared_complex(program.declared)


def declared_complex(declared: Iterable[DeclaredTensor]) -> Iterator[str]:
    """The tensors that are declared with a complex dtype."""
    for declaration in declared:
        if is_complex(declaration.tensor.dtype):
            yield declaration.tensor.name


def complex_tensors(einsums: Sequence[EinSum], inputs: Iterable[str]) -> frozenset[str]:
    """The complex tensors among the inputs and the results of EinSums, which are in topological order."""
    complexes = set(inputs)
    for einsum in einsums:
        complexness = [operand.tensor in complexes for operand in einsum.operands]
        of_complex = complexness[-1] if einsum.aggregate == SELECT else is_complex_valued(einsum.join, complexness)
        if of_complex and not _returns_real(einsum.base_aggregate):
            complexes.add(einsum.output.tensor)
    return frozenset(complexes)


def _returns_real(aggregate: str | None) -> bool:
    is_of_user = aggregate in USER_AGGREGATES
    return is_of_user or (aggregate in AGGREGATES and AGGREGATES[str(aggregate)].returns_bool)
