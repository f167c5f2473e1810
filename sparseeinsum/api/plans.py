"""API: the plan that a user holds; all of it is known before it runs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import lock_of
from sparseeinsum.environment.extras import late
from sparseeinsum.errors import PlanError
from sparseeinsum.pipeline.running import analyze_plan, prove_inputs
from sparseeinsum.plans.analysis import Analysis
from sparseeinsum.plans.explain import Explanation
from sparseeinsum.plans.partitioned_program import PartitionedProgram
from sparseeinsum.plans.plain_plans import plain_sql, requested_dialect
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.plan_statements import write_sql
from sparseeinsum.plans.preview import Preview
from sparseeinsum.plans.result_sizes import step_sizes
from sparseeinsum.plans.saved.plan_files import write_plan
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.statistics.estimate import Statistics

if TYPE_CHECKING:
    from sparseeinsum.algebra.plan_expressions import PlanAlgebra


@dataclass(frozen=True, slots=True)
class DetachedPlan:
    """A plan without its database, as which a pickled `Plan` is read.

    `Database.run` runs it, and `Database.load_plan` makes it a plan again, for the tensors of that database.

    Attributes:
        text: As from `Plan.to_json`.
    """

    text: str

    def __repr__(self) -> str:
        steps = json.loads(self.text)["einsums"]
        return "\n".join([*(step["notation"] for step in steps), "(of no database; db.run runs it)"])


class Plan:
    """A program with a decomposition for every EinSum. Made by `Database.plan`.

    A pickled plan is read as a `DetachedPlan`, since it has no connection. A copy is a plan of the same database.

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
        if name is None and len(self.outputs) > 1:
            shown, first = ", ".join(self.outputs), self.outputs[0]
            raise PlanError(
                f"the program returns {shown}, but einsum returns one result; name it, as in output := '{first}'"
            )
        if name is not None and name not in self.outputs:
            hint = did_you_mean(name, self.outputs, otherwise="it returns")
            raise PlanError(f"the program returns no {name}; {hint}")
        return self.outputs[0] if name is None else name

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        """T and V of every tensor: measured for inputs, estimated for results."""
        return self.data.statistics

    @property
    def transferred_bytes(self) -> float:
        """Bytes that are expected to go from machine to machine of a cluster; 0 on one machine."""
        return self.data.transferred_bytes

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
        return algebra

    def distributed(
        self, sites: int | None = None, stored: Mapping[str, int | str] | None = None
    ) -> PartitionedProgram:
        """What several sites would send each other to compute this plan, cut so that it is little.

        A piece consists of whole tuples of the plan, so that a label without keys is not cut.

        Args:
            sites: The number of sites; by default the machines of the cluster that the plan is for.
            stored: Where inputs are, by name: the axis along which they are cut, by name or position, or `everywhere`;
                by default as on that cluster. Others are available in any partition.

        Raises:
            PlanError: The plan is for one machine and `sites` is missing, or a place does not exist.
        """
        distribute = late("sparseeinsum.plans.distributed_plan").distribute_plan
        partitioned: PartitionedProgram = distribute(self.data.alternatives, self.data.decomposed, sites, stored)
        return partitioned

    def explain(self, analyze: bool = False, top: int = 4) -> str:
        """The plan in words and tables.

        Args:
            analyze: Whether to run the plan as well, to show actual tuples, bytes and seconds beside the expected ones.
            top: How many of the best plans to compare, this one included.
        """
        return self.explanation(analyze, top).write()

    def explanation(self, analyze: bool = False, top: int = 4) -> Explanation:
        """What `explain` writes, as data: `as_dict()` returns a dict, and `to_json()` JSON text.

        Args:
            analyze: As for `explain`.
            top: As for `explain`.
        """
        return Explanation(self.data, self._analyzed() if analyze else None, top - 1)

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
        page: str = write_page(self.explanation(analyze, top))
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
                tables the SQL reads. Or `spark`, `clickhouse`, `datafusion`, `sqlite`, `snowflake`, `bigquery` or
                `trino`, for tables of the same names and columns in such an engine: for plans without arrays, as
                `optimizer="relational"` makes them.

        Raises:
            ValueError: There is no such style.
            PlanError: The database has another dialect, or the plan is for a Citus cluster and the style `cte`; or
                another engine cannot compute the plan exactly.
            DataError: An input repeats a coordinate.
        """
        with lock_of(self._engine.connection):
            prove_inputs(self.data, self._engine)
        requested = requested_dialect(self.data.dialect, dialect)
        if requested.plain is None:
            return write_sql(self.data.statements, style)
        if style != "cte":
            raise PlanError(f"SQL for {dialect} has one statement for every output; leave out style={style!r}")
        return plain_sql(self.data, requested)

    def to_json(self) -> str:
        """The plan as JSON text, which `Database.load_plan` reads: program, choices and expected costs, but no data."""
        return write_plan(self.data)

    def save(self, path: str | Path) -> None:
        """Write the text of `to_json` to a file, which replaces an existing one.

        Args:
            path: The file; `Database.load_plan` reads it.
        """
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def _analyzed(self) -> Analysis:
        with lock_of(self._engine.connection):
            return analyze_plan(self.data, self._engine)

    def __reduce__(self) -> tuple[type[DetachedPlan], tuple[str]]:
        return DetachedPlan, (self.to_json(),)

    def __copy__(self) -> "Plan":
        return Plan(self.data, self._engine)

    def __deepcopy__(self, memo: object) -> "Plan":
        return Plan(self.data, self._engine)  # the data do not change

    def __repr__(self) -> str:
        return "\n".join(self.notation())

    def _repr_html_(self) -> str:
        model = self.data.alternatives.model
        rows = [(step.notation, f"{step_sizes(model, step).tuples:,.0f}") for step in self.data.decomposed.steps]
        return Preview(f"plan, {self.cost:.3g} s expected", ["EinSum", "expected tuples"], rows).html()
