"""Functions that users register work in programs, compiled in the database or called by Python."""

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.semantics.dense import evaluate_program

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL has no functions of Python's")


def leaky(x: Any, slope: Any) -> Any:  # noqa: ANN401  # any number
    return x if x > 0 else slope * x


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def huber(x: float, width: float) -> float:
    if abs(x) <= width:
        return x * x / 2
    return width * (abs(x) - width / 2)


def limited(x: float, least: float, greatest: float) -> float:
    return max(least, min(x, greatest))


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def is_large(x: float) -> bool:
    return abs(x) > 1


def remainder(x: float) -> float:
    return x % 3


def by_numpy(python: Callable[..., Any], *arrays: Any) -> NDArray[Any]:  # noqa: ANN401  # arrays and numbers
    """Values of a function for every number, in float32 if all arrays have it."""
    result: NDArray[Any] = np.vectorize(python, otypes=[float])(*arrays)
    return result.astype(np.result_type(np.float32, *arrays))


RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 5))
S = sp.random_array((6, 5), density=0.3, rng=RNG).toarray() * 4
B = RNG.normal(size=5)
FULL = np.where(RNG.random((6, 5)) < 0.4, RNG.normal(size=(6, 5)), 2.0)  # with the fill 2
INPUTS = {"A": A, "S": S, "B": B, "Full": FULL, "Single": A.astype("float32"), "Whole": np.arange(-3, 5)}
FILLS = {"Full": 2.0}
STORED: dict[str, tuple[str, ...]] = {"S": ("dim_0", "dim_1"), "Full": ("dim_0", "dim_1")}

RUN: list[tuple[Callable[..., Any], str, Callable[[], Any]]] = [
    (gelu, "Y[i, j] = gelu(A[i, j])", lambda: by_numpy(gelu, A)),
    (gelu, "Y[i, j] = gelu(Single[i, j])", lambda: by_numpy(gelu, INPUTS["Single"])),
    (gelu, "Y[i, j] = gelu(S[i, j])", lambda: by_numpy(gelu, S)),
    (gelu, "Y[i] = sum(gelu(S[i, j]) * B[j])", lambda: by_numpy(gelu, S) @ B),
    (gelu, "Y[i, j] = 1 + gelu(Full[i, j] - 2)", lambda: 1 + by_numpy(gelu, FULL - 2)),
    (gelu, "Y[i, j] = gelu(gelu(A[i, j]) * 2)", lambda: by_numpy(gelu, by_numpy(gelu, A) * 2)),
    (gelu, "Y[i, j] = gelu(2) * A[i, j]", lambda: gelu(2) * A),
    (huber, "Y[i, j] = huber(A[i, j], 0.5)", lambda: by_numpy(huber, A, 0.5)),
    (huber, "Y[i, j] = huber(A[i, j], abs(B[j]))", lambda: by_numpy(huber, A, abs(B))),
    (huber, "Y[i, k] = sum(huber(A[i, j] - S[k, j], 1))", lambda: by_numpy(huber, A[:, None] - S, 1.0).sum(2)),
    (huber, "Y[i, j] = huber(Full[i, j], 1) * S[i, j]", lambda: by_numpy(huber, FULL, 1.0) * S),
    (limited, "Y[i, j] = limited(S[i, j], B[j], 1)", lambda: by_numpy(limited, S, B, 1.0)),
    (logistic, "Y[i, j] = logistic(S[i, j])", lambda: by_numpy(logistic, S)),
    (logistic, "Y[j] = max(logistic(S[i, j]))", lambda: by_numpy(logistic, S).max(0)),
    (logistic, "Y[i] = sum(logistic(S[i, j]))", lambda: by_numpy(logistic, S).sum(1)),
    (logistic, "Y[i] = prod(logistic(Full[i, j]))", lambda: by_numpy(logistic, FULL).prod(1)),
    (is_large, "Y[i, j] = is_large(S[i, j])", lambda: abs(S) > 1),
    (is_large, "Y[i] = sum(is_large(S[i, j]))", lambda: (abs(S) > 1).sum(1)),
    (is_large, "Y[i] = is_large(Whole[i])", lambda: abs(INPUTS["Whole"]) > 1),
    (remainder, "Y[i] = remainder(Whole[i])", lambda: INPUTS["Whole"] % 3.0),
    (remainder, "Y[i] = remainder(Whole[i] > 0) + 1", lambda: (INPUTS["Whole"] > 0) % 3.0 + 1),
]


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize(("python", "text", "expected"), RUN, ids=[text for _, text, _ in RUN])
def test_programs_run(
    shared_db: se.Database, python: Callable[..., Any], text: str, expected: Callable[[], Any], optimizer: str
) -> None:
    se.function(python)
    for name, array in INPUTS.items():
        shared_db.tensor(name, array, fill=FILLS.get(name, 0), promoted=STORED.get(name))
    result, wanted = shared_db.run(text, optimizer=optimizer)["Y"].to_numpy(), np.asarray(expected())
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    tolerance = 1e-6 if wanted.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)


