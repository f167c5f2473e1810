"""Errors in program text, and programs that do not fit their tensors, are explained with their place."""

import numpy as np
import pytest

import sparseeinsum as se

DEEP = 2000  # more than Python's recursion limit


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("-" * DEEP + "A[i]", 108),
        ("exp(" * DEEP + "A[i]" + ")" * DEEP, 408),
        ("A[i]" + " ^ 1" * DEEP, 411),
        ("sum(" * DEEP + "A[i]" + ")" * DEEP, 408),
    ],
)
def test_deep_expressions_are_refused(text: str, column: int) -> None:
    problem = "more than 100 functions and operators are nested here; give a part a statement of its own"
    with pytest.raises(se.ParseError, match=f"^line 1, column {column}: {problem}"):
        se.program(f"C[i] = {text}")


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
NO_LABELS = f"eta has no labels{NEEDS_LABELS}; a parameter is declared before, as in param eta = 0.1"
NO_SLICES = "; a slice needs a label: for A[2:5], write A[j + 2], and `for j < 3` after the statement"
LOOK_UP = "look values up with a sum over a new label, as in sum[k](A[k] * (index(k) == B[i]))"
INDICES = "an index is a whole number, or labels times whole numbers, as in A[0], A[i + 1] and A[2*i + j]"
LEFT_ONLY = "occurs only on the left side; some tensor on the right must have it, or declare its bound: tensor"
OPERAND = "'(', a name, a number, a whole number or an operator"
INDEX = "'(', a name, a number, a text in quotes, a whole number or an operator"
AFTER = "'(', ';', an operator, the end of the program or the end of the statement"
AROUND = "write sum(...), max(...), min(...) or prod(...) around the expression"
AFTER_NUMBER = "';', an operator, the end of the program or the end of the statement"
NOTHING = "the program assigns nothing; write a statement such as C[i, k] = sum(A[i, j] * B[j, k])"
FUNCTION_NAMES = (
    "sum, prod, max, min, any, all, logsumexp, abs, exp, log, sqrt, sign, relu, sigmoid, tanh, conj, real, imag, "
    "logaddexp, where, floor, ceil, round, mod, clip, stop_gradient, sin, cos, tan, asin, acos, atan, sinh, cosh, erf, "
    "threefry, normal_quantile, softmax, log_softmax, mean and 18 more"
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
    ("C[i = A[i]", 1, 5, "found '=', expected ',', ':', ']' or an operator"),
    ("C", 1, 2, f"the program ends here, expected '=' or '['{NEEDS_LABELS}"),
    ("C[i] = eta", 1, 8, NO_LABELS),
    ("C[i] = eta * A[i]", 1, 8, NO_LABELS),
    ("C[i] = A[i] B[i]", 1, 13, f"found 'B', expected {AFTER}"),
    ("C[i] = A[i]\nD[i] = A[i] = B[i]", 2, 13, f"found '=', expected {AFTER}"),
    ("C[i] = A[i])", 1, 12, "found ')', expected ';', an operator, the end of the program or the end of the statement"),
    ("C[i] = A[i,]", 1, 12, f"found ']', expected {INDEX}"),
    ("C[i] = A[1:3]", 1, 11, f"found ':', expected ',', ']' or an operator{NO_SLICES}"),
    ("C[i] = +A[i]", 1, 8, f"found '+', expected {OPERAND}"),
    ("C[i] = exp()", 1, 12, f"found ')', expected {OPERAND}"),
    ("C[i] = 2A[i]", 1, 9, "found 'A', expected ';', an operator, the end of the program or the end of the statement"),
    (
        "C[i] = A[i] +\n  B[i]",
        1,
        14,
        f"the line ends here, expected {OPERAND}; an expression goes on in the next line only within parentheses",
    ),
    (
        "C[i] = A[i] $ B[i]",
        1,
        13,
        "the character '$' has no meaning here; expected '(', ')', ',', ';', ']' or an operator",
    ),
    ("C[i] = A[i] // (B[i] + 1)", 1, 8, "there is no //; write floor(A[i] / (B[i] + 1))"),
    ("C[i] = A[i] or", 1, 15, f"the program ends here, expected {OPERAND}"),
    ("C[i] = A[i] orB[i]", 1, 13, f"found 'orB', expected {AFTER}"),
    (
        "C[i] = A[i] * 9223372036854775808",
        1,
        15,
        "9223372036854775808 is beyond what int64 holds; write 9223372036854775808.0",
    ),
    ("C[i] = A[i] * 1e999j", 1, 15, "the number is too large for float64"),
    (
        "Größe[i] = A[i]",
        1,
        3,
        "the character 'ö' has no meaning here; expected '=' or '['; names have letters without accents, digits and _",
    ),
    (
        "C[µ] = A[µ]",
        1,
        3,
        "the character 'µ' has no meaning here; expected '(', ']', a name, a number, a text in quotes, a whole number "
        "or an operator; "
        "names have letters without accents, digits and _",
    ),
    ("C[i]\u00a0= A[i]", 1, 5, "the character '\\xa0' has no meaning here; expected '='"),
    ("C[i] = 1e999 * A[i]", 1, 8, "the number is too large for float64"),
    # Indices
    ("C[i] = A[B[i]]", 1, 10, f"B[i] is no index, because it reads a tensor; {LOOK_UP}"),
    ("C[i] = A[i * j]", 1, 10, f"i * j is no index; {INDICES}"),
    ("C[i] = A[i / 2, 0.5]", 1, 10, f"i / 2 is no index; {INDICES}"),
    (
        "C[i] = A[i - 1]",
        1,
        10,
        "the index i - 1 is below 0 where its labels are 0; labels start at 0: add to the other indices instead, as in "
        "A[i + 1] - A[i]",
    ),
    (
        "C[i + 1] = A[i]",
        1,
        1,
        "C[i + 1] is on the left side, whose indices are labels; shift the indices on the right side, as in "
        "Y[i] = A[i + 1]",
    ),
    ("C[i] = sum[j + 1](A[i, j])", 1, 8, "j + 1 is no label; sum[j](...) names labels"),
    (
        "C[i] = sum(A[i + j])",
        1,
        12,
        "nothing bounds the labels i and j in A[i + j]; bound all but one of them, as in `for j < 3` after the "
        "statement",
    ),
    ("C[i] = A[i] for j < 3", 1, 1, "the statement has no label j, which `for j < ...` bounds"),
    ("C[i] = A[i] for i <= 3", 1, 17, "labels have bounds as in `for j < 3`, not with <="),
    ("C[i] = A[i] for i < j", 1, 21, "j is no whole number and no bound of an axis, such as bound(A, 0)"),
    ("C[i] = A[i] for 2 < 3", 1, 17, "2 has no label to bound; write a label, as in `for j < 3`"),
    (
        "param k = 2; C[i] = sum(A[i, k + 1] * B[k])",
        1,
        39,
        "k is a parameter and a label of this statement, which shifts indices; rename the label",
    ),
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
    ("C[i, i] = A[i]", 1, 1, "a label occurs twice on the left side of C"),
    ("C[i] = A[I]", 1, 8, "i and I are one label; write it one way in a statement"),
    ("C[I] = A[I] * B[i]", 1, 15, "I and i are one label; write it one way in a statement"),
    ("C[i] = sum[J](A[i, j])", 1, 15, "J and j are one label; write it one way in a statement"),
    ("C[i] = 3", 1, 1, f"label i {LEFT_ONLY} C[i: 10]"),
    ("C[] = 3", 1, 1, "the right side has no tensor"),
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
        "bound(j) is ambiguous, because several aggregates have a label j; name the axis of a tensor, as in "
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
        "index(k) has no bound, because no tensor in the statement has the label k; give the bound, as in "
        "index(k: 10), or declare tensor C[i: 10, k: 10]",
    ),
    (
        "C[] = sum(index(k))",
        1,
        11,
        "index(k) has no bound, because no tensor in the statement has the label k; give the bound, as in index(k: 10)",
    ),
    # Aggregates
    ("C[] = sum(3)", 1, 7, "sum(...) has no label to aggregate"),
    (
        "C[i] = sum(A[i])",
        1,
        8,
        "sum(...) has no label to aggregate: i also occurs outside it; leave sum out, or use another label inside",
    ),
    (
        "C[i] = sum(A[i, k]) * sum(B[i, k])",
        1,
        8,
        "sum(...) has no label to aggregate: i, k also occur outside it; name the labels of every aggregate, as in "
        "sum[k](...)",
    ),
    (
        "C[] = max(min(A[i, j]))",
        1,
        7,
        "max(...) has no label to aggregate: an aggregate inside it aggregates i, j; name the labels of every "
        "aggregate, as in max[i](...)",
    ),
    (
        "C[] = sum(sum(A[i]))",
        1,
        7,
        "sum(...) has no label to aggregate: an aggregate inside it aggregates i; name the labels of every "
        "aggregate, as in sum[i](...)",
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
    ("C[i] = softmax(A[i])", 1, 8, "softmax needs its labels in brackets, as in softmax[j](...)"),
    ("C[i] = softmax[j](A[i])", 1, 8, "softmax[j] aggregates a label that its argument lacks"),
    ("C[i] = softmax[i](A[i], 1)", 1, 8, "softmax takes one expression, not 2"),
    ("C[i] = layer_norm[i](A[i], 1, 2)", 1, 8, "layer_norm takes an expression and 1 more, not 3"),
    ("C[i] = layer_norm[i](A[i], B[i])", 1, 28, "only the first argument of layer_norm can have labels"),
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
    ("C[] = argmax(A[i, j])", 1, 7, "argmax takes one label, not i, j; say which, as in argmax[j](...)"),
    ("C[i] = one_hot[i](A[i])", 1, 8, "one_hot[i] adds a label that its argument has already; use another one"),
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
    ("tensor A[i: -3]\nC[i] = A[i]", 1, 13, "found '-', expected a name or a whole number"),
    ("tensor A[i: 3] fill B[i]\nC[i] = A[i]", 1, 1, "the fill of A is not a number"),
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
    source_line = text.split("\n")[line - 1]
    with pytest.raises(se.ParseError) as caught:
        se.program(text)
    assert str(caught.value) == f"line {line}, column {column}: {problem}\n  {source_line}\n  {' ' * (column - 1)}^"


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
