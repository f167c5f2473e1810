"""Aggregates that users register are compiled for the database and fold as numpy does."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.language.eingraph import Program
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.semantics.dense import evaluate_program

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL has no functions of Python's, and says so below")

Array = NDArray[Any]
Pair = tuple[float, float]
Three = tuple[float, float, float]
Four = tuple[float, float, float, float]
NOTHING = (-math.inf, -math.inf, -math.inf)


def earlier(state: Pair, other: Pair) -> Pair:
    """The smaller of two values; of equal values, the first one."""
    if other[0] < state[0] or (other[0] == state[0] and other[1] < state[1]):
        return other
    return state


def least(state: Pair, value: float, place: float) -> Pair:
    return earlier(state, (value, place))


def top(state: Three, value: float) -> Three:
    first, second, third = state
    if value > first:
        return value, first, second
    if value > second:
        return first, value, second
    return first, second, max(value, third)


def merge_tops(state: Three, other: Three) -> Three:
    return top(top(top(state, other[0]), other[1]), other[2])


def moments(state: Four, value: float) -> Four:
    count, total, squares, cubes = state
    return count + 1, total + value, squares + value**2, cubes + value * value * value


def add_moments(state: Four, other: Four) -> Four:
    return state[0] + other[0], state[1] + other[1], state[2] + other[2], state[3] + other[3]


def repeated_moments(value: float, times: float) -> Four:
    return times, value * times, value**2 * times, value * value * value * times


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    se.aggregate("least", least, (math.inf, math.inf), earlier)
    se.aggregate("top3", top, NOTHING, merge_tops, lambda value, times: top_of(value, times))
    se.aggregate("moments", moments, (0, 0, 0, 0), add_moments, repeated_moments)
    se.aggregate("growth", lambda s, x: s * (1 + x), 1.0, lambda s, t: s * t, lambda x, n: (1 + x) ** n)


def top_of(value: float, times: float) -> Three:
    return value, value if times > 1 else -math.inf, value if times > 2 else -math.inf


def top_of_array(array: Array, axis: int) -> Array:
    return -np.sort(-np.moveaxis(array.astype(float), axis, -1), axis=-1)[..., :3]


def moments_of_array(array: Array, axis: int) -> Array:
    array = array.astype(float)
    return np.stack([(array**power).sum(axis) for power in range(4)], axis=-1)


def sparse_array(dtype: str, fill: float) -> Array:
    rng = np.random.default_rng(3)
    values = rng.integers(-3, 4, (6, 5, 4)) * (0.25 if np.dtype(dtype).kind == "f" else 1)
    array = np.where(rng.random((6, 5, 4)) < 0.4, values, fill)
    array[2] = fill
    return array.astype(dtype)


@pytest.mark.parametrize("promoted", [{}, {"dim_0": 1}, {"dim_1": 2, "dim_2": 1}, {"dim_0": 1, "dim_1": 1, "dim_2": 1}])
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
@pytest.mark.parametrize(
    ("dtype", "fill"), [("float64", 0), ("float64", 1.5), ("float32", 0), ("int64", -1), ("bool", 0)]
)
def test_results_do_not_depend_on_storage_or_plan(
    db: se.Database, dtype: str, fill: float, optimizer: str, promoted: dict[str, int]
) -> None:
    array = sparse_array(dtype, fill)
    db.tensor("A", array, fill=array.dtype.type(fill).item(), promoted=promoted)
    text = """
    T[i, k, n] = top3[j, n](A[i, j, k])
    M[n, j] = moments[i, k, n](A[i, j, k])
    G[] = growth(A[i, j, k] / 8)
    L[k, i, n] = least[j, n](A[i, j, k], index(j))
    S[i] = sum[n](least[j, n](A[i, j, j2], A[i, j2, k]))
    """
    text = text.replace("    S[i] = sum[n](least[j, n](A[i, j, j2], A[i, j2, k]))\n", "")
    results = db.run(text, optimizer=optimizer, tiles=(2,))
    np.testing.assert_allclose(results["T"].to_numpy(), top_of_array(array, 1))
    flat = np.moveaxis(array, 1, 0).reshape(5, -1)
    np.testing.assert_allclose(results["M"].to_numpy(), moments_of_array(flat, 1).T)
    np.testing.assert_allclose(results["G"].to_numpy(), np.prod(1 + array / 8))
    values = np.stack([array.min(1).astype(float), array.argmin(1).astype(float)], axis=-1)
    np.testing.assert_array_equal(results["L"].to_numpy(), values.transpose(1, 0, 2))


def test_the_oracle_agrees() -> None:
    array = sparse_array("float64", 0)
    results = evaluate_program(se.program("T[i, k, n] = top3[j, n](A[i, j, k])"), {"A": array})
    np.testing.assert_array_equal(results["T"], top_of_array(array, 1))


def test_two_tensors_of_other_labels(db: se.Database) -> None:
    values, places = np.array([[3.0, 1.0, 2.0], [5.0, 0.0, 0.0]]), np.array([10.0, 20.0, 30.0])
    db.tensor("A", values)
    db.tensor("P", places)
    results = db.run("R[i, n] = least[j, n](A[i, j], P[j] + 1)\nD[n] = least[j, n](P[j], P[j])")
    assert results["R"].to_numpy().tolist() == [[1, 21], [0, 21]]
    assert results["D"].to_numpy().tolist() == [10, 10]


def test_many_rows_on_threads(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(400_000)[:100_000] // 400, rng.integers(0, 400, 100_000)
    indices = np.unique(np.stack([rows, columns]), axis=1)
    values = rng.normal(size=indices.shape[1])
    db.tensor("A", (indices, values), shape=(1000, 400))
    dense = np.zeros((1000, 400))
    dense[tuple(indices)] = values
    results = db.run("T[i, n] = top3[j, n](A[i, j])\nM[n] = moments[i, j, n](A[i, j])")
    np.testing.assert_allclose(results["T"].to_numpy(), top_of_array(dense, 1))
    np.testing.assert_allclose(results["M"].to_numpy(), moments_of_array(dense.ravel(), 0), atol=1e-6)


def test_absent_entries_stay_absent(db: se.Database) -> None:
    db.tensor("A", ([[3, 3], [1, 7]], [2.0, 5.0]), shape=(1000, 8))
    plan = db.plan("T[i, n] = top3[j, n](A[i, j])")
    result = db.run(plan)["T"]
    assert "every tuple present" not in plan.sql()
    assert result.df().val.tolist() == [5, 2]  # and 0, the fill
    assert result.to_numpy()[3].tolist() == [5, 2, 0]


def test_in_expressions(db: se.Database) -> None:
    array = np.array([[3.0, 1.0, 2.0, 9.0], [5.0, 0.0, 4.0, 4.0]])
    db.tensor("A", array)
    result = db.run("R[i] = sum[n](top3[j, n](A[i, j] * 2)) / growth[j](0 * A[i, j])")["R"].to_numpy()
    assert result.tolist() == [28, 26]


def test_states_may_hold_infinities(db: se.Database) -> None:
    db.tensor("A", np.array([2.0, 1.0]))
    assert db.run("T[n] = top3[j, n](A[j])")["T"].to_numpy().tolist() == [2, 1, -math.inf]
    with pytest.raises(se.SparseEinsumError, match="G turned NaN or infinite"):
        db.run("G[] = growth(A[j] * 1e200)")


def test_empty_tensors(db: se.Database) -> None:
    db.tensor("A", np.zeros((2, 0)))
    results = db.run("T[i, n] = top3[j, n](A[i, j])\nG[i] = growth[j](A[i, j])")
    assert results["T"].to_numpy().tolist() == [[-math.inf] * 3] * 2
    assert results["G"].to_numpy().tolist() == [1, 1]
    se.aggregate("spread", lambda s, x: (min(s[0], x), max(s[1], x)), (math.inf, -math.inf), _widest)
    with pytest.raises(se.SemanticsError, match="R: spread of no values is not defined"):
        db.run("R[i, n] = spread[j, n](A[i, j])")


def _widest(state: Pair, other: Pair) -> Pair:
    return min(state[0], other[0]), max(state[1], other[1])


def test_registering_again_replaces(db: se.Database) -> None:
    db.tensor("A", np.array([3.0, 4.0]))
    register_scaled(db, 1.0)
    first, plan = USER_AGGREGATES["scaled"], db.plan("S[] = scaled(A[i])")
    register_scaled(db, 1.0)  # as a notebook's cell that runs again
    assert USER_AGGREGATES["scaled"] is first
    assert db.run(plan)["S"].to_numpy() == 7
    register_scaled(db, 2.0)
    assert db.run("S[] = scaled(A[i])")["S"].to_numpy() == 14
    with pytest.raises(se.PlanError, match="scaled was registered anew since the plan was made; plan again"):
        db.run(plan)


def register_scaled(db: se.Database, factor: float) -> None:
    db.aggregate("scaled", lambda s, x: s + factor * x, 0.0, lambda s, t: s + t, lambda x, n: factor * x * n)


def test_programs_and_plans_are_written_and_read(db: se.Database) -> None:
    program = se.program("R[i, n] = least[j, n](A[i, j], index(j))\nT[n] = top3[i, n](growth[j](A[i, j]))")
    assert se.program(str(program)) == program
    assert "R[i, n] = least[j, n](A[i, j], index(j: bound(A, 1)))" in str(program)
    array = np.array([[3.0, 1.0], [2.0, 2.0]])
    db.tensor("A", array)
    plan = db.plan(program)
    again = db.load_plan(plan.to_json())
    for name, expected in {"R": [[1, 1], [2, 0]], "T": [9, 8, -math.inf]}.items():
        assert db.run(plan)[name].to_numpy().tolist() == db.run(again)[name].to_numpy().tolist() == expected


def test_python_writes_them_as_text_does() -> None:
    a = se.tensor("A")["i", "j"]

    def written(expression: se.TensorExpression) -> Program:
        return se.program({"R": expression["i", "n"]})

    assert written(a.top3("j", "n")) == se.program("R[i, n] = top3[j, n](A[i, j])")
    assert written(a.least(se.index("j"), "j", "n")) == se.program("R[i, n] = least[j, n](A[i, j], index(j))")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R[i] = top3[j](A[i, j])", r"a state of top3 has 3 numbers; add one new label for them, as in top3\[j, n\]"),
        ("R[i, n] = top3(A[i, j])", "a state of top3 has 3 numbers"),
        ("R[i, n, m] = top3[j, n, m](A[i, j])", "one new label"),
        ("R[i, n] = growth[j, n](A[i, j])", r"growth\[n\] aggregates a label that its arguments lack"),
        ("R[i, n] = least[j, n](A[i, j])", "the aggregate least takes two expressions, not 1"),
        ("R[i, n] = top3[j, n](A[i, j], A[i, j])", "the aggregate top3 takes one expression, not 2"),
        ("R[i] = growth(A[i])", "growth"),
        ("R[i, n] = least[j, n](A[i, j], 3)", "an argument of least has no tensor"),
        ("R[i, N] = top3[j, N](A[i, j])", "top3 keeps n inside arrays, so n cannot be a key column"),
        ("R[i, n] = tops[j, n](A[i, j])", "there is no function 'tops'; did you mean top3?"),
        ("R = top3(A)", "top3 needs to know a label"),
        ("R[i, j] = growth[j](A[i, j]) * A[i, j]", r"growth\[j\] aggregates a label that is also used outside it"),
    ],
)
def test_invalid_programs_are_refused(text: str, message: str) -> None:
    with pytest.raises(se.ParseError, match=message):
        se.program(text)


def test_complex_numbers_are_refused(db: se.Database) -> None:
    db.tensor("A", np.ones((2, 2), complex))
    for text in ("R[i] = growth[j](A[i, j])", "R[i, n] = least[j, n](A[i, j], index(j))"):
        with pytest.raises(se.SemanticsError, match="takes real numbers"):
            db.run(text)


def plus(state: float, other: float) -> float:
    return state + other


@pytest.mark.parametrize(
    ("name", "parts", "message"),
    [
        ("sum", (plus, 0.0, plus), "sum has a meaning in programs already"),
        ("not a name", (plus, 0.0, plus), "cannot be the name of an aggregate"),
        (
            "odd",
            (abs, 0.0, plus),
            "the fold of odd is <built-in function abs>; it must be a function written in Python",
        ),
        ("odd", (lambda s: s, 0.0, plus), r"the fold of odd takes \(s\); it must take 2 or 3 arguments"),
        ("odd", (plus, 0.0, lambda s: s), "the combine of odd takes"),
        ("odd", (plus, 0.0, plus, lambda s: s), "the repeat of odd takes"),
        ("odd", (plus, (0.0,) * 5, plus), "it must be one to 4 real numbers"),
        ("odd", (plus, 1j, plus), "it must be one to 4 real numbers"),
        ("odd", (lambda s, x: (s[0], x), (0.0, 0.0, 0.0), plus), "returns 2 numbers, and its identity has 3"),
        ("odd", (plus, 1.0, plus), r"combine\(identity, state\) is not state"),
        ("odd", (lambda s, x: x, 0.0, lambda s, t: s - t), "odd is not an aggregate"),
        ("odd", (lambda s, x: s + 2 * x, 0.0, lambda s, t: s * t), "odd is not an aggregate"),
        ("odd", (plus, 0.0, plus, lambda x, n: x), r"repeat\(value, 3\) is not the fold of three"),
        ("odd", (lambda s, x: s + math.sqrt(x), 0.0, plus), "the fold of odd fails for"),
        ("odd", (lambda s, x: 1.0 / (s - 1) if s else x, 0.0, plus), "the fold of odd fails for"),
        ("odd", (lambda s, x: (s[0] + x, s[1]), (0, 0), lambda s, t: s[0]), "the combine of odd fails for"),
        ("odd", (plus, 10**400, plus), "which is too large for float64"),
    ],
)
def test_invalid_aggregates_are_refused(name: str, parts: tuple[Any, ...], message: str) -> None:
    with pytest.raises(se.SemanticsError, match=message):
        se.aggregate(name, *parts)
    assert name not in USER_AGGREGATES


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        (lambda s, x: s + (x if x < 3 else np.zeros(3)[int(x)]), "cannot be compiled|allocate memory|exception"),
        (lambda s, x: s + len([x]), "allocate memory|cannot be compiled|exception"),
    ],
)
def test_unsafe_functions_are_refused(db: se.Database, fold: Callable[..., Any], message: str) -> None:
    db.tensor("A", np.ones(3))
    try:
        se.aggregate("unsafe", fold, 0.0, plus, None)
    except se.SemanticsError:
        return
    with pytest.raises(se.SemanticsError, match=message):
        db.run("R[] = unsafe(A[i])")


def test_sql_has_aggregates_of_this_process_only(db: se.Database) -> None:
    with pytest.raises(
        Exception, match=r"tensor_fold: no such aggregate is registered; .*known only in the Python process"
    ):
        db.connection.execute("SELECT tensor_fold('nobodys', 'i->', [1.0, 2.0], [2])").fetchall()
    db.tensor("A", np.ones(2))
    db.plan("T[n] = top3[i, n](A[i])")  # which compiles it
    for call, message in {
        "tensor_merge('nobodys', [1.0])": "known only in the Python process",
        "tensor_merge('top3', [1.0])": "does not divide into runs of inner = 3",
        "tensor_merge_repeated('top3', [1.0], 2.0, 1)": "does not divide into runs of inner = 3",
        "tensor_fold('top3', 'i,i->', [1.0], [1.0], [1])": "takes 1 arguments, and is given 2 arrays",
        "tensor_fold('top3', 'i->', [1.0, 2.0], [3])": "operand 1 has 2 elements",
        "tensor_fold('top3', 'i->j', [1.0, 2.0], [2, 3])": "a label of the result is in no operand",
        "tensor_map('top3(u)', [1.0])": "unknown function",
        "tensor_map('u(@top3)', [1.0])": "cannot be read",
    }.items():
        with pytest.raises(Exception, match=message):
            db.connection.execute(f"SELECT {call}").fetchall()
    rows = "(VALUES ([1.0, 0.0, -1.0]), ([5.0, 0.5, 0.0])) AS t(u)"
    for call, expected in {
        "tensor_fold('top3', 'ij->j', [1, 2, 3, 4, 5, 6, 7, 8], [4, 2])": [7, 5, 3, 8, 6, 4],
        "tensor_merge_repeated('top3', [9.0, 1.0, 0.0], 2.0, 2)": [9, 2, 2],
        "tensor_merge_repeated('top3', [9.0, 1.0, 0.0], 2.0, 0)": [9, 1, 0],
        "tensor_merge('top3', u)": [5, 1, 0.5],
    }.items():
        assert db.connection.execute(f"SELECT {call} FROM {rows}").fetchone() == (expected,)


@pytest.mark.engines("postgresql", reason="DuckDB runs them")
def test_postgresql_refuses_them(db: se.Database) -> None:
    db.tensor("A", np.ones(3))
    with pytest.raises(se.PlanError, match="growth is a Python function, and PostgreSQL has none of those yet"):
        db.run("G[] = growth(A[i])")


def test_plans_for_workers_do_not_cut_states(db: se.Database) -> None:
    array = sparse_array("float64", 0)
    db.tensor("A", array)
    result = db.run(db.plan("T[i, k, n] = top3[j, n](A[i, j, k])", workers=4))["T"].to_numpy()
    np.testing.assert_array_equal(result, top_of_array(array, 1))


def test_changes_of_called_functions_count(db: se.Database) -> None:
    db.tensor("A", np.ones(3))
    factor = 1.0

    def scaled(value: float) -> float:
        return factor * value

    def add(state: float, value: float) -> float:
        return state + scaled(value)

    se.aggregate("rescaled", add, 0.0, lambda s, t: s + t)
    assert db.run("Y[] = rescaled(A[i])")["Y"].to_numpy() == 3
    factor = 5.0
    se.aggregate("rescaled", add, 0.0, lambda s, t: s + t)
    assert db.run("Y[] = rescaled(A[i])")["Y"].to_numpy() == 15


def test_programs_read_before_an_aggregate_changed_shape_are_refused(db: se.Database) -> None:
    db.tensor("A", np.ones((2, 3)))
    db.tensor("P", np.ones(3))

    def weighted(state: float, value: float, weight: float) -> float:
        return state + value * weight

    se.aggregate("changing", weighted, 0.0, plus)
    of_pairs = se.program("Y[i] = changing[j](A[i, j], P[j])")
    se.aggregate("changing", plus, 0.0, plus)
    of_one = se.program("Y[i] = changing[j](A[i, j])")
    with pytest.raises(se.SemanticsError, match="changing was registered again after the program was read"):
        db.run(of_pairs)
    se.aggregate("changing", lambda s, x: (s[0] + x, s[1]), (0, 0), lambda s, t: (s[0] + t[0], s[1] + t[1]))
    with pytest.raises(se.SemanticsError, match="read the program again"):
        db.run(of_one)


@pytest.mark.parametrize(
    ("fold", "array", "expected"),
    [
        (lambda s, x: s + 1 / x, [[1.0, 0.0], [2.0, 4.0]], [math.inf, 0.75]),
        (lambda s, x: s + math.log(abs(x)), [[1.0, 0.0], [1.0, math.e]], [-math.inf, 1.0]),
    ],
)
def test_python_exceptions_are_infinities_in_kernels(
    db: se.Database, fold: Callable[..., Any], array: list[list[float]], expected: list[float]
) -> None:
    se.aggregate("steep", fold, 0.0, plus)
    db.tensor("A", np.array(array), promoted={"dim_0": 1, "dim_1": 1})
    result = db.run("Y[i] = steep[j](A[i, j])", nonfinite="allow")["Y"].to_numpy()
    np.testing.assert_allclose(result, expected)
    with pytest.raises(se.SparseEinsumError, match="Y turned NaN or infinite"):
        db.run("Y[i] = steep[j](A[i, j])")


def test_fills_beyond_all_numbers(db: se.Database) -> None:
    db.tensor("B", ([[0], [5]], [7.0]), shape=(2, 3000), fill=1.0)
    result = db.run("Y[i] = growth[j](B[i, j])", nonfinite="allow")["Y"].to_numpy()
    assert result.tolist() == [math.inf, math.inf]


def test_functions_of_users_inside(db: se.Database) -> None:
    @se.function
    def doubled_inside(x: Any) -> Any:  # noqa: ANN401  # any number
        return 2 * x

    def add(state: float, value: float) -> float:
        def inner(x: float) -> float:
            return doubled_inside(x) + 1  # type: ignore[no-any-return]

        return state + inner(value)

    se.aggregate("nested", add, 0.0, plus)
    db.tensor("A", np.array([1.0, 2.0]))
    assert db.run("Y[] = nested(A[i])")["Y"].to_numpy() == 8


def test_the_relational_algebra_has_none(db: se.Database) -> None:
    db.tensor("A", np.ones((2, 3)))
    for text in ("Y[i] = growth[j](A[i, j])", "Y[i, n] = top3[j, n](A[i, j])"):
        for optimizer in ("dp", "relational"):
            with pytest.raises(se.AlgebraError, match="a user's aggregate, which the algebra does not support"):
                db.plan(text, optimizer=optimizer).algebra()
    with pytest.raises(se.AlgebraError, match="a user's aggregate, which the algebra does not support"):
        db.relation("A").transform("w[] = growth(u[i, j])")


def test_derivatives(db: se.Database) -> None:
    se.aggregate("energy", lambda s, x: s + x * x, 0.0, lambda s, t: s + t, derivatives="2 * g * u")
    se.aggregate("dot", lambda s, x, y: s + x * y, 0.0, lambda s, t: s + t, derivatives=["g * w", "g * u"])
    se.aggregate("product", lambda s, x: s * x, 1.0, lambda s, t: s * t, derivatives=["g * v / u"])
    text = "T[i] = energy[j](X[i, j] * 2) + product[j](X[i, j])\n"
    text += "loss[] = sum[k](T[k] ^ 2) + dot[i, j](X[i, j] ^ 2, Y[j, i])"
    values = {"X": np.array([[0.2, 0.5, 1.0], [-0.3, 2.0, 0.7]]), "Y": np.arange(6.0).reshape(3, 2)}
    same = text.replace("energy[j](X[i, j] * 2)", "sum[j](4 * X[i, j] ^ 2)").replace("product", "prod")
    same = same.replace("dot[i, j](X[i, j] ^ 2, Y[j, i])", "sum[i, j](X[i, j] ^ 2 * Y[j, i])")
    for name, array in values.items():
        db.tensor(name, array)
    actual = db.run(se.gradient(text, of="loss", by=["X", "Y"]))
    expected = evaluate_program(se.gradient(same, of="loss", by=["X", "Y"]), values)
    for name in ("d_X", "d_Y"):
        np.testing.assert_allclose(actual[name].to_numpy(), expected[name], rtol=1e-9)
    second = [
        evaluate_program(
            se.jvp(se.gradient(t, of="loss", by="X"), of={"d_X": "s"}, by={"X": "V"}), {**values, "V": values["X"] + 1}
        )
        for t in (text, same)
    ]
    np.testing.assert_allclose(second[0]["s"], second[1]["s"], rtol=1e-9)


def test_refused_derivatives() -> None:
    se.aggregate("weighted", lambda s, x, y: s + x * y, 0.0, lambda s, t: s + t, derivatives=["g * w", "0"])
    with pytest.raises(se.SemanticsError, match="loss does not depend on Y"):
        se.gradient("loss[] = weighted[i](X[i], Y[i])", of="loss", by="Y")
    se.aggregate("plain", lambda s, x: s + x, 0.0, lambda s, t: s + t)
    with pytest.raises(
        se.SemanticsError, match=r"the aggregate plain of a user has no derivative; register it with der"
    ):
        se.gradient("loss[] = plain[i](X[i])", of="loss", by="X")
    with pytest.raises(se.SemanticsError, match="aggregates 1 values at a time, but has 2 derivatives"):
        se.aggregate("plain", lambda s, x: s + x, 0.0, lambda s, t: s + t, derivatives=["g", "g"])
    with pytest.raises(se.ParseError, match="y"):
        se.aggregate("plain", lambda s, x: s + x, 0.0, lambda s, t: s + t, derivatives="g * y")
    with pytest.raises(se.SemanticsError, match="states of 2 numbers"):
        se.aggregate("two", lambda s, x: (s[0] + x, s[1]), (0, 0), lambda s, t: (s[0] + t[0], s[1] + t[1]), None, ["g"])
