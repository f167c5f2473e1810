"""The plan that a user holds: costs, notation, SQL and an explanation; everything of it is known before it runs."""

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from sparseeinsum.algebra.dependencies import has_single_pairs
from sparseeinsum.algebra.operators import Materialized
from sparseeinsum.algebra.parallel_reads import results_read_in_parallel
from sparseeinsum.algebra.placement import placement_of
from sparseeinsum.algebra.translate import Definition, delivered_relation, materialized_relations
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.memory import SPLITS_LIMIT, split_scan_bytes
from sparseeinsum.decompose.plan import DecomposedGraph
from sparseeinsum.decompose.replanning_points import replanning_points
from sparseeinsum.decompose.staging import StatementSizes, staged_results, statement_sizes
from sparseeinsum.errors import PlanError
from sparseeinsum.extras import late
from sparseeinsum.kernels.duckdb.library import library_at_hand
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.records import Function
from sparseeinsum.operators.users_aggregates import UsersAggregate
from sparseeinsum.plans.explain import Analysis, Explanation, Sizes
from sparseeinsum.plans.partitioned import PartitionedProgram
from sparseeinsum.plans.preview import Preview
from sparseeinsum.plans.saved.files import write_plan
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.natural_keys import with_natural_keys
from sparseeinsum.render.sources import scan_boundaries
from sparseeinsum.render.statements import Statement, result_query, result_statements, staged_statements
from sparseeinsum.rewrite.rewrite_summary import RewriteSummary
from sparseeinsum.rewrite.unique_names import UniqueNames
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import Estimator
from sparseeinsum.statistics.measure import Measurement, is_complete

if TYPE_CHECKING:
    from sparseeinsum.algebra.plan_expressions import PlanAlgebra


