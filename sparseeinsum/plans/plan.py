"""Plans: a program with a decomposition for every EinSum, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.translate import ComputedResult
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph
from sparseeinsum.decompose.places.distribution import Replicated
from sparseeinsum.language.eingraph import Program
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.user_aggregates import UserAggregate
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.partitioned_program import PartitionedProgram
from sparseeinsum.plans.plan_statements import PlanStatements
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.rewrite.rewrite_summary import RewriteSummary
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import Estimator
from sparseeinsum.statistics.measured_tensors import MeasuredTensor


@dataclass(frozen=True)  # no slots: the statements are rendered once and cached
class ProgramPlan:
    """A program with a decomposition for every EinSum.

    Attributes:
        program: The program as it was written.
        options: What the user asked of the plan.
        inputs: The tensors that the program reads, with their measurements.
        functions: Functions and aggregates of users that the program calls, as they were during planning.
        estimator: Estimated the statistics of the results.
        rewriting: How the planned EinSums came from the written ones.
        alternatives: Everything that the search could choose from.
        decomposed: The EinSums, their choices and their expected costs.
        definitions: The same EinSums as operators over relations.
        dialect: The SQL dialect of the engine.
        threads: The threads of the engine.
        stage_of: Returns the table that stores a result during a run, by the name of the result.
        planning_seconds: How long planning took, by stage.
        search_seconds: How long the search for the plan took, which may have been for an earlier plan.
        reserved_names: Names of relations in tables of an earlier plan, whose rest this plan computes.
        transferred_bytes: Expected bytes from site to site; 0 on one machine.
        partitioned: How the program is cut among workers; None if no workers were asked for.
    """

    program: Program
    options: PlanOptions
    inputs: Mapping[str, MeasuredTensor]
    functions: Mapping[str, ScalarFunction | UserAggregate]
    estimator: Estimator
    rewriting: RewriteSummary
    alternatives: Alternatives
    decomposed: DecomposedGraph
    definitions: tuple[ComputedResult, ...]
    dialect: Dialect
    threads: int
    stage_of: Callable[[str], exp.Table]
    planning_seconds: Mapping[str, float]
    search_seconds: float
    reserved_names: frozenset[str] = frozenset()
    transferred_bytes: float = 0.0
    partitioned: PartitionedProgram | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results that a run returns."""
        return self.decomposed.graph.outputs

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        """T and V of every tensor: measured for inputs, estimated for results."""
        return self.alternatives.model.statistics

    @property
    def evaluations(self) -> Mapping[str, Evaluation]:
        """How every EinSum is evaluated exactly, by the name of its result."""
        return self.alternatives.model.evaluations

    @cached_property
    def statements(self) -> PlanStatements:
        """The SQL statements that compute the plan."""
        return PlanStatements(
            self.definitions,
            self.decomposed,
            self.alternatives.model,
            self.inputs,
            self.dialect,
            self.threads,
            self.stage_of,
            self.reserved_names,
            self.options.complete,
        )

    def for_equal_data(
        self,
        inputs: Mapping[str, MeasuredTensor],
        estimator: Estimator,
        stage_of: Callable[[str], exp.Table],
        planning_seconds: Mapping[str, float],
    ) -> "ProgramPlan":
        """The same plan for inputs with equal tables and statistics; statements stay that are written already."""
        plan = replace(self, inputs=inputs, estimator=estimator, stage_of=stage_of, planning_seconds=planning_seconds)
        name, *_ = self.decomposed.graph.tensors  # all are in one schema
        if stage_of(name) == self.stage_of(name):
            plan.__dict__["statements"] = self.statements.with_own_memory()
        return plan

    @property
    def fills_reference_tables(self) -> bool:
        """Whether a run fills tables that every machine of a cluster has."""
        return self.dialect.distributes and any(
            relation.distribution == Replicated() for relation in self.statements.materialized_names
        )
