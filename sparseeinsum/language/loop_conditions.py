"""Language: the condition with which a loop ends, such as `abs(loss - previous.loss) < 1e-6`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.joins import JoinLowering
from sparseeinsum.language.macros import MACROS
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.language.parse_trees import raise_error
from sparseeinsum.language.parsing import parse_join
from sparseeinsum.language.scalar import evaluate
from sparseeinsum.language.syntax import PREVIOUS, ExpressionTree, FunctionCall, IndexedReference, SourceText
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Scalar
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

_AGGREGATING = frozenset((*AGGREGATES, *SCANS, *PICKS, *MACROS))


@dataclass(frozen=True, slots=True)
class LoopCondition:
    """An expression of numbers that a step computes, and of those of the step before.

    Attributes:
        text: The condition as it was written.
        expression: The scalar expression.
        operands: The names that it reads, in the order of the operands; `previous.loss` is that of the step before.
    """

    text: str
    expression: Scalar
    operands: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers that a step must compute."""
        return tuple(dict.fromkeys(name.removeprefix(PREVIOUS) for name in self.operands))

    def holds(self, values: Mapping[str, Number], previous: Mapping[str, Number] | None) -> bool:
        """Whether the condition holds after a step.

        Args:
            values: The numbers of the step, by name.
            previous: Those of the step before; None after the first one, where conditions on them do not hold.

        Raises:
            SemanticsError: The condition is a number, and no truth value.
        """
        if previous is None and any(name.startswith(PREVIOUS) for name in self.operands):
            return False
        known = {**values, **{PREVIOUS + name: value for name, value in (previous or {}).items()}}
        result = evaluate(self.expression, [np.asarray(known[name])[()] for name in self.operands])
        if result.dtype != bool:
            raise SemanticsError(
                f"the condition {self.text} is {result[()]}, which is neither true nor false; compare it, as in "
                f"{self.text} < 1e-6"
            )
        return bool(result)


def parse_condition(text: str, names: Collection[str]) -> LoopCondition:
    """Read a condition.

    Args:
        text: The condition, in the language of programs.
        names: What it may read, also of the step before.

    Raises:
        ParseError: The text is no expression of these names; the message has the column.
        SemanticsError: It aggregates, or reads elements of tensors.
    """
    readable = (*names, *(PREVIOUS + name for name in names))
    source = SourceText(text)
    parsed = parse_join(text, readable)
    _check_numbers(parsed, text)
    lowered = JoinLowering(ProgramNames(source, (), {}, raise_error), text, parsed)
    for reference in lowered.references:
        if reference.labels:
            at = f"{reference.tensor}[{', '.join(reference.labels)}]"
            raise SemanticsError(
                f"the condition {text} reads {at}, but compares numbers; write {reference.tensor} alone"
            )
    return LoopCondition(text, lowered.join, tuple(reference.tensor for reference in lowered.references))


def _check_numbers(expression: ExpressionTree, text: str) -> None:
    """Refuse aggregates, and elements of tensors at fixed indices: the program computes them as numbers."""
    match expression:
        case FunctionCall(function, _, (_,)) if function in _AGGREGATING or function in USER_AGGREGATES:
            hint = f"aggregate in the program, as in size[] = {function}(...), and compare size"
            raise SemanticsError(f"the condition {text} calls {function}, but compares numbers; {hint}")
        case FunctionCall(_, _, arguments):
            for argument in arguments:
                _check_numbers(argument, text)
        case IndexedReference(tensor):
            hint = f"read the element in the program, as in first[] = {tensor}[0], and compare first"
            raise SemanticsError(f"the condition {text} reads an element of {tensor}, but compares numbers; {hint}")
