"""Language: expressions in, errors where they are nested too deep, or are of linear algebra beside labels, out."""

from sparseeinsum.language.syntax import (
    MATRIX_PRODUCT,
    TRANSPOSE,
    Expression,
    FunctionCall,
    MatrixName,
    Source,
)

# Passes over expressions recurse: so deep is far from Python's limit, and deeper than kernels evaluate.
_DEEPEST = 100


def check_depth(expression: Expression, source: Source) -> None:
    """Refuse what is nested too deep for passes that recurse.

    Raises:
        ParseError: It is.
    """
    waiting = [(expression, 1)]
    while waiting:
        current, depth = waiting.pop()
        if depth > _DEEPEST:
            problem = (
                f"more than {_DEEPEST} functions and operators are nested here; give a part a statement of its own"
            )
            raise current.at.error(problem, source)
        if isinstance(current, FunctionCall):
            waiting.extend((argument, depth + 1) for argument in current.arguments)


def check_labelled(expression: Expression, source: Source) -> None:
    """Refuse linear algebra in a statement with labels.

    Raises:
        ParseError: There is some.
    """
    match expression:
        case MatrixName(name, at):
            problem = f"{name} has no labels; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
            raise at.error(f"{problem}; a parameter is declared before, as in param {name} = 0.1", source)
        case FunctionCall(name, _, _, at) if name in (MATRIX_PRODUCT, TRANSPOSE):
            problem = f"{name} is of matrices without labels, as in C = A @ B.T"
            raise at.error(f"{problem}; with labels, write C[i, k] = sum(A[i, j] * B[k, j])", source)
        case FunctionCall(_, _, arguments):
            for argument in arguments:
                check_labelled(argument, source)
