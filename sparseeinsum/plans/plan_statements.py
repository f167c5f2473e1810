"""Plans: the SQL statements of a plan, in one statement per output or staged in temporary tables."""

from collections.abc import Callable, Iterable, Mapping, Set
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.array_chains import ArrayChain, ArrayChains, array_chains, reading_groups
from sparseeinsum.algebra.entry_chains import EntryChain, entry_chains
from sparseeinsum.algebra.operators import Computed, Convert, Materialized, Relation
from sparseeinsum.algebra.parallel_reads import results_read_in_parallel
from sparseeinsum.algebra.row_chains import row_chains
from sparseeinsum.algebra.shared_orders import computed_again, ordered_once
from sparseeinsum.algebra.translate import ComputedResult, delivered_relation, materialized_relations, with_all_tuples
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph
from sparseeinsum.decompose.memory_footprint import SPLITS_LIMIT, split_scan_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.replanning_points import replanning_points
from sparseeinsum.decompose.staging import staged_results
from sparseeinsum.errors import ArgumentError, PlanError
from sparseeinsum.language.tensors import VALUE_COLUMN, tuple_bytes
from sparseeinsum.render.array_chain_queries import value_columns
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.output_natural_keys import with_natural_keys
from sparseeinsum.render.relation_names import layout_name
from sparseeinsum.render.sources import scan_boundaries
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.render.statements import result_query, result_statements, staged_statements
from sparseeinsum.rewrite.unique_names import UniqueNames
from sparseeinsum.statistics.measured_tensors import MeasuredTensor


