"""Pipeline: the prepared queries of a plan, each of which returns an output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Self

from sparseeinsum.algebra.operators import Relation
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.prepared import PreparedQuery, SuppliedTable
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.pipeline.supplied_plans import SuppliedPlan
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.result_sizes import result_sizes
from sparseeinsum.render.statements import NOTHING_KEPT
from sparseeinsum.results.delivering import natural_keys
from sparseeinsum.results.results import TensorResult, result_of

_NUMBERS = count(1)  # of the names of queries in this process


@dataclass(frozen=True, slots=True)
class PreparedQueries:
    """The prepared queries of a plan; none before the first plan, or if the plan has statements of other kinds.

    Attributes:
        plan: The plan.
        engine: The database.
        queries: The queries, by the names of the outputs.
        schemas: What they return.
        kept: The operands that they read in memory, with their handles; None for those without rows.
        reads_own_tables: As in `SuppliedPlan`.
        read_filled_tables: Whether supplied tables must be filled before a run.
    """

    plan: ProgramPlan | None = None
    engine: Engine | None = None
    queries: Mapping[str, PreparedQuery] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    kept: Mapping[Relation, int | None] = field(default_factory=dict)
    reads_own_tables: bool = False
    read_filled_tables: bool = True

    @classmethod
    def of_plan(
        cls,
        planned: SuppliedPlan,
        engine: Engine,
        supplied: Sequence[SuppliedTable],
        kept: Mapping[Relation, int | None] = NOTHING_KEPT,
    ) -> Self:
        """Prepare the statements of a plan if each of them returns an output, and it has no memory limit.

        Args:
            planned: The plan.
            engine: The database.
            supplied: The relations of the supplied inputs.
            kept: The operands that are in memory, with their handles.
        """
        plan = planned.plan
        statements = plan.statements.reading(kept).for_run
        if plan.options.memory_limit is not None or any(statement.stage is not None for statement in statements):
            return cls(plan, engine)
        schemas = {
            statement.name: delivered_relation(plan.decomposed, statement.name).schema for statement in statements
        }
        queries = {
            statement.name: engine.prepared_tuples(
                temporary_name(f"query_{next(_NUMBERS)}"),
                statement,
                schemas[statement.name],
                result_sizes(plan, statement.name).tuples,
                supplied,
                planned.has_few_rows(statement.tables_read),
            )
            for statement in statements
        }
        fills = any(query.reads_filled_tables for query in queries.values())
        return cls(plan, engine, queries, schemas, kept, planned.reads_own_tables, fills)

    @property
    def can_run(self) -> bool:
        """Whether all operands that the queries read in memory are still there."""
        memory = None if self.engine is None else self.engine.kept_memory
        return memory is None or memory.has_all(self.kept.values())

    @property
    def check_nothing(self) -> bool:
        """Whether a run is right without a look at tables, as long as nobody changes permanent ones."""
        takes_one_number = all(query.takes_one_number for query in self.queries.values())
        if not (self.queries and self.reads_own_tables and takes_one_number and self.can_run):
            return False
        return not (self.read_filled_tables or self._dictionaries)

    @property
    def _dictionaries(self) -> list[Schema]:
        """What has natural keys, which are read from the database."""
        return [schema for schema in self.schemas.values() if schema.has_dictionaries]

    def results(self) -> Mapping[str, TensorResult]:
        """The outputs by name, as the queries return them now."""
        results = {name: result_of(self.schemas[name], query.arrow()) for name, query in self.queries.items()}
        if self.engine is None or not self._dictionaries:
            return results
        dictionaries = natural_keys(self.engine, [result.schema for result in results.values()])
        return {name: replace(result, dictionaries=dictionaries) for name, result in results.items()}

    def drop(self) -> None:
        """Remove the queries from the connection."""
        for query in self.queries.values():
            query.drop()
