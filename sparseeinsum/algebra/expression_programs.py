"""Algebra: expressions of the tensor relational algebra as programs of EinSums, where their operators are such.

An axis of a tensor is a part of the keys of a relation or an axis of its arrays. A join with a kernel, and the
aggregation that reads it, are one EinSum. A program says that absent entries are 0, where an expression says that there
is no tuple; so operators must compute 0 of them.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.algebra.formulas import Formula, aggregated, combined, diagonal, kernel_einsum, rekeyed
from sparseeinsum.algebra.relational.expression_text import write_operator
from sparseeinsum.algebra.relational.folds import AggregateFold
from sparseeinsum.algebra.relational.kernels import Kernel
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Complete,
    Expression,
    Filter,
    Input,
    Join,
    Rekey,
    Transform,
    inputs_of,
)
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Program
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.ranges import exact_range, finite_range
from sparseeinsum.rewrite.unique_names import UniqueNames
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.semantics.expression_ranges import range_of
from sparseeinsum.statistics.estimate import Statistics, dense_statistics

_DTYPE = "float64"


@dataclass(frozen=True, slots=True)
class ExpressionProgram:
    """A program of EinSums, and what is known of its inputs.

    Attributes:
        program: The EinSums.
        inputs: The relations that it reads, by name.
    """

    program: Program
    inputs: Mapping[str, Input]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The inputs as tensors: first the axes of keys, then those of arrays."""
        return {name: Tensor(name, _axes(relation), _DTYPE) for name, relation in self.inputs.items()}

    @property
    def statistics(self) -> dict[str, Statistics]:
        """The statistics of the inputs; all elements of arrays are entries."""
        return {name: _statistics(relation) for name, relation in self.inputs.items()}

    @property
    def array_axes(self) -> dict[str, range]:
        """For every input, the axes of its arrays."""
        return {
            name: range(relation.type.arity, relation.type.arity + relation.type.rank)
            for name, relation in self.inputs.items()
        }


def program_of(expressions: Mapping[str, Expression]) -> ExpressionProgram:
    """The program that computes the same as expressions, each under its name.

    Raises:
        AlgebraError: An operator is no EinSum; the message names it.
    """
    builder = _ProgramBuilder(expressions)
    for expression in expressions.values():
        for node in topological_order(expression):
            builder.add(node)
    outputs = tuple(map(builder.result, expressions.values()))
    return ExpressionProgram(Program(tuple(builder.einsums), outputs=outputs), inputs_of(expressions.values()))


class _ProgramBuilder:
    """Builds the EinSums of operators; what several operators read is one EinSum.

    Attributes:
        einsums: The EinSums so far.
    """

    def __init__(self, expressions: Mapping[str, Expression]) -> None:
        self.einsums: list[EinSum] = []
        self._formulas: dict[int, Formula] = {}
        self._labels = itertools.count(1)
        inputs = inputs_of(expressions.values())
        self._names = UniqueNames([*inputs, *expressions])
        self._base = next(iter(expressions))
        self._outputs: dict[int, str] = {}
        for name, expression in expressions.items():
            self._outputs.setdefault(id(expression), self._names.invent(name) if name in inputs else name)
        nodes = {id(node): node for root in expressions.values() for node in topological_order(root)}
        self._readers = Counter(id(operand) for node in nodes.values() for operand in node.inputs)
        self._readers.update(map(id, expressions.values()))

    def add(self, node: Expression) -> None:
        """Add an operator whose inputs have been added.

        Raises:
            AlgebraError: It is no EinSum.
        """
        if id(node) in self._formulas:
            return
        try:
            check_absent(node)
            self._formulas[id(node)] = self._formula(node)
        except AlgebraError as error:
            raise AlgebraError(f"{write_operator(node)} cannot be part of a program of EinSums: {error}") from error

    def result(self, expression: Expression) -> str:
        """Add the EinSum that computes an expression, unless it is there; returns the name of its result."""
        name = self._outputs[id(expression)]
        if all(einsum.output.tensor != name for einsum in self.einsums):
            self.einsums.append(self._formulas[id(expression)].einsum(name))
        return name

    def _formula(self, node: Expression) -> Formula:
        match node:
            case Input(name, relation_type):
                labels = [f"x{next(self._labels)}" for _ in (*relation_type.frontier, *relation_type.bound)]
                return Formula.of_tensor(name, labels[: relation_type.arity], labels[relation_type.arity :])
            case Join():
                return self._joined(node)
            case Transform(operand, kernel):
                side = self._tensor(operand)
                return combined(kernel, [side], (), side.keys)
            case Aggregation(operand, group_by, AggregateFold(name)):
                formula = self._own(operand)
                if formula.aggregate not in (None, name):
                    formula = self._tensor(operand)
                return aggregated(formula, group_by, name)
            case Filter(operand, predicate):
                return diagonal(self._own(operand), predicate)
            case Rekey(operand, keys):
                return rekeyed(self._own(operand), keys)
            case Complete(operand):
                return self._own(operand)
            case _:
                raise AlgebraError("it changes keys or arrays in another way")

    def _joined(self, node: Join) -> Formula:
        left, right = self._tensor(node.left), self._tensor(node.right)
        pairs = zip(node.left_keys, node.right_keys, strict=True)
        joined = [(left.keys[first], right.keys[second]) for first, second in pairs]
        others = [label for position, label in enumerate(right.keys) if position not in node.right_keys]
        return combined(node.kernel, [left, right], joined, [*left.keys, *others])

    def _own(self, node: Expression) -> Formula:
        """The formula of an operator, if one other reads it, so that both can be one EinSum; else a tensor."""
        return self._formulas[id(node)] if self._readers[id(node)] == 1 else self._tensor(node)

    def _tensor(self, node: Expression) -> Formula:
        """An operator as a tensor, with labels that no other formula has."""
        formula = self._formulas[id(node)]
        if not formula.is_tensor:
            name = self._outputs.get(id(node)) or self._names.invent(self._base)
            self.einsums.append(formula.einsum(name))
            formula = self._formulas[id(node)] = Formula.of_tensor(name, formula.keys, formula.arrays)
        return formula.with_fresh_labels(self._labels)