@dataclass(frozen=True)  # no slots: its statements are written once and kept
class Plan:
    """A program with a decomposition for every EinSum.

    Attributes:
        program: What it computes, as it was written.
        decomposed: The EinSums, their choices and expected costs.
        definitions: The same as operators over relations.
        alternatives: All that might have been chosen.
        stored: The input tensors, where they lie.
        functions: Functions and aggregates of users, as they were when it was made.
        measured: What scans of the inputs found.
        estimator: Estimated the sizes of results.
        rewriting: How those EinSums came from the ones that were written.
        nonfinite: What a run does where values turn NaN or infinite: `error` or `allow`.
        memory_limit: Bytes that a run was allowed, or None for the limit of the database.
        dialect: Of the engine that it was made for.
        threads: Of that engine.
        planning_seconds: Time that planning took, by stage.
        stage_of: Names the table that keeps a result while the plan runs.
        analyze: Runs the plan where it was made, and tells what that took.
        kept_before: Names of relations in tables that plans made whose rest this one is.
        transferred_bytes: Expected to go from machine to machine, where tables are spread over several.
        partitioned: How it is cut among workers; None where nobody asked.
    """

    program: Program
    decomposed: DecomposedGraph
    definitions: tuple[Definition, ...]
    alternatives: Alternatives
    stored: Mapping[str, StoredTensor]
    functions: Mapping[str, Function | UsersAggregate]
    measured: Mapping[str, Measurement]
    estimator: Estimator
    rewriting: RewriteSummary
    nonfinite: str
    memory_limit: int | None
    dialect: Dialect
    threads: int
    planning_seconds: Mapping[str, float]
    stage_of: Callable[[str], exp.Table]
    analyze: Callable[["Plan"], Analysis]
    kept_before: frozenset[str] = frozenset()
    transferred_bytes: float = 0.0
    partitioned: PartitionedProgram | None = None

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        """T and V of every tensor: measured for inputs, estimated for results."""
        return self.alternatives.model.statistics

    @property
    def evaluations(self) -> Mapping[str, Evaluation]:
        """What is exact for every EinSum."""
        return self.alternatives.model.evaluations

    @property
    def cost(self) -> float:
        """Expected seconds."""
        return self.decomposed.seconds

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results that a run returns."""
        return self.decomposed.graph.outputs

    def notation(self) -> list[str]:
        """Every EinSum in upper-case-lower-case notation, in order."""
        return [step.notation for step in self.decomposed.steps]

    def algebra(self) -> "PlanAlgebra":
        """The plan in the tensor relational algebra: an expression for every EinSum, and for every output.

        Printed, it has a line for every operator, with the frontier of its keys and the bound of its arrays.
        """
        complete = {name for name, stored in self.stored.items() if is_complete(stored, self.measured[name])}
        deliveries = {name: delivered_relation(self.decomposed, name) for name in self.outputs}
        plan_algebra = late("sparseeinsum.algebra.plan_expressions").plan_algebra
        algebra: PlanAlgebra = plan_algebra(self.definitions, deliveries, self.statistics, complete)
        machines = self.alternatives.machines
        if machines is None:
            return algebra
        lie = {
            name: placement_of(machines.distributions[name], stored.decomposition)
            for name, stored in self.stored.items()
        }
        return replace(algebra, sites=machines.costs.cluster.sites, stored=lie)

    def to_json(self) -> str:
        """The plan as JSON text, which `Database.load_plan` reads: program, choices and expected costs, but no data."""
        values = {name: measured.values for name, measured in self.measured.items()}
        return write_plan(
            self.program,
            self.decomposed,
            values,
            self.alternatives.optimizer,
            self.memory_limit,
            self.nonfinite,
            self.estimator.name,
            self.alternatives.tiles,
        )

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, as `to_json` gives it; a file that is there is replaced."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def explain(self, analyze: bool = False, top: int = 4) -> str:
        """The plan in words and tables.

        Args:
            analyze: Run it, too, and show actual tuples, bytes and seconds beside those expected.
            top: How many of the best plans to compare, this one included.
        """
        explained = self._explanation(analyze, top).write()
        return explained if self.partitioned is None else f"{explained}\n{self.partitioned.explain()}"

    def to_html(self, path: str | Path | None = None, analyze: bool = False, top: int = 4) -> str:
        """The plan as a page for a browser: the graph as a drawing, what else might have been chosen, and the SQL.

        Args:
            path: A file to write it to, too.
            analyze: As for `explain`; so is top.

        Returns:
            One page of HTML that needs no other file and no net.
        """
        write_page = late("sparseeinsum.plans.picture.page").write_page
        page: str = write_page(self._explanation(analyze, top), str(self.program), self.sql("staged"))
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _explanation(self, analyze: bool, top: int) -> Explanation:
        return Explanation(
            self.decomposed,
            self.alternatives,
            self.stored,
            self.evaluations,
            self.rewriting,
            self.checkpointed_statements,
            self.planning_seconds,
            self.analyze(self) if analyze else None,
            top - 1,
            self.transferred_bytes if self.dialect.distributes else None,
            _matrix_products(self.dialect),
        )

    def sql(self, style: str = "cte", dialect: str | None = None) -> str:
        """The plan as SQL text, for its database as it is.

        Args:
            style: `cte`: one statement for every output, which knows no passes; `staged`: as it runs, with temporary
                tables for results that are read more than once, computed in passes, or large. (A run also splits the
                scans of small tables among threads, puts natural keys into what it returns by itself, and groups
                nothing where one key says another.)
            dialect: `duckdb` or `postgres`, to be sure of it: that of the database that the plan was made for, whose
                tables it reads; by default whichever that is.

        Raises:
            ValueError: Another style.
            PlanError: Another dialect, or a plan for a Citus cluster in one statement.
        """
        if dialect is not None and dialect.lower() not in (self.dialect.name, *self.dialect.aliases):
            raise PlanError(
                f"the plan reads tables of a database whose dialect is {self.dialect.name}; for SQL in {dialect}, "
                "make the plan on such a database"
            )
        if style == "cte":
            statements = self.without_group_elimination()._statements({}, {}, {})
        elif style == "staged":
            statements = self.staged_in(_table)
        else:
            raise ValueError(f"style {style!r} is neither 'cte' nor 'staged'")
        return "\n\n".join(f"{self.with_keys(statement).text};" for statement in statements) + "\n"

    def staged_in(self, table_of: Callable[[str], exp.Table]) -> tuple[Statement, ...]:
        """What fills tables, which `table_of` names, with what a run keeps on the way, and then the outputs."""
        tables = {name: table_of(name) for name in self.staged()}
        return self.without_group_elimination()._statements(tables, {}, self._kept(table_of))

    def has_valid_group_elimination(self, identifying: Mapping[str, Set[int]]) -> bool:
        """Whether all groups that it does not form have one term; for stored tensors, axes that identify tuples."""
        single = [each for each in self.definitions if each.relation.has_single_pairs]
        return all(has_single_pairs(each.step, each.relation.inputs, identifying) for each in single)

    def without_group_elimination(self) -> "Plan":
        """The same for whatever keys its tensors hold: SQL text is kept, in a view, say, where a run looks first."""
        definitions = (
            replace(each, relation=replace(each.relation, has_single_pairs=False)) for each in self.definitions
        )
        return replace(self, definitions=tuple(definitions))

    def statement_of(self, output: str) -> Statement:
        """The one statement that returns an output, with natural keys, its scans split among threads as in a run."""
        return self.with_keys(next(each for each in self._statements({}, self._boundaries, {}) if each.name == output))

    def with_keys(self, statement: Statement) -> Statement:
        """A statement with natural keys in place of indices, if it is one that returns an output."""
        if statement.stage is not None:
            return statement
        return with_natural_keys(statement, delivered_relation(self.decomposed, statement.name).schema)

    def staged(self) -> tuple[str, ...]:
        """Results that a run keeps in temporary tables."""
        if self.dialect.distributes:
            return tuple(each.name for each in self.definitions)
        model = self.alternatives.model
        staged = staged_results(self.decomposed, model, self.dialect.computes_whole)
        if not self.dialect.has_workers:
            return staged
        kept = {*staged, *results_read_in_parallel(self.definitions, model, staged)}
        return tuple(name for name in (step.einsum.output.tensor for step in self.decomposed.steps) if name in kept)

    @cached_property
    def staged_statements(self) -> tuple[Statement, ...]:
        """What a run executes: temporary tables have names that nothing else uses."""
        tables = {name: self.stage_of(name) for name in self.staged()}
        return self._statements(tables, self._boundaries, self._kept(self.stage_of))

    @cached_property
    def checkpointed_statements(self) -> tuple[Statement, ...]:
        """The same with tables for results whose sizes a run wants to see, too, so that it may plan the rest anew."""
        names = self.staged()
        points = replanning_points(self.decomposed, self.alternatives.model, names)
        if not points:
            return self.staged_statements
        tables = {name: self.stage_of(name) for name in (*names, *points)}
        return self._statements(tables, self._boundaries, self._kept(self.stage_of))

    @cached_property
    def _boundaries(self) -> Mapping[str, tuple[int, ...]]:
        """Where to split scans; not where what that takes would be much of the memory."""
        memory = self.alternatives.model.memory
        found = {
            name: scan_boundaries(stored, self.measured[name].tuples, self.threads, self.dialect)
            for name, stored in self.stored.items()
            if split_scan_bytes(stored, memory) * SPLITS_LIMIT <= memory.limit_bytes
        }
        return {name: boundaries for name, boundaries in found.items() if boundaries}

    @property
    def split_bytes(self) -> int:
        """Of the arrays in vectors of scans that are split, which DuckDB does not count among its buffers."""
        memory = self.alternatives.model.memory
        return sum(split_scan_bytes(self.stored[name], memory) for name in self._boundaries)

    @property
    def kept_names(self) -> dict[Materialized, str]:
        """Names of relations that are put together on their own; no result has the name of one."""
        read = [relation for definition in self.definitions for relation in definition.materialized_operands()]
        read += [
            relation
            for name in self.outputs
            for relation in materialized_relations(delivered_relation(self.decomposed, name))
        ]
        names = UniqueNames({*self.decomposed.graph.tensors, *self.kept_before})
        found: dict[Materialized, str] = {}
        for relation in read:
            if relation not in found:
                base = f"{relation.schema.tensor.name}_by_{'_'.join(relation.schema.keys)}"
                found[relation] = names.invent(base)
        return found

    def _kept(self, table_of: Callable[[str], exp.Table]) -> dict[Materialized, exp.Table]:
        return {relation: table_of(name) for relation, name in self.kept_names.items()}

    def _statements(
        self,
        tables: Mapping[str, exp.Table],
        boundaries: Mapping[str, tuple[int, ...]],
        kept: Mapping[Materialized, exp.Table],
    ) -> tuple[Statement, ...]:
        if self.dialect.distributes and not tables:
            raise PlanError(
                "on a Citus cluster every operator of a plan fills a table in its place, so that no single statement "
                'computes an output; for SQL text, ask for sql("staged"), or --style staged'
            )
        deliveries = {name: delivered_relation(self.decomposed, name) for name in self.outputs}
        return staged_statements(self.definitions, deliveries, tables, self.dialect, boundaries, kept)

    def query_of(self, name: str, tables: Mapping[str, exp.Table]) -> exp.Select:
        """The SELECT of one EinSum's result, reading other results from tables where those are given."""
        return result_query(self.definitions, name, tables, self.dialect, self._boundaries)

    def stage_alone(self, name: str, tables: Mapping[str, exp.Table]) -> tuple[Statement, ...]:
        """What fills a table with one EinSum's result as a run does, in passes where it takes any; see `query_of`."""
        staged = {**tables, name: self.stage_of(name)}
        kept = self._kept(self.stage_of)
        return result_statements(self.definitions, name, staged, self.dialect, self._boundaries, kept)

    def expected_sizes(self, name: str) -> Sizes:
        """Expected size of a result, as its EinSum leaves it."""
        step = self.decomposed.step_of(name)
        assert step is not None
        return Sizes(self.alternatives.model, step)

    def sizes_of(self, computed: Collection[str]) -> StatementSizes:
        """What a statement is expected to take that computes these results, or none and puts a tensor together."""
        return statement_sizes(self.decomposed, set(computed), self.alternatives.model)

    def delivered_bytes(self, name: str) -> float:
        """Expected size of an output as it is delivered."""
        model, tiles = self.alternatives.model, self.decomposed.layouts[name].tiles
        return model.tuples(name, tiles) * model.tuple_bytes(name, tiles)

    def __repr__(self) -> str:
        return "\n".join(self.notation())

    def _repr_html_(self) -> str:
        steps = self.decomposed.steps
        rows = [(step.notation, f"{self.expected_sizes(step.einsum.output.tensor).tuples:,.0f}") for step in steps]
        return Preview(f"plan, {self.cost:.3g} s expected", ["EinSum", "expected tuples"], rows).html()


def _table(name: str) -> exp.Table:
    """A table of any name, a keyword, too."""
    return exp.table_(exp.to_identifier(name))


def _matrix_products(dialect: Dialect) -> str:
    """What computes matrix products in the functions of an engine."""
    library = library_at_hand() if dialect.calls_python else None
    return "our own kernels" if library is None or library.blas is None else library.blas.name
