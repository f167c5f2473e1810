"""Rewriting: what is known of tensors, and of results that an EinSum not in the graph yet would have.

All that this room asks of semantics and statistics it asks here.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.semantics.exactness import Evaluation, Values, evaluate_exactly
from sparseeinsum.statistics.estimate import Statistics, estimate_result


@dataclass(frozen=True, slots=True)
class KnownTensor:
    """A tensor, the statistics of its entries, and what is known of its values."""

    tensor: Tensor
    statistics: Statistics
    values: Values

    @property
    def is_finite(self) -> bool:
        """Whether no entry is NaN or infinite."""
        return self.values.entries.is_finite

    @property
    def is_all_finite(self) -> bool:
        """Whether the fill is finite, too."""
        return self.is_finite and not (self.values.has_fill and _is_infinite(self.tensor))

    def has_none_of(self, infinity: float) -> bool:
        """Whether no NaN and not this infinity is among its values, fill included."""
        return self.is_finite and not (_is_infinite(self.tensor) and self.tensor.fill == infinity)


def _is_infinite(tensor: Tensor) -> bool:
    return isinstance(tensor.fill, float) and math.isinf(tensor.fill)


@dataclass(slots=True)
class Known:
    """Tensors by name, those of results so far included."""

    tensors: dict[str, KnownTensor]
    allows_nonfinite: bool

    @classmethod
    def of_inputs(
        cls,
        tensors: Mapping[str, Tensor],
        statistics: Mapping[str, Statistics],
        values: Mapping[str, Values],
        allows_nonfinite: bool,
    ) -> "Known":
        """What measuring the inputs has told."""
        known = {name: KnownTensor(tensors[name], statistics[name], values[name]) for name in statistics}
        return cls(known, allows_nonfinite)

    @classmethod
    def of_graph(cls, graph: EinGraph, statistics: Mapping[str, Statistics], values: Mapping[str, Values]) -> "Known":
        """What measuring the inputs has told of them, and of the results of EinSums of one or two operands.

        Args:
            graph: The EinSums; values that turn NaN or infinite are detected.
            statistics: Statistics of the inputs.
            values: What is known of the inputs' values.
        """
        known = cls.of_inputs(graph.tensors, statistics, values, allows_nonfinite=False)
        for einsum in graph.einsums:
            known.learn(einsum)
        return known

    def result(self, einsum: EinSum) -> KnownTensor:
        """What an EinSum of one or two known operands would compute."""
        return self._evaluated(einsum)[0]

    def is_surely_finite(self, einsum: EinSum, dtypes: Collection[str]) -> bool:
        """Whether an EinSum of known operands computes finite numbers of one of some dtypes, without a look at each."""
        found, evaluation = self._evaluated(einsum)
        return found.tensor.dtype in dtypes and found.is_all_finite and not evaluation.detects_nonfinite

    def learn(self, einsum: EinSum) -> Evaluation:
        """Add the result of an EinSum; returns what is exact for it."""
        self.tensors[einsum.output.tensor], evaluation = self._evaluated(einsum)
        return evaluation

    def _evaluated(self, einsum: EinSum) -> tuple[KnownTensor, Evaluation]:
        names = {operand.tensor for operand in einsum.operands}
        name = einsum.output.tensor
        tensors = {each: self.tensors[each].tensor for each in names}
        tensors[name] = result_tensor(einsum, tensors)
        graph = EinGraph(tensors, (einsum,), (name,))
        exact = evaluate_exactly(graph, {each: self.tensors[each].values for each in names}, self.allows_nonfinite)
        known = {each: self.tensors[each].statistics for each in names}
        evaluation = exact.evaluations[name]
        statistics = estimate_result(exact.graph, einsum, known, evaluation)
        return KnownTensor(exact.graph.tensors[name], statistics, exact.values[name]), evaluation

    def shapes(self) -> dict[str, Tensor]:
        """All tensors."""
        return {name: known.tensor for name, known in self.tensors.items()}
