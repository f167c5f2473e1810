"""The EinDecomp benchmark agrees with what the paper says of its figures."""

import itertools

import pytest

import sparseeinsum as se
from bench.eindecomp import Case, cases_by_workers, cases_of_figures, chain, longest_paths, run
from sparseeinsum.api.examples import MATRIX_CHAIN

FIGURES = list(cases_of_figures())


def test_names_are_unique() -> None:
    names = [(case.name, case.workers) for case in (*FIGURES, *cases_by_workers((2, 3, 8)))]
    assert len(set(names)) == len(names)
    assert {case.workers for case in cases_by_workers((2, 64))} == {2, 64}


@pytest.mark.parametrize("case", [*FIGURES[:8:3], *FIGURES[-6::5]], ids=lambda case: f"{case.name}, {case.workers}")
def test_no_rule_moves_less(case: Case) -> None:
    best, *others = run(case)
    assert best.partition == "EinDecomp"
    assert best.ratio == best.replayed_ratio == 1
    assert best.is_optimal
    for figure in (best, *others):
        assert figure.floats == figure.join + figure.aggregation + figure.repartition
        assert figure.ratio == figure.floats / best.floats >= 1
        assert 0 < figure.busiest <= figure.replayed <= figure.floats


def test_matrix_chains_agree_with_the_paper() -> None:
    """Squares are cut alike; of other shapes SQRT moves far more (section 9.3)."""
    for case in itertools.islice(FIGURES, 12):
        ratios = {figure.partition: figure.ratio for figure in run(case)}
        is_square = case.shapes["A"] == case.shapes["B"]
        assert ratios["SQRT"] >= 1
        assert (ratios["SQRT"] < 1.2) == is_square


def test_classifiers_agree_with_the_paper() -> None:
    """Sending a large model to all workers moves the most floats."""
    for case in FIGURES[12:18]:
        ratios = {figure.partition: figure.ratio for figure in run(case)}
        assert max(ratios, key=ratios.__getitem__) == "data parallel"
        assert ratios["data parallel"] > 3


def test_paths_hold_every_einsum_once_with_the_longest_first() -> None:
    partitioned = se.partition(MATRIX_CHAIN, 2, chain(640, True), rewrite=False)
    paths = list(longest_paths(partitioned.task.graph))
    assert [len(path) for path in paths] == [3, 1]
    assert sorted(einsum.output.tensor for path in paths for einsum in path) == sorted(partitioned.task.choices)
