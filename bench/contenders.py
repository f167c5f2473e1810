"""The contenders of a program: its chosen plan, the plan as written, the relational plan, planning, and scipy."""

import argparse
from collections.abc import Callable, Mapping
from functools import partial

import sparseeinsum as se
from bench.datasets import graph_of
from bench.timing import Figure, race
from sparseeinsum.api.examples import ExampleGraph, ExampleMatrix, load


def race_graphs(asked: argparse.Namespace, run: Callable[[ExampleGraph, int, bool], list[Figure]]) -> list[Figure]:
    """The figures of every graph that the command line asks for."""
    has_relational = not asked.without_relational
    return [figure for name in asked.graphs for figure in run(graph_of(name, asked.data), asked.repeat, has_relational)]


def planned(
    inputs: Mapping[str, ExampleMatrix], program: str, has_relational: bool, check: Callable[[se.TensorResult], None]
) -> dict[str, tuple[se.Database, se.Plan]]:
    """The chosen plan and, if wanted, the relational one, each with its database; all have been run and checked.

    Where products are computed in another order than they are written in, there is a plan as written, too.
    """
    ours = load(se.connect(), inputs)
    plans = {"sparseeinsum": (ours, ours.plan(program))}
    if plans["sparseeinsum"][1].data.rewriting.inlined:
        plans["sparseeinsum, as written"] = ours, ours.plan(program, rewrite=False)
    if has_relational:
        relational = load(se.connect(), inputs, ["dim_0", "dim_1"])
        plans["relational"] = relational, relational.plan(program, optimizer="relational", rewrite=False)
    for database, plan in plans.values():
        (result,) = database.run(plan).values()
        check(result)
    return plans


def race_plans(
    name: str,
    references: Mapping[str, Callable[[], object]],
    plans: Mapping[str, tuple[se.Database, se.Plan]],
    program: str,
    repeat: int,
) -> list[Figure]:
    """Race the references, the first of which is what ratios are to, the plans and planning.

    The relational plan runs half as often.
    """
    ours, _ = plans["sparseeinsum"]
    contenders: dict[str, Callable[[], object]] = {**references, "planning": partial(ours.plan, program)}
    contenders |= {
        contender: partial(database.run, plan, replan=False) for contender, (database, plan) in plans.items()
    }
    repeats = dict.fromkeys(contenders, repeat) | {"relational": max(1, repeat // 2)}
    return race(name, contenders, repeats, next(iter(references)))
