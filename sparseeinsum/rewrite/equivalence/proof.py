"""Rewriting: tests whether two programs give equal results for all real numbers, and explains why not.

Isomorphic normal forms prove that they do (SPORES, theorem A.3); numbers for which the results differ prove that they
do not. With functions that the normal form does not look into, there may be neither proof.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import ArgumentError, SemanticsError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.matrices import Matrix
from sparseeinsum.language.programs import program, program_of
from sparseeinsum.language.python_expressions import LabelledExpression
from sparseeinsum.presentation.html_tables import html_text
from sparseeinsum.presentation.tracebacks import one_frame
from sparseeinsum.rewrite.equivalence.axis_groups import AxisGroups
from sparseeinsum.rewrite.equivalence.form_text import write_form
from sparseeinsum.rewrite.equivalence.isomorphism import combine_like_terms, key_of
from sparseeinsum.rewrite.equivalence.normalise import Normaliser
from sparseeinsum.semantics.dense import evaluate_program

Comparable = Program | str | LabelledExpression | Matrix

_TRIALS = 24
_MOST_BOUND = 3  # of axes in a counter-example
_TOLERANCE = 1e-6  # relative to the larger of two results


@dataclass(frozen=True, slots=True)
class CounterExample:
    """Tensors for which two programs give different results.

    Attributes:
        tensors: Inputs by name.
        results: The results of the first and of the second program.
    """

    tensors: Mapping[str, NDArray[np.float64]]
    results: tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether two programs compute the same; it is true only where that is proven.

    Attributes:
        normal_forms: The normal forms of both as text.
        is_proven: Whether the normal forms are isomorphic.
        counter_example: Tensors for which the results differ; None where none was found.
    """

    normal_forms: tuple[str, str]
    is_proven: bool
    counter_example: CounterExample | None

    def __bool__(self) -> bool:
        return self.is_proven

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def __str__(self) -> str:
        first, second = self.normal_forms
        if self.is_proven:
            return f"equal: {first}" if first == second else f"equal: {first}\n   and: {second}"
        forms = f"  first: {first}\n  second: {second}"
        if self.counter_example is None:
            return f"not proven equal, but no numbers were found for which they differ:\n{forms}"
        tensors = "\n".join(f"  {name} = {array.tolist()}" for name, array in self.counter_example.tensors.items())
        results = " and ".join(str(np.round(result, 6).tolist()) for result in self.counter_example.results)
        return f"different:\n{forms}\nfor\n{tensors}\nthey are {results}"


@one_frame
def equivalent(first: Comparable, second: Comparable) -> Equivalence:
    """Whether two programs compute the same from the same inputs, whatever the bounds that they do not declare.

    All numbers are real: rounding, overflow and NaN from 0 * inf are ignored, and tensors of bools are not considered.

    Args:
        first: A program with one output, its text, or an expression: a matrix, `(X - U @ V.T).sum()`, or one with the
            labels of its result, `(A["i", "j"] * x["j"]).sum("j")["i"]`.
        second: Another one, whose output has as many axes; it may have another name.

    Raises:
        ParseError: A text cannot be read.
        ArgumentError: An argument is none of these.
        SemanticsError: A program has several outputs, the outputs have different numbers of axes, or expanding the
            products gives too many terms.

    >>> equivalent("L[] = sum((U[i] * V[j])^2)", "L[] = sum(U[i]^2) * sum(V[j]^2)")  # doctest: +ELLIPSIS
    Equivalence(...is_proven=True, counter_example=None)
    """
    programs = [_program(first), _program(second)]
    outputs = [_output(source) for source in programs]
    _check_ranks(programs, outputs)
    groups = AxisGroups.of_programs(programs, outputs)
    forms = [
        Normaliser(source, number, groups).normal_forms()[output]
        for number, (source, output) in enumerate(zip(programs, outputs, strict=True))
    ]
    is_proven = key_of(forms[0], {}) == key_of(forms[1], {})
    texts = tuple(
        write_form(combine_like_terms(form, {}), _labels(source, output))
        for form, source, output in zip(forms, programs, outputs, strict=True)
    )
    counter_example = None if is_proven else _counter_example(programs, outputs, groups)
    return Equivalence((texts[0], texts[1]), is_proven, counter_example)


def _program(source: Comparable) -> Program:
    match source:
        case Program():
            return source
        case str():
            return program(source)
        case LabelledExpression() | Matrix():
            return program_of(source)
        case _:
            raise ArgumentError(
                f"{source!r} is neither a program, nor a matrix, nor an expression with labels behind it"
            )


def _output(source: Program) -> str:
    if len(source.outputs) != 1:
        raise SemanticsError(
            f"a program with the outputs {', '.join(source.outputs)} cannot be compared as a whole; compare programs "
            "of one"
        )
    return source.outputs[0]


def _labels(source: Program, output: str) -> tuple[str, ...]:
    (labels,) = [einsum.output.labels for einsum in source.einsums if einsum.output.tensor == output]
    return labels


def _check_ranks(programs: Sequence[Program], outputs: Sequence[str]) -> None:
    ranks = [len(_labels(source, output)) for source, output in zip(programs, outputs, strict=True)]
    if ranks[0] != ranks[1]:
        raise SemanticsError(f"{outputs[0]} has {ranks[0]} axes and {outputs[1]} has {ranks[1]}; they cannot be equal")


def _counter_example(programs: Sequence[Program], outputs: Sequence[str], groups: AxisGroups) -> CounterExample | None:
    """Inputs for which the `outputs` of the programs differ; None if no trial finds some.

    Small integers are tried first, because they are easy to read; then normal numbers, for which more functions differ.
    `groups` tells which axes have the same bound.
    """
    random = np.random.default_rng(0)
    ranks = {
        operand.tensor: len(operand.labels)
        for source in programs
        for einsum in source.einsums
        for operand in einsum.operands
        if operand.tensor in source.inputs
    }
    for trial in range(_TRIALS):
        bounds: dict[tuple[str, int], int] = {}
        tensors = {}
        for name, rank in ranks.items():
            shape = []
            for axis in range(rank):
                representative = groups.representative((name, axis))
                bounds.setdefault(
                    representative, groups.bound(representative) or int(random.integers(1, _MOST_BOUND + 1))
                )
                shape.append(bounds[representative])
            is_integer = trial < _TRIALS // 2
            values = random.integers(-2, 4, shape) if is_integer else random.normal(size=shape)
            tensors[name] = values.astype(np.float64)
        results = [evaluate_program(source, tensors)[output] for source, output in zip(programs, outputs, strict=True)]
        if _differ(results[0], results[1]):
            return CounterExample(tensors, (results[0], results[1]))
    return None


def _differ(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether finite results differ by more than the error of rounding."""
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return False
    scale = max(np.abs(first).max(initial=0), np.abs(second).max(initial=0), 1)
    return bool((np.abs(first - second) > _TOLERANCE * scale).any())
