"""Semantics: an EinGraph in, for every EinSum what must be stored and computed for an exact result out.

A tuple that is not stored holds its tensor's fill. Leaving such tuples out of a join is exact where `join` has one
value, whatever the other operand holds there: if the aggregate ignores that value nothing is to be done, else it is
put in as often as it was left out (*compensation*). Elsewhere what is absent must be filled in, by an outer join or
by making the operand dense. All of it is decided by evaluating `join` on fills and ranges, not from a list of names.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import EinGraph, EinSum, aggregate_arguments
from sparseeinsum.language.inference import aggregate_constant, join_dtype
from sparseeinsum.language.scalar import evaluate, gives_infinity
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Number, as_number, is_complex
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.ranges import NOTHING, Range, exactly, finite_range
from sparseeinsum.operators.users_aggregates import USERS_AGGREGATES
from sparseeinsum.semantics.aggregated_ranges import aggregated_range
from sparseeinsum.semantics.computation import computing_dtype
from sparseeinsum.semantics.ranges import range_of


class JoinKind(StrEnum):
    """Which tuples of two operands a join keeps; for those without a partner the other operand is filled in."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Values:
    """What is known of a tensor's values.

    Attributes:
        entries: Where the values lie that are not the fill.
        has_fill: Whether some index may hold the fill; where none does, no tuple is ever absent.
    """

    entries: Range
    has_fill: bool

    def including(self, fill: Number) -> Range:
        """Where values lie, the fill included where some index may hold it."""
        return self.entries.united(exactly(fill)) if self.has_fill else self.entries

    def united(self, other: "Values") -> "Values":
        """What is known of values of which some are known to be one way and some another."""
        return Values(self.entries.united(other.entries), self.has_fill or other.has_fill)


