"""Rewriting: real parts of complex expressions become EinSums of their own.

A kernel computes a whole expression in one dtype. In complex arithmetic sqrt(-1) is 1j and 1 / 0 is NaN, where numpy,
for which these are real, has NaN and infinity; and complex numbers have no order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.inference import dtype_of
from sparseeinsum.language.scalar import operands_of
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.rewrite.known import Known
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.parts import labels_among, part_of

# The same in real and in complex arithmetic, of finite numbers.
_ALIKE = frozenset(("add", "sub", "mul", "neg", "conj", "eq", "ne", "and", "or", "not"))


def with_real_parts(einsum: EinSum, known: Known, names: Names) -> list[EinSum]:
    """The EinSum as it is, or EinSums in topological order of which the last computes it.

    Args:
        einsum: Of any number of operands.
        known: Its operands.
        names: Gives names to the new results.
    """
    return _Parting(einsum, known, names).parts()


@dataclass(slots=True)
class _Parting:
    """Parts one EinSum; expressions are of references, by their position, and every new result adds one."""

    einsum: EinSum
    known: Known
    names: Names
    references: list[Reference] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    done: list[EinSum] = field(default_factory=list)

    def parts(self) -> list[EinSum]:
        """EinSums in topological order."""
        self.references = list(self.einsum.operands)
        self.dtypes = [self.known.tensors[reference.tensor].tensor.dtype for reference in self.references]
        join = self.einsum.join
        if not any(self._is_complex(part) for part in _parts(join)) or self._is_alike(join):
            return [self.einsum]
        parted = self._parted(join)
        last = part_of(self.einsum, self.references, self.einsum.output, parted, self.einsum.aggregate)
        return [*self.done, last]

    def _parted(self, expression: Scalar) -> Scalar:
        """An expression of new results that one dtype is right for."""
        if not isinstance(expression, Call) or self._is_alike(expression):
            return expression
        is_complex_inside = any(self._is_complex(argument) for argument in expression.arguments)
        part = self._complex_argument if is_complex_inside else self._real_argument
        return Call(expression.function, tuple(part(argument) for argument in expression.arguments))

    def _complex_argument(self, expression: Scalar) -> Scalar:
        """Of a call that is computed in complex arithmetic."""
        if self._is_complex(expression) or self._is_alike(expression):
            return self._parted(expression)
        return self._computed(self._parted(expression))

    def _real_argument(self, expression: Scalar) -> Scalar:
        """Of a call that is computed in real arithmetic."""
        parted = self._parted(expression)
        return self._computed(parted) if any(self._is_complex(part) for part in _parts(parted)) else parted

    def _is_alike(self, expression: Scalar) -> bool:
        """Whether an expression may be computed in complex arithmetic throughout."""
        if not isinstance(expression, Call):
            return True
        if not all(self._is_alike(argument) for argument in expression.arguments):
            return False
        if any(self._is_complex(argument) for argument in expression.arguments):
            return True
        tensors = (self.known.tensors.get(self.references[position].tensor) for position in operands_of(expression))
        return expression.function in _ALIKE and all(known is not None and known.is_all_finite for known in tensors)

    def _is_complex(self, expression: Scalar) -> bool:
        return is_complex(dtype_of(expression, self.dtypes, self.einsum))

    def _computed(self, expression: Scalar) -> Scalar:
        """A new result: the value of an expression at every index."""
        if not operands_of(expression):
            return expression
        of_it = labels_among(expression, self.references)
        labels = tuple(label for label in self.einsum.labels if label in of_it)
        output = Reference(self.names.invent(self.einsum.output.tensor), labels)
        einsum = part_of(self.einsum, self.references, output, expression, None)
        self.done.append(einsum)
        self.dtypes.append(dtype_of(expression, self.dtypes, self.einsum))
        self.references.append(einsum.output)
        return Operand(len(self.references) - 1)


def _parts(expression: Scalar) -> Iterator[Scalar]:
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _parts(argument)
