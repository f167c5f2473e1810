"""The contenders of a program: its chosen plan, its relational plan, planning itself, and scipy."""

import argparse
from collections.abc import Callable, Mapping
from functools import partial

import sparseeinsum as se
from bench.datasets import graph_of
from bench.timing import Figure, race
from sparseeinsum.examples import Graph, Matrix, load


def race_graphs(asked: argparse.Namespace, run: Callable[[Graph, int, bool], list[Figure]]) -> list[Figure]:
    """The figures of every graph that the command line asks for."""
    has_relational = not asked.without_relational
    return [figure for name in asked.graphs for figure in run(graph_of(name, asked.data), asked.repeat, has_relational)]


def planned(
    inputs: Mapping[str, Matrix], program: str, has_relational: bool, check: Callable[[se.TensorResult], None]
) -> dict[str, tuple[se.Database, se.Plan]]:
    """The chosen plan and, if wanted, the relational one, each with its database; both have been run and checked."""
    ours = load(se.connect(), inputs)
    plans = {"sparseeinsum": (ours, ours.plan(program))}
    if has_relational:
        relational = load(se.connect(), inputs, ["dim_0", "dim_1"])
        plans["relational"] = relational, relational.plan(program, optimizer="relational")
    for database, plan in plans.values():
        (result,) = database.run(plan).values()
        check(result)
    return plans


def race_plans(
    name: str,
    reference: Callable[[], object],
    plans: Mapping[str, tuple[se.Database, se.Plan]],
    program: str,
    repeat: int,
) -> list[Figure]:
    """Race scipy, the plans and planning; the relational plan half as often."""
    ours, _ = plans["sparseeinsum"]
    contenders: dict[str, Callable[[], object]] = {"scipy": reference, "planning": partial(ours.plan, program)}
    contenders |= {each: partial(database.run, plan, replan=False) for each, (database, plan) in plans.items()}
    repeats = dict.fromkeys(contenders, repeat) | {"relational": max(1, repeat // 2)}
    return race(name, contenders, repeats, "scipy")
