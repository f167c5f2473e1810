"""SQL of plans without arrays gives numpy's results on engines without our functions, or an error; none is wrong."""

import re
from dataclasses import replace

import numpy as np
import pytest
import sqlglot
from hypothesis import HealthCheck, Phase, given, settings
from program_cases import Case
from random_programs import cases
from test_golden_sql import check_golden

import sparseeinsum as se
from bench.dialects import Comparison, Verdict, comparison, statements_of, tables_of
from bench.other_engines import OtherEngine
from sparseeinsum.render.plain_sql.engines import OTHER_DIALECTS

BY_ENTRY = {"dim_0": 1, "dim_1": 1}
GENERATOR = np.random.default_rng(0)
INPUTS = {
    "A": np.where(GENERATOR.random((3, 4)) < 0.5, GENERATOR.normal(size=(3, 4)), 0),
    "P": GENERATOR.random((3, 4)) + 0.1,
    "N": np.arange(-4, 8).reshape(3, 4),
    "B": np.arange(12).reshape(3, 4) % 3 == 0,
    "H": GENERATOR.normal(size=(4, 2)),
}
OF_FLOATS = """
    exp(A) | log(P) | sqrt(P) | sign(A) | relu(A) | sigmoid(A * 800) | tanh(A) | min(A, P) | max(A, P) | logaddexp(A, P)
    | where(A > 0, A, N) | floor(A) | ceil(A) | round(A * 3) | round(N / 2) | clip(A, -0.5, 0.5) | A == P | A != 0
    | A and B | not B | sin(A) | cos(A) | tan(A) | asin(A / 5) | acos(A / 5) | atan(A) | sinh(A) | cosh(A) | P ^ A
    | A ^ 2 | abs(A) | A / P | N / (abs(N) + 1) | where(A == 0, 0, P / where(A == 0, 1, A)) | conj(A) | bound(j) * A
    | 1 - A | A + 0.25 | (A or B) and N > 2 | 1e300 * P
"""
OF_INTEGERS = "N ^ 2 | N * N - N | abs(N) | -N | sign(N) | mod(N, 3) | mod(N, N) | max(N, 2) | N >= 1 | where(B, N, -N)"
AGGREGATES = ("sum", "max", "min", "any", "all", "logsumexp")


def program_of(expressions: str) -> str:
    """A program with a result for each expression, in which tensors have no labels."""
    labelled = re.sub("[APNB]", r"\g<0>[i, j]", expressions).split("|")
    return "\n".join(f"R{number}[i, j] = {expression.strip()}" for number, expression in enumerate(labelled))


def read_by(text: str) -> dict[str, np.ndarray]:
    return {name: array for name, array in INPUTS.items() if f"{name}[" in text}


@pytest.mark.parametrize(
    "text",
    [
        program_of(OF_FLOATS),
        program_of(OF_INTEGERS),
        "\n".join(f"R{at}[i] = {name}(A[i, j])\nQ{at}[] = {name}(N[i, j])" for at, name in enumerate(AGGREGATES)),
        "X[i] = prod(A[i, j] + 1)\nY[i] = prod(P[i, j] - 0.5)\nZ[i, j] = softmax[j](A[i, j])",
        "T[i, k] = sum(A[i, j] * H[j, k])\nY[i, k] = exp(T[i, k]) / 2\nS[] = sum(T[i, k] * T[i, k])",
        "X[i, j] = N[i, j] + index(j)\nY[i, j] = A[i + 1, j] - A[i, j]\nZ[i] = P[i, 0] + sum(A[i, j])",
    ],
    ids=["floats", "integers", "aggregates", "products", "joins", "indices"],
)
def test_results_are_numpys(other: tuple[str, OtherEngine], text: str) -> None:
    outcome = comparison(text, read_by(text), {}, None).on(*other)
    assert outcome.verdict == Verdict.EQUAL, outcome.reason


@pytest.mark.parametrize("family", ["float64", "mixed"])
def test_random_programs_are_never_wrong(other: tuple[str, OtherEngine], family: str) -> None:
    @settings(max_examples=5, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(cases(family, "relational"))
    def check(case: Case) -> None:
        stored = {name: {f"dim_{axis}": 1 for axis in range(array.ndim)} for name, array in case.inputs.items()}
        by_entry = replace(case, stored=stored, layout="entries", tiles=(), pin={})
        with se.connect() as database:
            by_entry.load(database)
            try:
                plan = by_entry.plan(database)
            except se.SparseEinsumError:
                return
            outcome = Comparison(plan, tables_of(database, plan), case.expected, case.expect).on(*other)
            assert outcome.verdict != Verdict.WRONG, outcome.reason

    check()


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("A[i, j] / A[i, j]", "division by|finite"),
        ("log(A[i, j])", "logarithm|finite"),
        ("max(log(A[i, j]), 0)", "logarithm|NaN"),
        ("sqrt(A[i, j])", "square root|NaN|finite"),
        ("exp(800 * P[i, j])", "finite"),
        ("N[i, j] * 2000000000 * 2000000000", "beyond int64|integer overflow"),
        ("sum(N[i, k] * 2000000000000000000)", "beyond int64|integer overflow"),
    ],
)
def test_what_numpy_gives_otherwise_is_an_error(other: tuple[str, OtherEngine], expression: str, part: str) -> None:
    text = f"Y[i, j] = {expression} + 0 * N[i, j]" if "sum" in expression else f"Y[i, j] = {expression}"
    outcome = comparison(text, read_by(text), {}, INPUTS["N"]).on(*other)
    assert outcome.verdict == Verdict.STOPPED
    assert any(word in outcome.reason for word in part.split("|"))


