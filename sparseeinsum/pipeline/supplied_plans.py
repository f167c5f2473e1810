"""Pipeline: a plan for inputs whose values change from run to run; it is replaced where it is not exact for them."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import OutdatedPlanError, SemanticsError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.ranges import Range, finite_range
from sparseeinsum.pipeline.planning import make_plans
from sparseeinsum.pipeline.program_data import NOTHING_ASSUMED
from sparseeinsum.pipeline.running import check_exactness, current_inputs
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.validity import with_valid_grouping
from sparseeinsum.rewrite.equal_formulas import EqualFormulas
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.measured_tensors import MeasuredTensor

_FEW_ROWS = 100_000  # which one thread reads in the time of an optimisation or two
_GROWTH = float(1 << 20)  # of values beyond those that a plan was checked for


@dataclass(frozen=True, slots=True)
class SuppliedFacts:
    """What is known of the present rows of a supplied input.

    Attributes:
        values: The range of the values that are not the fill, and whether some index holds the fill.
        is_complete: Whether there is a row for every possible key.
        identifies: Tells of an axis whether no two rows have the same key of it.
    """

    values: ValueFacts
    is_complete: bool
    identifies: Callable[[int], bool]


class SuppliedPlan:
    """A plan of a program, some of whose inputs are read from relations that the caller fills.

    Attributes:
        supplied: These relations, by the names of the inputs.
        plan: The present plan; `plan_again` makes the first one.
    """

    plan: ProgramPlan

    def __init__(
        self,
        program: Program,
        engine: Engine,
        options: PlanOptions,
        supplied: Mapping[str, StoredTensor],
        equal: EqualFormulas | None = None,
    ) -> None:
        """Make no plan yet.

        Args:
            program: The program.
            engine: The database.
            options: The options of the plan.
            supplied: The relations that the caller fills, by the names of the inputs.
            equal: The equal formulas that other plans of the program have found; they grow.
        """
        self.supplied = supplied
        self._program = program
        self._engine = engine
        self._options = options
        self._equal = EqualFormulas() if equal is None else equal
        self._facts: dict[str, ValueFacts] = {}  # of the supplied values that the plan is known to be exact for

    def plan_again(self, assumed: Mapping[str, ValueFacts] = NOTHING_ASSUMED) -> None:
        """Make the plan for the present data, in the open transaction.

        Args:
            assumed: What may also hold for the values of supplied inputs, by their names.

        Raises:
            PlanError: No plan satisfies the options.
        """
        plans = make_plans(self._program, self._engine, self._options, self.supplied, assumed, self._equal)
        self.plan = plans[0]
        self._facts = {name: self.plan.inputs[name].values for name in self.supplied}

    def plan_within(self, most_seconds: float, assumed: Mapping[str, ValueFacts]) -> bool:
        """Make a plan as `plan_again` does, but keep the present one if the other is expected to take longer.

        Args:
            most_seconds: The longest expected time of a plan that is taken.
            assumed: As for `plan_again`.

        Returns:
            Whether the other one was taken.
        """
        plan, facts = self.plan, self._facts
        self.plan_again(assumed)
        is_taken = self.plan.decomposed.seconds <= most_seconds
        if not is_taken:
            self.plan, self._facts = plan, facts
        return is_taken

    def adopt(self, plan: ProgramPlan) -> None:
        """Take another plan of the same program.

        Raises:
            OutdatedPlanError: It may not be exact for the values that the present one is known to be exact for.
        """
        self.plan = plan
        check_exactness(plan, self._inputs(), tuple(self.supplied))

    @property
    def reads_own_tables(self) -> bool:
        """Whether all stored inputs are tables of this package, which no statement changes outside of transactions."""
        return all(
            tensor.stored.is_owned or tensor.stored.is_index_range
            for name, tensor in self.plan.inputs.items()
            if name not in self.supplied
        )

    @property
    def is_small(self) -> bool:
        """Whether all inputs and results have few rows, so that an optimiser has little to gain."""
        return self._has_few_rows(self.plan.inputs.values())

    def has_few_rows(self, tables_read: Container[str]) -> bool:
        """The same for a statement that reads only some tables, without schemas, and other inputs in memory."""
        dialect = self._engine.dialect_name
        return self._has_few_rows(
            measured
            for measured in self.plan.inputs.values()
            if not measured.stored.is_owned or table_by_name(measured.stored, dialect).name in tables_read
        )

    def _has_few_rows(self, read: Iterable[MeasuredTensor]) -> bool:
        """Whether inputs that are read and all results have few rows.

        A relation of the user may be a view, whose rows say nothing of what it reads.
        """
        inputs = (measured.measurement.tuples for measured in read)
        statistics, steps = self.plan.statistics, self.plan.decomposed.steps
        results = (statistics[step.einsum.output.tensor].tuples(step.result.tiles) for step in steps)
        return self.reads_own_tables and max((*inputs, *results), default=0) <= _FEW_ROWS

    def adapts_to_stored(self) -> bool:
        """Whether the plan is exact for the stored inputs as they are now, if need be with a GROUP BY everywhere."""
        with suppress(OutdatedPlanError, SemanticsError):
            self.plan = with_valid_grouping(self.plan, current_inputs(self.plan, self._engine, self.supplied))
            return True
        return False

    def assume_no_unique_keys(self, names: Iterable[str]) -> None:
        """Let the plan group rows of supplied inputs even if their present keys are unique along some axis."""
        inputs = dict(self.plan.inputs)
        for name in names:
            measured = inputs[name]
            distinct = tuple(min(count, measured.measurement.tuples - 1) for count in measured.statistics.distinct)
            statistics = replace(measured.statistics, distinct=distinct)
            inputs[name] = replace(measured, measurement=replace(measured.measurement, statistics=statistics))
        self.plan = replace(with_valid_grouping(self.plan, inputs), inputs=inputs)

    def known_facts(self, name: str) -> ValueFacts:
        """What may hold for the values of a supplied input, with the plan still known to be exact."""
        return self._facts[name]

    def is_exact_for(self, name: str, facts: SuppliedFacts) -> bool:
        """Whether the plan is exact for a supplied input as it is now."""
        planned = self.plan.inputs[name]
        if planned.is_complete and not facts.is_complete:
            return False
        if not all(facts.identifies(axis) for axis in planned.identifying_axes):
            return False
        united = self._facts[name].union(facts.values)
        dtype = planned.stored.tensor.dtype
        return united == self._facts[name] or any(
            self._accepts({name: replace(united, entries=entries)}) for entries in _wider_ranges(united.entries, dtype)
        )

    def accepts(self, later: Mapping[str, ValueFacts]) -> frozenset[str]:
        """The inputs for whose `later` values, by name, the plan is also exact; these are kept for further runs."""
        united = {name: self._facts[name].union(facts) for name, facts in later.items()}
        if self._accepts(united):
            return frozenset(united)
        return frozenset(name for name, facts in united.items() if self._accepts({name: facts}))

    def _inputs(self) -> dict[str, MeasuredTensor]:
        """The inputs of the plan, with all supplied values that it is known to be exact for."""
        return {
            name: _with_values(tensor, self._facts.get(name, tensor.values))
            for name, tensor in self.plan.inputs.items()
        }

    def _accepts(self, facts: Mapping[str, ValueFacts]) -> bool:
        with_facts = {name: _with_values(self.plan.inputs[name], values) for name, values in facts.items()}
        with suppress(OutdatedPlanError, SemanticsError):
            check_exactness(self.plan, {**self._inputs(), **with_facts}, tuple(facts))
            self._facts.update(facts)
            return True
        return False


def _wider_ranges(entries: Range, dtype: str) -> Iterator[Range]:
    """Ranges that contain `entries`, of the same signs: the widest first, `entries` last."""
    if entries.is_finite:
        widest = finite_range(dtype)
        for growth in (math.inf, _GROWTH):
            low = entries.low if entries.low >= 0 else max(widest.low, entries.low * growth)
            high = entries.high if entries.high <= 0 else min(widest.high, entries.high * growth)
            yield Range(low, high)
    yield entries


def _with_values(tensor: MeasuredTensor, values: ValueFacts) -> MeasuredTensor:
    return replace(tensor, measurement=replace(tensor.measurement, values=values))
