"""Programs as SQL of other engines, on those that are installed: which results equal numpy's, and what is refused.

    python -m bench.dialects > bench/measured/dialects.txt

Every tensor is stored with one row for each entry. Plans are made without arrays on DuckDB.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.table import Table

import sparseeinsum as se
from bench import recipe_cases
from bench.datasets import twin_of
from bench.other_engines import OtherEngine, Rows, engines_here
from bench.programs import GRAPH, PROGRAMS, Data, small_source
from bench.timing import CONSOLE
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]

# What the errors say that statements raise in place of a wrong result.
GUARDS = (
    "not finite",
    "NaN",
    "beyond int64",
    "division by",
    "logarithm of",
    "integer overflow",  # of SQLite
    "square root of a negative",  # of DataFusion
)


class Verdict(StrEnum):
    """What came of a program on an engine."""

    EQUAL = "equal"
    REFUSED = "refused"  # there is no SQL
    STOPPED = "stopped"  # the SQL raised an error in place of a wrong result
    WRONG = "wrong"


@dataclass(frozen=True)
class Outcome:
    """What came of a program on an engine, and the reason if it has no result."""

    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True)
class Comparison:
    """A plan, the tables that it reads, and what it is to give.

    Attributes:
        plan: The plan, without arrays.
        tables: Its inputs, by name.
        expected: What numpy gives, for some outputs or all.
        is_close: Raises an AssertionError if a result, by its name, is not what was expected.
    """

    plan: se.Plan
    tables: Mapping[str, pa.Table]
    expected: Mapping[str, Array]
    is_close: Callable[[str, Array], None]

    def on(self, dialect: str, engine: OtherEngine) -> Outcome:
        """Run the plan on an engine.

        Args:
            dialect: The name of the engine's dialect.
            engine: The engine.
        """
        try:
            text = self.plan.sql(dialect=dialect)
        except se.SparseEinsumError as error:
            return Outcome(Verdict.REFUSED, str(error))
        return self.of_queries(engine, dict(zip(self.plan.outputs, statements_of(text), strict=True)))

    def of_queries(self, engine: OtherEngine, queries: Mapping[str, str]) -> Outcome:
        """Run queries on an engine.

        Args:
            engine: The engine.
            queries: A query for every output, by name.
        """
        try:
            for name, table in self.tables.items():
                engine.load(name, table)
            results = {name: engine.rows(query) for name, query in queries.items()}
        except Exception as error:  # each engine has errors of its own
            is_guarded = any(guard in str(error) for guard in GUARDS)
            return Outcome(Verdict.STOPPED if is_guarded else Verdict.WRONG, str(error))
        try:
            for name, rows in results.items():
                if name in self.expected:
                    self.is_close(name, self._dense(name, rows))
        except (AssertionError, TypeError) as error:
            return Outcome(Verdict.WRONG, str(error))
        return Outcome(Verdict.EQUAL)

    def _dense(self, name: str, rows: Rows) -> Array:
        like = self.expected[name]
        dense = np.full(like.shape, self.plan.data.decomposed.graph.tensors[name].fill, like.dtype)
        for *index, value in rows:
            dense[tuple(index)] = value
        assert len({tuple(index) for *index, _ in rows}) == len(rows), f"{name} has several rows of one index"
        return dense


def statements_of(text: str) -> list[str]:
    """The statements of a plan's SQL, without semicolons."""
    return text.rstrip().removesuffix(";").split(";\n\n")


def tables_of(database: se.Database, plan: se.Plan) -> dict[str, pa.Table]:
    """The tables that a plan reads, by name."""
    relations = (measured.stored.relation for measured in plan.data.inputs.values() if not measured.stored.is_generated)
    return {
        relation.rpartition(".")[2]: database.connection.sql(f"SELECT * FROM {relation}").to_arrow_table()
        for relation in relations
    }


def comparison(text: str, inputs: Mapping[str, Any], fills: Mapping[str, float], last: Array | None) -> Comparison:
    """The comparison of a program.

    Args:
        text: The program.
        inputs: Its inputs, dense or sparse.
        fills: The fills of some of them; 0 for the others.
        last: What its last output is; None to compute all outputs by numpy on dense arrays.
    """
    with se.connect() as database:
        for name, data in inputs.items():
            rank = len(data[0]) if isinstance(data, tuple) else data.ndim
            promoted = [f"dim_{axis}" for axis in range(rank)]
            database.tensor(name, data, fill=fills.get(name, 0), promoted=promoted)
        plan = database.plan(text, optimizer="relational")
        tables = tables_of(database, plan)
    expected = {plan.outputs[-1]: last} if last is not None else {}
    if last is None:
        arrays = {name: _array(data, fills.get(name, 0)) for name, data in inputs.items()}
        results = evaluate_program(se.program(text), arrays)
        expected = {name: results[name] for name in plan.outputs}

    def is_close(name: str, computed: Array) -> None:
        largest = float(np.abs(np.where(np.isfinite(expected[name]), expected[name], 0)).max(initial=1))
        np.testing.assert_allclose(computed, expected[name], rtol=1e-9, atol=1e-9 * largest)

    return Comparison(plan, tables, expected, is_close)


def _array(data: Data, fill: float) -> Array:
    """Entries in an array, with the fill elsewhere."""
    if isinstance(data, np.ndarray):
        return data
    entries = sp.coo_array(data)
    array = np.full(entries.shape, fill, entries.dtype)
    array[entries.coords] = entries.data
    return array


def programs(share: float) -> Iterator[tuple[str, Callable[[], Comparison]]]:
    """The programs of the benchmarks and the recipes, at a share of their size, each with its name."""
    source = small_source(share)
    for name, make in PROGRAMS.items():
        case = make(source)
        yield name, partial(comparison, case.text, case.inputs, case.fills, None)
    graph = twin_of(GRAPH, share)
    recipes = (
        recipe_cases.page_rank(graph, steps=5),
        recipe_cases.triangles(graph),
        recipe_cases.graph_network(graph, hidden=8),
        recipe_cases.attention(graph, width=8),
        recipe_cases.shortest_paths(nodes=24, degree=3),
        recipe_cases.chain_of_variables(steps=6, values=8),
        recipe_cases.counting(variables=6, clauses=12),
        recipe_cases.circuit(qubits=3, depth=2),
    )
    for recipe in recipes:
        fills = dict.fromkeys(recipe.inputs, recipe.fill)
        yield recipe.name, partial(comparison, recipe.program, recipe.inputs, fills, recipe.reference())


def run(share: float) -> None:
    """Print what came of all programs on all engines that are installed, and the reasons of what is not equal."""
    engines = {name: make() for name, make in engines_here().items()}
    table = Table("program", *engines, title="Programs as SQL of other engines", title_justify="left")
    counts = {name: Counter[Verdict]() for name in engines}
    reasons: dict[str, None] = {}
    for title, make in programs(share):
        compared = make()
        outcomes = {name: compared.on(name, engine) for name, engine in engines.items()}
        table.add_row(title, *(outcome.verdict for outcome in outcomes.values()))
        for name, outcome in outcomes.items():
            counts[name][outcome.verdict] += 1
            if outcome.verdict != Verdict.EQUAL:
                reasons[f"{title}, {name}: {outcome.verdict}: {outcome.reason}"] = None
    for verdict in Verdict:
        table.add_row(f"all: {verdict}", *(str(counts[name][verdict]) for name in engines))
    CONSOLE.print(table)
    for reason in reasons:
        CONSOLE.print(reason, highlight=False)
    for engine in engines.values():
        engine.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.03, help="bounds, as a share of those of the benchmark")
    run(parser.parse_args().share)
