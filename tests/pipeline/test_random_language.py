"""Random programs on random data give numpy's results under every storage, decomposition and optimizer."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexing import index_wherever_possible, indexed_steps
from program_cases import Case, check
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se

COUNTED: Counter[str] = Counter()  # programs run, by kind; conftest.py prints them


@pytest.mark.engines("duckdb", reason="PostgreSQL runs fewer programs, below")
@pytest.mark.usefixtures("operators_are_free")  # or hardly any sum would be split
@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_numpys(
    shared_db: se.Database, family: str, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if optimizer == "greedy":  # the others compare costs
        index_wherever_possible(monkeypatch)

    @random_runs(50)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(cases(family, optimizer))
        count(case, family)
        plan = check(shared_db, case)
        COUNTED["with operands read by index"] += plan is not None and bool(indexed_steps(plan))
        COUNTED["with products put together"] += plan is not None and bool(plan.data.rewriting.inlined)

    run()


@pytest.mark.engines("duckdb", reason="SQL has tiles as it has without workers")
def test_results_are_numpys_where_labels_are_cut_among_workers(shared_db: se.Database) -> None:
    @random_runs(12)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(
            cases(data.draw(st.sampled_from(list(FAMILIES))), data.draw(st.sampled_from(["dp", "greedy"])))
        )
        count(case, "workers")
        check(shared_db, replace(case, workers=data.draw(st.sampled_from([2, 4, 16]))))

    run()


@pytest.mark.engines("postgresql", reason="fewer programs than on DuckDB")
@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_numpys_in_postgresql(shared_db: se.Database, family: str) -> None:
    @random_runs(32, "postgresql")
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(cases(family, data.draw(st.sampled_from(["dp", "greedy", "relational", "dense"]))))
        count(case, f"{family} in PostgreSQL")
        check(shared_db, case)

    run()


def count(case: Case, family: str) -> None:
    nonfinite = any(not np.isfinite(array).all() for array in case.inputs.values())
    kinds = {
        "in all": True,
        f"of {family}": True,
        f"by {case.optimizer}": True,
        f"of {case.text.count('=')} statements": False,
        "of several statements": len(case.expected) > 1,
        "with a fill that is not 0": any(fill != 0 for fill in case.fills.values()),
        "with labels promoted by hand": bool(case.pin),
        "with tiles pinned by hand": any(tile > 1 for tiles in case.pin.values() for tile in tiles.values()),
        "with tiles in the search": bool(case.tiles),
        "with inputs stored in tiles": any(tile > 1 for tiles in case.stored.values() for tile in tiles.values()),
        "with inputs stored in lists": bool(case.lists),
        "with tables that are read in place": bool(case.tables),
        "with tables without a value column": None in case.tables.values(),
        "with shifted or fixed indices": re.search(r"[A-Z]\d?\[[^]]*\d", case.text) is not None,
        "with a bound of 0": any(0 in array.shape for array in case.inputs.values()),
        "with NaN or infinities in the inputs": nonfinite,
        "of three operands": any(line.count("[") > 3 for line in case.text.splitlines()),
    }
    COUNTED.update(kind for kind, holds in kinds.items() if holds)
