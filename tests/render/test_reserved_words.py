"""SQL keywords work as names of tensors and labels in every statement."""

import numpy as np
import pytest
from any_sql import run_sql
from reading import contents

import sparseeinsum as se

PROGRAM = """
select[group, order] = {name}[group, order] + 1
table[group] = sum(select[group, order] * {name}[group, order])
where[order] = sum(select[group, order] * table[group])
"""


@pytest.mark.parametrize("name", ["from", "A", "values", "t", "u", "val"])
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_keywords_as_names(db: se.Database, name: str, optimizer: str) -> None:
    array = np.arange(6.0).reshape(2, 3)
    db.tensor(name, array, axes=["all", "join"])
    result = db.run(PROGRAM.format(name=name), optimizer=optimizer, into={"where": "limit"}, outputs=["select"])
    select = array + 1
    np.testing.assert_allclose(result["select"].to_numpy(), select)
    rows = run_sql(db, 'SELECT * FROM "limit" ORDER BY 1')
    table = (select * array).sum(axis=1)
    assert rows == [(index, value) for index, value in enumerate(table @ select)]
    assert not any("temp" in relation for relation in contents(db))


@pytest.mark.parametrize("style", ["cte", "staged"])
def test_sql_with_keywords_runs(db: se.Database, style: str) -> None:
    db.tensor("from", np.arange(6.0).reshape(2, 3))
    for statement in db.plan(PROGRAM.format(name="from"), optimizer="relational").sql(style).split(";\n")[:-1]:
        db.connection.execute(statement)


def test_a_form_feed_ends_no_line() -> None:
    with pytest.raises(se.ParseError) as caught:
        se.program("C[i] = A[i]\f\n\tD[i] = = A[i]")
    assert caught.value.line == 2
    *_, source_line, caret = str(caught.value).split("\n")
    assert source_line == "  \tD[i] = = A[i]"
    assert caret == "  \t       ^"
