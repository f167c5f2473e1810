"""Program text is parsed into the statements and declarations that it means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import (
    DeclaredTensor,
    EinGraph,
    EinSum,
    Reference,
    write_einsum,
)
from sparseeinsum.language.scalar import PRODUCT, write
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import AxisBound, Bound, Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS

U, V = Operand(0), Operand(1)
DEEP = 2000  # more than Python's recursion limit


def einsums_of(text: str) -> list[str]:
    return [write_einsum(einsum) for einsum in se.program(text).einsums]


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
    """An integer literal keeps integers, 2.0 does not, and true cannot be added."""
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


def test_outputs_are_results_that_no_statement_reads() -> None:
    program = se.program("T[i] = exp(A[i])\nX[i] = T[i] * B[i]\nY[] = sum(T[i])")
    assert program.inputs == ("A", "B")
    assert program.outputs == ("X", "Y")


def test_graph() -> None:
    """The complete EinGraph of a program."""
    program = se.program("""
        tensor A[i: 3, j: 4] fill 0 dtype float32
        S[i] = sum(A[i, j] * B[j])   # shared
        W[K, i] = relu(S[i]) - A[i, K]
    """)
    declared = Tensor("A", (Axis("i", 3), Axis("j", 4)), "float32")
    vector = Tensor("B", (Axis("x", 4),), "float32")
    assert program.declared == (DeclaredTensor(declared, has_dtype=True, has_fill=True),)
    assert program.layouts == (("W", frozenset({("k", 1)})),)
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
                frozenset({("k", 1)}),
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
    assert se.program(text).einsums[0].promoted == {(label, 1) for label in promoted}


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


def test_names_may_coincide(shared_db: se.Database) -> None:
    """Labels may have the names of tensors, operands, columns and aliases of the SQL."""
    array = np.arange(6.0).reshape(2, 3)
    shared_db.tensor("u", array)
    shared_db.tensor("v", np.array([1.0, 2.0, 3.0]))
    for i, j in [("u", "v"), ("v", "u"), ("dim_0", "dim_1"), ("dim_1", "dim_0"), ("t", "s"), ("key", "value")]:
        for pin in [(), (i,), (j,), (i, j)]:
            result = shared_db.run(f"w[{i}] = sum(u[{i}, {j}] * v[{j}])", pin={"w": pin})["w"]
            np.testing.assert_array_equal(result.to_numpy(), [8, 26])


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
def test_written_expressions_are_parsed_back(scalar: Scalar) -> None:
    """Plans show text that means the same program."""
    join = Call("add", (PRODUCT, scalar))  # so that U is the first operand
    (einsum,) = se.program(f"W[i] = {write(join, ['A[i]', 'B[i]'])}").einsums
    assert repr(einsum.join) == repr(join)  # which tells -0.0 from 0.0, too


def test_parentheses_nest_without_limit() -> None:
    text = "C[i] = " + "(" * DEEP + "A[i]" + ")" * DEEP
    assert einsums_of(text) == ["C[i] = A[i]"]


def test_long_programs() -> None:
    lines = [f"T{number + 1}[i] = T{number}[i] * B[i]" for number in range(DEEP)]
    program = se.program("\n".join(lines))
    assert program.inputs == ("T0", "B")
    assert program.outputs == (f"T{DEEP}",)
