"""The data of a program: the tensors that it reads, measured, and whatever else of them plans depend on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseeinsum.decompose.access import StoredOrder
from sparseeinsum.decompose.memory import Memory, scan_needed_bytes, scanning_bytes, threads_within
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory import limited_memory
from sparseeinsum.errors import PlanError
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.pipeline.plan_options import PlanOptions
from sparseeinsum.rewrite.first_match import successors_needed
from sparseeinsum.semantics.exactness import Values
from sparseeinsum.statistics.blocks import with_blocks
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import Estimator, make_estimator
from sparseeinsum.statistics.measure import Measurement
from sparseeinsum.statistics.order import ascending_axes
from sparseeinsum.storage.generated import generated_source, successor_source
from sparseeinsum.storage.inputs import stored_inputs
from sparseeinsum.storage.measuring import measure_all


@dataclass(frozen=True, slots=True)
class ProgramData:
    """What is known of a program's data.

    Attributes:
        stored: The tensors that it reads.
        measured: What scans found.
        statistics: T and V.
        orders: How tuples lie.
        estimator: How sizes of results are estimated.
        memory: That there is.
        successors: Names of generated tensors that tell which index follows which, by the vector of those indices.
    """

    stored: Mapping[str, StoredTensor]
    measured: Mapping[str, Measurement]
    statistics: Mapping[str, Statistics]
    orders: Mapping[str, StoredOrder]
    estimator: Estimator
    memory: Memory
    successors: Mapping[str, str]

    @property
    def values(self) -> dict[str, Values]:
        """What the tensors hold, as far as exactness depends on it."""
        return {name: found.values for name, found in self.measured.items()}


def read_data(program: Program, engine: Engine, options: PlanOptions) -> ProgramData:
    """Look at the tensors that a program reads, as they are now.

    Raises:
        CatalogueError: A tensor is not there.
        DataError: Rows are no tensor.
        PlanError: The memory is too small to read a tensor as it is stored.
    """
    stored = stored_inputs(program, engine)
    generated = _Generated.of(program, stored)
    stored |= generated.stored
    memory = _with_room_for(stored, _memory(engine, options))
    _check_scans(stored, memory)
    with limited_memory(engine, options.memory_limit, sum(map(scanning_bytes, stored.values()))):
        measured = measure_all(stored, engine)
        statistics = {
            name: with_blocks(measured[name].statistics, source, options.tiles, engine)
            for name, source in stored.items()
        }
        estimator = make_estimator(options.estimator, stored, statistics, engine)
    orders = _orders(stored, engine)
    return ProgramData(stored, measured, statistics, orders, estimator, memory, generated.successors)


def _memory(engine: Engine, options: PlanOptions) -> Memory:
    covers_process = options.memory_limit is not None and engine.memory_in_use() is not None
    limit = engine.memory_limit() if options.memory_limit is None else options.memory_limit
    threads = threads_within(limit, engine.threads()) if covers_process else engine.threads()
    sql = engine.dialect
    return Memory(limit, threads, sql.vector_rows, sql.rows_per_thread, covers_process, sql.spills_states)


def _with_room_for(stored: Mapping[str, StoredTensor], memory: Memory) -> Memory:
    """The same with as many threads as can read every tensor as it is stored, or with one."""
    needed = max((scan_needed_bytes(source, replace(memory, threads=1)) for source in stored.values()), default=0)
    if not memory.covers_process or needed == 0:
        return memory
    return replace(memory, threads=max(min(memory.threads, math.floor(memory.limit_bytes / needed)), 1))


def _check_scans(stored: Mapping[str, StoredTensor], memory: Memory) -> None:
    """Refuse to read tensors whose arrays the memory is too small for, in whatever plan."""
    for name, source in stored.items():
        needed = scan_needed_bytes(source, memory)
        if needed > memory.limit_bytes:
            raise PlanError(
                f"to read {name} as it is stored needs a memory_limit of at least {memory.total_bytes_for(needed):,} "
                f"bytes, more than the {memory.total_bytes:,} given; raise memory_limit or promote more labels of "
                f"{name}, or tile them"
            )


def _orders(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, StoredOrder]:
    """How the tuples of tensors of several keys lie, in tables that hold them in an order of their own."""
    ordered = {name: each for name, each in stored.items() if each.is_owned and not each.holds_keys}
    several = {name: each for name, each in ordered.items() if len(each.keys) > 1}
    axes = ascending_axes(several, engine) if engine.dialect.keeps_residents else {}
    return {name: StoredOrder(stored[name].decomposition.tiles, ascending) for name, ascending in axes.items()}


@dataclass(frozen=True, slots=True)
class _Generated:
    """Tensors that follow from their indices, as rows that the database makes; and those that rewriting may read.

    Attributes:
        stored: All of them by name.
        successors: Names of those that tell which index follows which, by the vector of those indices.
    """

    stored: dict[str, StoredTensor]
    successors: dict[str, str]

    @classmethod
    def of(cls, program: Program, inputs: Mapping[str, StoredTensor]) -> "_Generated":
        """Those of a program."""
        graph = bind(program, {name: source.tensor for name, source in inputs.items()})
        stored = {each.name: generated_source(graph.tensors[each.name], each.kind) for each in program.generated}
        labels = {each.name: each.label for each in program.generated if each.kind == "index"}
        successors = successors_needed(graph, labels)
        stored |= {each.name: successor_source(each) for each in successors.values()}
        return cls(stored, {vector: each.name for vector, each in successors.items()})
