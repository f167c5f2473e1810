"""Rewriting: makes parts of long expressions EinSums of their own, so that kernels can read what is left.

Kernels read an expression as text, into a program of so many operations that is evaluated on a small stack.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.scalar import operands_of
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.einsum_parts import labels_among, part_of
from sparseeinsum.rewrite.unique_names import UniqueNames

# About half of what kernels take (MAX_OPERATIONS, MAX_DEPTH of udfs/expression.py, MAX_TEXT of kernels/descriptors.py),
# since later stages add scales and masks to expressions.
_MOST_OPERATIONS = 200
_MOST_DEPTH = 10
_MOST_CHARACTERS = 2000
_PUNCTUATION = 6  # characters: parentheses, a comma, spaces


def split_long_expressions(einsum: EinSum, annotator: GraphAnnotator, names: UniqueNames) -> list[EinSum]:
    """The EinSum as it is, or several in topological order of which the last computes its result.

    Args:
        einsum: An EinSum of any number of operands.
        annotator: Has its operands.
        names: Invents the names of the new results.
    """
    if not einsum.is_rewritable or ExpressionSize.of(einsum.join).is_short:
        return [einsum]
    if any(0 in annotator.tensors[operand.tensor].tensor.shape for operand in einsum.operands):
        return [einsum]  # nothing is computed, but a part without the label that has no index would be
    return _LongExpressionSplitter(einsum, names).split()


@dataclass(frozen=True, slots=True)
class ExpressionSize:
    """The size of an expression as a kernel's program and as text.

    Attributes:
        operations: The steps of the program, those that read operands and numbers among them.
        depth: The most values that are on the stack at once.
        characters: About the length of the text.
    """

    operations: int
    depth: int
    characters: int

    @property
    def is_short(self) -> bool:
        """Whether kernels can read the expression, with scales and masks that later stages add."""
        return self.operations <= _MOST_OPERATIONS and self.depth <= _MOST_DEPTH and self.characters <= _MOST_CHARACTERS

    @classmethod
    def of(cls, expression: Scalar) -> "ExpressionSize":
        """The size of a whole expression."""
        match expression:
            case Call(function, arguments):
                return cls.of_call(function, [cls.of(argument) for argument in arguments])
            case Literal(value):
                return cls(1, 1, len(repr(value)))
            case _:
                return cls(1, 1, 1)

    @classmethod
    def of_call(cls, function: str, arguments: "Sequence[ExpressionSize]") -> "ExpressionSize":
        """The size of a call of arguments of these sizes; while one is computed, those before it are on the stack."""
        depth = max((number + argument.depth for number, argument in enumerate(arguments)), default=1)
        characters = sum(argument.characters for argument in arguments)
        return cls(
            1 + sum(argument.operations for argument in arguments),
            depth,
            characters + len(function) + _PUNCTUATION,
        )


_OF_OPERAND = ExpressionSize(1, 1, 1)


@dataclass(slots=True)
class _LongExpressionSplitter:
    """Splits one EinSum. Operands of expressions are positions in `references`; every new result adds one."""

    einsum: EinSum
    names: UniqueNames
    references: list[Reference] = field(default_factory=list)
    einsums: list[EinSum] = field(default_factory=list)

    def split(self) -> list[EinSum]:
        """The EinSums in topological order."""
        self.references = list(self.einsum.operands)
        join, _ = self._shortened(self.einsum.join)
        return [
            *self.einsums,
            part_of(self.einsum, self.references, self.einsum.output, join, self.einsum.aggregate),
        ]

    def _shortened(self, expression: Scalar) -> tuple[Scalar, ExpressionSize]:
        """An equal short expression, and its size: the longest arguments of calls that are long become operands."""
        if not isinstance(expression, Call):
            return expression, ExpressionSize.of(expression)
        shortened = [self._shortened(argument) for argument in expression.arguments]
        arguments, sizes = [argument for argument, _ in shortened], [size for _, size in shortened]
        while not (size := ExpressionSize.of_call(expression.function, sizes)).is_short:
            longest = max(range(len(sizes)), key=lambda at: (sizes[at].operations, sizes[at].characters))
            if not operands_of(arguments[longest]) or sizes[longest] == _OF_OPERAND:
                break  # constants alone
            arguments[longest], sizes[longest] = self._as_operand(arguments[longest]), _OF_OPERAND
        return Call(expression.function, tuple(arguments)), size

    def _as_operand(self, expression: Scalar) -> Scalar:
        """A new result that holds the value of an expression at every index, as an operand."""
        own_labels = labels_among(expression, self.references)
        labels = tuple(label for label in self.einsum.labels if label in own_labels)
        output = Reference(self.names.invent(self.einsum.output.tensor), labels)
        einsum = part_of(self.einsum, self.references, output, expression, None)
        self.einsums.append(einsum)
        self.references.append(output)
        return Operand(len(self.references) - 1)