def check_absent(node: Expression) -> None:
    """Refuse an operator whose result differs if the absent tuples that it reads hold 0.

    Raises:
        AlgebraError: It differs.
    """
    match node:
        case Join():
            _check_join(node)
        case Transform(operand, kernel) if not operand.type.is_continuous:
            _check_zero(kernel, [operand.type], {0})
        case Aggregation(operand, _, AggregateFold(name)) if not operand.type.is_continuous:
            if AGGREGATES[name].identity(_DTYPE) != 0:
                raise AlgebraError(f"{name} of absent tuples, which an EinSum takes to be 0")
        case Complete(operand, absent, frontier):
            if frontier != operand.type.frontier or (absent.fill != 0 and not operand.type.is_continuous):
                raise AlgebraError("an EinSum takes absent tuples to be 0, and adds none")


def _check_join(node: Join) -> None:
    for first, second in zip(node.left_keys, node.right_keys, strict=True):
        if node.left.type.frontier[first] != node.right.type.frontier[second]:
            raise AlgebraError("the frontiers of its sides differ")
    sides = [node.left.type, node.right.type]
    absent = [not side.is_continuous for side in sides]
    keeping = ((JoinKind.RIGHT, JoinKind.FULL), (JoinKind.LEFT, JoinKind.FULL))  # pairs in which a side is absent
    for position, filled in enumerate(node.absent):
        if not absent[position]:
            continue
        if node.kind not in keeping[position]:
            _check_zero(node.kernel, sides, {position})
        elif filled is not None and filled.fill != 0:
            raise AlgebraError(f"absent tuples hold {filled.fill!r}")
    if all(absent):
        _check_zero(node.kernel, sides, {0, 1})


def _check_zero(kernel: Kernel, types: Sequence[RelationType], absent: Collection[int]) -> None:
    """Refuse a kernel that does not compute 0 where some of its arrays are 0."""
    einsum = kernel_einsum(kernel, [relation.rank for relation in types])
    ranges = [exact_range(0.0) if side in absent else finite_range(_DTYPE) for side in range(len(types))]
    repeat = AGGREGATES[einsum.aggregate].repeat if einsum.aggregate in AGGREGATES else None
    is_zero = range_of(einsum.join, ranges, _DTYPE).exact == 0
    if not is_zero or (repeat is not None and repeat(0.0, 2) != 0):
        raise AlgebraError(f"{kernel} is not 0 where a tuple is absent, which an EinSum takes to be 0")


def _axes(relation: Input) -> tuple[Axis, ...]:
    keys = (Axis(f"k{position}", bound) for position, bound in enumerate(relation.type.frontier))
    return (*keys, *(Axis(f"a{position}", bound) for position, bound in enumerate(relation.type.bound)))


def _statistics(relation: Input) -> Statistics:
    shape = (*relation.type.frontier, *relation.type.bound)
    if relation.type.is_continuous or relation.tuples is None:
        return dense_statistics(shape)
    distinct = relation.distinct or tuple(map(float, relation.type.frontier))
    return Statistics(relation.tuples * relation.type.size, (*distinct, *map(float, relation.type.bound)), shape)
