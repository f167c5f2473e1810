"""Algebra: plans into operators; repartitions appear where a reader wants another decomposition than there is.

Source: SparseEinSum, section 6: first decompose to the keys of both sides, then stack to those of the reader; either
half is left out where one set of keys contains the other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from sparseeinsum.algebra.dependencies import has_single_pairs
from sparseeinsum.algebra.operators import (
    AllKeys,
    Compensation,
    Computed,
    Contract,
    Convert,
    Densify,
    Materialized,
    Relation,
    Resident,
    Restrict,
    Schema,
    Slice,
    Stack,
    Stored,
    key_ranges,
)
from sparseeinsum.decompose.clusters.distribution import Distribution
from sparseeinsum.decompose.memory import Memory
from sparseeinsum.decompose.plan import DecomposedGraph, Step
from sparseeinsum.decompose.repartitions import Repartition
from sparseeinsum.language.tensors import Decomposition, StoredTensor, count_keys, tuple_bytes
from sparseeinsum.semantics.exactness import Evaluation, Values
from sparseeinsum.statistics.measured_tensors import MeasuredTensor, stored_of, values_of


@dataclass(frozen=True, slots=True)
class Definition:
    """A named relation and what computes it.

    Attributes:
        name: Of the result.
        relation: The EinSum over its operands.
        step: Of the plan.
        distribution: Where the tuples of the result are, of several machines; None where there is one.
    """

    name: str
    relation: Contract
    step: Step
    distribution: Distribution | None = None

    def passes(self) -> tuple[Contract, ...]:
        """The same in parts that have no key in common, to be computed one after the other; one part, if in one."""
        passes = self.step.passes
        if passes is None:
            return (self.relation,)
        position = self.step.einsum.output.labels.index(passes.label)
        schema = self.relation.output
        keys = count_keys(schema.decomposition.tiles[position], schema.tensor.axes[position].bound)
        ranges = key_ranges(keys, passes.count)
        return tuple(_restricted(self.relation, passes.label, first, last) for first, last in ranges)

    def materialized_operands(self) -> tuple[Materialized, ...]:
        """Operands that are put together in tables of their own."""
        return materialized_relations(self.relation)


def materialized_relations(relation: Relation) -> tuple[Materialized, ...]:
    """What a relation reads out of tables of its own, each after those that it is made of."""
    if isinstance(relation, Stored | Computed | AllKeys):
        return ()
    if isinstance(relation, Contract):
        return tuple(kept for operand in relation.inputs for kept in materialized_relations(operand))
    found = materialized_relations(relation.input)
    if isinstance(relation, Densify) and relation.all_keys is not None:
        found += materialized_relations(relation.all_keys)
    return (*found, relation) if isinstance(relation, Materialized) else found


def _restricted(contract: Contract, label: str, first: int, last: int) -> Contract:
    """Only the tuples in a range of the keys of a label that the result has, too.

    Whatever reads a resident operand has its keys, and reads only those that it has.
    """
    inputs = tuple(
        Restrict(relation, operand.labels.index(label), first, last)
        if label in operand.labels and not isinstance(relation, Resident)
        else relation
        for operand, relation in zip(contract.einsum.operands, contract.inputs, strict=True)
    )
    return replace(contract, inputs=inputs)


@dataclass(frozen=True, slots=True)
class InputTensors:
    """What operators need to know of the input tensors.

    Attributes:
        stored: Where they lie.
        values: What is known of their values.
        complete: Those whose relations hold every tuple that there can be.
        identifying: For some, axes whose key no two of their tuples share.
    """

    stored: Mapping[str, StoredTensor]
    values: Mapping[str, Values]
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


@dataclass(frozen=True, slots=True)
class MaterializationPolicy:
    """Which operands are put together in tables of their own.

    Attributes:
        shared: Whether those are that are sliced or stacked for several readers.
        most_bytes: Of an operand, every tuple of which is made present, that a statement may hold; larger ones are.
    """

    shared: bool
    most_bytes: float

    @classmethod
    def within(cls, memory: Memory, has_workers: bool) -> "MaterializationPolicy":
        """Those of plans for so much memory, on an engine that may have workers."""
        return cls(has_workers or memory.covers_process, memory.largest_relation_bytes)


def translate(
    plan: DecomposedGraph,
    inputs: InputTensors,
    evaluations: Mapping[str, Evaluation],
    kept: MaterializationPolicy,
) -> tuple[Definition, ...]:
    """One definition for every EinSum of a plan, in topological order.

    Args:
        plan: Choices for all EinSums.
        inputs: The input tensors.
        evaluations: What is exact for every EinSum.
        kept: Which operands are kept in tables.
    """
    definitions = tuple(_definitions(plan, inputs, evaluations))
    if kept.shared:
        definitions = _keep_shared(definitions)
    return tuple(
        replace(definition, relation=_keeping_filled(definition.relation, kept.most_bytes))
        for definition in definitions
    )


def _definitions(
    plan: DecomposedGraph, inputs: InputTensors, evaluations: Mapping[str, Evaluation]
) -> Iterator[Definition]:
    known = {
        name: _Operand(Stored(source), name in inputs.complete, not inputs.values[name].has_fill)
        for name, source in inputs.stored.items()
    }
    for step in plan.steps:
        name = step.einsum.output.tensor
        schema = Schema(plan.graph.tensors[name], step.result)
        evaluation = evaluations[name]
        operands = [
            _prepared(known[operand.tensor], step, index, plan.repartitions[operand.tensor, step.operand(index)])
            for index, operand in enumerate(step.einsum.operands)
        ]
        gone = step.promoted - frozenset(step.einsum.output.labels)
        pairs = step.most_pairs(plan.graph)
        is_complete = pairs > 0 and all(operand.is_complete for operand in operands)
        relations = tuple(operand.relation for operand in operands)
        indices = step.aggregated_indices(plan.graph)
        compensation = None if is_complete or not gone else _compensation(evaluation, pairs, indices)
        contract = Contract(
            step.einsum,
            relations,
            step.absence.join,
            schema,
            evaluation.computed_in,
            compensation,
            evaluation.detects_nonfinite,
            compensation is None and has_single_pairs(step, relations, inputs.identifying),
        )
        yield Definition(name, contract, step)
        is_whole = is_aggregating(step) and not schema.keys  # one tuple, also of nothing
        is_full = not evaluation.values.has_fill
        known[name] = _Operand(Computed(schema), is_complete or is_whole or is_full, is_full)


def _keep_shared(definitions: Sequence[Definition]) -> tuple[Definition, ...]:
    """Keep what is sliced or stacked for more than one operand in a table, unless it is a single tuple.

    An engine whose workers share no CTE could not put it together, nor read it, in parallel; and it knows nothing of
    its keys.
    """
    reads = Counter(_without_filling(operand) for definition in definitions for operand in definition.relation.inputs)
    shared: Set[Relation] = {
        relation
        for relation, count in reads.items()
        if count > 1 and isinstance(relation, Slice | Stack) and relation.schema.keys
    }
    return tuple(replace(definition, relation=_keeping(definition.relation, shared)) for definition in definitions)


def _keeping_filled(contract: Contract, largest_relation_bytes: float) -> Contract:
    """Keep operands in tables of which every tuple is made present, where they take more than that."""

    def kept(operand: Relation) -> Relation:
        schema = operand.schema
        tuples = schema.decomposition.max_tuples(schema.tensor.shape)
        is_large = tuples * tuple_bytes(schema.tensor, schema.decomposition) > largest_relation_bytes
        is_filled = isinstance(operand, Densify) and is_large and schema.keys
        return Materialized(operand, schema.decomposition.promoted[0], 1) if is_filled else operand

    return replace(contract, inputs=tuple(map(kept, contract.inputs)))


def _without_filling(operand: Relation) -> Relation:
    return operand.input if isinstance(operand, Densify) else operand


def _keeping(contract: Contract, shared: Set[Relation]) -> Contract:
    return replace(contract, inputs=tuple(_kept_if_shared(operand, shared) for operand in contract.inputs))


def _kept_if_shared(operand: Relation, shared: Set[Relation]) -> Relation:
    moved = _without_filling(operand)
    if moved not in shared:
        return operand
    kept = Materialized(moved, moved.schema.decomposition.promoted[0], 1)
    return replace(operand, input=kept) if isinstance(operand, Densify) else kept


def _compensation(evaluation: Evaluation, pairs: int, indices: int) -> Compensation | None:
    """What the pairs that a join leaves out contribute, where the aggregate does not ignore it."""
    if evaluation.constant is None or not evaluation.compensates:
        return None
    return Compensation(evaluation.constant, pairs, indices)


@dataclass(frozen=True, slots=True)
class _Operand:
    """A relation.

    Attributes:
        relation: What computes it.
        is_complete: Whether it is known to hold every tuple that there can be.
        is_full: Whether no index may be taken for absent, even where it holds the fill; then it is complete.
    """

    relation: Relation
    is_complete: bool
    is_full: bool


def _prepared(operand: _Operand, step: Step, index: int, move: Repartition) -> _Operand:
    """An operand as a step reads it."""
    if index == step.indexed:
        return _resident(operand, step.operand(index), move)
    return _prepare(operand, step.operand(index), step.absence.dense[index], move)


def _prepare(operand: _Operand, wanted: Decomposition, needs_all: bool, move: Repartition) -> _Operand:
    """An operand in the decomposition that its reader wants, every tuple present where that is asked for."""
    has_indices = operand.relation.schema.tensor.size > 0  # without, all of no tuples are no group to stack
    has_all = operand.is_complete and has_indices
    if has_all and (needs_all or operand.is_full):  # nothing is absent, if slicing drops nothing
        return _Operand(_moved(operand.relation, wanted, move, keeps_fill=True), True, operand.is_full)
    relation = _moved(operand.relation, wanted, move)
    given = operand.relation.schema.decomposition
    drops_fill = given.common_refinement(wanted) != given
    is_one_stack = isinstance(relation, Stack) and not wanted.promoted  # which always has its one tuple
    is_complete = is_one_stack or (has_all and not drops_fill)
    if needs_all and not is_complete:
        return _Operand(Densify(relation), True, is_full=False)
    return _Operand(relation, is_complete, is_full=False)


def _resident(operand: _Operand, wanted: Decomposition, move: Repartition) -> _Operand:
    """An operand that is kept in memory, where every tuple can be read, whether it is there or not."""
    relation = _moved(operand.relation, wanted, move)
    return _Operand(Resident(relation), relation.schema.tensor.size > 0, operand.is_full)


def is_aggregating(step: Step) -> bool:
    """Whether a step aggregates tuples: it promotes a label that its result lacks."""
    return not step.promoted <= frozenset(step.einsum.output.labels)


def delivered_relation(plan: DecomposedGraph, name: str) -> Relation:
    """An output in the layout that it is delivered in."""
    step = plan.step_of(name)
    assert step is not None
    computed = Computed(Schema(plan.graph.tensors[name], step.result))
    delivered = _moved(computed, plan.layouts[name], plan.repartitions[name, plan.layouts[name]])
    return Convert(delivered) if delivered.schema.tensor.dtype == "bool" else delivered


def _moved(relation: Relation, wanted: Decomposition, move: Repartition, keeps_fill: bool = False) -> Relation:
    """The relation in another decomposition, in a table of its own where that is planned."""
    moved = repartition(relation, wanted, keeps_fill)
    if move.passes is None:
        return moved
    axes = [axis.name for axis in moved.schema.tensor.axes]
    return Materialized(moved, axes.index(move.passes.label), move.passes.count)


def repartition(relation: Relation, wanted: Decomposition, keeps_fill: bool = False) -> Relation:
    """The relation in another decomposition: sliced to what both consist of, then stacked to what is wanted."""
    given = relation.schema.decomposition
    between = given.common_refinement(wanted)
    if between != given:
        relation = Slice(relation, between, keeps_fill)
    if between != wanted:
        relation = Stack(relation, wanted)
    return relation
