"""Rewriting: graphs whose tensors carry statistics and facts about their values.

Stages annotate EinSums that they try out, too. Only this module asks semantics and statistics for the stages.
"""

import math
import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.semantics.exactness import Evaluation, ExactGraph, ValueFacts, decide_evaluation
from sparseeinsum.statistics.estimate import Statistics, estimate_result


@dataclass(frozen=True, slots=True)
class AnnotatedTensor:
    """A tensor, the statistics of its entries, and facts about its values."""

    tensor: Tensor
    statistics: Statistics
    values: ValueFacts

    @property
    def is_finite(self) -> bool:
        """Whether no entry is NaN or infinite."""
        return self.values.entries.is_finite

    @property
    def is_all_finite(self) -> bool:
        """Whether neither an entry nor the fill, where an index holds it, is NaN or infinite."""
        return self.is_finite and not (self.values.has_fill and _is_infinite(self.tensor))

    def has_none_of(self, infinity: float) -> bool:
        """Whether all entries are finite and the fill is not `infinity`, which is inf or -inf."""
        return self.is_finite and not (_is_infinite(self.tensor) and self.tensor.fill == infinity)


def _is_infinite(tensor: Tensor) -> bool:
    return isinstance(tensor.fill, float) and math.isinf(tensor.fill)


@dataclass(frozen=True, slots=True)
class AnnotatedEinSum:
    """An EinSum with its annotated operands and result, and what is exact for it."""

    einsum: EinSum
    operands: tuple[AnnotatedTensor, ...]
    result: AnnotatedTensor
    evaluation: Evaluation

    def is_valid_for(self, einsum: EinSum, operands: tuple[AnnotatedTensor, ...]) -> bool:
        """Whether the annotations hold for `einsum`: it is the same, and `operands` are the same objects."""
        return (self.einsum is einsum or self.einsum == einsum) and all(map(operator.is_, self.operands, operands))


@dataclass(frozen=True, slots=True)
class AnnotatedGraph:
    """A graph of EinSums of one or two operands, with annotations; the stages of rewriting take and return it.

    Attributes:
        graph: The EinSums in topological order, with the fills that they compute.
        inputs: The tensors that no EinSum computes, by name.
        annotated: The annotated EinSums by the names of their results.
        allows_nonfinite: Whether the graph computes with values that turn NaN or infinite; else a run detects them.
    """

    graph: EinGraph
    inputs: Mapping[str, AnnotatedTensor]
    annotated: Mapping[str, AnnotatedEinSum]
    allows_nonfinite: bool

    @property
    def tensors(self) -> dict[str, AnnotatedTensor]:
        """The annotated inputs and results, by name."""
        return {**self.inputs, **{name: einsum.result for name, einsum in self.annotated.items()}}

    def tensor(self, name: str) -> AnnotatedTensor:
        """An input or a result."""
        return self.annotated[name].result if name in self.annotated else self.inputs[name]

    @property
    def exact(self) -> ExactGraph:
        """The graph with what is exact for each EinSum, without statistics."""
        return ExactGraph(self.graph, self.evaluations, {name: tensor.values for name, tensor in self.tensors.items()})

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """What is exact for each EinSum, by the name of its result."""
        return {name: einsum.evaluation for name, einsum in self.annotated.items()}

    def annotator_for(self, names: Iterable[str]) -> "GraphAnnotator":
        """An annotator of EinSums that read the tensors `names`, which are its inputs."""
        return GraphAnnotator({name: self.tensor(name) for name in names}, self.allows_nonfinite, (self.annotated,))

    def annotator(self, *others: "AnnotatedGraph") -> "GraphAnnotator":
        """An annotator of EinSums over the inputs; those that are annotated here or in `others` are not evaluated."""
        earlier = (self.annotated, *(other.annotated for other in others))
        return GraphAnnotator(dict(self.inputs), self.allows_nonfinite, earlier)

    def with_einsums(self, einsums: Iterable[EinSum]) -> "AnnotatedGraph":
        """The graph with other EinSums of one or two operands, in topological order."""
        return self.annotator().graph_of(einsums, self.graph.outputs)


