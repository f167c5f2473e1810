"""Random expressions of the tensor relational algebra, of small relations of whole numbers, and where those lie."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sparseeinsum.algebra.relational.evaluate import RelationTuples
from sparseeinsum.algebra.relational.folds import AggregateFold
from sparseeinsum.algebra.relational.kernels import ADD, MULTIPLY, SUBTRACT, Elementwise, Kernel, einsum_kernel
from sparseeinsum.algebra.relational.keys import (
    CopyNumber,
    Integer,
    KeyExpression,
    KeyMap,
    KeyPart,
    KeyPredicate,
    Operation,
    all_keys,
    projection,
)
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Concat,
    Expression,
    Filter,
    Input,
    Join,
    Rekey,
    Tile,
    Transform,
)
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated, Scattered
from sparseeinsum.operators.expressions import Call, Literal, Operand

U = Operand(0)
MAPS = tuple(
    map(
        Elementwise,
        (
            Call("neg", (U,)),
            Call("abs", (U,)),
            Call("relu", (U,)),
            Call("mul", (Literal(2), U)),
            Call("pow", (U, Literal(2))),
            Call("add", (U, Literal(1))),
        ),
    )
)
FOLDS = ("sum", "sum", "max", "min", "prod")
LETTERS = "abcdef"
MOST_TUPLES, MOST_NUMBERS = 60, 3000


@dataclass
class Drawn:
    """An expression while it grows.

    Attributes:
        draw: Hypothesis' function of this name.
        inputs: Relations by name.
        distributions: Their distributions.
    """

    draw: st.DrawFn
    inputs: dict[str, RelationTuples] = field(default_factory=dict)
    distributions: dict[str, Distribution] = field(default_factory=dict)

    def choose(self, among: Sequence[Any]) -> Any:  # noqa: ANN401  # one of them
        return self.draw(st.sampled_from(among))

    def leaf(self, frontier: tuple[int, ...] | None = None, bound: tuple[int, ...] | None = None) -> Input:
        """A relation without holes, of small whole numbers."""
        sizes = st.lists(st.sampled_from([1, 2, 3]), max_size=3)
        of = RelationType(
            frontier if frontier is not None else tuple(self.draw(sizes)),
            bound if bound is not None else tuple(self.draw(sizes)[:2]),
        )
        name = f"R{len(self.inputs)}"
        rng = np.random.default_rng(self.draw(st.integers(0, 999)))
        self.inputs[name] = {key: rng.integers(-2, 3, of.bound).astype(float) for key in all_keys(of.frontier)}
        self.distributions[name] = self.distribution(of.arity)
        return Input(name, of)

    def distribution(self, arity: int) -> Distribution:
        dims = [position for position in self.draw(st.permutations(range(arity))) if self.draw(st.booleans())]
        distributions: list[Distribution] = [Replicated(), Scattered(), Hashed(*dims), Hashed(*dims)]
        return self.draw(st.sampled_from(distributions))

    def grown(self, expression: Expression) -> Expression:
        """The expression with one more operator, if a drawn one is possible."""
        kinds = (self.aggregation, self.join, self.rekey, self.filter, self.transform, self.tile, self.concat)
        grown: Expression | None = self.choose(kinds)(expression)
        if grown is None or grown.type.key_count > MOST_TUPLES or grown.type.key_count * grown.type.size > MOST_NUMBERS:
            return expression
        return grown

    def aggregation(self, expression: Expression) -> Expression | None:
        order = self.draw(st.permutations(range(expression.type.arity)))
        group_by = [position for position in order if self.draw(st.booleans())]
        return Aggregation(expression, tuple(group_by), AggregateFold(self.choose(FOLDS)))

    def join(self, expression: Expression) -> Expression | None:
        left = expression.type
        shared = [position for position in range(left.arity) if self.draw(st.booleans())]
        extra = [self.choose([1, 2])] if self.draw(st.booleans()) else []
        order = self.draw(st.permutations(range(len(shared) + len(extra))))
        sizes = [*(left.frontier[position] for position in shared), *extra]
        is_same = self.draw(st.booleans())
        other = self.leaf(tuple(sizes[at] for at in order), left.bound if is_same else (2,)[: self.choose([0, 1])])
        right_keys = tuple(order.index(at) for at in range(len(shared)))
        kernel: Kernel = self.choose([ADD, MULTIPLY, SUBTRACT])
        if not is_same or other.type.bound != left.bound:
            mine, theirs = LETTERS[: left.rank], "z" * other.type.rank
            kernel = einsum_kernel(f"{mine},{theirs}->{mine}{theirs}")
        if self.draw(st.booleans()):
            return Join(expression, other, tuple(shared), right_keys, kernel)
        if kernel not in (ADD, MULTIPLY, SUBTRACT):
            mine, theirs = LETTERS[: left.rank], "z" * other.type.rank
            kernel = einsum_kernel(f"{theirs},{mine}->{theirs}{mine}")
        return Join(other, expression, right_keys, tuple(shared), kernel)

    def rekey(self, expression: Expression) -> Expression | None:
        arity, frontier = expression.type.arity, expression.type.frontier
        match self.choose(["order", "merge", "divide", "copies"]):
            case "merge" if arity >= 2:
                first, second, *rest = self.draw(st.permutations(range(arity)))
                number = Operation("+", Operation("*", KeyPart(first), Integer(frontier[second])), KeyPart(second))
                return Rekey(expression, KeyMap(arity, (number, *map(KeyPart, rest)))) if frontier[second] else None
            case "divide" if arity:
                at = self.choose(range(arity))
                parts: list[KeyExpression] = [*map(KeyPart, range(arity))]
                parts[at : at + 1] = [Operation("//", KeyPart(at), Integer(2)), Operation("%", KeyPart(at), Integer(2))]
                return Rekey(expression, KeyMap(arity, tuple(parts)))
            case "copies":
                copies = self.choose([2, 3])
                numbered: list[KeyExpression] = [*map(KeyPart, range(arity)), CopyNumber()]
                if arity and self.draw(st.booleans()):
                    at = self.choose(range(arity))
                    digit = Operation("+", Operation("*", KeyPart(at), Integer(copies)), CopyNumber())
                    numbered = [digit if position == at else KeyPart(position) for position in range(arity)]
                return Rekey(expression, KeyMap(arity, tuple(numbered), copies))
            case _:
                return Rekey(expression, projection(arity, self.draw(st.permutations(range(arity)))))

    def filter(self, expression: Expression) -> Expression | None:
        if not expression.type.arity:
            return None
        first, second = (KeyPart(self.choose(range(expression.type.arity))) for _ in range(2))
        other = self.choose([second, Integer(1)])
        return Filter(
            expression, KeyPredicate(expression.type.arity, Operation(self.choose(["==", "<", ">="]), first, other))
        )

    def transform(self, expression: Expression) -> Expression | None:
        rank, bound = expression.type.rank, expression.type.bound
        labels = LETTERS[:rank]
        kernels: list[Kernel] = [*MAPS]
        if rank:
            kernels += [einsum_kernel(f"{labels}->{labels[::-1]}"), einsum_kernel(f"{labels}->{labels[1:]}")]
        if rank == 2 and bound[0] == bound[1]:
            kernels.append(einsum_kernel("aa->a"))
        return Transform(expression, self.choose(kernels))

    def tile(self, expression: Expression) -> Expression | None:
        if not expression.type.rank:
            return None
        axis, size = self.choose(range(expression.type.rank)), self.choose([1, 2, 3])
        return Tile(expression, axis, size) if expression.type.bound[axis] % size == 0 else None

    def concat(self, expression: Expression) -> Expression | None:
        if not expression.type.rank or not expression.type.arity:
            return None
        axis = self.choose(range(expression.type.rank))
        return Concat(
            expression,
            self.choose(range(expression.type.arity)),
            axis,
            fill=None if expression.type.is_continuous else 0,
        )


@dataclass(frozen=True)
class Problem:
    """An expression, its inputs and their distributions."""

    expression: Expression
    inputs: dict[str, RelationTuples]
    distributions: dict[str, Distribution]


@st.composite
def problems(draw: st.DrawFn, most: int = 5) -> Problem:
    """Random expressions of at most this many operators."""
    drawn = Drawn(draw)
    expression: Expression = drawn.leaf()
    for _ in range(draw(st.integers(1, most))):
        expression = drawn.grown(expression)
    return Problem(expression, drawn.inputs, drawn.distributions)


def scale_of(relation: RelationTuples) -> float:
    return max([1.0, *(float(np.abs(array).max(initial=0)) for array in relation.values() if array.size)])


def sum_of(expression: Expression, group_by: Sequence[int]) -> Aggregation:
    """The aggregation that adds up."""
    return Aggregation(expression, tuple(group_by), AggregateFold("sum"))
