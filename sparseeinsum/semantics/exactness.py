"""Semantics: decides for every EinSum what must be stored and computed so that its result is exact.

An index without a tuple holds the fill of its tensor. To leave such indices out of a join is exact where `join` has the
same value whatever the other operand holds there. If the aggregate ignores that value, nothing needs to be done;
otherwise it is added as often as it was left out (*compensation*). Elsewhere absent indices must be filled in, by an
outer join or by making the operand dense. All of this follows from evaluating `join` on fills and ranges; there is no
list of functions.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import EinGraph, EinSum, aggregate_arguments
from sparseeinsum.language.inference import ZEROS, aggregate_constant, join_dtype, value_at_fills
from sparseeinsum.language.scalar import gives_infinity
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Number, as_number, is_complex
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.ranges import EMPTY_RANGE, Range, exact_range, finite_range
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.semantics.aggregate_ranges import aggregate_range
from sparseeinsum.semantics.computing_dtypes import computing_dtype
from sparseeinsum.semantics.expression_ranges import range_of


class JoinKind(StrEnum):
    """The tuples of two operands that a join keeps; for a tuple without a match, the other operand is filled in."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """Facts about the values of a tensor.

    Attributes:
        entries: The range of the values that are not the fill.
        has_fill: Whether an index may hold the fill; if not, no index is absent.
        has_entries: Whether some index is known to hold another value than the fill.
    """

    entries: Range
    has_fill: bool
    has_entries: bool = False

    def range_with_fill(self, fill: Number) -> Range:
        """The range of all values; it includes `fill` if an index may hold it."""
        return self.entries.union(exact_range(fill)) if self.has_fill else self.entries

    def union(self, other: "ValueFacts") -> "ValueFacts":
        """Facts that hold for this tensor and for `other`."""
        has_entries = self.has_entries and other.has_entries
        return ValueFacts(self.entries.union(other.entries), self.has_fill or other.has_fill, has_entries)


@dataclass(frozen=True, slots=True)
class Absence:
    """How an EinSum with given key columns treats absent indices.

    Attributes:
        join: The tuples that the join keeps; INNER for one operand.
        dense: For every operand, whether it must be made dense before.
    """

    join: JoinKind
    dense: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How one EinSum is evaluated exactly.

    Attributes:
        matters: For every operand, whether its absent indices contribute something that is not always the same.
        joint_absence_matters: Whether indices that are absent in all operands contribute something that is no constant.
        constant: What absent indices contribute where they do not matter; None where none are left out.
        ignores_constant: Whether the aggregate ignores the constant.
        computed_in: Dtype of the arithmetic of kernels.
        values: Facts about the values of the result.
        detects_nonfinite: Whether a run must check values for NaN and infinity.
        reason: Why absent indices matter; empty where they do not.
    """

    matters: tuple[bool, ...]
    joint_absence_matters: bool
    constant: Number | None
    ignores_constant: bool
    computed_in: str
    values: ValueFacts
    detects_nonfinite: bool
    reason: str

    @property
    def compensates(self) -> bool:
        """Whether the constant must be added for the pairs of tuples that are left out."""
        return self.constant is not None and not self.ignores_constant

    @property
    def treatment(self) -> tuple[object, ...]:
        """How absent indices are treated, and how values are computed."""
        absent = (self.matters, self.joint_absence_matters, self.constant, self.ignores_constant)
        return (*absent, self.computed_in, self.detects_nonfinite)

    @property
    def decision(self) -> tuple[object, ...]:
        """Everything that a plan depends on: the plan is exact for other data, too, if they give the same decision."""
        return (*self.treatment, self.values.has_fill)

    def absence_options(self, keys: tuple[Set[str], ...]) -> tuple[Absence, ...]:
        """The exact ways to treat absent indices, for the promoted labels of every operand."""
        options = []
        if len(self.matters) == 2 and any(self.matters) and not self.joint_absence_matters:
            kind = self._outer_join(*keys)
            if kind is not None:
                options.append(Absence(kind, (False, False)))
        return (*options, Absence(JoinKind.INNER, self.matters))

    def _outer_join(self, keys_u: Set[str], keys_v: Set[str]) -> JoinKind | None:
        """The kind of an outer join that fills in absent tuples; None where one tuple may lack several matches."""
        match self.matters:
            case (True, True):
                return JoinKind.FULL if keys_u == keys_v and keys_u else None
            case (False, True):
                return JoinKind.LEFT if keys_v <= keys_u and keys_u else None
            case _:
                return JoinKind.RIGHT if keys_u <= keys_v and keys_v else None


