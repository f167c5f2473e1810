"""The SQL that a plan shows, run by hand in either style, gives numpy's results."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from program_cases import Case
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se

Array = NDArray[Any]


@pytest.mark.parametrize("style", ["cte", "staged"])
@pytest.mark.parametrize("family", FAMILIES)
def test_sql_by_hand(shared_db: se.Database, engine: str, family: str, style: str) -> None:
    @random_runs(20, engine)
    @given(st.sampled_from(["dp", "greedy", "relational", "dense"]).flatmap(lambda name: cases(family, name)))
    def run(case: Case) -> None:
        case.load(shared_db)
        program = se.program(case.text)
        plan = shared_db.plan(program, optimizer=case.optimizer, pin=case.pin, outputs=case.outputs, nonfinite="allow")
        results = shared_db.run(plan)
        assert set(plan.outputs) == set(results) == {*program.outputs, *case.outputs}
        for name, rows in zip(plan.outputs, rows_of(shared_db, plan.sql(style)), strict=True):
            case.expect(name, as_array(rows, case.expected[name], results[name].fill))

    run()


def rows_of(db: se.Database, text: str) -> list[list[tuple[Any, ...]]]:
    """The rows of every statement that returns some; temporary tables are dropped."""
    rows = []
    db.connection.execute("BEGIN")
    try:
        for statement in filter(str.strip, text.split(";\n")):
            cursor = db.connection.execute(statement)
            if not statement.lstrip().startswith("CREATE"):
                rows.append(cursor.fetchall())
    finally:
        db.connection.execute("ROLLBACK")
    return rows


def as_array(rows: list[tuple[Any, ...]], like: Array, fill: Any) -> Array:  # noqa: ANN401  # a number
    """Rows of indices and a value as an array; complex values are pairs."""
    array = np.full_like(like, fill)
    for *keys, value in rows:
        array[tuple(keys)] = complex(*value) if like.dtype.kind == "c" else value
    return array