@dataclass(frozen=True, slots=True)
class Absence:
    """How an EinSum under given keys deals with absent tuples.

    Attributes:
        join: Which tuples the join keeps; INNER for one operand.
        dense: For every operand, whether all its indices must be made present before.
    """

    join: JoinKind
    dense: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is exact for one EinSum.

    Attributes:
        matters: For every operand, whether an absent tuple of it contributes something that is not always the same.
        both_absent_matter: Whether indices absent in all operands do.
        constant: What absent tuples contribute wherever they do not matter; None where none are left out.
        ignores_constant: Whether the aggregate ignores that.
        computed_in: Dtype of the kernels' arithmetic.
        values: What is known of the result.
        detects_nonfinite: Whether values must be watched for turning NaN or infinite.
        reason: Why something absent matters; empty where nothing does.
    """

    matters: tuple[bool, ...]
    both_absent_matter: bool
    constant: Number | None
    ignores_constant: bool
    computed_in: str
    values: Values
    detects_nonfinite: bool
    reason: str

    @property
    def compensates(self) -> bool:
        """Whether groups get what pairs of tuples that are left out contribute."""
        return self.constant is not None and not self.ignores_constant

    @property
    def treatment(self) -> tuple[object, ...]:
        """How what is absent is dealt with, and how values are computed."""
        absent = (self.matters, self.both_absent_matter, self.constant, self.ignores_constant)
        return (*absent, self.computed_in, self.detects_nonfinite)

    @property
    def decision(self) -> tuple[object, ...]:
        """All that a plan depends on: on other data with the same decision it is exact, too."""
        return (*self.treatment, self.values.has_fill)

    def absences(self, keys: tuple[Set[str], ...]) -> tuple[Absence, ...]:
        """The exact ways to deal with absent tuples, given the promoted labels of every operand."""
        ways = []
        if len(self.matters) == 2 and any(self.matters) and not self.both_absent_matter:
            kind = self._outer_join(*keys)
            if kind is not None:
                ways.append(Absence(kind, (False, False)))
        return (*ways, Absence(JoinKind.INNER, self.matters))

    def _outer_join(self, keys_u: Set[str], keys_v: Set[str]) -> JoinKind | None:
        """A join that fills in what one tuple lacks; None where a tuple may lack several partners."""
        match self.matters:
            case (True, True):
                return JoinKind.FULL if keys_u == keys_v and keys_u else None
            case (False, True):
                return JoinKind.LEFT if keys_v <= keys_u and keys_u else None
            case _:
                return JoinKind.RIGHT if keys_u <= keys_v and keys_v else None


@dataclass(frozen=True, slots=True)
class ExactGraph:
    """A graph whose results have the fills that they are computed with.

    Attributes:
        graph: The EinSums and all tensors.
        evaluations: What is exact for each EinSum, by the name of the tensor computed.
        values: What is known of every tensor.
    """

    graph: EinGraph
    evaluations: Mapping[str, Evaluation]
    values: Mapping[str, Values]


def evaluate_exactly(graph: EinGraph, inputs: Mapping[str, Values], allows_nonfinite: bool = False) -> ExactGraph:
    """Decide for every EinSum what an exact result needs.

    Args:
        graph: EinSums of one or two operands, in topological order.
        inputs: What is known of every input tensor's values.
        allows_nonfinite: Whether values that turn NaN or infinite are to be computed with; else they are detected.

    Raises:
        SemanticsError: A result would not be exact, whatever is stored.
    """
    values = dict(inputs)
    tensors = dict(graph.tensors)
    evaluations = {}
    for einsum in graph.einsums:
        name = einsum.output.tensor
        read = [values[operand.tensor] for operand in einsum.operands]
        fills = [tensors[operand.tensor].fill for operand in einsum.operands]
        dtype = computing_dtype(
            einsum, tensors, [values_read.including(fill) for values_read, fill in zip(read, fills, strict=True)]
        )
        vertex = _Vertex(einsum, tensors, read, dtype, graph)
        evaluation = vertex.evaluation(allows_nonfinite)
        tensors[name] = replace(tensors[name], fill=vertex.fill(evaluation))
        evaluations[name], values[name] = evaluation, evaluation.values
    return ExactGraph(EinGraph(MappingProxyType(tensors), graph.einsums, graph.outputs), evaluations, values)


@dataclass(frozen=True, slots=True)
class _Vertex:
    """One EinSum, its operands' tensors and what is known of their values."""

    einsum: EinSum
    tensors: Mapping[str, Tensor]
    values: list[Values]
    computed_in: str
    graph: EinGraph

    def evaluation(self, allows_nonfinite: bool) -> Evaluation:
        """What is exact for it."""
        if self.einsum.aggregated and self._times == 0:
            return self._of_nothing(str(self.einsum.aggregate))
        constant = self._constant()
        is_usable = constant is not None and self._folds_to_a_fill(constant)
        matters = [
            value.has_fill and not (is_usable and self._is_constant(index, constant))
            for index, value in enumerate(self.values)
        ]
        both = self._all_may_be_absent and not is_usable
        if both:
            matters = [value.has_fill for value in self.values]
        leaves_out = any(value.has_fill and not counts for value, counts in zip(self.values, matters, strict=True))
        kept = constant if leaves_out or (self._all_may_be_absent and not both) else None
        ignores = kept is None or self._is_ignored(kept)
        entries = self._result_range(matters, kept, ignores)
        detects = not entries.is_finite and not allows_nonfinite and not self._is_given_infinity(matters)
        found = Values(finite_range(self._tensor.dtype) if detects else entries, kept is not None)
        reason = "no number stands for what is absent" if both else self._reason(matters)
        return Evaluation(tuple(matters), both, kept, ignores, self.computed_in, found, detects, reason)

    def _is_given_infinity(self, matters: list[bool]) -> bool:
        """Whether it is given NaN or infinity to compute with: in entries, fills, or the expression itself."""
        of_fills = (not np.isfinite(fill) for fill, counts in zip(self._fills, matters, strict=True) if counts)
        of_entries = (not value.entries.is_finite for value in self.values)
        if any(of_entries) or any(of_fills) or gives_infinity(self.einsum.join):
            return True
        record = USERS_AGGREGATES.get(str(self.einsum.aggregate))
        return record is not None and not all(map(math.isfinite, record.identity))

    def _of_nothing(self, aggregate: str) -> Evaluation:
        """Nothing is aggregated anywhere: there may be no tuple at all, and all of the result is the fill."""
        nothing = (False,) * len(self.values)
        identity = self._identity(aggregate)
        if identity is None and self._tensor.size == 0:
            identity = as_number(0, self._tensor.dtype)
        if identity is None:
            raise SemanticsError(f"{self._tensor.name}: {aggregate} of nothing is no one number")
        values = Values(NOTHING, has_fill=True)
        return Evaluation(nothing, False, identity, True, self.computed_in, values, False, "")

    def fill(self, evaluation: Evaluation) -> Number:
        """What the result holds where no tuple is; 0 where every tuple is there."""
        folded = None if evaluation.constant is None else self._folded(evaluation.constant)
        return as_number(0, self._tensor.dtype) if folded is None else folded

    @property
    def _tensor(self) -> Tensor:
        return self.tensors[self.einsum.output.tensor]

    @property
    def _fills(self) -> list[Number]:
        return [self.tensors[operand.tensor].fill for operand in self.einsum.operands]

    @property
    def _times(self) -> int:
        """How many values the aggregate folds."""
        return math.prod(self.graph.bound_of(self.einsum, label) for label in self.einsum.aggregated)

    @property
    def _most_terms(self) -> int:
        """How many values are folded into one, at most."""
        along = self.einsum.along
        return self._times if along is None else max(1, self.graph.bound_of(self.einsum, along))

    @property
    def _all_may_be_absent(self) -> bool:
        return all(value.has_fill for value in self.values)

    def _range(self, operands: list[Range]) -> Range:
        return range_of(self.einsum.join, operands, self.computed_in)

    def _where_absent(self, index: int) -> Range:
        """Where `join` lies if one operand holds its fill and the other an entry."""
        operands = [value.entries for value in self.values]
        operands[index] = exactly(self._fills[index])
        return self._range(operands)

    def _constant(self) -> Number | None:
        """What `join` is where something is absent, if that is one number."""
        if len(aggregate_arguments(self.einsum)) > 1:
            return None
        if self._all_may_be_absent:
            operands = [self.tensors[operand.tensor] for operand in self.einsum.operands]
            fills = [np.asarray(tensor.fill, tensor.dtype)[()] for tensor in operands]
            try:
                value: Number = evaluate(self.einsum.join, fills).item()
            except ValueError:
                return None
        else:
            absent = [index for index, value in enumerate(self.values) if value.has_fill]
            found = None if not absent else self._where_absent(absent[0]).exact
            if found is None:
                return None
            value = found
        return None if value != value else value

    def _folds_to_a_fill(self, constant: Number) -> bool:
        """Whether the aggregate of nothing but the constant can be a fill."""
        try:
            folded = self._folded(constant)
        except (ArithmeticError, ValueError):
            return False
        if folded is None:
            return False
        is_given = not all(np.isfinite(fill) for fill in self._fills) or gives_infinity(self.einsum.join)
        may_be_infinite = self._times == 0 or is_given
        return bool(not np.isnan(folded) and (may_be_infinite or np.isfinite(folded)))

    def _folded(self, constant: Number) -> Number | None:
        dtype = self._tensor.dtype
        folded = aggregate_constant(self.einsum, np.asarray(constant), self._times, dtype)
        return None if folded is None else as_number(folded, dtype)

    def _is_constant(self, index: int, constant: Number | None) -> bool:
        """Whether `join` is the constant wherever this operand is absent, whatever the other one holds."""
        if len(self.values) == 1:
            return True
        found = self._where_absent(index)
        both = self._range([exactly(fill) for fill in self._fills]).exact if self._all_may_be_absent else constant
        return found == NOTHING or (found.exact is not None and both is not None and bool(found.exact == both))

    def _is_ignored(self, constant: Number) -> bool:
        if not self.einsum.aggregated or self.einsum.along is not None:
            return True
        name = str(self.einsum.aggregate)
        if name in USERS_AGGREGATES:
            return USERS_AGGREGATES[name].known(float(constant.real), 1) == USERS_AGGREGATES[name].identity
        return bool(constant == self._identity(name))

    def _identity(self, aggregate: str) -> Number | None:
        """What an aggregate of nothing is; None where that is several numbers."""
        if aggregate in USERS_AGGREGATES:
            return aggregate_constant(self.einsum, np.zeros(()), 0, "float64")
        if aggregate in PICKS:
            return None
        return AGGREGATES[aggregate].identity(self._tensor.dtype)

    def _result_range(self, matters: list[bool], constant: Number | None, ignores: bool) -> Range:
        terms = self._range([value.entries for value in self.values])
        for index, value in enumerate(self.values):
            if value.has_fill and len(self.values) == 2 and (matters[index] or constant is None):
                terms = terms.united(self._where_absent(index))
        if self._all_may_be_absent and constant is None:
            terms = terms.united(self._range([exactly(fill) for fill in self._fills]))
        if constant is not None and (not ignores or self.einsum.along is not None):
            terms = terms.united(exactly(constant))
        dtype = join_dtype(self.einsum, self.tensors)
        folded_in = self.computed_in if is_complex(dtype) or not is_complex(self.computed_in) else "float64"
        return aggregated_range(self.einsum.base_aggregate, terms, self._most_terms, folded_in)

    def _reason(self, matters: list[bool]) -> str:
        if not any(matters):
            return ""
        if not all(value.entries.is_finite for value in self.values):
            return "an operand may hold NaN or infinity, which what is absent does not cancel"
        pairs = zip(self.einsum.operands, matters, strict=True)
        names = list(dict.fromkeys(operand.tensor for operand, counts in pairs if counts))
        return f"where {' or '.join(names)} is absent the expression depends on the other operand"