@dataclass(frozen=True)  # no slots: statements are rendered once and cached
class PlanStatements:
    """Renders a plan as SQL statements.

    Attributes:
        definitions: The EinSums as operators over relations.
        decomposed: The EinSums and their choices.
        model: The cost model, which decides what is staged.
        inputs: The tensors that the program reads.
        dialect: The SQL dialect of the engine.
        threads: The threads of the engine, among which scans are split.
        stage_of: Returns the table that stores a result during a run, by the name of the result.
        reserved_names: Names that staged relations must not take.
        complete: Outputs that are returned with all their tuples.
        kept: Operands that are in memory already, with their handles; None for those without rows.
        also_staged: Results that a run stores in temporary tables besides those for which it needs them.
        written_in_passes: Outputs whose passes fill a permanent table, instead of a temporary one.
    """

    definitions: tuple[ComputedResult, ...]
    decomposed: DecomposedGraph
    model: CostModel
    inputs: Mapping[str, MeasuredTensor]
    dialect: Dialect
    threads: int
    stage_of: Callable[[str], exp.Table]
    reserved_names: frozenset[str]
    complete: frozenset[str] = frozenset()
    kept: Mapping[Relation, int | None] = field(default_factory=dict)
    also_staged: frozenset[str] = frozenset()
    written_in_passes: frozenset[str] = frozenset()
    _with_kept: "PlanStatements | None" = field(default=None, init=False, repr=False, compare=False)

    def reading(self, kept: Mapping[Relation, int | None]) -> "PlanStatements":
        """The same for operands that are in memory already; the last of them is remembered."""
        if kept == self.kept:
            return self
        if self._with_kept is None or self._with_kept.kept != kept:
            object.__setattr__(self, "_with_kept", replace(self, kept=kept))
        assert self._with_kept is not None
        return self._with_kept

    def writing(self, outputs: Set[str]) -> "PlanStatements":
        """The same for outputs that fill new tables: passes fill those of outputs that nothing else reads."""
        in_passes = frozenset(name for name in outputs if self._is_written_in_passes(name))
        return replace(self, written_in_passes=in_passes) if in_passes else self

    def _is_written_in_passes(self, name: str) -> bool:
        step = self.decomposed.step_of(name)
        if step is None or step.passes is None or self.dialect.has_workers or self.dialect.distributes:
            return False  # workers fill temporary tables together, and others alone
        output = self.delivery(name)
        is_as_computed = isinstance(output.input if isinstance(output, Convert) else output, Computed)
        return is_as_computed and self.decomposed.graph.count_readers()[name] == 0

    def with_own_memory(self) -> "PlanStatements":
        """The same, with what is written already, for a database in whose memory are other operands."""
        copied = copy(self)
        object.__setattr__(copied, "_with_kept", None)
        return copied

    @cached_property
    def for_run(self) -> tuple[SqlStatement, ...]:
        """The statements that a run executes; no other table has the names of its temporary tables."""
        return self._staged(self._names_in_run)

    @cached_property
    def for_run_with_checkpoints(self) -> tuple[SqlStatement, ...]:
        """The same, with tables also for results whose actual sizes can be a reason to plan the rest again."""
        points = replanning_points(self.decomposed, self.model, self._names_in_run)
        points = tuple(name for name in points if not any(name in chain.names for chain in self._array_chains))
        return self._staged(self._in_order({*self._names_in_run, *points})) if points else self.for_run

    def _staged(self, names: tuple[str, ...]) -> tuple[SqlStatement, ...]:
        tables = {name: self.table_of(name)[0] for name in names}
        return self._render(tables, self._boundaries, self._materialized_tables(self.stage_of), self._staged_chains)

    def table_of(self, name: str) -> tuple[exp.Table, str]:
        """The table that stores a result during a run, and the column of its values."""
        table, column = self.places_in_chains.get(name, (name, VALUE_COLUMN))
        return self.stage_of(table), column

    @cached_property
    def places_in_chains(self) -> Mapping[str, tuple[str, str]]:
        """For results in tables with several, the result whose table that is, and the column."""
        return {
            name: (chain.name, column) for chain in self._staged_chains for name, column in value_columns(chain).items()
        }

    def for_any_data(self) -> "PlanStatements":
        """The same with a GROUP BY everywhere, so that the SQL text stays right when keys of the inputs change."""
        return replace(self, definitions=without_group_by_elimination(self.definitions))

    def reading_entries(self) -> "PlanStatements":
        """The same, which reads one row an entry also of tensors in lists, so that it names no table but relations."""
        return replace(self, dialect=replace(self.dialect, stores_lists=False))

    def one_per_output(self) -> tuple[SqlStatement, ...]:
        """One statement for every output, with common table expressions and without passes."""
        return self._render({}, {}, {})

    def in_tables(self, table_of: Callable[[str], exp.Table]) -> tuple[SqlStatement, ...]:
        """The statements that fill the tables which `table_of` names, then those that return outputs."""
        return self._render(
            {name: table_of(name) for name in self.staged_names}, {}, self._materialized_tables(table_of)
        )

    def single(self, output: str) -> SqlStatement:
        """The one statement that returns an output with natural keys; its scans are split among threads."""
        statements = self._render({}, self._boundaries, {})
        return self.with_natural_keys(next(statement for statement in statements if statement.name == output))

    def with_natural_keys(self, statement: SqlStatement) -> SqlStatement:
        """A statement that returns natural keys in place of indices; one that fills a table stays as it is."""
        if statement.stage is not None:
            return statement
        return with_natural_keys(statement, delivered_relation(self.decomposed, statement.name).schema)

    def query_of(self, name: str, tables: Mapping[str, exp.Table]) -> exp.Select:
        """The SELECT of one EinSum, which reads the results in `tables` from there and computes all others."""
        return result_query(self.definitions, name, tables, self.dialect, self._boundaries)

    def for_result(self, name: str, tables: Mapping[str, exp.Table]) -> tuple[SqlStatement, ...]:
        """The statements that fill a table with the result of one EinSum, in passes if a run does; see `query_of`."""
        staged = {**tables, name: self.stage_of(name)}
        materialized_tables = self._materialized_tables(self.stage_of)
        return result_statements(self.definitions, name, staged, self.dialect, self._boundaries, materialized_tables)

    @cached_property
    def staged_names(self) -> tuple[str, ...]:
        """Names of the results that are stored in tables of their own if none has several results, in order."""
        return self._staged_beside(frozenset(), frozenset(), frozenset())

    @cached_property
    def _names_in_run(self) -> tuple[str, ...]:
        """Names of the results that a run stores in temporary tables, in order."""
        inner = frozenset(name for chain in self._array_chains for name in chain.inner)
        returned = frozenset(name for chain in self._staged_chains for name in chain.returned)
        return self._staged_beside(inner, self._read_by_chains, returned)

    def _staged_beside(self, inner: frozenset[str], read: frozenset[str], returned: frozenset[str]) -> tuple[str, ...]:
        """Names of the results in tables, in order.

        Args:
            inner: Results that only the chain over single arrays reads which computes them.
            read: Results that such a chain alone reads, whose statement computes them.
            returned: Results in tables of chains with several results.
        """
        if self.dialect.distributes:
            return tuple(definition.name for definition in self.definitions)
        shared = self._shared_in_chains | inner | read | self._ordered_once | self._single_tuples
        staged = self._staged_sharing(shared, inner)
        names = {*staged, *self.also_staged, *returned}
        if self.dialect.has_workers:
            names |= results_read_in_parallel(self.definitions, self.model, staged, self.kept.keys())
        return self._in_order(names)

    def _in_order(self, names: Set[str]) -> tuple[str, ...]:
        """The results in tables, in order, with those that several statements would compute if they had none."""
        outputs = {name: self.delivery(name) for name in self.decomposed.graph.outputs}
        names = names | computed_again(self.definitions, outputs, names, self._ordered_once)
        computed = (step.einsum.output.tensor for step in self.decomposed.steps)
        return tuple(name for name in computed if name in names and name not in self.written_in_passes)

    @cached_property
    def _ordered_once(self) -> frozenset[str]:
        """Results that a statement of PostgreSQL computes once, since all that read them need the same order."""
        if not self.dialect.has_workers:
            return frozenset()
        return ordered_once(self.definitions, map(self.delivery, self.decomposed.graph.outputs))

    @property
    def _single_tuples(self) -> frozenset[str]:
        """Results of one tuple, which a statement of PostgreSQL computes once for all that read them.

        A table of one takes longer to write than most of them to compute, and no two processes share its work.
        """
        if not self.dialect.has_workers:
            return frozenset()
        return frozenset(definition.name for definition in self.definitions if not definition.relation.schema.keys)

    def _staged_sharing(self, shared: frozenset[str], in_one_row: frozenset[str] = frozenset()) -> tuple[str, ...]:
        return staged_results(self.decomposed, self.model, self.dialect.computes_whole, shared, in_one_row)

    @property
    def _shared_in_chains(self) -> frozenset[str]:
        """Results that several EinSums read, all of which are computed row by row with them in one SELECT."""
        staged = frozenset(self._staged_sharing(frozenset()))
        if not self.dialect.joins_rows or self.dialect.has_workers:
            return frozenset()
        shared = staged - frozenset(self._staged_sharing(staged)) - self.also_staged
        outputs = [self.delivery(name) for name in self.decomposed.graph.outputs]
        while shared:
            chains = row_chains(self.definitions, outputs, (staged | self.also_staged) - shared)
            within = shared & {link.name for chain in chains for link in chain.links[:-1]}
            if within == shared:
                break
            shared = within
        return shared

    @property
    def _array_chains(self) -> tuple[ArrayChain, ...]:
        """The EinSums over single arrays that statements compute in one row."""
        return self._chained.chains

    @cached_property
    def _chained(self) -> ArrayChains:
        """The chains over single arrays, none of which computes results that a run stores apart from others."""
        largest = self.model.memory.largest_row_bytes
        apart = self.also_staged
        if not self.dialect.chains_arrays or self._bytes_of_arrays > largest:
            return ArrayChains((), self.definitions)
        outputs = [self.delivery(name) for name in self.decomposed.graph.outputs]
        while True:
            chained = array_chains(self.definitions, outputs, apart)
            inner = frozenset(name for chain in chained.chains for name in chain.inner)
            stored = inner & frozenset(self._staged_sharing(inner, inner))
            if not stored:
                return chained
            apart |= stored

    @cached_property
    def entry_chains(self) -> tuple[EntryChain, ...]:
        """The EinSums over the entries of stored matrices that are computed as arrays."""
        if not self.dialect.chains_entries:
            return ()
        return entry_chains(self.definitions, [self.delivery(name) for name in self.decomposed.graph.outputs])

    @property
    def _read_by_chains(self) -> frozenset[str]:
        """Results that one chain alone reads, so that its statement computes them."""
        chain_of = {name: number for number, chain in enumerate(self._array_chains) for name in chain.names}
        readers = reading_groups(self.definitions, map(self.delivery, self.decomposed.graph.outputs), chain_of)
        return frozenset(
            name
            for name, numbers in readers.items()
            if len(numbers) == 1 and -1 not in numbers and name not in chain_of
        )

    @property
    def _bytes_of_arrays(self) -> float:
        """The bytes of all results without keys."""
        schemas = [definition.relation.schema for definition in self.definitions]
        return sum(tuple_bytes(schema.tensor, schema.decomposition) for schema in schemas if not schema.keys)

    @cached_property
    def _staged_chains(self) -> tuple[ArrayChain, ...]:
        """The chains of which others read several results, so that a table has them."""
        return tuple(chain for chain in self._array_chains if len(chain.returned) > 1)

    @cached_property
    def materialized_names(self) -> Mapping[Materialized, str]:
        """Names of the repartitioned operands that get a table of their own; no result has such a name."""
        read = [relation for definition in self.definitions for relation in definition.materialized_operands()]
        outputs = self.decomposed.graph.outputs
        read += [
            relation
            for name in outputs
            for relation in materialized_relations(delivered_relation(self.decomposed, name))
        ]
        names = UniqueNames({*self.decomposed.graph.tensors, *self.reserved_names})
        return {relation: names.invent(layout_name(relation.schema)) for relation in dict.fromkeys(read)}

    @property
    def split_bytes(self) -> int:
        """Bytes of arrays in the vectors of split scans, which DuckDB does not count as memory of its buffers."""
        return sum(split_scan_bytes(self.inputs[name].stored, self.model.memory) for name in self._boundaries)

    @cached_property
    def _boundaries(self) -> Mapping[str, tuple[int, ...]]:
        """Where to split the scan of an input, by its name; scans stay whole that would take much of the memory."""
        memory = self.model.memory
        boundaries = {
            name: scan_boundaries(tensor.stored, tensor.measurement.tuples, self.threads, self.dialect)
            for name, tensor in self.inputs.items()
            if split_scan_bytes(tensor.stored, memory) * SPLITS_LIMIT <= memory.limit_bytes
        }
        return {name: splits for name, splits in boundaries.items() if splits}

    def _materialized_tables(self, table_of: Callable[[str], exp.Table]) -> dict[Materialized, exp.Table]:
        return {relation: table_of(name) for relation, name in self.materialized_names.items()}

    def delivery(self, name: str) -> Relation:
        """An output as the statements deliver it."""
        relation = delivered_relation(self.decomposed, name)
        return with_all_tuples(relation) if name in self.complete else relation

    def _render(
        self,
        tables: Mapping[str, exp.Table],
        boundaries: Mapping[str, tuple[int, ...]],
        materialized_tables: Mapping[Materialized, exp.Table],
        chains: tuple[ArrayChain, ...] = (),
    ) -> tuple[SqlStatement, ...]:
        if self.dialect.distributes and not tables:
            raise PlanError(
                "on a Citus cluster every operator of a plan fills a table in its place, so that no single statement "
                'computes an output; for SQL text, ask for sql("staged"), or --style staged'
            )
        deliveries = {name: self.delivery(name) for name in self.decomposed.graph.outputs}
        definitions = self._chained.definitions if chains else self.definitions
        return staged_statements(
            definitions,
            deliveries,
            tables,
            self.dialect,
            boundaries,
            materialized_tables,
            self.kept,
            chains,
            self.written_in_passes,
        )


