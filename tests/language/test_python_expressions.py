"""Programs built of Python expressions equal those of the same text, and malformed ones are explained."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from random_syntax import Pair, expressions, programs

import sparseeinsum as se
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_trees import raise_error
from sparseeinsum.language.program_files import read_statements
from sparseeinsum.language.programs import build
from sparseeinsum.language.python_expressions import LabelledExpression
from sparseeinsum.language.syntax import Assignment, SourceText, Statement
from sparseeinsum.language.syntax_text import write_statement


def named(name: str) -> Any:  # noqa: ANN401  # numpy's annotations know no expressions
    return se.tensor(name)


A, B, V = (named(name) for name in "ABV")


def parse(text: str) -> tuple[Statement, ...]:
    return read_statements(SourceText(text), None, Parameters(), raise_error)


@given(expressions())
def test_expressions_are_the_trees_of_their_text(pair: Pair) -> None:
    (statement,) = parse(f"T[] = {pair.text}")
    assert isinstance(statement, Assignment)
    assert statement.value == pair.built.tree
    assert parse(write_statement(statement)) == (statement,)


@given(programs())
def test_programs_are_those_of_their_text(case: tuple[str, dict[str, LabelledExpression]]) -> None:
    text, built = case
    try:
        expected = se.program(text)
    except se.ParseError as error:
        problem = str(error).split("\n")[0].partition(": ")[2]
        with pytest.raises(se.ParseError, match=re.escape(problem)):
            se.program(built)
        return
    assert repr(se.program(built)) == repr(expected)


@given(programs())
def test_programs_read_as_they_are_printed(case: tuple[str, dict[str, LabelledExpression]]) -> None:
    try:
        program = se.program(case[0])
    except se.ParseError:
        return
    again = se.program(str(program))
    assert repr(again) == repr(program)  # which tells 2.0 from 2, too
    assert again == program


@pytest.mark.parametrize(
    "text",
    [
        "tensor A[i: 3, j: 4] fill -inf dtype float32\ntensor C[] dtype int64\nC[] = sum(A[I, j])",
        "tensor A[x: 3] fill 1 - 2j\nC[J, i] = A[i] * B[J]",
        "tensor W[i: 5, j: 3]\nW[I, j] = exp(U[I])",
        "tensor W[i: 5, j: 3]\nW[i, J] = U[i]",
        "C[I] = A[I] / bound(I)",
        "tensor W[i: 5, j: 3]\nones_j[i] = U[i]\nW[i, j] = ones_j[i]",
        "C[k] = sum(one_hot[k](A[i]) * W[k, j])",
        "C[i] = sum(index(k: bound(W, 1)) * A[i])",
        "C[i] = mean[j, k](A[i, j, k]) / bound(k)",
        "C_sum[i] = A[i]\nC[i] = C_sum[i] * sum[j](B[i, j]) * var[j](B[i, j])\nD[J] = softmax[J](V[J])",
    ],
)
def test_programs_are_printed_completely(text: str) -> None:
    program = se.program(text)
    assert se.program(str(program)) == program
    assert str(se.program(str(program))) == str(program)


def test_assignments() -> None:
    """A program contains the statements that an assigned tensor reads."""
    T, Y, Z = (named(name) for name in "TYZ")  # noqa: N806  # as in the program
    T["i", "m"] = (A["i", "j"] * B["j", "m"]).sum("j")
    Y["i", "m"] = np.maximum(T["i", "m"], 0) / T["k", "l"].max()
    Z["M", "i"] = T["i", "M"] > 0
    text = "T[i, m] = sum[j](A[i, j] * B[j, m])\nY[i, m] = max(T[i, m], 0) / max(T[k, l])\nZ[M, i] = T[i, M] > 0"
    assert se.program(Y, Z) == se.program(text)
    assert build(Y, Z) == parse(text)
    assert se.program(T) == se.program(text.split("\n")[0])


def test_declarations() -> None:
    W: Any = se.tensor("W", {"i": 5, "j": 3}, dtype="float32")  # noqa: N806  # as in the program
    W["i", "j"] = se.tensor("U", {"x": 5}, fill=-np.inf)["i"] + se.index("j")
    text = "tensor U[x: 5] fill -inf\ntensor W[i: 5, j: 3] dtype float32\nW[i, j] = U[i] + index(j)"
    assert se.program(W) == se.program(text)


def test_matmul_sums_over_shared_labels() -> None:
    built = se.program({"C": (A["i", "J"] @ B["J", "k"] @ V["k"])["i"]})
    assert built == se.program("C[i] = sum[k](sum[J](A[i, J] * B[J, k]) * V[k])")


def test_long_programs_build() -> None:
    tensors = [named(f"T{number}") for number in range(3000)]
    for before, after in itertools.pairwise(tensors):
        after["i"] = before["i"] * B["i"]
    assert len(se.program(tensors[-1]).einsums) == 2999


def test_numbers_of_numpy() -> None:
    built = se.program({"C": (np.float64(2) * A["i"] + np.int64(3) - np.bool_(True))["i"]})
    assert repr(built) == repr(se.program("C[i] = 2.0 * A[i] + 3 - true"))


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: bool(A["i"] < 2),
        TypeError,
        "whether A[i] < 2 is true is known only after it is computed; write & | ~ for",
    ),
    (lambda: 1 < A["i"] < 2, TypeError, "whether A[i] > 1 is true is known only after it is computed; write & | ~ for"),
    (lambda: list(A["i"]), TypeError, "A[i] has no values yet"),
    (lambda: A["i"] * np.ones(3), TypeError, "ndarray array([1., 1., 1.]) is neither a labelled tensor nor a number"),
    (lambda: np.ones(3) * A["i"], TypeError, "ndarray array([1., 1., 1.]) is neither a labelled tensor nor a number"),
    (lambda: A["i"] * A, TypeError, "NamedTensor tensor('A') is neither a labelled tensor nor a number"),
    (lambda: A["i"] + A["i"]["i"], TypeError, "(A[i])['i'] is a result with labels; to read it, name it"),
    (lambda: A["i"] + float("nan"), se.SemanticsError, "NaN cannot be written in a program"),
    (lambda: np.sum(A["i"]), TypeError, "np.sum does not support labels; aggregate with methods, as in A[i].sum('i')"),
    (lambda: np.cbrt(A["i"]), TypeError, "np.cbrt cannot be part of a program"),
    (lambda: np.add.reduce(A["i"]), TypeError, "np.add.reduce cannot be part of a program"),
    (lambda: A["é"], se.ParseError, "line 1, column 1: the character 'é' has no meaning here"),
    (lambda: A["i, j"], se.ParseError, "line 1, column 2: found ',', expected an operator"),
    (lambda: A[0.5], TypeError, "0.5 is no index; write a label, a number or a text"),
    (lambda: A["i"] @ B["j"], se.SemanticsError, "A[i] and B[j] share no label to sum over"),
    (lambda: A["i", "j"].sum() @ B["i"], se.SemanticsError, "sum() in an operand of @ must name its labels"),
    (lambda: se.program(A), se.SemanticsError, "A was not assigned"),
    (lambda: se.program({"C": A["i"]}), TypeError, "C cannot be A[i]; add the labels of the result"),
    (lambda: se.program({"C": (A["i", "j"] * 2)["i"]}), se.ParseError, "line 1, column 1: label j must be aggregated"),
    (lambda: se.tensor("A", fill=1), se.SemanticsError, "tensor A has a fill or dtype, but no axes"),
    (lambda: se.tensor("é"), se.SemanticsError, "'é' is not a name"),
]


@pytest.mark.parametrize(("make", "error", "problem"), REFUSED, ids=[problem for *_, problem in REFUSED])
def test_refused(make: Callable[[], Any], error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(problem)}"):
        make()


def test_a_tensor_is_assigned_once() -> None:
    T: Any = se.tensor("T")  # noqa: N806  # as in the program
    T["i"] = A["i"] + 1
    with pytest.raises(se.SemanticsError, match=r"^T is assigned twice; give each result a name of its own"):
        T["i"] = A["i"]
    with pytest.raises(TypeError, match=r"^T cannot be 3, which is not an expression of labelled tensors"):
        T["i"] = 3
