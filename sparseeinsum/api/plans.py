"""API: the plan that a user holds; all of it is known before it runs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sparseeinsum.algebra.placement import placement_of
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import lock_of
from sparseeinsum.errors import PlanError
from sparseeinsum.extras import late
from sparseeinsum.pipeline.running import analyze_plan
from sparseeinsum.plans.analysis import Analysis
from sparseeinsum.plans.explain import Explanation, explain
from sparseeinsum.plans.partitioned_program import PartitionedProgram
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.plan_statements import write_sql
from sparseeinsum.plans.preview import Preview
from sparseeinsum.plans.result_sizes import step_sizes
from sparseeinsum.plans.saved.plan_files import write_plan
from sparseeinsum.statistics.estimate import Statistics

if TYPE_CHECKING:
    from sparseeinsum.algebra.plan_expressions import PlanAlgebra


class Plan:
    """A program with a decomposition for every EinSum. Made by `Database.plan`.

    Attributes:
        data: The plan as data.
    """

    def __init__(self, data: ProgramPlan, engine: Engine) -> None:
        self.data = data
        self._engine = engine

    @property
    def cost(self) -> float:
        """Expected seconds of a run."""
        return self.data.decomposed.seconds

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results that a run returns."""
        return self.data.outputs

    def only_output(self, name: str | None) -> str:
        """The output that SQL's einsum returns: `name`, or the only one.

        Raises:
            PlanError: There is no such output, or there are several and `name` is None.
        """
        shown = ", ".join(self.outputs)
        if name is None and len(self.outputs) > 1:
            first = self.outputs[0]
            raise PlanError(
                f"the program returns {shown}, but einsum returns one result; name it, as in output := '{first}'"
            )
        if name is not None and name not in self.outputs:
            raise PlanError(f"the program returns no {name}; it returns {shown}")
        return self.outputs[0] if name is None else name

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        """T and V of every tensor: measured for inputs, estimated for results."""
        return self.data.statistics

    @property
    def partitioned(self) -> PartitionedProgram | None:
        """How the program is cut among workers; None if no workers were asked for."""
        return self.data.partitioned

    def notation(self) -> list[str]:
        """Every EinSum in upper-case-lower-case notation, in order."""
        return [step.notation for step in self.data.decomposed.steps]

    def algebra(self) -> "PlanAlgebra":
        """The plan in the tensor relational algebra: an expression for every EinSum, and for every output.

        Printed, it has a line for every operator, with the frontier of its keys and the bound of its arrays.
        """
        data = self.data
        complete = {name for name, tensor in data.inputs.items() if tensor.is_complete}
        deliveries = {name: delivered_relation(data.decomposed, name) for name in data.outputs}
        plan_algebra = late("sparseeinsum.algebra.plan_expressions").plan_algebra
        algebra: PlanAlgebra = plan_algebra(data.definitions, deliveries, data.statistics, complete)
        machines = data.alternatives.machines
        if machines is None:
            return algebra
        placements = {
            name: placement_of(machines.distributions[name], tensor.decomposition)
            for name, tensor in data.inputs.items()
        }
        return replace(algebra, sites=machines.costs.cluster.sites, stored=placements)

    def explain(self, analyze: bool = False, top: int = 4) -> str:
        """The plan in words and tables.

        Args:
            analyze: Whether to run the plan as well, to show actual tuples, bytes and seconds beside the expected ones.
            top: How many of the best plans to compare, this one included.
        """
        return explain(self.data, self._analyzed() if analyze else None, top)

    def to_html(self, path: str | Path | None = None, analyze: bool = False, top: int = 4) -> str:
        """The plan as a page for a browser: a drawing of the graph, other choices, and the SQL.

        Args:
            path: A file to write the page to as well.
            analyze: As for `explain`.
            top: As for `explain`.

        Returns:
            One page of HTML that needs no other file and no network.
        """
        write_page = late("sparseeinsum.plans.picture.page").write_page
        page: str = write_page(Explanation(self.data, self._analyzed() if analyze else None, top - 1))
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def sql(self, style: str = "cte", dialect: str | None = None) -> str:
        """The plan as SQL text, for its database as it is.

        Args:
            style: `cte` for one statement per output, without passes; `staged` as a run executes the plan, with
                temporary tables for results that are read more than once, computed in passes, or large. (A run also
                splits the scans of small tables among threads, returns natural keys without SQL, and leaves out
                a GROUP BY whose groups have one tuple each.)
            dialect: `duckdb` or `postgres` to require that dialect; by default that of the database of the plan, whose
                tables the SQL reads.

        Raises:
            ValueError: There is no such style.
            PlanError: The database has another dialect, or the plan is for a Citus cluster and the style `cte`.
        """
        own = self.data.dialect
        if dialect is not None and dialect.lower() not in (own.name, *own.aliases):
            raise PlanError(
                f"the plan reads tables of a database whose dialect is {own.name}; for SQL in {dialect}, "
                "make the plan on such a database"
            )
        return write_sql(self.data.statements, style)

    def to_json(self) -> str:
        """The plan as JSON text, which `Database.load_plan` reads: program, choices and expected costs, but no data."""
        return write_plan(self.data)

    def save(self, path: str | Path) -> None:
        """Write the text of `to_json` to a file, in place of an existing one."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def _analyzed(self) -> Analysis:
        with lock_of(self._engine.connection):
            return analyze_plan(self.data, self._engine)

    def __repr__(self) -> str:
        return "\n".join(self.notation())

    def _repr_html_(self) -> str:
        model = self.data.alternatives.model
        rows = [(step.notation, f"{step_sizes(model, step).tuples:,.0f}") for step in self.data.decomposed.steps]
        return Preview(f"plan, {self.cost:.3g} s expected", ["EinSum", "expected tuples"], rows).html()
