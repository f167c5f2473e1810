"""Program text: what it means, and what it says of text that means nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import DeclaredTensor, EinGraph, EinSum, Reference, write_einsum
from sparseeinsum.language.scalar import FUNCTIONS, PRODUCT, AxisBound, Bound, Call, Literal, Operand, Scalar, write
from sparseeinsum.language.tensors import Axis, Tensor

Array = NDArray[Any]

U, V = Operand(0), Operand(1)
DEEP = 2000


def einsums_of(text: str) -> list[str]:
    return [write_einsum(einsum, einsum.promoted) for einsum in se.program(text).einsums]


@pytest.mark.parametrize(
    ("text", "einsums"),
    [
        ("C[i, k] = sum(A[i, j] * B[j, k])", ["C[i, k] = sum(A[i, j] * B[j, k])"]),
        ("T[i] = A[i]\nW[i] = T[i]", ["T[i] = A[i]", "W[i] = T[i]"]),
        ("T[i] = A[i]; W[i] = T[i];", ["T[i] = A[i]", "W[i] = T[i]"]),
        ("\n\n;T[i] = A[i];;\n\r\n  \tW[i] = T[i]\r\n\n", ["T[i] = A[i]", "W[i] = T[i]"]),
        ("# first\nC[i] = A[i] # ( ; = é\n# last", ["C[i] = A[i]"]),
        ("C[i] = sum(  # over columns (\n  A[i, j]\n  * B[j])", ["C[i] = sum(A[i, j] * B[j])"]),
        ("C[\n  i\n] = A[i]", ["C[i] = A[i]"]),
        ("L[] = sum(A[i])", ["L[] = sum(A[i])"]),
        ("C[i] = eta[] * A[i]", ["C[i] = eta[] * A[i]"]),
        ("D[i] = A[i, i]", ["D[i] = A[i, i]"]),
        ("L[] = sum(A[i, i])", ["L[] = sum(A[i, i])"]),
        ("C[k, i] = A[i, k]", ["C[k, i] = A[i, k]"]),
        ("C[i, j] = U[i] * V[j]", ["C[i, j] = U[i] * V[j]"]),
        ("C[i] = A[i] * A[i]", ["C[i] = A[i] * A[i]"]),
        ("C[i] = (((A[i])))", ["C[i] = A[i]"]),
        ("C[i]=max(A[i],B[i])", ["C[i] = max(A[i], B[i])"]),
        ("C[] = max(max(A[i], B[i]))", ["C[] = max(max(A[i], B[i]))"]),
        ("C[] = any(A[i] < 3)", ["C[] = any(A[i] < 3)"]),
        ("C[] = all(A[i])", ["C[] = all(A[i])"]),
        ("C[i] = logsumexp(A[i, j])", ["C[i] = logsumexp(A[i, j])"]),
        # Any number of tensors, each once for the same labels
        ("C[i] = sum(A[i, j] * B[j] * D[j])", ["C[i] = sum(A[i, j] * B[j] * D[j])"]),
        ("C[] = sum(A[i] * A[j] * A[i])", ["C[] = sum(A[i] * A[j] * A[i])"]),
        # Scalars
        ("C[i] = not (A[i] < 3) or B[i] == 2 and true", ["C[i] = not A[i] < 3 or B[i] == 2 and true"]),
        ("C[i] = (A[i] or B[i]) and not (A[i] != 0)", ["C[i] = (A[i] or B[i]) and not A[i] != 0"]),
        ("C[i] = (A[i] < 1) == (B[i] >= 2)", ["C[i] = (A[i] < 1) == (B[i] >= 2)"]),
        ("C[i] = A[i] + B[i] <= 2 * A[i]", ["C[i] = A[i] + B[i] <= 2 * A[i]"]),
        ("C[i] = where(A[i] > -inf, conj(A[i]), inf)", ["C[i] = where(A[i] > -inf, conj(A[i]), inf)"]),
        ("C[i] = A[i] * (1 - 2j) + .5j", ["C[i] = A[i] * (1.0 - 2.0j) + 0.5j"]),
        ("C[i] = A[i] + 1 + 2j", ["C[i] = A[i] + 1 + 2.0j"]),
        ("C[i] = A[i] * -2 ^ 2 - (-2) ^ 2", ["C[i] = A[i] * -2 ^ 2 - (-2) ^ 2"]),
        # Words mean something only where they stand alone.
        ("C[i] = true[i] + not[i] * inf[i]", ["C[i] = true[i] + not[i] * inf[i]"]),
        ("or[i] = and[i] or index[i] and bound[i]", ["or[i] = and[i] or index[i] and bound[i]"]),
        ("C[not, inf] = A[inf, not]", ["C[not, inf] = A[inf, not]"]),
        # Bounds of labels, and of axes where the EinSum lacks the label
        ("C[] = sum(A[i] / bound(i))", ["C[] = sum(A[i] / bound(i))"]),
        ("C[I] = A[I] / bound(I)", ["C[I] = A[I] / bound(i)"]),
        ("C[i] = A[i] + bound(B, 1)", ["C[i] = A[i] + bound(B, 1)"]),
        ("C[i] = sum(A[i, j]) / bound(j)", ["C_sum[i] = sum(A[i, j])", "C[i] = C_sum[i] / bound(A, 1)"]),
        (
            "C[i] = A[i] * sum(B[k] * bound(i) + bound(k))",
            ["C_sum[] = sum(B[k] * bound(A, 0) + bound(k))", "C[i] = A[i] * C_sum[]"],
        ),
        (
            "C[] = sum[j](A[j] / bound(j)) * sum[j](B[j])",
            ["C_sum[] = sum(A[j] / bound(j))", "C_sum2[] = sum(B[j])", "C[] = C_sum[] * C_sum2[]"],
        ),
    ],
)
def test_statements(text: str, einsums: list[str]) -> None:
    assert einsums_of(text) == einsums


@pytest.mark.parametrize(
    ("text", "einsums"),
    [
        # An inner aggregate takes the labels that appear in it alone.
        ("C[] = sum(A[i] * max(B[i, j]))", ["C_max[i] = max(B[i, j])", "C[] = sum(A[i] * C_max[i])"]),
        ("C[i] = A[i] / sum(A[k])", ["C_sum[] = sum(A[k])", "C[i] = A[i] / C_sum[]"]),
        ("C[i] = exp(sum(A[i, j]))", ["C_sum[i] = sum(A[i, j])", "C[i] = exp(C_sum[i])"]),
        (
            "C[i] = sum(A[i, k]) + sum(B[i, l])",
            ["C_sum[i] = sum(A[i, k])", "C_sum2[i] = sum(B[i, l])", "C[i] = C_sum[i] + C_sum2[i]"],
        ),
        # In brackets it says which labels it takes.
        ("C[i] = sum[j](A[i, j])", ["C[i] = sum(A[i, j])"]),
        ("C[i] = prod[j, k](A[i, j, k])", ["C[i] = prod(A[i, j, k])"]),
        ("C[] = min[i](max[j](A[i, j]))", ["C_max[i] = max(A[i, j])", "C[] = min(C_max[i])"]),
        ("C[] = min(max[j](A[i, j]))", ["C_max[i] = max(A[i, j])", "C[] = min(C_max[i])"]),
        ("C[] = min[i](max(A[i, j]))", ["C_max[i] = max(A[i, j])", "C[] = min(C_max[i])"]),
        (
            "C[i] = sum[k](A[i, k]) * sum[k](B[i, k])",
            ["C_sum[i] = sum(A[i, k])", "C_sum2[i] = sum(B[i, k])", "C[i] = C_sum[i] * C_sum2[i]"],
        ),
        (
            "C[] = sum(B[k] * sum[i](max(A[i, j, k])))",
            ["C_max[i, k] = max(A[i, j, k])", "C_sum[k] = sum(C_max[i, k])", "C[] = sum(B[k] * C_sum[k])"],
        ),
        # Values of inner aggregates get names that the program does not use.
        (
            "C[i] = C_sum[i] * sum(A[i, j])",
            ["C_sum2[i] = sum(A[i, j])", "C[i] = C_sum[i] * C_sum2[i]"],
        ),
        (
            "C[i] = exp(sum(A[i, j]))\nc_SUM[i] = C[i]",
            ["C_sum2[i] = sum(A[i, j])", "C[i] = exp(C_sum2[i])", "c_SUM[i] = C[i]"],
        ),
    ],
)
def test_nested_aggregates(text: str, einsums: list[str]) -> None:
    assert einsums_of(text) == einsums


def test_the_same_aggregate_is_computed_once() -> None:
    assert einsums_of("C[i] = A[i] / sum(A[k])\nD[i] = A[i] * sum(A[k]) + sum(A[i, l])") == [
        "C_sum[] = sum(A[k])",
        "C[i] = A[i] / C_sum[]",
        "D_sum[i] = sum(A[i, l])",
        "D[i] = A[i] * C_sum[] + D_sum[i]",
    ]


def test_numbers_keep_their_kind() -> None:
    """A whole number leaves whole numbers whole, where 2.0 does not, and true is no number to add."""
    literals = [Literal(2), Literal(2.0), Literal(2 + 0j), Literal(True), Literal(1)]
    assert len(set(literals)) == len(literals)
    (einsum,) = se.program("C[i] = A[i] * 2 + 2.0 * true").einsums
    assert repr(einsum.join) == repr(
        Call("add", (Call("mul", (U, Literal(2))), Call("mul", (Literal(2.0), Literal(True)))))
    )


@pytest.mark.parametrize(
    ("text", "tensor", "has_dtype", "has_fill"),
    [
        ("A[i: 3]", Tensor("A", (Axis("i", 3),)), False, False),
        ("A[] fill -inf", Tensor("A", (), "float64", -np.inf), False, True),
        ("A[] fill 2 dtype int64", Tensor("A", (), "int64", 2), True, True),
        ("A[] fill true dtype bool", Tensor("A", (), "bool", True), True, True),
        ("A[] fill 1 - 2j dtype complex64", Tensor("A", (), "complex64", 1 - 2j), True, True),
        ("A[] fill -2j", Tensor("A", (), "complex128", -2j), False, True),
        ("A[] dtype complex128", Tensor("A", (), "complex128", 0), True, False),
    ],
)
def test_declarations(text: str, tensor: Tensor, has_dtype: bool, has_fill: bool) -> None:
    (declared,) = se.program(f"tensor {text}\nC[] = B[]").declared
    assert declared == DeclaredTensor(tensor, has_dtype, has_fill)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex64"])
def test_a_declared_fill_is_a_number_whatever_the_dtype(dtype: str) -> None:
    program = se.program("tensor A[i: 3] fill 1\nC[i] = A[i]")
    bind(program, {"A": Tensor("A", (Axis("i", 3),), dtype, 1)})
    problem = "the program declares A with shape \\(3,\\), fill 1.0, but the database has it with shape \\(3,\\), fill"
    with pytest.raises(se.ShapeError, match=problem):
        bind(program, {"A": Tensor("A", (Axis("i", 3),), dtype, 0)})


def test_outputs_are_what_no_statement_reads() -> None:
    program = se.program("T[i] = exp(A[i])\nX[i] = T[i] * B[i]\nY[] = sum(T[i])")
    assert program.inputs == ("A", "B")
    assert program.outputs == ("X", "Y")


def test_graph() -> None:
    """The whole of what later stages see."""
    program = se.program("""
        tensor A[i: 3, j: 4] fill 0 dtype float32
        S[i] = sum(A[i, j] * B[j])   # shared
        W[K, i] = relu(S[i]) - A[i, K]
    """)
    declared = Tensor("A", (Axis("i", 3), Axis("j", 4)), "float32")
    vector = Tensor("B", (Axis("x", 4),), "float32")
    assert program.declared == (DeclaredTensor(declared, has_dtype=True, has_fill=True),)
    assert program.layouts == (("W", frozenset({"k"})),)
    assert bind(program, {"A": declared, "B": vector}) == EinGraph(
        {
            "A": declared,
            "B": vector,
            "S": Tensor("S", (Axis("i", 3),), "float32"),
            "W": Tensor("W", (Axis("k", 4), Axis("i", 3)), "float32"),
        },
        (
            EinSum(Reference("S", ("i",)), (Reference("A", ("i", "j")), Reference("B", ("j",))), PRODUCT, "sum"),
            EinSum(
                Reference("W", ("k", "i")),
                (Reference("S", ("i",)), Reference("A", ("i", "k"))),
                Call("sub", (Call("relu", (U,)), V)),
                None,
                frozenset({"k"}),
            ),
        ),
        ("W",),
    )


@pytest.mark.parametrize(
    ("text", "notation", "promoted"),
    [
        ("C[I] = sum(A[I, j])", "C[I] = sum(A[I, j])", {"i"}),
        ("C[i] = sum(A[i, J])", "C[i] = sum(A[i, J])", {"j"}),
        ("C[i] = sum[J](A[i, J])", "C[i] = sum(A[i, J])", {"j"}),
        ("C[Row] = A[Row]", "C[ROW] = A[ROW]", {"row"}),
        ("C[_I] = A[_I]", "C[_i] = A[_i]", set()),
    ],
)
def test_upper_case_labels_are_promoted_by_hand(text: str, notation: str, promoted: set[str]) -> None:
    assert einsums_of(text) == [notation]
    assert se.program(text).einsums[0].promoted == promoted


def test_statements_may_write_a_label_differently() -> None:
    assert einsums_of("T[I] = A[I]\nC[i] = T[i]") == ["T[I] = A[I]", "C[i] = T[i]"]


@pytest.mark.parametrize("name", ["tensor", "fill", "dtype", "sum", "exp", "_", "_1", "Tensor", "a" * 300])
def test_any_identifier_names_tensors_and_labels(name: str) -> None:
    assert einsums_of(f"{name}[i] = A[i]") == [f"{name}[i] = A[i]"]
    assert einsums_of(f"C[i] = exp({name}[i])") == [f"C[i] = exp({name}[i])"]
    assert einsums_of(f"C[] = sum(A[{name.lower()}])") == [f"C[] = sum(A[{name.lower()}])"]
    (declared,) = se.program(f"tensor {name}[{name}: 3] fill 0 dtype float32\nC[i] = {name}[i]").declared
    assert declared == DeclaredTensor(Tensor(name, (Axis(name.lower(), 3),), "float32"), has_dtype=True, has_fill=True)


def test_a_declaration_may_leave_the_dtype_open(db: se.Database) -> None:
    db.tensor("f", np.ones(3, dtype=np.float32))
    assert db.run("tensor f[i: 3]\nC[i] = f[i]")["C"].to_numpy().dtype == np.float32


def test_names_meet_only_in_the_text(shared_db: se.Database) -> None:
    """Labels may be named like tensors, operands, columns and aliases of the SQL."""
    array = np.arange(6.0).reshape(2, 3)
    shared_db.tensor("u", array)
    shared_db.tensor("v", np.array([1.0, 2.0, 3.0]))
    for i, j in [("u", "v"), ("v", "u"), ("dim_0", "dim_1"), ("dim_1", "dim_0"), ("t", "s"), ("key", "value")]:
        for pin in [(), (i,), (j,), (i, j)]:
            result = shared_db.run(f"w[{i}] = sum(u[{i}, {j}] * v[{j}])", pin={"w": pin})["w"]
            np.testing.assert_array_equal(result.to_numpy(), [8, 26])


OPERATORS: list[tuple[str, Callable[[Array, Array], Array]]] = [
    ("A[i] + B[i] * 2", lambda a, b: a + b * 2),
    ("(A[i] + B[i]) * 2", lambda a, b: (a + b) * 2),
    ("A[i] - B[i] - 1", lambda a, b: a - b - 1),
    ("A[i] - (B[i] - 1)", lambda a, b: a - (b - 1)),
    ("A[i] / B[i] / 2", lambda a, b: a / b / 2),
    ("A[i] / (B[i] / 2)", lambda a, b: a / (b / 2)),
    ("A[i] / B[i] * 2", lambda a, b: a / b * 2),
    ("-A[i] ^ 2", lambda a, b: -(a**2)),
    ("(-A[i]) ^ 2", lambda a, b: (-a) ** 2),
    ("A[i] ** 2", lambda a, b: a**2),
    ("2 ^ 3 ^ A[i]", lambda a, b: 2.0 ** (3.0**a)),
    ("2 ^ -A[i]", lambda a, b: 2.0**-a),
    ("2 ^ -A[i] * B[i]", lambda a, b: 2.0**-a * b),
    ("-A[i] * B[i]", lambda a, b: -a * b),
    ("A[i] * -B[i]", lambda a, b: a * -b),
    ("A[i] - -B[i]", lambda a, b: a - -b),
    ("--A[i]", lambda a, b: a),
    ("-A[i] - B[i]", lambda a, b: -a - b),
    ("-(A[i] - B[i])", lambda a, b: -(a - b)),
    ("A[i] ^ 0", lambda a, b: np.ones_like(a)),
    ("B[i] ^ .5", lambda a, b: b**0.5),
    ("1e-3 * A[i]", lambda a, b: 0.001 * a),
    ("A[i] + .5 + 2. + 1E+2 + 007", lambda a, b: a + 109.5),
    ("A[i] * 0", lambda a, b: 0 * a),
    ("exp(1) * A[i]", lambda a, b: np.e * a),
    ("A[i] * 123456789.123456789", lambda a, b: a * 123456789.123456789),
    ("A[i] * 1e-300 * 1e300", lambda a, b: a * 1e-300 * 1e300),
    ("abs(A[i]) + sign(A[i])", lambda a, b: np.abs(a) + np.sign(a)),
    ("exp(A[i]) - log(B[i])", lambda a, b: np.exp(a) - np.log(b)),
    ("sqrt(B[i]) * relu(A[i])", lambda a, b: np.sqrt(b) * np.maximum(a, 0)),
    ("sigmoid(A[i]) / tanh(B[i])", lambda a, b: 1 / (1 + np.exp(-a)) / np.tanh(b)),
    ("min(A[i], B[i]) + max(A[i], 1)", lambda a, b: np.minimum(a, b) + np.maximum(a, 1)),
    ("relu(relu(A[i]) - B[i])", lambda a, b: np.maximum(np.maximum(a, 0) - b, 0)),
]


@pytest.mark.parametrize(("expression", "expected"), OPERATORS, ids=[text for text, _ in OPERATORS])
def test_operators_bind_as_numpys(
    shared_db: se.Database, expression: str, expected: Callable[[Array, Array], Array]
) -> None:
    a, b = np.array([-2.0, 0.5, 3.0, 0.0]), np.array([0.25, 3.0, 2.0, 1.0])
    shared_db.tensor("A", a)
    shared_db.tensor("B", b)
    result = shared_db.run(f"C[i] = {expression}")["C"].to_numpy()
    np.testing.assert_allclose(result, expected(a, b), rtol=1e-14, atol=1e-300)


AGGREGATES: dict[str, Callable[..., Array]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates(shared_db: se.Database, name: str) -> None:
    array = np.random.default_rng(5).uniform(-2, 2, (3, 4, 2))
    shared_db.tensor("A", array)
    fold = AGGREGATES[name]
    for left, axes in [("", (0, 1, 2)), ("i", (1, 2)), ("j", (0, 2)), ("k, i", 1)]:
        result = shared_db.run(f"C[{left}] = {name}(A[i, j, k])")["C"].to_numpy()
        expected = fold(array, axis=axes)
        np.testing.assert_allclose(result, expected.T if left == "k, i" else expected, rtol=1e-14)


def test_nested_aggregates_give_numpys_values(shared_db: se.Database) -> None:
    array = np.random.default_rng(6).uniform(-2, 2, (3, 4))
    shared_db.tensor("A", array)
    results = shared_db.run("""
        S[i, j] = exp(A[i, j]) / sum[k](exp(A[i, k]))
        L[] = max[i](sum[j](A[i, j])) - min[i](max[j](A[i, j]))
        M[i] = sum[j](A[i, j]) * prod[j](A[i, j])
    """)
    softmax = np.exp(array) / np.exp(array).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(results["S"].to_numpy(), softmax, rtol=1e-14)
    np.testing.assert_allclose(results["L"].to_numpy(), array.sum(1).max() - array.max(1).min(), rtol=1e-14)
    np.testing.assert_allclose(results["M"].to_numpy(), array.sum(1) * array.prod(1), rtol=1e-14)


def test_upper_case_label_on_the_left_is_a_key_column(shared_db: se.Database) -> None:
    array = np.arange(6.0).reshape(2, 3)
    shared_db.tensor("A", array)
    result = shared_db.run("C[J, i] = A[i, J] + 1")["C"]
    np.testing.assert_array_equal(result.to_numpy(), array.T + 1)
    assert "[J, i]" in repr(result)


def scalars() -> st.SearchStrategy[Scalar]:
    leaves = st.one_of(
        st.sampled_from([U, V]),
        st.floats(allow_nan=False).map(Literal),
        st.complex_numbers(allow_nan=False).map(Literal),
        st.integers(-(2**63), 2**63 - 1).map(Literal),
        st.sampled_from([True, False, 0, 1, -1, 0.0, -0.0, 2.5, -1e-7, 2j, -2j, complex(-0.0, 1)]).map(Literal),
        st.sampled_from([Bound("i"), AxisBound("A", 0)]),
    )

    def calls(inner: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
        return st.sampled_from(list(FUNCTIONS)).flatmap(
            lambda name: st.tuples(*[inner] * FUNCTIONS[name].operands).map(lambda arguments: Call(name, arguments))
        )

    return st.recursive(leaves, calls, max_leaves=12)


@given(scalars())
def test_expressions_read_as_they_are_written(scalar: Scalar) -> None:
    """What plans show is text that means the same program."""
    join = Call("add", (PRODUCT, scalar))  # so that U is the first operand
    (einsum,) = se.program(f"W[i] = {write(join, ['A[i]', 'B[i]'])}").einsums
    assert repr(einsum.join) == repr(join)  # which tells -0.0 from 0.0, too


def test_parentheses_nest_without_limit() -> None:
    text = "C[i] = " + "(" * DEEP + "A[i]" + ")" * DEEP
    assert einsums_of(text) == ["C[i] = A[i]"]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("-" * DEEP + "A[i]", 108),
        ("exp(" * DEEP + "A[i]" + ")" * DEEP, 408),
        ("A[i]" + " + 1" * DEEP, 7615),
        ("A[i]" + " ^ 1" * DEEP, 411),
        ("sum(" * DEEP + "A[i]" + ")" * DEEP, 408),
    ],
)
def test_deep_expressions_are_refused(text: str, column: int) -> None:
    problem = "more than 100 functions and operators are nested here; give a part a statement of its own"
    with pytest.raises(se.ParseError, match=f"^line 1, column {column}: {problem}"):
        se.program(f"C[i] = {text}")


def test_long_programs() -> None:
    lines = [f"T{number + 1}[i] = T{number}[i] * B[i]" for number in range(DEEP)]
    program = se.program("\n".join(lines))
    assert program.inputs == ("T0", "B")
    assert program.outputs == (f"T{DEEP}",)


def test_error_shows_line_and_column() -> None:
    with pytest.raises(se.ParseError) as caught:
        se.program("T[i] = A[i]\n\n  W[i] = sum(T[i] * B[i, j] C[j])  # too much")
    assert str(caught.value) == (
        "line 3, column 29: found 'C', expected '(', ')', ',' or an operator\n"
        "    W[i] = sum(T[i] * B[i, j] C[j])  # too much\n"
        "                              ^"
    )
    assert (caught.value.line, caught.value.column) == (3, 29)
    assert isinstance(caught.value, ValueError)


NEEDS_LABELS = "; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
NO_LABELS = f"eta has no labels{NEEDS_LABELS}"
NO_CHAINS = "; comparisons do not chain: write A[i] < B[i] and B[i] < C[i]"
LEFT_ONLY = "stands only on the left side; some tensor on the right must have it, or declare its bound: tensor"
OPERAND = "'(', a name, a number, a whole number or an operator"
AFTER = "'(', ';', an operator, the end of the program or the end of the statement"
AROUND = "write sum(...), max(...), min(...) or prod(...) around the expression"
AFTER_NUMBER = "';', an operator, the end of the program or the end of the statement"
NOTHING = "the program assigns nothing; write a statement such as C[i, k] = sum(A[i, j] * B[j, k])"
FUNCTION_NAMES = (
    "sum, prod, max, min, any, all, logsumexp, abs, exp, log, sqrt, sign, relu, sigmoid, tanh, conj, where, softmax, "
    "log_softmax, mean, var, norm, layer_norm, one_hot"
)
DTYPES = "float64, float32, int64, bool, complex128, complex64"

REFUSED = [
    # No program
    ("", 1, 1, NOTHING),
    (" \n\n# nothing\n", 1, 1, NOTHING),
    ("tensor A[i: 3]", 1, 1, NOTHING),
    # Syntax
    ("C[i] = ", 1, 8, f"the program ends here, expected {OPERAND}"),
    ("C[i] = sum(A[i, j]", 1, 19, "the program ends here, expected ')', ',' or an operator"),
    ("C[i = A[i]", 1, 5, "found '=', expected ',' or ']'"),
    ("C = A[i]", 1, 3, f"found '=', expected '['{NEEDS_LABELS}"),
    ("C[i] = eta", 1, 8, NO_LABELS),
    ("C[i] = eta * A[i]", 1, 8, NO_LABELS),
    ("C[i] = A[i] B[i]", 1, 13, f"found 'B', expected {AFTER}"),
    ("C[i] = A[i]\nD[i] = A[i] = B[i]", 2, 13, f"found '=', expected {AFTER}"),
    ("C[i] = A[i])", 1, 12, "found ')', expected ';', an operator, the end of the program or the end of the statement"),
    ("C[i] = A[i,]", 1, 12, "found ']', expected a name"),
    ("C[i] = A[1]", 1, 10, "found '1', expected ']' or a name"),
    ("C[i] = +A[i]", 1, 8, f"found '+', expected {OPERAND}"),
    ("C[i] = exp()", 1, 12, f"found ')', expected {OPERAND}"),
    ("C[i] = 2A[i]", 1, 9, "found 'A', expected ';', an operator, the end of the program or the end of the statement"),
    (
        "C[i] = A[i] +\n  B[i]",
        1,
        14,
        f"the line ends here, expected {OPERAND}; an expression goes on in the next line only within parentheses",
    ),
    ("C[i] = A[i] @ B[i]", 1, 13, "the character '@' has no meaning here; expected '(', ')', ',', ';' or an operator"),
    ("C[i] = A[i] < B[i] < 3", 1, 20, f"found '<', expected {AFTER_NUMBER}{NO_CHAINS}"),
    ("C[i] = (A[i] < B[i] == 3)", 1, 21, f"found '==', expected ')' or an operator{NO_CHAINS}"),
    ("C[i] = A[i] or", 1, 15, f"the program ends here, expected {OPERAND}"),
    ("C[i] = A[i] orB[i]", 1, 13, f"found 'orB', expected {AFTER}"),
    (
        "C[i] = A[i] * 9223372036854775808",
        1,
        15,
        "9223372036854775808 is beyond what int64 holds; write 9223372036854775808.0",
    ),
    ("C[i] = A[i] * 1e999j", 1, 15, "the number is beyond what float64 holds"),
    (
        "Größe[i] = A[i]",
        1,
        3,
        "the character 'ö' has no meaning here; expected '['; names have letters without accents, digits and _",
    ),
    (
        "C[µ] = A[µ]",
        1,
        3,
        "the character 'µ' has no meaning here; expected ']' or a name; names have letters without accents, digits "
        "and _",
    ),
    ("C[i]\u00a0= A[i]", 1, 5, "the character '\\xa0' has no meaning here; expected '='"),
    ("C[i] = 1e999 * A[i]", 1, 8, "the number is beyond what float64 holds"),
    # Labels
    ("C[i] = A[i, j]", 1, 1, f"label j must be aggregated, because the left side lacks it; {AROUND}"),
    (
        "T[i] = A[i]\nC[] = exp(A[j] * B[i])",
        2,
        1,
        f"labels i, j must be aggregated, because the left side lacks them; {AROUND}",
    ),
    (
        "C[i] = sum[j](A[i, j, k])",
        1,
        8,
        "label k must be aggregated, because the left side lacks it; write sum[j, k](...)",
    ),
    ("C[i, j] = A[i]", 1, 1, f"label j {LEFT_ONLY} C[i: 10, j: 10]"),
    ("tensor C[i: 3]\nC[i, j] = A[i]", 2, 1, f"label j {LEFT_ONLY} C[i: 10, j: 10]"),
    ("C[i, i] = A[i]", 1, 1, "a label stands twice on the left side of C"),
    ("C[i] = A[I]", 1, 8, "i and I are one label; write it one way in a statement"),
    ("C[I] = A[I] * B[i]", 1, 15, "I and i are one label; write it one way in a statement"),
    ("C[i] = sum[J](A[i, j])", 1, 15, "J and j are one label; write it one way in a statement"),
    ("C[i] = 3", 1, 1, f"label i {LEFT_ONLY} C[i: 10]"),
    ("C[] = 3", 1, 1, "the right side names no tensor"),
    (
        "C[i] = A[i] / bound(k)",
        1,
        15,
        "bound(k) has no bound, because no tensor in the statement has the label k; name the axis of a tensor, as in "
        "bound(A, 0)",
    ),
    (
        "C[] = sum[j](A[j]) * sum[j](B[j]) / bound(j)",
        1,
        37,
        "bound(j) has no bound, because several aggregates around it have a label j; name the axis of a tensor, as in "
        "bound(A, 0)",
    ),
    (
        "C[i] = A[i] / bound(C, 0)",
        1,
        15,
        "C is read by the statement that assigns it; give the result a name of its own",
    ),
    (
        "C[i] = A[i] / bound(a, 0)",
        1,
        15,
        "A and a are one name, because case does not tell names apart; write it one way",
    ),
    (
        "C[i, k] = A[i] == index(k)",
        1,
        19,
        "index(k) has no bound, because no tensor in the statement has the label k; say it, as in index(k: 10), or "
        "declare tensor C[i: 10, k: 10]",
    ),
    (
        "C[] = sum(index(k))",
        1,
        11,
        "index(k) has no bound, because no tensor in the statement has the label k; say it, as in index(k: 10)",
    ),
    # Aggregates
    ("C[] = sum(3)", 1, 7, "sum(...) has no label to aggregate"),
    (
        "C[i] = sum(A[i])",
        1,
        8,
        "sum(...) has no label to aggregate: i also stands outside it; leave sum out, or use another label inside",
    ),
    (
        "C[i] = sum(A[i, k]) * sum(B[i, k])",
        1,
        8,
        "sum(...) has no label to aggregate: i, k also stand outside it; say what every aggregate takes, as in "
        "sum[k](...)",
    ),
    (
        "C[] = max(min(A[i, j]))",
        1,
        7,
        "max(...) has no label to aggregate: i, j go to an aggregate inside it; say what every aggregate takes, as in "
        "max[i](...)",
    ),
    (
        "C[] = sum(sum(A[i]))",
        1,
        7,
        "sum(...) has no label to aggregate: i goes to an aggregate inside it; say what every aggregate takes, as in "
        "sum[i](...)",
    ),
    ("C[] = sum[k](A[i])", 1, 7, "sum[k] aggregates a label that its argument lacks"),
    (
        "C[i] = A[i] / sum[i](A[i])",
        1,
        15,
        "sum[i] aggregates a label that is also used outside it; rename it inside, or name it in the aggregate there, "
        "too",
    ),
    ("C[i] = sum(A[i, j], B[j])", 1, 8, "the aggregate sum takes one expression, not 2"),
    # Macros
    ("C[i] = softmax(A[i])", 1, 8, "softmax must say which labels it takes, as in softmax[j](...)"),
    ("C[i] = softmax[j](A[i])", 1, 8, "softmax[j] aggregates a label that its argument lacks"),
    ("C[i] = softmax[i](A[i], 1)", 1, 8, "softmax takes one expression, not 2"),
    ("C[i] = layer_norm[i](A[i], 1, 2)", 1, 8, "layer_norm takes an expression and 1 more, not 3"),
    ("C[i] = layer_norm[i](A[i], B[i])", 1, 28, "the further arguments of layer_norm have no labels"),
    (
        "C[i] = mean[j](A[i, j, k])",
        1,
        8,
        "label k must be aggregated, because the left side lacks it; write mean[j, k](...)",
    ),
    (
        "C[i, j] = mean[j](A[i, j])",
        1,
        11,
        "mean[j] aggregates a label that is also used outside it; rename it inside, or name it in the aggregate there, "
        "too",
    ),
    ("C[i] = one_hot[i](A[i])", 1, 8, "one_hot[i] makes a label that its argument has; give it another one"),
    ("C[i] = one_hot(A[i])", 1, 8, "one_hot takes one new label and one expression, as in one_hot[k](X[i])"),
    # Functions
    ("C[i] = summ(A[i, j])", 1, 8, "there is no function 'summ'; did you mean sum?"),
    ("C[i] = A[i] * Sigmoid(A[i])", 1, 15, "there is no function 'Sigmoid'; did you mean sigmoid?"),
    ("C[i] = SUM(A[i, j])", 1, 8, "there is no function 'SUM'; did you mean sum?"),
    ("C[i] = frobnicate(A[i])", 1, 8, f"there is no function 'frobnicate'; known are {FUNCTION_NAMES}"),
    ("C[i] = relu(A[i], 1)", 1, 8, "relu takes one argument, not 2"),
    ("C[i] = max(A[i], 2, 3)", 1, 8, "max takes 2 arguments, not 3"),
    ("C[i] = relu[i](A[i])", 1, 8, "relu is no aggregate, so it takes no labels in brackets"),
    # Names
    ("C[i] = A[i]\nC[i] = B[i]", 2, 1, "C is assigned twice; give each result a name of its own"),
    ("D[i] = C[i]\nC[i] = A[i]", 1, 8, "C is read here, but assigned only later; put its statement first"),
    ("C[i] = A[i] + C[i]", 1, 15, "C is read by the statement that assigns it; give the result a name of its own"),
    (
        "C[i] = A[i]\nD[i] = 2 * c[i]",
        2,
        12,
        "C and c are one name, because case does not tell names apart; write it one way",
    ),
    ("C[i] = A[i] * a[i]", 1, 15, "A and a are one name, because case does not tell names apart; write it one way"),
    # Declarations
    ("tensor A\nC[i] = A[i]", 1, 9, f"the line ends here, expected '['{NEEDS_LABELS}"),
    ("tensor A[i: -3]\nC[i] = A[i]", 1, 13, "found '-', expected a whole number"),
    ("tensor A[i: 3] fill B[i]\nC[i] = A[i]", 1, 1, "the fill of A is no number"),
    (
        "tensor A[i: 3] fill -inf dtype int64\nC[i] = A[i]",
        1,
        1,
        "tensor A has a fill that its dtype lacks: -inf is no int64",
    ),
    ("\ntensor A[i: 3] dtype int8\nC[i] = A[i]", 2, 1, f"tensor A has dtype int8; supported are {DTYPES}"),
    ("tensor A[i: 3, I: 4]\nC[] = sum(A[i, j])", 1, 1, "tensor A has an axis name twice: i, i"),
    ("tensor A[i: 3]\ntensor A[i: 3]\nC[i] = A[i]", 2, 1, "A is declared twice; declare a tensor once"),
    (
        "tensor a[i: 3]\nC[i] = A[i]",
        2,
        8,
        "a and A are one name, because case does not tell names apart; write it one way",
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "problem"), REFUSED, ids=[repr(text) for text, *_ in REFUSED])
def test_refused(text: str, line: int, column: int, problem: str) -> None:
    shown = text.split("\n")[line - 1]
    with pytest.raises(se.ParseError) as caught:
        se.program(text)
    assert str(caught.value) == f"line {line}, column {column}: {problem}\n  {shown}\n  {' ' * (column - 1)}^"


UNFIT: list[tuple[str, type[se.SparseEinsumError], str]] = [
    ("C[i] = X[i]", se.CatalogueError, "there is no tensor X in this database; known are A, B, v"),
    (
        "C[i, k] = sum(A[i, j] * B[j, k])",
        se.ShapeError,
        "label j of C has two bounds: 3 in A, 4 in B (axis dim_0)",
    ),
    ("D[i] = A[i, i]", se.ShapeError, "label i of D has two bounds: 2 in A, 3 in A (axis dim_1)"),
    (
        "T[i] = sum(A[i, j])\nC[i] = T[i] * v[i]",
        se.ShapeError,
        "label i of C has two bounds: 2 in T, 3 in v (axis dim_0)",
    ),
    ("C[i] = A[i]", se.ShapeError, "A[i] has 1 label, but tensor A has 2 axes: dim_0, dim_1"),
    ("C[i, j] = v[i, j]", se.ShapeError, "v[i, j] has 2 labels, but tensor v has 1 axis: dim_0"),
    (
        "T[i] = exp(v[i])\nC[i] = T[i] + T[]",
        se.ShapeError,
        "T[] has 0 labels, but tensor T has 1 axis: i",
    ),
    ("C[val] = v[val]", se.ShapeError, "tensor C has an axis named 'val', which is the column of its values"),
    (
        "tensor v[i: 4]\nC[i] = v[i]",
        se.ShapeError,
        "the program declares v with shape (4,), but the database has it with shape (3,)",
    ),
    (
        "tensor v[i: 3] dtype float32\nC[i] = v[i]",
        se.ShapeError,
        "the program declares v with shape (3,), dtype float32, but the database has it with shape (3,), dtype float64",
    ),
    (
        "tensor C[i: 4]\nC[i] = v[i]",
        se.ShapeError,
        "the program declares C with shape (4,), but computes it with shape (3,)",
    ),
]


@pytest.mark.parametrize(("text", "error", "problem"), UNFIT, ids=[repr(text) for text, *_ in UNFIT])
def test_unfit_for_the_tensors(db: se.Database, text: str, error: type[se.SparseEinsumError], problem: str) -> None:
    db.tensor("A", np.ones((2, 3)))
    db.tensor("B", np.ones((4, 5)))
    db.tensor("v", np.ones(3))
    for attempt in (db.plan, db.run):
        with pytest.raises(error) as caught:
            attempt(text)
        assert str(caught.value) == problem


def test_unknown_tensor_in_an_empty_database(db: se.Database) -> None:
    with pytest.raises(se.CatalogueError) as caught:
        db.run("C[i] = A[i]")
    assert str(caught.value) == "there is no tensor A in this database; there are none; load one with db.tensor(...)"


def test_a_sum_over_nothing(db: se.Database) -> None:
    db.tensor("A", np.ones((3, 0)))
    np.testing.assert_array_equal(db.run("C[i] = sum(A[i, j])")["C"].to_numpy(), np.zeros(3))
