"""The recipes of the documentation beside SQL that a person would write, and beside numpy or scipy.

    python -m bench.recipes planetoid_cora amazon_photo --data DIR

Tensors are loaded before; those of SQL by hand have one row per entry. All results are compared. Planning has a row
of its own.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

import sparseeinsum as se
from bench import recipe_cases
from bench.datasets import chosen_graphs, graph_of, graph_parser
from bench.recipe_cases import Array, Recipe
from bench.timing import Figure, race, report
from sparseeinsum.api.examples import ExampleGraph


def of_graph(graph: ExampleGraph) -> tuple[Recipe, ...]:
    """Recipes on a graph."""
    makers = (recipe_cases.page_rank, recipe_cases.triangles, recipe_cases.graph_network, recipe_cases.attention)
    return tuple(make(graph) for make in makers)


def of_their_own() -> tuple[Recipe, ...]:
    """Recipes that bring their data."""
    makers: tuple[Callable[[], Recipe], ...] = (
        recipe_cases.shortest_paths,
        recipe_cases.chain_of_variables,
        recipe_cases.counting,
        recipe_cases.circuit,
    )
    return tuple(make() for make in makers)


def run(where: str, recipe: Recipe, repeat: int) -> list[Figure]:
    """Race the contenders of a recipe, after checking that they agree."""
    ours, by_hand = loaded(recipe, False), loaded(recipe, True)
    planning = partial(ours.plan, recipe.program, optimizer=recipe.optimizer)
    plan, expected = planning(), recipe.reference()
    name = plan.outputs[-1]
    np.testing.assert_allclose(ours.run(plan)[name].to_numpy(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense(execute(by_hand, recipe), expected), expected, rtol=1e-9, atol=1e-12)
    contenders: dict[str, Callable[[], object]] = {
        "SQL by hand": partial(execute, by_hand, recipe),
        "sparseeinsum": lambda: ours.run(plan)[name].arrow(),
        "its planning": planning,
        "numpy or scipy": recipe.reference,
    }
    return race(f"{recipe.name}{where}", contenders, dict.fromkeys(contenders, repeat), "SQL by hand")


def loaded(recipe: Recipe, by_entry: bool) -> se.Database:
    """A database with the inputs, as they are stored by default or with a row for every entry."""
    database = se.connect()
    for name, data in recipe.inputs.items():
        rank = len(data[0]) if isinstance(data, tuple) else data.ndim
        promoted = [f"dim_{axis}" for axis in range(rank)] if by_entry else None
        database.tensor(name, data, fill=recipe.fill, promoted=promoted)
    return database


def execute(database: se.Database, recipe: Recipe) -> pa.Table:
    """What the last statement by hand selects."""
    *before, last = recipe.by_hand
    for statement in before:
        database.connection.execute(statement)
    rows: pa.Table = database.connection.sql(last).to_arrow_table()
    return rows


def dense(rows: pa.Table, like: Array) -> Array:
    """Entries in an array; what has none is infinite where such results have infinities, else 0."""
    columns = [column.to_numpy() for column in rows.columns]
    values = columns[like.ndim] + (1j * columns[like.ndim + 1] if np.iscomplexobj(like) else 0)
    array = np.full(like.shape, np.inf if np.isinf(like).any() else 0, like.dtype)
    array[tuple(columns[: like.ndim])] = values if like.ndim else values[0]
    return array


def all_figures(graphs: list[ExampleGraph], repeat: int) -> Iterator[Figure]:
    """The figures of all recipes."""
    for graph in graphs:
        for recipe in of_graph(graph):
            yield from run(f", {graph.name}", recipe, repeat)
    for recipe in of_their_own():
        yield from run("", recipe, repeat)


if __name__ == "__main__":
    asked = chosen_graphs(graph_parser(__doc__ or "", repeat=5), ["planetoid_cora", "amazon_photo"])
    figures = list(all_figures([graph_of(name, asked.data) for name in asked.graphs], asked.repeat))
    report("Recipes", figures, "SQL by hand", asked.output / "recipes.json")