@dataclass(slots=True)
class GraphAnnotator:
    """Annotates EinSums one after the other, while a stage goes through a graph or tries EinSums out.

    Attributes:
        tensors: The inputs and the results annotated so far, by name.
        allows_nonfinite: Whether the graph computes with values that turn NaN or infinite; else a run detects them.
        earlier: EinSums that were annotated elsewhere, by the names of their results; they are looked up in turn, and
            reused where they are valid.
        annotated: EinSums that were annotated here, by the names of their results.
    """

    tensors: dict[str, AnnotatedTensor]
    allows_nonfinite: bool
    earlier: tuple[Mapping[str, AnnotatedEinSum], ...] = ()
    annotated: dict[str, AnnotatedEinSum] = field(default_factory=dict)

    @classmethod
    def for_inputs(
        cls,
        tensors: Mapping[str, Tensor],
        statistics: Mapping[str, Statistics],
        values: Mapping[str, ValueFacts],
        allows_nonfinite: bool = False,
    ) -> "GraphAnnotator":
        """An annotator for the tensors that have statistics, which are measured inputs.

        Args:
            tensors: The tensors by name.
            statistics: Statistics of inputs, by name.
            values: What is known of their values, by name.
            allows_nonfinite: Whether the graph computes with values that turn NaN or infinite.
        """
        inputs = {name: AnnotatedTensor(tensors[name], statistics[name], values[name]) for name in statistics}
        return cls(inputs, allows_nonfinite)

    def annotator_for(self, names: Iterable[str]) -> "GraphAnnotator":
        """An annotator of EinSums that read the tensors `names`, which are its inputs."""
        tensors = {name: self.tensors[name] for name in names}
        return GraphAnnotator(tensors, self.allows_nonfinite, (self.annotated, *self.earlier))

    def result_of(self, einsum: EinSum) -> AnnotatedTensor:
        """The result that an EinSum of one or two operands would have; the annotator does not remember it."""
        return self.annotation_of(einsum).result

    def is_surely_finite(self, einsum: EinSum, dtypes: Collection[str]) -> bool:
        """Whether the result of `einsum` has one of `dtypes` and is finite, so that a run need not check its values."""
        annotation = self.annotation_of(einsum)
        result = annotation.result
        return result.tensor.dtype in dtypes and result.is_all_finite and not annotation.evaluation.detects_nonfinite

    def add(self, einsum: EinSum) -> Evaluation:
        """Annotate `einsum` and make its result known to later EinSums; returns what is exact for it."""
        name, annotation = einsum.output.tensor, self.annotation_of(einsum)
        self.tensors[name], self.annotated[name] = annotation.result, annotation
        return annotation.evaluation

    def graph_of(self, einsums: Iterable[EinSum], outputs: tuple[str, ...]) -> AnnotatedGraph:
        """The annotated graph of `einsums`, which are in topological order."""
        chosen = tuple(einsums)
        for einsum in chosen:
            self.add(einsum)
        annotated = {name: self.annotated[name] for name in (einsum.output.tensor for einsum in chosen)}
        inputs = {name: tensor for name, tensor in self.tensors.items() if name not in self.annotated}
        tensors = {name: annotation.tensor for name, annotation in inputs.items()}
        tensors |= {name: annotation.result.tensor for name, annotation in annotated.items()}
        return AnnotatedGraph(
            EinGraph(MappingProxyType(tensors), chosen, outputs), inputs, annotated, self.allows_nonfinite
        )

    def annotation_of(self, einsum: EinSum) -> AnnotatedEinSum:
        """The annotated `einsum`: one annotated earlier where it is still valid, else a new one."""
        name = einsum.output.tensor
        operands = tuple(self.tensors[operand.tensor] for operand in einsum.operands)
        for annotations in (self.annotated, *self.earlier):
            if name in annotations and annotations[name].is_valid_for(einsum, operands):
                return annotations[name]
        return AnnotatedEinSum(einsum, operands, *self._evaluated(einsum))

    def _evaluated(self, einsum: EinSum) -> tuple[AnnotatedTensor, Evaluation]:
        read = {operand.tensor for operand in einsum.operands}
        name = einsum.output.tensor
        tensors = {operand: self.tensors[operand].tensor for operand in read}
        tensors[name] = result_tensor(einsum, tensors)
        graph = EinGraph(tensors, (einsum,), (name,))
        values = {operand: self.tensors[operand].values for operand in read}
        tensor, evaluation = decide_evaluation(einsum, tensors, values, graph, self.allows_nonfinite)
        operand_statistics = {operand: self.tensors[operand].statistics for operand in read}
        statistics = estimate_result(graph, einsum, operand_statistics, evaluation)
        return AnnotatedTensor(tensor, statistics, evaluation.values), evaluation

    def plain_tensors(self) -> dict[str, Tensor]:
        """All tensors without their annotations, by name."""
        return {name: annotated.tensor for name, annotated in self.tensors.items()}