def test_a_database_that_was_open_before_and_sql_by_hand(db: se.Database) -> None:
    db.tensor("A", A)
    se.function(gelu)
    plan = db.plan("Y[i, j] = gelu(A[i, j])")
    rows = db.connection.sql(plan.sql()).fetchall()
    np.testing.assert_allclose([value for *_, value in sorted(rows)], by_numpy(gelu, A).ravel())
    with se.connect() as other:
        other.tensor("A", A)
        np.testing.assert_allclose(other.run("Y[] = sum(gelu(A[i, j]))")["Y"].to_numpy(), by_numpy(gelu, A).sum())


def test_values_that_turn_nan_or_infinite(db: se.Database) -> None:
    @se.function
    def root(x: float) -> float:
        return math.sqrt(x) if x >= 0 else math.nan

    db.tensor("A", np.array([4.0, -1.0, 0.0]))
    with pytest.raises(se.EngineError, match="Y turned NaN or infinite"):
        db.run("Y[i] = root(A[i])")
    np.testing.assert_array_equal(db.run("Y[i] = root(A[i])", nonfinite="allow")["Y"].to_numpy(), [2, math.nan, 0])


def test_registered_before_any_other_import(tmp_path: Path) -> None:
    script = tmp_path / "first.py"
    script.write_text(
        "import sparseeinsum as se\n"
        "@se.function\n"
        "def halved(x):\n"
        "    return x / 2\n"
        "with se.connect() as db:\n"
        "    db.tensor('A', [1.0, 3.0])\n"
        "    print(db.run('Y[i] = halved(A[i])')['Y'].to_numpy())\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert (ran.stdout, ran.stderr) == ("[0.5 1.5]\n", "")


def test_unregistered_functions() -> None:
    with pytest.raises(se.ParseError, match=r"line 1, column 8: .*gelu"):
        se.program("Y[i] = gelu(A[i])")


def test_functions_that_cannot_be_compiled(db: se.Database) -> None:
    """Planning a program that calls them fails."""

    @se.function
    def spelled(x: float) -> float:
        return float(f"{x:.3f}")

    db.tensor("A", A)
    with pytest.raises(se.SemanticsError, match=r"^function spelled "):
        db.plan("Y[i, j] = spelled(A[i, j])")


def test_functions_of_complex_numbers(db: se.Database) -> None:
    se.function(gelu)
    db.tensor("A", np.array([1j, 2]))
    with pytest.raises(se.SemanticsError, match=r"^Y: gelu takes real numbers, as all .*, and no complex128"):
        db.plan("Y[i] = gelu(A[i])")


def test_programs_name_registered_functions() -> None:
    registered = se.function(leaky)
    assert registered(-2.0, 0.5) == -1
    text = "C[i] = sum(leaky(A[i, j], 0.1) * B[j])"
    program = se.program(text)
    left, right = se.tensor("A")["i", "j"], se.tensor("B")["j"]
    assert se.program({"C": (registered(left, 0.1) * right).sum("j")["i"]}) == program
    assert se.program(str(program)) == program
    a, b = np.array([[-1.0, 2.0], [3.0, -4.0]]), np.array([1.0, 10.0])
    result = evaluate_program(program, {"A": a, "B": b})["C"]
    np.testing.assert_allclose(result, np.where(a > 0, a, 0.1 * a) @ b)
    assert FUNCTIONS["leaky"].python is leaky
    assert FUNCTIONS["leaky"].operands == 2


@pytest.mark.parametrize(
    ("dtype", "result"), [("float64", "float64"), ("float32", "float32"), ("int64", "float64"), ("bool", "float64")]
)
def test_dtypes_and_fills_are_those_of_the_values(dtype: str, result: str) -> None:
    @se.function
    def shifted(x: Any) -> Any:  # noqa: ANN401  # any number
        return 0.5 if x > 1 else x + 1.5

    graph = bind(se.program("C[i] = shifted(A[i])"), {"A": Tensor("A", (Axis("i", 3),), dtype)})
    assert (graph.tensors["C"].dtype, graph.tensors["C"].fill) == (result, 1.5)


def make_stepped(step: float) -> Callable[..., Any]:
    def stepped(x: Any) -> Any:  # noqa: ANN401  # any number
        return x + step

    return stepped


def test_registering_again() -> None:
    """Registering the same function again, as a notebook's cell may, changes nothing; another one replaces it."""
    se.function(make_stepped(1.0))
    first = FUNCTIONS["stepped"]
    se.function(make_stepped(1.0))
    assert FUNCTIONS["stepped"] is first
    se.function(make_stepped(2.0))
    assert FUNCTIONS["stepped"] is not first


def test_plans_keep_their_functions(db: se.Database) -> None:
    """Another function maps the fill to another value, on which a plan depends."""
    db.tensor("S", np.array([0.0, 0.0, 3.0]))
    se.function(make_stepped(0.0))
    plan = db.plan("Y[] = sum(stepped(S[i]))")
    assert db.run(plan)["Y"].to_numpy() == 3
    se.function(make_stepped(0.0))
    assert db.run(plan)["Y"].to_numpy() == 3
    se.function(make_stepped(1.0))
    with pytest.raises(se.PlanError, match=r"^stepped was registered anew since the plan was made; plan"):
        db.run(plan)
    assert db.run("Y[] = sum(stepped(S[i]))")["Y"].to_numpy() == 6
    assert db.run(db.load_plan(plan.to_json()))["Y"].to_numpy() == 6


def test_names_that_are_taken_or_invalid() -> None:
    def softmax(x: Any) -> Any:  # noqa: ANN401  # any number
        return x

    def größe(x: Any) -> Any:  # noqa: ANN401  # any number
        return x

    for python in (abs, max, softmax):
        with pytest.raises(se.SemanticsError, match=f"^{python.__name__} has a meaning in programs already"):
            se.function(python)
    for python in (größe, lambda x: x):
        with pytest.raises(se.SemanticsError, match="cannot be the name of a function in a program; use def"):
            se.function(python)


def test_functions_that_are_not_of_numbers() -> None:
    def optional(x: Any, y: Any = 1) -> Any:  # noqa: ANN401  # any number
        return x + y

    def nothing() -> float:
        return 1.0

    def many(a: Any, b: Any, c: Any, d: Any) -> Any:  # noqa: ANN401  # any number
        return a + b + c + d

    def several(*x: Any) -> Any:  # noqa: ANN401  # any number
        return x[0]

    refused: list[tuple[Callable[..., Any], str]] = [
        (optional, "optional has the parameter y: Any = 1; only plain parameters are allowed"),
        (nothing, "nothing has no parameters; it must have 1 to 3"),
        (many, "many has 4 parameters; it must have 1 to 3"),
        (several, r"several has the parameter \*x: Any; only plain parameters are allowed"),
    ]
    for python, problem in refused:
        with pytest.raises(se.SemanticsError, match=f"^{problem}"):
            se.function(python)


@pytest.mark.parametrize(("returned", "text"), [("text", "'text'"), (None, "None"), (1j, "1j"), ((1, 2), r"\(1, 2\)")])
def test_functions_that_return_no_number(returned: object, text: str) -> None:
    @se.function
    def strange(x: Any) -> Any:  # noqa: ANN401  # any number
        return returned

    with pytest.raises(se.SemanticsError, match=f"strange returns {text}, which is not a real number"):
        bind(se.program("C[i] = strange(A[i])"), {"A": Tensor("A", (Axis("i", 3),))})


def test_functions_that_raise() -> None:
    @se.function
    def picky(x: Any) -> Any:  # noqa: ANN401  # any number
        raise ValueError("never")

    with pytest.raises(se.SemanticsError, match=r"picky\(1.0\) raises ValueError: never; functions of numpy give NaN"):
        bind(se.program("C[i] = picky(A[i])"), {"A": Tensor("A", (Axis("i", 3),))})
