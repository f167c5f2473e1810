"""Algebra: plans as operators; a repartition is added where a reader needs another decomposition.

Source: SparseEinSum, section 6: first decompose to the keys of both decompositions, then stack to those of the reader;
a half is left out if one set of keys contains the other.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from sparseeinsum.algebra.dependencies import has_single_pairs
from sparseeinsum.algebra.fused import fused_relation
from sparseeinsum.algebra.operators import (
    AllKeys,
    Compensation,
    Compress,
    Computed,
    Contract,
    Convert,
    Densify,
    Materialized,
    Relation,
    Resident,
    Restrict,
    Slice,
    Stack,
    Stored,
    key_ranges,
)
from sparseeinsum.algebra.reading import Readable, compressed, in_decomposition, repartitioned, resident
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, Step
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.places.distribution import Distribution
from sparseeinsum.decompose.repartitions import Repartition, is_shared_array
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.language.tensors import StoredTensor, count_keys, tuple_bytes
from sparseeinsum.operators.ranges import Range
from sparseeinsum.semantics.exactness import Evaluation, ValueFacts
from sparseeinsum.statistics.measured_tensors import MeasuredTensor, stored_of, values_of


@dataclass(frozen=True, slots=True)
class ComputedResult:
    """The result of an EinSum, and the relation that computes it.

    Attributes:
        name: The name of the result.
        relation: The EinSum over its operands.
        step: The step of the plan.
        distribution: Where the tuples of the result are, if there are several machines.
    """

    name: str
    relation: Contract
    step: Step
    distribution: Distribution | None = None

    def passes(self) -> tuple[Contract, ...]:
        """The relation in parts with no key in common, to be computed one after the other; one part without passes."""
        passes = self.step.passes
        if passes is None:
            return (self.relation,)
        position = self.relation.labels.index(passes.label)
        schema = self.relation.output
        keys = count_keys(schema.decomposition.tiles[position], schema.tensor.axes[position].bound)
        ranges = key_ranges(keys, passes.count)
        return tuple(_restricted(self.relation, passes.label, first, last) for first, last in ranges)

    def materialized_operands(self) -> tuple[Materialized, ...]:
        """The operands, and what they read, that have tables of their own."""
        return materialized_relations(self.relation)


def materialized_relations(relation: Relation) -> tuple[Materialized, ...]:
    """The relations with tables of their own that a relation reads, each after those that it is made of."""
    if isinstance(relation, Stored | Computed | AllKeys):
        return ()
    if isinstance(relation, Contract):
        return tuple(materialized for operand in relation.inputs for materialized in materialized_relations(operand))
    relations = materialized_relations(relation.input)
    if isinstance(relation, Densify) and relation.all_keys is not None:
        relations += materialized_relations(relation.all_keys)
    return (*relations, relation) if isinstance(relation, Materialized) else relations


def _restricted(contract: Contract, label: str, first: int, last: int) -> Contract:
    """The tuples in a range of the keys of a label that the result has.

    A resident operand is not restricted: it is read only at the keys of the other operand, which is restricted.
    """

    def restricted(operand: Reference, relation: Relation) -> Relation:
        if label not in operand.labels or isinstance(relation, Resident):
            return relation
        if isinstance(relation, Compress):
            return replace(relation, input=restricted(operand, relation.input))
        return Restrict(relation, operand.labels.index(label), first, last)

    return replace(contract, inputs=tuple(map(restricted, contract.einsum.operands, contract.inputs)))


@dataclass(frozen=True, slots=True)
class InputTensors:
    """What is known of the input tensors.

    Attributes:
        stored: The tensors, and where they are stored.
        values: What is known of their values.
        complete: The tensors whose relations hold every tuple.
        identifying: For some tensors, the axes whose key no two of their tuples share.
    """

    stored: Mapping[str, StoredTensor]
    values: Mapping[str, ValueFacts]
    complete: Set[str]
    identifying: Mapping[str, Set[int]]

    @classmethod
    def of_measured(cls, inputs: Mapping[str, MeasuredTensor]) -> "InputTensors":
        """What measurements of all inputs tell."""
        return cls(
            stored_of(inputs),
            values_of(inputs),
            frozenset(name for name, tensor in inputs.items() if tensor.is_complete),
            {name: tensor.identifying_axes for name, tensor in inputs.items()},
        )


_RESIDENT_DTYPES = ("float64", "float32", "int64")
_LEAST_RESIDENT_BYTES = 1 << 18  # of arrays; a join of fewer takes no longer than one more operator


@dataclass(frozen=True, slots=True)
class MaterializationPolicy:
    """Which operands are stored in tables of their own, and which results have all tuples.

    Attributes:
        shares: Whether an operand is that is sliced or stacked for several readers.
        max_bytes: An operand whose tuples are all made present is stored if it is larger.
        fills_rows: Whether kernels compute sums over the entries of rows for all keys, where nearly all have entries.
        resident_bytes: An operand of arrays whose tuples are all made present is put into one array in memory if it is
            not larger.
        keeps_arrays: Whether a statement puts arrays of many rows together in memory.
    """

    shares: bool
    max_bytes: float
    fills_rows: bool
    resident_bytes: float
    keeps_arrays: bool

    @classmethod
    def for_model(cls, model: CostModel, has_workers: bool) -> "MaterializationPolicy":
        """The policy for plans of a cost model, on an engine that may have workers, which share no arrays."""
        memory = model.memory
        resident_bytes = min(memory.largest_row_bytes, memory.largest_relation_bytes)
        return cls(
            has_workers or memory.covers_process,
            memory.largest_relation_bytes,
            model.has_handles,
            resident_bytes,
            model.keeps_arrays,
        )


def translate(
    plan: DecomposedGraph,
    inputs: InputTensors,
    evaluations: Mapping[str, Evaluation],
    policy: MaterializationPolicy,
) -> tuple[ComputedResult, ...]:
    """The operators of a plan: a definition for every EinSum, in topological order.

    Args:
        plan: The decompositions of all EinSums.
        inputs: The input tensors.
        evaluations: For every EinSum, what is exact.
        policy: Which operands are stored in tables of their own.
    """
    definitions = tuple(_Translation(plan, inputs, evaluations, policy.fills_rows).definitions())
    if policy.shares:
        definitions = _materialize_shared(definitions)
    if policy.max_bytes == math.inf and not policy.keeps_arrays:
        return definitions
    return tuple(replace(definition, relation=_place_arrays(definition.relation, policy)) for definition in definitions)


@dataclass(frozen=True, slots=True)
class _Translation:
    """Makes the operators of every step of a plan.

    Attributes:
        plan: The decompositions of all EinSums.
        inputs: The input tensors.
        evaluations: For every EinSum, what is exact.
        fills_rows: As in `MaterializationPolicy`.
    """

    plan: DecomposedGraph
    inputs: InputTensors
    evaluations: Mapping[str, Evaluation]
    fills_rows: bool

    def definitions(self) -> Iterator[ComputedResult]:
        """The results of all steps that compute one, in topological order."""
        readables = {
            name: Readable(Stored(source), name in self.inputs.complete, not self.inputs.values[name].has_fill)
            for name, source in self.inputs.stored.items()
        }
        for step in self.plan.steps:
            if step.computed_in:
                continue
            name = step.einsum.output.tensor
            schema = Schema(self.plan.graph.tensors[name], step.result)
            evaluation = self.evaluations[name]
            has_all_values = not evaluation.values.has_fill
            if step.fused is not None:
                relation = fused_relation(step, step.fused, schema, readables, self.plan, evaluation)
                has_all_tuples = has_all_values or not schema.keys
            else:
                operands = self._operands(step, readables)
                is_complete = self._has_all_pairs(step, operands)
                relation = self._contract(step, operands, schema, is_complete)
                is_single = is_aggregating(step) and not schema.keys  # it has one tuple, also if it aggregates none
                has_all_tuples = is_complete or is_single or has_all_values or relation.fills_rows
            yield ComputedResult(name, relation, step)
            readables[name] = Readable(Computed(schema), has_all_tuples, has_all_values)

    def _operands(self, step: Step, readables: Mapping[str, Readable]) -> list[Readable]:
        """The operands of a step as it reads them."""
        computed_in = self.evaluations[step.einsum.output.tensor].computed_in
        operands = []
        for index, operand in enumerate(step.einsum.operands):
            planned = self.plan.repartitions[operand.tensor, step.operand(index)]
            operands.append(_operand(readables[operand.tensor], step, index, planned, computed_in))
        return operands

    def _has_all_pairs(self, step: Step, operands: Sequence[Readable]) -> bool:
        """Whether operands have pairs of tuples, and lack none of them."""
        return step.most_pairs(self.plan.graph) > 0 and all(
            operand.is_complete or (step.cost.is_sparse_matmul and index in step.orders)
            for index, operand in enumerate(operands)
        )

    def _contract(self, step: Step, operands: Sequence[Readable], schema: Schema, is_complete: bool) -> Contract:
        """The join and the aggregation of a step; `is_complete` tells whether no pair of tuples is absent."""
        graph, evaluation = self.plan.graph, self.evaluations[step.einsum.output.tensor]
        relations = tuple(operand.relation for operand in operands)
        aggregated_labels = step.promoted - frozenset(step.einsum.output.labels)
        compensation = None
        if aggregated_labels and not is_complete:
            compensation = _compensation(evaluation, step.most_pairs(graph), step.aggregated_indices(graph))
        return Contract(
            step.einsum,
            relations,
            step.absence.join,
            schema,
            evaluation.computed_in,
            compensation,
            evaluation.detects_nonfinite,
            compensation is None and has_single_pairs(step, relations, self.inputs.identifying),
            compressed=tuple(step.orders),
            is_matched=step.cost.is_matched,
            ranges=tuple(self._range(operand.tensor) for operand in step.einsum.operands),
            complete=tuple(operand.is_complete for operand in operands),
            fills_rows=self.fills_rows and step.fills_rows(graph),
            is_brief=step.is_brief,
        )

    def _range(self, name: str) -> Range:
        """The range of the values and the fill of a tensor that is read."""
        facts = self.inputs.values[name] if name in self.inputs.values else self.evaluations[name].values
        return facts.range_with_fill(self.plan.graph.tensors[name].fill)


def _materialize_shared(definitions: Sequence[ComputedResult]) -> tuple[ComputedResult, ...]:
    """Store what is sliced or stacked for more than one operand in a table, unless it is a single tuple.

    An engine whose workers share no CTE could neither compute nor read it in parallel, and would not know its keys'
    statistics.
    """
    reads = Counter(_before_densify(operand) for definition in definitions for operand in definition.relation.inputs)
    shared: Set[Relation] = {
        relation
        for relation, count in reads.items()
        if count > 1 and isinstance(relation, Slice | Stack) and relation.schema.keys
    }
    return tuple(
        replace(definition, relation=_with_materialized(definition.relation, shared)) for definition in definitions
    )


def _place_arrays(contract: Contract, policy: MaterializationPolicy) -> Contract:
    """Decide where operands lie that are made of all tuples: large ones in tables, arrays in memory."""

    def placed(operand: Relation) -> Relation:
        schema = operand.schema
        if isinstance(operand, Stack):
            is_resident = policy.keeps_arrays and operand.can_be_resident and is_shared_array(schema.tensor)
            return replace(operand, is_resident=is_resident)
        if not isinstance(operand, Densify) or not schema.keys:
            return operand
        tuples = schema.decomposition.max_tuples(schema.tensor.shape)
        size_bytes = tuples * tuple_bytes(schema.tensor, schema.decomposition)
        if size_bytes > policy.max_bytes:
            return Materialized(operand, schema.decomposition.promoted[0], 1)
        has_arrays = not (schema.is_scalar or schema.is_ragged) and schema.tensor.dtype in _RESIDENT_DTYPES
        fits = policy.keeps_arrays and _LEAST_RESIDENT_BYTES <= size_bytes <= policy.resident_bytes
        return replace(operand, is_resident=has_arrays and fits)

    return replace(contract, inputs=tuple(map(placed, contract.inputs)))


def _before_densify(operand: Relation) -> Relation:
    return operand.input if isinstance(operand, Densify) else operand


def _with_materialized(contract: Contract, shared: Set[Relation]) -> Contract:
    return replace(contract, inputs=tuple(_materialized_if_shared(operand, shared) for operand in contract.inputs))


def _materialized_if_shared(operand: Relation, shared: Set[Relation]) -> Relation:
    repartitioned = _before_densify(operand)
    if repartitioned not in shared:
        return operand
    materialized = Materialized(repartitioned, repartitioned.schema.decomposition.promoted[0], 1)
    return replace(operand, input=materialized) if isinstance(operand, Densify) else materialized


def _compensation(evaluation: Evaluation, pairs: int, indices: int) -> Compensation | None:
    """What the pairs that a join omits contribute; None if the aggregate ignores them."""
    if evaluation.constant is None or not evaluation.compensates:
        return None
    return Compensation(evaluation.constant, pairs, indices)


def _operand(readable: Readable, step: Step, index: int, planned: Repartition, computed_in: str) -> Readable:
    """An operand as a step reads it."""
    if index == step.indexed:
        return resident(readable, step.operand(index), planned)
    operand = repartitioned(readable, step.operand(index), step.absence.dense[index], planned)
    if index not in step.orders:
        return operand
    reference, order = step.einsum.operands[index], step.orders[index]
    return replace(operand, relation=compressed(operand.relation, reference, order, computed_in))


def is_aggregating(step: Step) -> bool:
    """Whether a step aggregates tuples: it promotes a label that its result lacks."""
    return not step.promoted <= frozenset(step.einsum.output.labels)


def delivered_relation(plan: DecomposedGraph, name: str) -> Relation:
    """An output in the layout in which it is delivered."""
    step = plan.step_of(name)
    assert step is not None
    computed = Computed(Schema(plan.graph.tensors[name], step.result))
    delivered = in_decomposition(computed, plan.layouts[name], plan.repartitions[name, plan.layouts[name]])
    return Convert(delivered) if delivered.schema.tensor.dtype == "bool" else delivered


def with_all_tuples(delivered: Relation) -> Relation:
    """An output as `delivered_relation` returns it, with the tuples that hold the fill."""
    match delivered:
        case Convert(input=inner):
            return replace(delivered, input=with_all_tuples(inner))
        case _:
            return Densify(delivered)
