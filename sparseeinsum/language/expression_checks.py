"""Language: refuses expressions that are nested too deep, and linear algebra in statements with labels."""

from sparseeinsum.language.syntax import (
    MATRIX_PRODUCT,
    TRANSPOSE,
    Expression,
    FunctionCall,
    MatrixName,
    SourceText,
)

# Passes over expressions recurse. This limit is far below that of Python, and above what kernels can evaluate.
_DEEPEST = 100


def check_depth(expression: Expression, source: SourceText) -> None:
    """Refuse expressions that are nested too deep for passes that recurse.

    Raises:
        ParseError: More than 100 functions and operators are nested.
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


def check_labelled(expression: Expression, source: SourceText) -> None:
    """Refuse linear algebra in a statement with labels.

    Raises:
        ParseError: A tensor has no labels, or there is a matrix product or a transpose.
    """
    match expression:
        case MatrixName(name, at):
            problem = f"{name} has no labels; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
            raise at.error(f"{problem}; a parameter is declared before, as in param {name} = 0.1", source)
        case FunctionCall(name, _, _, at) if name in (MATRIX_PRODUCT, TRANSPOSE):
            problem = f"{name} is for matrices without labels, as in C = A @ B.T"
            raise at.error(f"{problem}; with labels, write C[i, k] = sum(A[i, j] * B[k, j])", source)
        case FunctionCall(_, _, arguments):
            for argument in arguments:
                check_labelled(argument, source)
