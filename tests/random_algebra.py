"""Random expressions of sums and products of matrices and vectors, as trees of operators and texts."""

from typing import Any

from hypothesis import strategies as st

# Under the labels i and j.
LEAVES = ("X[i, j]", "Y[i, j]", "X[j, i]", "u[i]", "v[j]", "2", "sum[k](X[i, k] * Y[k, j])")
SHAPES = {"X": (3, 3), "Y": (3, 3), "u": (3,), "v": (3,)}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Any:  # noqa: ANN401  # a text, or an operator and two trees
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    operator = draw(st.sampled_from("+*-"))
    return operator, draw(expressions(depth - 1)), draw(expressions(depth - 1))


def written(tree: Any) -> str:  # noqa: ANN401
    if isinstance(tree, str):
        return tree
    operator, left, right = tree
    return f"({written(left)} {operator} {written(right)})"


def total_of(tree: Any) -> str:  # noqa: ANN401
    """A program of the sum of an expression."""
    return f"tensor X[a: 3, b: 3]\nS[] = sum[i, j]({written(tree)} + 0 * X[i, j])"
