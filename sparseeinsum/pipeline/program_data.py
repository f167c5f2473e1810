"""Pipeline: measures the tensors that a program reads, and the memory that there is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.decompose.indexed_access import StoredOrder
from sparseeinsum.decompose.memory_footprint import RunMemory, scan_needed_bytes, scanning_bytes, threads_within
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory_limit import limited_memory
from sparseeinsum.errors import PlanError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph, Program
from sparseeinsum.language.generated import GeneratedTensor
from sparseeinsum.language.index_maps import IndexMap
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.pipeline.stage_clock import StageClock
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.rewrite.first_match import successors_needed
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.axis_counts import AxisCounts
from sparseeinsum.statistics.block_counts import with_blocks
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import Estimator, make_estimator
from sparseeinsum.statistics.measured_tensors import MeasuredTensor, statistics_of, stored_of, values_of
from sparseeinsum.statistics.order import ascending_axes
from sparseeinsum.statistics.scan_cache import stored_in
from sparseeinsum.storage.fixed_keys import with_known_key
from sparseeinsum.storage.generated_tensors import generated_source, index_map_source, successor_source
from sparseeinsum.storage.measuring import count_changed, measure_all
from sparseeinsum.storage.program_inputs import stored_inputs

NOTHING_ASSUMED: Mapping[str, ValueFacts] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProgramData:
    """What planning knows of the data of a program.

    Attributes:
        bound: The program over its inputs, with its own outputs.
        inputs: The tensors that the program reads, by name.
        orders: The axes by which the tuples of stored tensors are sorted.
        estimator: Estimates the statistics of results.
        memory: The memory that a run may take.
        successors: For a vector of indices, the name of the generated tensor that maps every index to the next one.
    """

    bound: EinGraph
    inputs: Mapping[str, MeasuredTensor]
    orders: Mapping[str, StoredOrder]
    estimator: Estimator
    memory: RunMemory
    successors: Mapping[str, str]

    @property
    def stored(self) -> dict[str, StoredTensor]:
        """The tables of the inputs."""
        return stored_of(self.inputs)

    @property
    def index_maps(self) -> dict[str, AffineIndex]:
        """The indices that index maps stand for, by the names of the maps."""
        indices = {name: tensor.stored.index for name, tensor in self.inputs.items()}
        return {name: index for name, index in indices.items() if index is not None}

    @property
    def statistics(self) -> dict[str, Statistics]:
        """T and V of the inputs."""
        return statistics_of(self.inputs)

    @property
    def values(self) -> dict[str, ValueFacts]:
        """The ranges of values of the inputs, on which exactness depends."""
        return values_of(self.inputs)


def read_data(
    program: Program,
    engine: Engine,
    options: PlanOptions,
    supplied: Mapping[str, StoredTensor],
    assumed: Mapping[str, ValueFacts],
    clock: StageClock,
    memory: RunMemory | None = None,
) -> ProgramData:
    """Measure the tensors that a program reads, as they are now.

    Args:
        program: The program.
        engine: The database.
        options: The options of the plan.
        supplied: The relations to read in place of stored tensors, by their names.
        assumed: What may hold for the values of tensors besides what holds now, by their names.
        clock: Measures the stages: scans of what plans rely on, and statistics.
        memory: What `memory_for` returns, if it is known.

    Raises:
        CatalogueError: A tensor does not exist.
        DataError: The rows of a table are not a tensor.
        PlanError: The memory is too small to read a tensor in its stored layout.
    """
    with clock.stage("statistics"):
        lookup = stored_inputs(program, engine, supplied=supplied)
        stored = dict(lookup.stored)
        generated = _Generated.of(program, stored, engine)
        stored |= generated.stored
        memory = _with_room_for(stored, memory or memory_for(engine, options))
    _check_scans(stored, memory)
    scanned_bytes = 0.0 if options.memory_limit is None else sum(map(scanning_bytes, stored.values()))
    with limited_memory(engine, options.memory_limit, scanned_bytes):
        with clock.stage("scans"):
            measured = measure_all(stored, engine, lookup.column_types)
        with clock.stage("statistics"):
            inputs = {
                name: _with_blocks(tensor.with_possible(assumed.get(name)), options.tiles, engine)
                for name, tensor in measured.items()
            }
            estimator = _estimator(inputs, engine, options)
            orders = orders_of(inputs, engine)
    return ProgramData(generated.bound, inputs, orders, estimator, memory, generated.successors)


def _estimator(inputs: Mapping[str, MeasuredTensor], engine: Engine, options: PlanOptions) -> Estimator:
    def count(stored: Mapping[str, StoredTensor]) -> Mapping[str, tuple[AxisCounts, ...]]:
        return count_changed({name: inputs[name].row_version for name in stored}, engine)

    return make_estimator(options.estimator, stored_of(inputs), statistics_of(inputs), engine, count)


def _with_blocks(tensor: MeasuredTensor, tiles: tuple[int, ...], engine: Engine) -> MeasuredTensor:
    """The same with counts of its tuples in tiles of the sizes `tiles`."""
    if not tiles:
        return tensor
    statistics = with_blocks(tensor.statistics, tensor.stored, tiles, engine)
    return replace(tensor, measurement=replace(tensor.measurement, statistics=statistics))


def memory_for(engine: Engine, options: PlanOptions) -> RunMemory:
    """The memory and the threads that a run may take."""
    covers_process = options.memory_limit is not None and not engine.is_server
    limit, threads = engine.capacity()
    if options.memory_limit is not None:
        limit = options.memory_limit
    threads = threads_within(limit, threads) if covers_process else threads
    sql = engine.dialect
    return RunMemory(limit, threads, sql.vector_rows, sql.rows_per_thread, covers_process, sql.spills_states)


def _with_room_for(stored: Mapping[str, StoredTensor], memory: RunMemory) -> RunMemory:
    """`memory` with as many threads as can read every tensor in its stored layout, at least one."""
    if not memory.covers_process:
        return memory
    needed = max((scan_needed_bytes(source, replace(memory, threads=1)) for source in stored.values()), default=0)
    if needed == 0:
        return memory
    return replace(memory, threads=max(min(memory.threads, math.floor(memory.limit_bytes / needed)), 1))


def _check_scans(stored: Mapping[str, StoredTensor], memory: RunMemory) -> None:
    """Refuse tensors whose arrays are too large for the memory, which no plan could read."""
    for name, source in stored.items():
        needed = scan_needed_bytes(source, memory)
        if needed > memory.limit_bytes:
            raise PlanError(
                f"to read {name} as it is stored needs a memory_limit of at least {memory.total_bytes_for(needed):,} "
                f"bytes, more than the {memory.total_bytes:,} given; raise memory_limit or promote more labels of "
                f"{name}, or tile them"
            )


def orders_of(inputs: Mapping[str, MeasuredTensor], engine: Engine) -> dict[str, StoredOrder]:
    """The axes by which the tuples are sorted, for our own tables of several key columns."""
    if not engine.dialect.keeps_residents:
        return {}
    candidates = {
        name: tensor
        for name, tensor in inputs.items()
        if tensor.stored.is_owned and not tensor.stored.holds_keys and len(tensor.stored.keys) > 1
    }
    known = {name: tensor.measurement.ascending for name, tensor in candidates.items()}
    unknown = {name: tensor.row_version for name, tensor in candidates.items() if known[name] is None}
    scanned = engine.scans.scan("order", unknown, lambda changed: ascending_axes(stored_in(changed), engine))
    axes = {name: scanned[name] if ascending is None else ascending for name, ascending in known.items()}
    return {name: StoredOrder(inputs[name].decomposition.tiles, ascending) for name, ascending in axes.items()}


@dataclass(frozen=True, slots=True)
class _Generated:
    """Tensors whose values follow from their indices, so that the database generates their rows.

    Attributes:
        bound: As in `ProgramData`.
        stored: The tensors by name, including those that only a rewrite may read.
        successors: As in `ProgramData`.
    """

    bound: EinGraph
    stored: dict[str, StoredTensor]
    successors: dict[str, str]

    @classmethod
    def of(cls, program: Program, inputs: Mapping[str, StoredTensor], engine: Engine) -> "_Generated":
        """The generated tensors of a program with these stored inputs."""
        graph = bind(program, {name: source.tensor for name, source in inputs.items()})
        vectors = [tensor for tensor in program.generated if isinstance(tensor, GeneratedTensor)]
        stored = {vector.name: generated_source(graph.tensors[vector.name], vector.kind) for vector in vectors}
        stored |= {
            index_map.name: index_map_source(
                graph.tensors[index_map.name], with_known_key(index_map, graph.tensors[index_map.name], engine)
            )
            for index_map in program.generated
            if isinstance(index_map, IndexMap)
        }
        labels = {vector.name: vector.label for vector in vectors if vector.kind == "index"}
        successors = successors_needed(graph, labels)
        stored |= {tensor.name: successor_source(tensor) for tensor in successors.values()}
        return cls(graph, stored, {vector: tensor.name for vector, tensor in successors.items()})
