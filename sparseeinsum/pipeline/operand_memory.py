"""Pipeline: how many bytes of operands a run may have in memory, and which of them stay there for later runs."""

from sparseeinsum.decompose.compressed_access import ENTRY_BYTES
from sparseeinsum.decompose.optimizers import optimizer_named
from sparseeinsum.decompose.staying_operands import NOTHING_STAYS, StayingOperands
from sparseeinsum.engines.engine import Engine
from sparseeinsum.pipeline.program_data import ProgramData
from sparseeinsum.plans.options import PlanOptions

# Of operands that stay in memory: the first two of four runs put them there, and nobody knows how often a plan runs.
_LOADS_PER_RUN = 0.5
_KEPT_SHARE = 0.5  # of the memory that operands of all threads may take, for those that stay
_MOST_KEPT_BYTES = 1 << 30  # in the memory of a process of a server, which has many


def most_resident_bytes(limit_bytes: float, threads: int, engine: Engine, options: PlanOptions) -> float:
    """The most bytes of operands that an EinSum may have in the memory of one process as a whole; 0 if none may be."""
    if not (optimizer_named(options.optimizer).keeps_in_memory and options.indexes):
        return 0.0
    if engine.dialect.keeps_residents:
        return limit_bytes
    return min(limit_bytes / threads, engine.dialect.largest_gathered or 0.0)


def most_kept_bytes(limit_bytes: float, engine: Engine) -> float:
    """The most bytes of operands that stay in memory from run to run: of a database, or of each process of a server."""
    most = limit_bytes * _KEPT_SHARE
    return most if engine.dialect.keeps_residents else min(most, _MOST_KEPT_BYTES)


def staying_operands(data: ProgramData, options: PlanOptions, kept_bytes: float) -> StayingOperands:
    """The stored inputs of which operands in memory stay there from run to run, as far as they are small enough."""
    if options.memory_limit is not None:
        return NOTHING_STAYS
    changing = options.changing or frozenset()
    tensors = frozenset(
        name
        for name, source in data.stored.items()
        if source.is_owned and name not in changing and data.statistics[name].entries * ENTRY_BYTES <= kept_bytes
    )
    return StayingOperands(tensors, _LOADS_PER_RUN if options.changing is None else 0.0)
