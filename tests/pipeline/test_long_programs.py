"""Products and sums of many terms, and chains of many statements, give numpy's results; errors fit on a screen."""

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.errors import EngineError, ParseError, SemanticsError

MATRIX = np.array([[0.5, 0.25], [0.125, 0.5]])
VECTOR = np.array([1.0, 2.0])


@pytest.fixture
def small(db: se.Database) -> se.Database:
    db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i"])
    db.tensor("V", VECTOR, axes=["i"], promoted=["i"])
    db.tensor("B", np.array([True, False]), axes=["i"], promoted=["i"])
    return db


@pytest.mark.engines("duckdb", "postgresql")
def test_a_product_of_many_factors(small: se.Database) -> None:
    factors = " * ".join(f"A[i{number}, i{number + 1}]" for number in range(150))
    result = small.run(f"Y[i0, i150] = sum({factors})")["Y"].to_numpy()
    np.testing.assert_allclose(result, np.linalg.matrix_power(MATRIX, 150), rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" + ".join(["V[i]"] * 300), VECTOR * 300),
        ("V[i]" + " - V[i]" * 300, VECTOR * -299),
        ("V[i] + (" + " - ".join(["2 * V[i]"] * 300) + ")", VECTOR - 596 * VECTOR),
        (" * ".join(["V[i]"] * 120), VECTOR**120),
        (" or ".join(["V[i] > 1"] * 300), VECTOR > 1),
        (" and ".join(["B[i]"] * 300), np.array([True, False])),
        (" + ".join(["B[i]"] * 300), np.array([True, False])),
        (" + ".join(["exp(" + " + ".join(["V[i]"] * 120) + " - 119 * V[i])"] * 120), 120 * np.exp(VECTOR)),
    ],
    ids=["sum", "difference", "terms", "product", "or", "and", "truth values", "nested sums"],
)
def test_many_terms(small: se.Database, text: str, expected: np.ndarray) -> None:
    result = small.run(f"Y[i] = {text}")["Y"].to_numpy()
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_terms_of_an_expression_in_python(small: se.Database) -> None:
    vector = se.tensor("V")
    terms = vector["i"]
    for _ in range(300):
        terms = terms + vector["i"]
    result = se.tensor("Y")
    result["i"] = terms
    np.testing.assert_allclose(small.run(se.program(result))["Y"].to_numpy(), VECTOR * 301)


def test_truth_values_among_many_numbers_are_refused(small: se.Database) -> None:
    with pytest.raises(SemanticsError, match="Y adds more than 100 terms, truth values and numbers"):
        small.run("Y[i] = V[i]" + " + B[i]" * 300)
    numbers = "Y[i] = V[i]" + " + 1 * B[i]" * 300
    np.testing.assert_allclose(small.run(numbers)["Y"].to_numpy(), np.add(VECTOR, [300, 0]))


def test_functions_that_are_nested_deep_are_refused(small: se.Database) -> None:
    with pytest.raises(ParseError, match="more than 100 functions and operators are nested here") as raised:
        small.run("Y[i] = " + "abs(" * 300 + "V[i]" + ")" * 300)
    problem, line, pointer = str(raised.value).split("\n")
    assert problem.startswith("line 1, column ")
    assert len(line) < 200
    assert line[pointer.index("^")] == "a"


@pytest.mark.engines("duckdb", "postgresql")
def test_a_chain_of_many_statements(small: se.Database) -> None:
    text = "\n".join(f"V{number + 1}[i] = sum(A[i, j] * V{number or ''}[j])" for number in range(150))
    result = small.run(text)["V150"].to_numpy()
    np.testing.assert_allclose(result, np.linalg.matrix_power(MATRIX, 150) @ VECTOR, rtol=1e-9)


def test_errors_of_long_statements_fit_on_a_screen() -> None:
    error = EngineError("no " * 10_000, "SELECT " + "1, " * 10_000)
    assert len(str(error)) < 5000
    assert "characters left out" in str(error)
    assert error.statement == "SELECT " + "1, " * 10_000
