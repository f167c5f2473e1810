"""Pipeline: keeps the plans that searches chose, for the same program on equal data in any database of this process."""

import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.scalar import key_of
from sparseeinsum.pipeline.program_data import ProgramData
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.statistics.measured_tensors import MeasuredTensor

_MOST_SEARCHES = 16


@dataclass(frozen=True, slots=True)
class SearchCache:
    """The plans of the last searches of this process, by all that these searches read."""

    _plans: dict[Hashable, Sequence[ProgramPlan]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(
        self, key: Hashable, data: ProgramData, engine: Engine, planning_seconds: Mapping[str, float]
    ) -> list[ProgramPlan]:
        """The plans that a search with that key chose, for these data, the best one first; none if there was no search.

        Args:
            key: What `search_key` returns for the data.
            data: The data.
            engine: Their database.
            planning_seconds: How long planning takes, by stage.
        """
        with self._lock:
            plans = self._plans.pop(key, ())
            if plans:
                self._plans[key] = plans
        return [
            plan.for_equal_data(
                data.inputs, data.estimator, engine.stage_namer(plan.decomposed.seconds), planning_seconds
            )
            for plan in plans
        ]

    def keep(self, key: Hashable, plans: Sequence[ProgramPlan]) -> None:
        """Keep the plans of a search, unless the key is None or they call functions of users."""
        if key is None or any(plan.functions for plan in plans):
            return
        with self._lock:
            self._plans[key] = plans
            while len(self._plans) > _MOST_SEARCHES:
                del self._plans[next(iter(self._plans))]

    def clear(self) -> None:
        """Forget the plans of all programs, so that the next ones are searched."""
        with self._lock:
            self._plans.clear()


SEARCHES = SearchCache()


def search_key(
    program: Program, data: ProgramData, engine: Engine, constants: CostConstants, options: PlanOptions
) -> Hashable:
    """All that a search reads; None if it reads more than can be compared: other machines, rows, or many counts."""
    counts = data.estimator.fingerprint
    if counts is None or options.workers is not None or engine.cluster() is not None:
        return None
    not_compared = program.differentiated, program.complexes, program.recomputed
    functions = tuple([key_of(einsum.join) for einsum in program.einsums])
    inputs = tuple([(name, *_read_of(tensor)) for name, tensor in data.inputs.items()])
    orders = frozenset(data.orders.items())
    asked = repr(options), engine.dialect, constants, data.memory
    return program, not_compared, functions, inputs, counts, orders, asked


def _read_of(tensor: MeasuredTensor) -> tuple[Hashable, ...]:
    """What a search reads of an input: all but the version of its rows."""
    measurement, statistics = tensor.measurement, tensor.statistics
    sizes = statistics.entries, statistics.distinct, statistics.shape
    bounds = (statistics.tuple_bounds, statistics.counted_tuples, statistics.skew)
    written = repr((tensor.stored.tensor.fill, measurement.values))  # which tells 0.0 and -0.0 apart
    return tensor.stored, sizes, *[frozenset(by_axes.items()) for by_axes in bounds], measurement.tuples, written