@dataclass(frozen=True, slots=True)
class ExactGraph:
    """A graph whose results have the fills that exact evaluation gives them.

    Attributes:
        graph: The EinSums and all tensors.
        evaluations: How each EinSum is evaluated exactly, by the name of its result.
        values: Facts about the values of every tensor.
    """

    graph: EinGraph
    evaluations: Mapping[str, Evaluation]
    values: Mapping[str, ValueFacts]


def decide_evaluations(graph: EinGraph, inputs: Mapping[str, ValueFacts], allows_nonfinite: bool = False) -> ExactGraph:
    """Decide for every EinSum what an exact result needs.

    Args:
        graph: EinSums of one or two operands, in topological order.
        inputs: Facts about the values of every input.
        allows_nonfinite: Whether to compute with values that turn NaN or infinite; otherwise a run detects them.

    Raises:
        SemanticsError: A result would not be exact, whatever is stored.
    """
    values, tensors, evaluations = dict(inputs), dict(graph.tensors), {}
    for einsum in graph.einsums:
        name = einsum.output.tensor
        tensors[name], evaluations[name] = decide_evaluation(einsum, tensors, values, graph, allows_nonfinite)
        values[name] = evaluations[name].values
    return ExactGraph(EinGraph(MappingProxyType(tensors), graph.einsums, graph.outputs), evaluations, values)


def decide_evaluation(
    einsum: EinSum,
    tensors: Mapping[str, Tensor],
    values: Mapping[str, ValueFacts],
    graph: EinGraph,
    allows_nonfinite: bool = False,
) -> tuple[Tensor, Evaluation]:
    """The result of an EinSum with its fill, and what an exact one needs; `graph` has the bounds of all labels."""
    read = [values[operand.tensor] for operand in einsum.operands]
    fills = [tensors[operand.tensor].fill for operand in einsum.operands]
    ranges = [facts.range_with_fill(fill) for facts, fill in zip(read, fills, strict=True)]
    analysis = _EinSumAnalysis(einsum, tensors, read, computing_dtype(einsum, tensors, ranges), graph)
    evaluation = analysis.evaluation(allows_nonfinite)
    result, fill = tensors[einsum.output.tensor], analysis.fill(evaluation)
    is_filled_so = repr(result.fill) == repr(fill)  # which tells 0.0 and -0.0 apart
    return result if is_filled_so else replace(result, fill=fill), evaluation


