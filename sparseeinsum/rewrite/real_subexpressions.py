"""Rewriting: makes real subexpressions of complex expressions EinSums of their own.

A kernel computes a whole expression in one dtype. In complex arithmetic sqrt(-1) is 1j and 1 / 0 is NaN, where numpy,
which computes the subexpression in real arithmetic, has NaN and infinity. Also, complex numbers have no order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.inference import dtype_of
from sparseeinsum.language.scalar import operands_of
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.einsum_parts import labels_among, part_of
from sparseeinsum.rewrite.unique_names import UniqueNames

# Functions that give the same in real and in complex arithmetic for finite numbers.
_SAME_IF_COMPLEX = frozenset(("add", "sub", "mul", "neg", "conj", "eq", "ne", "and", "or", "not"))


def split_real_subexpressions(einsum: EinSum, annotator: GraphAnnotator, names: UniqueNames) -> list[EinSum]:
    """The EinSum as it is, or several in topological order of which the last computes its result.

    Args:
        einsum: An EinSum of any number of operands.
        annotator: Has its operands.
        names: Invents the names of the new results.
    """
    return _RealSubexpressionSplitter(einsum, annotator, names).split()


@dataclass(slots=True)
class _RealSubexpressionSplitter:
    """Splits one EinSum. Operands of expressions are positions in `references`; every new result adds one."""

    einsum: EinSum
    annotator: GraphAnnotator
    names: UniqueNames
    references: list[Reference] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    einsums: list[EinSum] = field(default_factory=list)

    def split(self) -> list[EinSum]:
        """The EinSums in topological order."""
        self.references = list(self.einsum.operands)
        self.dtypes = [self.annotator.tensors[reference.tensor].tensor.dtype for reference in self.references]
        join = self.einsum.join
        if (
            not self._has_complex_values()
            or not any(self._is_complex(subexpression) for subexpression in _subexpressions(join))
            or self._may_be_complex(join)
        ):
            return [self.einsum]
        if self._has_no_index():
            return [replace(self.einsum, join=self._never_computed())]
        join = self._with_one_dtype(join)
        last = part_of(self.einsum, self.references, self.einsum.output, join, self.einsum.aggregate)
        return [*self.einsums, last]

    def _has_complex_values(self) -> bool:
        """Whether an operand or a literal is complex; functions of real numbers are real."""
        return any(map(is_complex, self.dtypes)) or any(
            isinstance(subexpression, Literal) and isinstance(subexpression.value, complex)
            for subexpression in _subexpressions(self.einsum.join)
        )

    def _has_no_index(self) -> bool:
        """Whether nothing is joined, as a label has no index; a new result without that label could be NaN."""
        return any(0 in self.annotator.tensors[operand.tensor].tensor.shape for operand in self.einsum.operands)

    def _never_computed(self) -> Scalar:
        """An expression of the same operands and dtype that kernels take, for a join that is computed at no index."""
        product: Scalar = Operand(0)
        for position in range(1, len(self.references)):
            product = Call("mul", (product, Operand(position)))
        dtype = dtype_of(self.einsum.join, self.dtypes, self.einsum)
        candidates = (product, Call("abs", (product,)), Call("ne", (product, Literal(0))))
        return next(
            (candidate for candidate in candidates if dtype_of(candidate, self.dtypes, self.einsum) == dtype),
            self.einsum.join,
        )

    def _with_one_dtype(self, expression: Scalar) -> Scalar:
        """The expression with new results in it, so that one dtype is right for all the rest of it."""
        if not isinstance(expression, Call) or self._may_be_complex(expression):
            return expression
        has_complex_argument = any(self._is_complex(argument) for argument in expression.arguments)
        rewrite = self._argument_of_complex_call if has_complex_argument else self._argument_of_real_call
        return Call(expression.function, tuple(rewrite(argument) for argument in expression.arguments))

    def _argument_of_complex_call(self, expression: Scalar) -> Scalar:
        """An argument of a call that is computed in complex arithmetic."""
        if self._is_complex(expression) or self._may_be_complex(expression):
            return self._with_one_dtype(expression)
        return self._as_operand(self._with_one_dtype(expression))

    def _argument_of_real_call(self, expression: Scalar) -> Scalar:
        """An argument of a call that is computed in real arithmetic."""
        rewritten = self._with_one_dtype(expression)
        return (
            self._as_operand(rewritten)
            if any(self._is_complex(subexpression) for subexpression in _subexpressions(rewritten))
            else rewritten
        )

    def _may_be_complex(self, expression: Scalar) -> bool:
        """Whether the expression gives the same if all of it is computed in complex arithmetic."""
        if not isinstance(expression, Call):
            return True
        if not all(self._may_be_complex(argument) for argument in expression.arguments):
            return False
        if any(self._is_complex(argument) for argument in expression.arguments):
            return True
        tensors = (self.annotator.tensors.get(self.references[position].tensor) for position in operands_of(expression))
        return expression.function in _SAME_IF_COMPLEX and all(
            tensor is not None and tensor.is_all_finite for tensor in tensors
        )

    def _is_complex(self, expression: Scalar) -> bool:
        return is_complex(dtype_of(expression, self.dtypes, self.einsum))

    def _as_operand(self, expression: Scalar) -> Scalar:
        """A new result that holds the value of an expression at every index, as an operand."""
        if not operands_of(expression):
            return expression
        own_labels = labels_among(expression, self.references)
        labels = tuple(label for label in self.einsum.labels if label in own_labels)
        output = Reference(self.names.invent(self.einsum.output.tensor), labels)
        einsum = part_of(self.einsum, self.references, output, expression, None)
        self.einsums.append(einsum)
        self.dtypes.append(dtype_of(expression, self.dtypes, self.einsum))
        self.references.append(einsum.output)
        return Operand(len(self.references) - 1)


def _subexpressions(expression: Scalar) -> Iterator[Scalar]:
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _subexpressions(argument)
