"""Mistakes of users raise this package's errors, not those of numpy or DuckDB, and lose no data."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import sparseeinsum as se

PROGRAM = "Y[i] = sum(A[i, j] * X[j])"
NO_NAMES = ['a"b', '"ab', 'a"', "a'b", "a;b", ""]
NOT_STORED = ["\ud800", "a\0b"]


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    db.tensor("A", np.eye(3))
    db.tensor("X", np.arange(3.0))
    return db


@pytest.mark.parametrize("table", NO_NAMES)
def test_names_that_are_no_table(loaded: se.Database, table: str) -> None:
    attempts: tuple[Callable[[], object], ...] = (
        lambda: loaded.run(PROGRAM, into={"Y": table}),
        lambda: loaded.tensor_from_table("Q", table, index=["i"], value="v"),
    )
    for attempt in attempts:
        with pytest.raises(se.CatalogueError, match="names no table; write table"):
            attempt()
    np.testing.assert_array_equal(loaded.run(PROGRAM)["Y"].to_numpy(), [0, 1, 2])


@pytest.mark.parametrize("table", ["a'b", "a;b"])
def test_names_that_are_no_table_in_a_program(loaded: se.Database, table: str) -> None:
    with pytest.raises(se.CatalogueError, match="names no table"):
        loaded.run(f'tensor Q[i] from "{table}"\nY[i] = Q[i]')


@pytest.mark.parametrize("name", NOT_STORED)
def test_characters_that_databases_do_not_store(loaded: se.Database, name: str) -> None:
    attempts: tuple[Callable[[], object], ...] = (
        lambda: loaded.run(PROGRAM, into={"Y": name}),
        lambda: loaded.tensor_from_table("Q", name, index=["i"], value="v"),
        lambda: loaded.tensor("Q", np.ones(2), axes=[name]),
    )
    for attempt in attempts:
        with pytest.raises((se.EngineError, se.ShapeError), match=r"'.*', which databases do not store"):
            attempt()
    assert sorted(loaded.tensors()) == ["A", "X"]


def test_names_of_several_lines(loaded: se.Database) -> None:
    """A line break in a name must not split a line of SQL."""
    with pytest.raises(se.ShapeError, match="a name of several lines"):
        loaded.tensor("Q", np.ones(2), axes=["x" * 70 + "\n"])


def test_misspelled_names(loaded: se.Database) -> None:
    """The message names the nearest of the names that exist, in any case."""
    loaded.tensor("Links", np.eye(2), axes=["i", "j"])
    loaded.tensor("People", pd.DataFrame({"person": ["ann"], "v": [1.0]}))
    folder = pd.DataFrame({"i": [0], "weight": [1.5]})
    attempts: dict[str, Callable[[], object]] = {
        "no tensor Link in this database; did you mean Links?": lambda: loaded.statistics("Link"),
        "no tensor Lnks in this database; did you mean Links?": lambda: loaded.run("Y[i] = sum(Lnks[i, j])"),
        "no tensor Linkz in this database; did you mean Links?": lambda: loaded.drop_tensor("Linkz"),
        "no table, view or file linkss in this database; did you mean (?i:links)": lambda: loaded.tensor_from_table(
            "Q", "linkss", index=["i"]
        ),
        "no dictionary persons in this database; did you mean person?": lambda: loaded.dictionary("persons"),
        "no result totals; did you mean Total?": lambda: loaded.run("Total[i] = sum(Links[i, j])")["totals"],
        "computes no Totl; did you mean Total?": lambda: loaded.plan("Total[i] = sum(Links[i, j])", outputs=["Totl"]),
        "no input Lynks to be supplied; did you mean Links?": lambda: loaded.prepare(
            "Total[i] = sum(Links[i, j])", inputs=["Lynks"]
        ),
        "its data have no column wieght; did you mean weight?": lambda: loaded.tensor("Q", folder, value="wieght"),
    }
    for message, attempt in attempts.items():
        with pytest.raises(se.SparseEinsumError, match=message):
            attempt()


def test_results_of_unknown_names(loaded: se.Database) -> None:
    with pytest.raises(se.CatalogueError, match="this run has no result Z; it has Y"):
        loaded.run(PROGRAM)["Z"]
    with (
        loaded.stream(PROGRAM) as results,
        pytest.raises(se.CatalogueError, match="this run has no result Z; it has Y"),
    ):
        results["Z"]


class Unreadable:
    """An array of a package that does not convert it."""

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        raise RuntimeError("convert it yourself")


@pytest.mark.engines("duckdb", reason="einsum has a database of its own")
@pytest.mark.parametrize("operand", [Unreadable(), [[1], [2, 3]]], ids=["unreadable", "ragged"])
def test_operands_that_are_no_arrays(operand: object) -> None:
    with pytest.raises(se.DataError, match="operand 2 of einsum cannot be read as an array"):
        se.einsum("ij,jk->ik", np.eye(3), operand)


FORGED: list[object] = [None, "x", -1, float("inf"), [], {}, 2**80, "\ud800", [[1]]]


def test_forged_plans(loaded: se.Database, tmp_path: Path) -> None:
    """Each part of a saved plan is replaced by an unsuitable one: the plan gives the right result or is refused."""
    path = tmp_path / "plan.json"
    loaded.plan(PROGRAM).save(path)
    content = json.loads(path.read_text())
    places = list(places_in(content))
    assert len(places) > 30
    for place in places:
        for forged in FORGED:
            path.write_text(json.dumps(replaced(content, place, forged)))
            try:
                result = loaded.run(loaded.load_plan(path))
            except se.SparseEinsumError:
                continue
            for computed in result.values():
                assert computed.to_numpy().shape in {(3,), ()}


def places_in(content: object, before: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    parts = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [before, *(place for key, part in parts for place in places_in(part, (*before, key)))]


def replaced(content: object, place: tuple[str | int, ...], forged: object) -> object:
    if not place:
        return forged
    copied = json.loads(json.dumps(content))
    part = copied
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = forged
    return copied


def test_wrong_arguments(loaded: se.Database) -> None:
    tensor = se.tensor("A")
    expression: Any = tensor["i", "j"]
    attempts: dict[str, Callable[[], object]] = {
        "5 is no program;": lambda: loaded.run(5),  # type: ignore[arg-type]
        "5 is no program text": lambda: loaded.program(5),  # type: ignore[arg-type]
        "5 is neither program text nor a tensor": lambda: se.program(5),  # type: ignore[arg-type]
        "there is no option speed": lambda: loaded.run(PROGRAM, speed=1),  # type: ignore[call-arg]
        "style 'long' is neither": lambda: loaded.plan(PROGRAM).sql("long"),
        "duplicates 'last' is neither": lambda: loaded.tensor("B", np.eye(2), duplicates="last"),
        "1.5 is no index": lambda: tensor[1.5],  # type: ignore[index]
        "expressions have no //": lambda: expression // 2,
        "has no values yet": lambda: list(expression),
        "is neither a program, nor a matrix": lambda: se.equivalent(5, PROGRAM),  # type: ignore[arg-type]
    }
    for message, attempt in attempts.items():
        with pytest.raises(se.ArgumentError, match=re.escape(message)):
            attempt()