@dataclass(frozen=True, slots=True)
class _EinSumAnalysis:
    """Decides how one EinSum is evaluated.

    Attributes:
        einsum: The EinSum.
        tensors: Its operands and its result, by name.
        values: Facts about the values of each operand.
        computed_in: Dtype of the arithmetic of kernels.
        graph: The graph of the EinSum.
    """

    einsum: EinSum
    tensors: Mapping[str, Tensor]
    values: list[ValueFacts]
    computed_in: str
    graph: EinGraph

    def evaluation(self, allows_nonfinite: bool) -> Evaluation:
        """How the EinSum is evaluated exactly."""
        if self.einsum.aggregated and self._aggregated_count == 0:
            return self._empty_aggregate(str(self.einsum.aggregate))
        if not any(value.has_fill for value in self.values):
            return self._evaluation_of_entries(allows_nonfinite)
        constant = self._constant()
        is_usable = constant is not None and self._gives_a_fill(constant)
        matters = [
            value.has_fill and not (is_usable and self._is_constant(index, constant))
            for index, value in enumerate(self.values)
        ]
        joint_matters = self._all_have_fill and not is_usable
        if joint_matters:
            matters = [value.has_fill for value in self.values]
        leaves_out = any(
            value.has_fill and not is_needed for value, is_needed in zip(self.values, matters, strict=True)
        )
        left_out_constant = constant if leaves_out or (self._all_have_fill and not joint_matters) else None
        ignores = left_out_constant is None or self._is_ignored(left_out_constant)
        entries = self._result_range(matters, left_out_constant, ignores)
        detects = not entries.is_finite and not allows_nonfinite and not self._reads_nonfinite(matters)
        has_fill = left_out_constant is not None and not self._aggregates_an_entry
        facts = ValueFacts(finite_range(self._tensor.dtype) if detects else entries, has_fill)
        reason = "no fill can represent what is absent" if joint_matters else self._reason(matters)
        return Evaluation(
            tuple(matters), joint_matters, left_out_constant, ignores, self.computed_in, facts, detects, reason
        )

    def _evaluation_of_entries(self, allows_nonfinite: bool) -> Evaluation:
        """The evaluation where no index is absent."""
        none_matter = [False] * len(self.values)
        entries = self._result_range(none_matter, None, ignores=True)
        detects = not entries.is_finite and not allows_nonfinite and not self._reads_nonfinite(none_matter)
        facts = ValueFacts(finite_range(self._tensor.dtype) if detects else entries, has_fill=False)
        return Evaluation(tuple(none_matter), False, None, True, self.computed_in, facts, detects, "")

    def _reads_nonfinite(self, matters: list[bool]) -> bool:
        """Whether entries, fills that matter, the expression or the aggregate bring NaN or infinity themselves."""
        in_fills = (not np.isfinite(fill) for fill, is_needed in zip(self._fills, matters, strict=True) if is_needed)
        in_entries = (not value.entries.is_finite for value in self.values)
        if any(in_entries) or any(in_fills) or gives_infinity(self.einsum.join):
            return True
        record = USER_AGGREGATES.get(str(self.einsum.aggregate))
        return record is not None and not all(map(math.isfinite, record.identity))

    def _empty_aggregate(self, aggregate: str) -> Evaluation:
        """The evaluation of an aggregate over no values at any index: every index of the result may hold the fill."""
        none_matter = (False,) * len(self.values)
        identity = self._identity(aggregate)
        if identity is None and self._tensor.size == 0:
            identity = as_number(0, self._tensor.dtype)
        if identity is None:
            raise SemanticsError(f"{self._tensor.name}: {aggregate} of no values is not defined")
        values = ValueFacts(EMPTY_RANGE, has_fill=True)
        return Evaluation(none_matter, False, identity, True, self.computed_in, values, False, "")

    def fill(self, evaluation: Evaluation) -> Number:
        """The value of the result where no tuple is; 0 where every index has a tuple."""
        aggregated = None if evaluation.constant is None else self._aggregate_of_equal(evaluation.constant)
        return ZEROS[self._tensor.dtype] if aggregated is None else aggregated

    @property
    def _tensor(self) -> Tensor:
        return self.tensors[self.einsum.output.tensor]

    @property
    def _fills(self) -> list[Number]:
        return [self.tensors[operand.tensor].fill for operand in self.einsum.operands]

    @property
    def _aggregated_count(self) -> int:
        """The number of index tuples of the labels that the EinSum aggregates."""
        return math.prod(self.graph.bound_of(self.einsum, label) for label in self.einsum.aggregated)

    @property
    def _most_aggregated(self) -> int:
        """The greatest number of values that are aggregated into one."""
        along = self.einsum.along
        return self._aggregated_count if along is None else max(1, self.graph.bound_of(self.einsum, along))

    @property
    def _aggregates_an_entry(self) -> bool:
        """Whether the result is one number, and surely an aggregate of at least one entry."""
        labels = self.einsum.operands[0].labels
        is_of_all = len(self.values) == 1 and not self.einsum.output.labels and len(set(labels)) == len(labels)
        return is_of_all and self.values[0].has_entries

    @property
    def _all_have_fill(self) -> bool:
        return all(value.has_fill for value in self.values)

    def _range(self, operands: list[Range]) -> Range:
        return range_of(self.einsum.join, operands, self.computed_in)

    def _range_where_absent(self, index: int) -> Range:
        """The range of `join` where operand `index` holds its fill and the other one an entry."""
        operands = [value.entries for value in self.values]
        operands[index] = exact_range(self._fills[index])
        return self._range(operands)

    def _constant(self) -> Number | None:
        """The value of `join` where an operand is absent, if that is one number."""
        if len(aggregate_arguments(self.einsum)) > 1:
            return None
        if self._all_have_fill:
            operands = [self.tensors[operand.tensor] for operand in self.einsum.operands]
            try:
                value: Number = value_at_fills(self.einsum.join, operands).item()
            except ValueError:
                return None
        else:
            absent = [index for index, value in enumerate(self.values) if value.has_fill]
            exact = None if not absent else self._range_where_absent(absent[0]).exact
            if exact is None:
                return None
            value = exact
        return None if value != value else value

    def _gives_a_fill(self, constant: Number) -> bool:
        """Whether the aggregate of the constant alone is defined and may be a fill."""
        try:
            aggregated = self._aggregate_of_equal(constant)
        except (ArithmeticError, ValueError):
            return False
        if aggregated is None:
            return False
        reads_nonfinite = not all(np.isfinite(fill) for fill in self._fills) or gives_infinity(self.einsum.join)
        may_be_infinite = self._aggregated_count == 0 or reads_nonfinite
        return bool(not np.isnan(aggregated) and (may_be_infinite or np.isfinite(aggregated)))

    def _aggregate_of_equal(self, constant: Number) -> Number | None:
        dtype = self._tensor.dtype
        aggregated = aggregate_constant(self.einsum, np.asarray(constant), self._aggregated_count, dtype)
        return None if aggregated is None else as_number(aggregated, dtype)

    def _is_constant(self, index: int, constant: Number | None) -> bool:
        """Whether `join` equals the constant wherever operand `index` is absent, whatever the other operand holds."""
        if len(self.values) == 1:
            return True
        where_absent = self._range_where_absent(index)
        at_fills = self._range([exact_range(fill) for fill in self._fills]).exact if self._all_have_fill else constant
        return where_absent == EMPTY_RANGE or (
            where_absent.exact is not None and at_fills is not None and bool(where_absent.exact == at_fills)
        )

    def _is_ignored(self, constant: Number) -> bool:
        """Whether the result does not change if the aggregate leaves out values that equal the constant."""
        if not self.einsum.aggregated or self.einsum.along is not None:
            return True
        name = str(self.einsum.aggregate)
        if name in USER_AGGREGATES:
            return USER_AGGREGATES[name].try_fold_repeated(float(constant.real), 1) == USER_AGGREGATES[name].identity
        return bool(constant == self._identity(name))

    def _identity(self, aggregate: str) -> Number | None:
        """The aggregate of no values; None where it has no single value."""
        if aggregate in USER_AGGREGATES:
            return aggregate_constant(self.einsum, np.zeros(()), 0, "float64")
        if aggregate in PICKS:
            return None
        return AGGREGATES[aggregate].identity(self._tensor.dtype)

    def _result_range(self, matters: list[bool], constant: Number | None, ignores: bool) -> Range:
        """The range of the values that tuples of the result hold.

        Args:
            matters: For every operand, whether its absent indices are filled in.
            constant: The value of `join` where tuples are left out; None where none are.
            ignores: Whether the aggregate ignores the constant.
        """
        terms = self._range([value.entries for value in self.values])
        for index, value in enumerate(self.values):
            if value.has_fill and len(self.values) == 2 and (matters[index] or constant is None):
                terms = terms.union(self._range_where_absent(index))
        if self._all_have_fill and constant is None:
            terms = terms.union(self._range([exact_range(fill) for fill in self._fills]))
        if constant is not None and (not ignores or self.einsum.along is not None):
            terms = terms.union(exact_range(constant))
        dtype = join_dtype(self.einsum, self.tensors)
        aggregated_in = self.computed_in if is_complex(dtype) or not is_complex(self.computed_in) else "float64"
        return aggregate_range(self.einsum.base_aggregate, terms, self._most_aggregated, aggregated_in)

    def _reason(self, matters: list[bool]) -> str:
        if not any(matters):
            return ""
        if not all(value.entries.is_finite for value in self.values):
            return "an operand may hold NaN or infinity, which absent entries do not cancel"
        pairs = zip(self.einsum.operands, matters, strict=True)
        names = list(dict.fromkeys(operand.tensor for operand, is_needed in pairs if is_needed))
        return f"where {' or '.join(names)} is absent the expression depends on the other operand"