def without_group_by_elimination(definitions: Iterable[ComputedResult]) -> tuple[ComputedResult, ...]:
    """The same definitions with a GROUP BY also where groups have one tuple each, and with operands of any tuples."""
    return tuple(
        replace(definition, relation=replace(definition.relation, has_single_pairs=False, complete=()))
        for definition in definitions
    )


def write_sql(statements: PlanStatements, style: str) -> str:
    """The SQL text of a plan, which ends in a semicolon and a line break.

    Args:
        statements: Of the plan.
        style: `cte` for one statement per output, or `staged` for temporary tables as in a run.

    Raises:
        ArgumentError: `style` is neither.
        PlanError: The plan is for a Citus cluster, and `style` is `cte`.
    """
    general = statements.for_any_data()
    if style == "cte":
        rendered = general.one_per_output()
    elif style == "staged":
        rendered = general.in_tables(lambda name: exp.table_(exp.to_identifier(name)))  # quoted if it is a keyword
    else:
        raise ArgumentError(f"style {style!r} is neither 'cte' nor 'staged'")
    return write_statements(map(statements.with_natural_keys, rendered))


def write_statements(statements: Iterable[SqlStatement]) -> str:
    """The text of statements, each of which ends in a semicolon and a line break."""
    return "\n\n".join(f"{statement.text};" for statement in statements) + "\n"
