"""Rewriting: what is known of tensors, and of results that an EinSum not in the graph yet would have.

All that this room asks of semantics and statistics it asks here.
"""

import math
import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

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


@dataclass(frozen=True, slots=True)
class Learned:
    """What an EinSum was found to compute of its operands, and what is exact for it."""

    einsum: EinSum
    operands: tuple[KnownTensor, ...]
    result: KnownTensor
    evaluation: Evaluation

    def is_of(self, einsum: EinSum, operands: tuple[KnownTensor, ...]) -> bool:
        """Whether it holds for an EinSum of operands."""
        return self.einsum == einsum and all(map(operator.is_, self.operands, operands))


@dataclass(frozen=True, slots=True)
class KnownGraph:
    """A graph of EinSums of one or two operands, and what is known of its tensors: what stages of rewriting hand on.

    Attributes:
        graph: The EinSums, in topological order, with the fills that they compute.
        inputs: Tensors that none of them computes.
        learned: What each was found to compute, by the name of its result.
        allows_nonfinite: Whether values that turn NaN or infinite are computed with; else they are detected.
    """

    graph: EinGraph
    inputs: Mapping[str, KnownTensor]
    learned: Mapping[str, Learned]
    allows_nonfinite: bool

    @property
    def tensors(self) -> dict[str, KnownTensor]:
        """All tensors, by name."""
        return {**self.inputs, **{name: each.result for name, each in self.learned.items()}}

    def tensor(self, name: str) -> KnownTensor:
        """A tensor."""
        return self.learned[name].result if name in self.learned else self.inputs[name]

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """What is exact for each EinSum, by the name of its result."""
        return {name: each.evaluation for name, each in self.learned.items()}

    def of(self, names: Iterable[str]) -> "Known":
        """What is known of some tensors alone, as inputs of a graph of their own."""
        return Known({name: self.tensor(name) for name in names}, self.allows_nonfinite, (self.learned,))

    def anew(self) -> "Known":
        """The inputs, to learn EinSums from; those that stay as they are here are not evaluated again."""
        return Known(dict(self.inputs), self.allows_nonfinite, (self.learned,))

    def with_einsums(self, einsums: Iterable[EinSum]) -> "KnownGraph":
        """The same with other EinSums of one or two operands, in topological order."""
        return self.anew().graph_of(einsums, self.graph.outputs)


@dataclass(slots=True)
class Known:
    """What is known so far, while a stage goes through EinSums.

    Attributes:
        tensors: By name, those of results learned so far included.
        allows_nonfinite: Whether values that turn NaN or infinite are computed with; else they are detected.
        before: What EinSums were found to compute elsewhere, by the names of their results; looked up in turn.
        learned: What those learned so far compute.
    """

    tensors: dict[str, KnownTensor]
    allows_nonfinite: bool
    before: tuple[Mapping[str, Learned], ...] = ()
    learned: dict[str, Learned] = field(default_factory=dict)

    @classmethod
    def of_inputs(
        cls,
        tensors: Mapping[str, Tensor],
        statistics: Mapping[str, Statistics],
        values: Mapping[str, Values],
        allows_nonfinite: bool = False,
    ) -> "Known":
        """What measuring the inputs has told."""
        known = {name: KnownTensor(tensors[name], statistics[name], values[name]) for name in statistics}
        return cls(known, allows_nonfinite)

    def of(self, names: Iterable[str]) -> "Known":
        """What is known of some tensors alone, as inputs of a graph of their own."""
        return Known({name: self.tensors[name] for name in names}, self.allows_nonfinite, (self.learned, *self.before))

    def result(self, einsum: EinSum) -> KnownTensor:
        """What an EinSum of one or two known operands would compute."""
        return self._found(einsum).result

    def is_surely_finite(self, einsum: EinSum, dtypes: Collection[str]) -> bool:
        """Whether an EinSum of known operands computes finite numbers of one of some dtypes, without a look at each."""
        found = self._found(einsum)
        result = found.result
        return result.tensor.dtype in dtypes and result.is_all_finite and not found.evaluation.detects_nonfinite

    def learn(self, einsum: EinSum) -> Evaluation:
        """Add the result of an EinSum; returns what is exact for it."""
        name, found = einsum.output.tensor, self._found(einsum)
        self.tensors[name], self.learned[name] = found.result, found
        return found.evaluation

    def graph_of(self, einsums: Iterable[EinSum], outputs: tuple[str, ...]) -> KnownGraph:
        """The graph of some EinSums, in topological order, which are learned here where they are not yet."""
        chosen = tuple(einsums)
        for einsum in chosen:
            self.learn(einsum)
        learned = {name: self.learned[name] for name in (einsum.output.tensor for einsum in chosen)}
        inputs = {name: known for name, known in self.tensors.items() if name not in self.learned}
        tensors = {name: known.tensor for name, known in inputs.items()}
        tensors |= {name: each.result.tensor for name, each in learned.items()}
        return KnownGraph(EinGraph(MappingProxyType(tensors), chosen, outputs), inputs, learned, self.allows_nonfinite)

    def _found(self, einsum: EinSum) -> Learned:
        name = einsum.output.tensor
        operands = tuple(self.tensors[operand.tensor] for operand in einsum.operands)
        for found in (each[name] for each in (self.learned, *self.before) if name in each):
            if found.is_of(einsum, operands):
                return found
        return Learned(einsum, operands, *self._evaluated(einsum))

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
