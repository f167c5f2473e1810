"""`explain` reports expected and actual sizes and times, and the plans that lost."""

import json
import re

import numpy as np
import pytest
from reading import contents

import sparseeinsum as se
from sparseeinsum.plans.units import write_bytes, write_seconds
from sparseeinsum.results import execution

CHAIN = """
T[i, k] = sum(A[i, j] * B[j, k])
R[i, k] = relu(T[i, k])
Y[i, l] = sum(R[i, k] * C[k, l])
Z[]     = sum(R[i, k])
"""


@pytest.fixture
def chain(db: se.Database) -> se.Database:
    rng = np.random.default_rng(0)
    db.tensor("A", rng.normal(size=(300, 200)) * (rng.random((300, 200)) < 0.02), promoted=["dim_0", "dim_1"])
    db.tensor("B", rng.normal(size=(200, 10)))
    db.tensor("C", rng.normal(size=(10, 5)))
    return db


def rows_of(text: str, title: str) -> list[list[str]]:
    """The cells of the table under a title."""
    after = text[text.index(title) :].splitlines()[1:]
    table = after[: next(index for index, line in enumerate(after) if line.startswith("└"))]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in table if line.startswith("│")]


def test_runners_up_are_the_next_best(chain: se.Database) -> None:
    first, *others = chain.plan(CHAIN, top=4)
    rows = rows_of(first.explain(), "Runners-up")
    runners_up = [row for row in rows if row[0]]
    assert [row[0] for row in runners_up] == [write_seconds(other.cost) for other in others]
    assert [float(row[1]) for row in runners_up] == pytest.approx(
        [other.cost / first.cost for other in others], abs=0.006
    )
    differing = [
        [line for line, chosen in zip(other.notation(), first.notation(), strict=True) if line != chosen]
        for other in others
    ]
    assert [row[2] for row in rows] == [line for lines in differing for line in lines]


def test_number_of_runners_up(chain: se.Database) -> None:
    plan = chain.plan(CHAIN)
    runners_up = [row for row in rows_of(plan.explain(top=3), "Runners-up") if row[0]]
    assert len(runners_up) == 2
    assert "Runners-up" not in plan.explain(top=1)
    pinned = chain.plan("Y[i] = sum(A[i, j])", pin={"Y": "i"})
    assert "No other plan keeps to what is asked." in pinned.explain()


def test_other_plans_are_compared_with_the_best(chain: se.Database) -> None:
    first, second, *_ = chain.plan(CHAIN, top=3)
    rows = rows_of(second.explain(), "Other plans, of which some are cheaper")
    assert rows[0][0] == write_seconds(first.cost)
    assert float(rows[0][1]) <= 1
    assert rows_of(chain.load_plan(second.to_json()).explain(), "Other plans") == rows


def test_alternatives_differ_in_one_einsum(chain: se.Database) -> None:
    plan = chain.plan(CHAIN)
    taken = plan.data.decomposed.choices
    variants = plan.data.alternatives.variants_by_result(plan.data.decomposed, 100)
    assert {name: len(others) for name, others in variants.items()} == {"T": 7, "R": 3, "Y": 7, "Z": 3}
    for name, others in variants.items():
        seconds = [other.seconds for other in others]
        assert seconds == sorted(seconds)
        assert min(seconds) >= plan.cost * (1 - 1e-9)
        for other in others:
            assert {einsum_name for einsum_name, choice in other.choices.items() if choice != taken[einsum_name]} == {
                name
            }
    assert all(
        len(others) == 2 for others in plan.data.alternatives.variants_by_result(plan.data.decomposed, 2).values()
    )


def test_actual_sizes_and_times(chain: se.Database) -> None:
    before = contents(chain)
    plan = chain.plan(CHAIN, pin={"T": "ijk", "R": "i"})
    text = plan.explain(analyze=True)
    rows = {row[0][0]: row for row in rows_of(text, "EinSums") if row[0]}
    expected = chain.run("T[i, k] = sum(A[i, j] * B[j, k])")["T"].to_numpy()
    tuples = int(np.count_nonzero(expected))
    assert rows["T"][3] == f"{tuples:,}"
    assert rows["T"][5] == write_bytes(24 * tuples)
    # Tuples of R: stacking the tuples of T leaves out those that are all 0
    row_count = int(np.count_nonzero((expected != 0).any(axis=1)))
    assert rows["R"][3] == f"{row_count:,}"
    assert rows["R"][5] == write_bytes((8 + 80) * row_count)
    assert rows["Z"][3] == "1"
    for row in rows.values():
        assert re.fullmatch(r"[\d.e-]+ m?s", row[7])
    assert contents(chain) == before


def test_results_too_large_for_a_table_are_counted(chain: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_STAGED_SHARE", 0.0)
    staged = chain.plan(CHAIN).explain(analyze=True)
    assert staged.count("in its readers") == 4
    monkeypatch.undo()
    usual = chain.plan(CHAIN).explain(analyze=True)
    assert "in its readers" not in usual
    tuples = [[row[3] for row in rows_of(text, "EinSums")] for text in (staged, usual)]
    assert tuples[0] == tuples[1]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 KB"), (123_456, "123 KB"), (5.57e6, "5.57 MB"), (2e12, "2 TB")],
)
def test_sizes_are_written_in_units(size: float, text: str) -> None:
    assert write_bytes(size) == text


def test_explanations_as_data(db: se.Database) -> None:
    db.tensor("A", np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 4.0]]), promoted=["i", "j"], axes=["i", "j"])
    plan = db.plan("T[i] = max(log(A[i, j]))\nY[] = sum(T[i])", nonfinite="allow", optimizer="relational")
    expected = plan.explanation(top=2).as_dict()
    assert expected["seconds"] == plan.cost
    assert [einsum["notation"] for einsum in expected["einsums"]] == plan.notation()
    assert all(einsum["actual"] is None for einsum in expected["einsums"])
    (stored,) = expected["inputs"]
    assert (stored["tensor"], stored["size"], stored["fill"]) == ("A", 6, 0.0)
    explanation = plan.explanation(analyze=True)
    measured = json.loads(explanation.to_json(), parse_constant=pytest.fail)
    assert measured == explanation.as_dict()
    assert [einsum["actual"]["tuples"] for einsum in measured["einsums"]][-1] == 1
    assert measured["statements"][-1]["is_returned"]
    assert all(statement["actual"]["seconds"] > 0 for statement in measured["statements"])
    assert len(measured["other_plans"]) <= 3
    for note in measured["notes"]:
        assert note in str(explanation)