def test_tables_without_rows(other: tuple[str, OtherEngine]) -> None:
    text = "X[] = max(A[i, j])\nY[] = sum(A[i, j] + 1)\nZ[i] = sum(A[i, j])\nW[] = sum(N[i, j])"
    outcome = comparison(text, {"A": np.zeros((3, 4)), "N": np.zeros((3, 4), int)}, {}, None).on(*other)
    assert outcome.verdict == Verdict.EQUAL, outcome.reason


@pytest.mark.parametrize("values", [[2**62, 2**62], [-(2**62), -(2**62), -5], [2**62, 2**62, -(2**62)], [2**62, 2**61]])
def test_sums_of_large_integers_are_exact_or_an_error(other: tuple[str, OtherEngine], values: list[int]) -> None:
    inputs, total = {"L": np.array(values, np.int64)}, sum(values)
    outcome = comparison("Y[] = sum(L[i])", inputs, {}, np.array(total if abs(total) < 2**63 else 0)).on(*other)
    assert outcome.verdict == (Verdict.STOPPED if sum(map(abs, values)) > 9e18 else Verdict.EQUAL), outcome.reason


@pytest.mark.engines("duckdb", reason="the same for all engines")
@pytest.mark.parametrize("dialect", OTHER_DIALECTS)
def test_text_is_as_reviewed(db: se.Database, dialect: str) -> None:
    for name in ("A", "N", "H"):
        db.tensor(name, INPUTS[name], promoted=BY_ENTRY)
    text = """
        T[i, k] = relu(sum(A[i, j] * H[j, k]))
        Y[i, k] = T[i, k] / sum(T[l, k])
        Z[i] = sum(N[i, j] * N[i, j])
        W[i, j] = softmax[j](A[i, j])
    """
    plan = db.plan(text, optimizer="relational")
    written = plan.sql(dialect=dialect)
    check_golden(f"dialect_{dialect}", written)
    for statement in statements_of(written):
        assert sqlglot.parse_one(statement, read=dialect).sql(dialect) != ""
    assert plan.sql(dialect=dialect.upper()) == written


@pytest.mark.parametrize(
    ("text", "dialect", "message"),
    [
        ("Y[i, j] = erf(A[i, j])", "sqlite", "SQL for SQLite cannot compute the function erf exactly"),
        ("Y[i, j] = mod(A[i, j], P[i, j])", "bigquery", "the function mod"),
        ("Y[i] = prod(N[i, j])", "spark", "prod of int64"),
        ("Y[i, j] = N[i, j] ^ N[i, j]", "spark", "the function pow of int64"),
        ("Y[i, j] = A[i, j] * C[i, j]", "trino", "Y is computed with complex numbers, which Trino does not have"),
        ("Y[i, j] = 2 * F[i, j]", "snowflake", "F is float32, which Snowflake does not have"),
        ("Y[i, j] = cumsum[j](A[i, j])", "spark", "Scans such as cumsum"),
        ("Y[i, j] = 2 * D[i, j]", "spark", "D is stored as arrays.*promoted={'dim_0': 1, 'dim_1': 1}"),
        ("Y[i, j] = where(A[i, j] > 0, inf - inf, A[i, j])", "sqlite", "NaN is a fill or a number"),
        (
            "Y[i, j, k] = log(V[i] + A[j, k] ^ 2 + 1)",
            "trino",
            "20,000 absent entries; Trino",
        ),
        ("Y[i, j] = A[i, j]", "sparc", "there is no dialect 'sparc'; did you mean 'spark'?"),
        ("Y[i, j] = A[i, j]", "oracle", "choose one of spark, clickhouse"),
        ("Y[i, j] = A[i, j]", "postgres", "make the plan on such a database"),
    ],
)
@pytest.mark.engines("duckdb", reason="the same for all engines")
def test_what_an_engine_cannot_compute_is_refused(db: se.Database, text: str, dialect: str, message: str) -> None:
    for name in ("A", "P", "N"):
        db.tensor(name, INPUTS[name], promoted=BY_ENTRY)
    db.tensor("C", INPUTS["A"] * 1j, promoted=BY_ENTRY)
    db.tensor("F", INPUTS["A"].astype("float32"), promoted=BY_ENTRY)
    db.tensor("D", INPUTS["A"], promoted=())
    db.tensor("V", ([[0]], [1.0]), shape=(20_000,))
    plan = db.plan(text, optimizer="relational", nonfinite="allow")
    with pytest.raises(se.PlanError, match=message):
        plan.sql(dialect=dialect)


def test_plans_with_arrays_and_stages_are_refused(db: se.Database) -> None:
    db.tensor("A", INPUTS["A"], promoted=BY_ENTRY)
    with pytest.raises(se.PlanError, match="optimizer='relational'"):
        db.plan("Y[i, j] = A[i, j] + 1", optimizer="dense").sql(dialect="spark")
    with pytest.raises(se.PlanError, match="leave out style='staged'"):
        db.plan("Y[i, j] = A[i, j]", optimizer="relational").sql("staged", "spark")
