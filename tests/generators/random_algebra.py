"""Random expressions of sums and products of matrices and vectors, as trees of operators and texts."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

# Matrices with the labels i and j.
LEAVES = ("X[i, j]", "Y[i, j]", "X[j, i]", "u[i]", "v[j]", "2", "sum[k](X[i, k] * Y[k, j])")
SHAPES = {"X": (3, 3), "Y": (3, 3), "u": (3,), "v": (3,)}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3, leaves: Sequence[str] = LEAVES) -> Any:  # noqa: ANN401  # a text, or an operator and two trees
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(leaves))
    operator = draw(st.sampled_from("+*-"))
    return operator, draw(expressions(depth - 1, leaves)), draw(expressions(depth - 1, leaves))


# References to T, a shared result, with its labels in both orders.
LEAVES_OF_RESULTS = (
    *LEAVES,
    "T[i, j]",
    "T[j, i]",
    "sum[k](T[i, k])",
    "sum[k](T[i, k] * T[j, k])",
    "sum[k, l](T[k, l])",
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Programs of results that read each other."""
    first, second, third = draw(expressions(2)), *draw(st.tuples(*[expressions(2, LEAVES_OF_RESULTS)] * 2))
    return (
        f"tensor X[a: 3, b: 3]\nT[i, j] = {written(first)} + 0 * X[i, j]\n"
        f"R[j, i] = exp(0.1 * T[i, j]) + {written(second)}\n"
        f"S[] = sum[i, j]({written(third)} + T[i, j] * X[j, i])"
    )


def written(tree: Any) -> str:  # noqa: ANN401
    if isinstance(tree, str):
        return tree
    operator, left, right = tree
    return f"({written(left)} {operator} {written(right)})"


def total_of(tree: Any) -> str:  # noqa: ANN401
    """A program of the sum of an expression."""
    return f"tensor X[a: 3, b: 3]\nS[] = sum[i, j]({written(tree)} + 0 * X[i, j])"
