"""Language: long products and sums, expressions that are nested too deep, linear algebra in statements with labels."""

from dataclasses import replace

from sparseeinsum.language.syntax import (
    MATRIX_PRODUCT,
    STEP,
    TRANSPOSE,
    ExpressionTree,
    FunctionCall,
    MatrixName,
    SourceText,
    TensorReference,
)
from sparseeinsum.operators.expressions import joined_in_halves

# Passes over expressions recurse. This limit is far below that of Python, and above what kernels can evaluate.
MOST_NESTED = 100


# Operators whose terms may be grouped in any way, and those that are read as them: a - b is a + (-b).
_GROUPABLE = {"mul": "mul", "add": "add", "sub": "add", "and": "and", "or": "or"}


def with_limited_depth(expression: ExpressionTree, source: SourceText) -> ExpressionTree:
    """An expression that passes can recurse over: long products and sums are grouped in halves.

    Raises:
        ParseError: More than 100 functions and operators are nested otherwise.
    """
    if _too_deep(expression) is None:
        return expression
    grouped = _grouped(expression, 0)
    too_deep = _too_deep(grouped)
    if too_deep is not None:
        problem = f"more than {MOST_NESTED} functions and operators are nested here; give a part a statement of its own"
        raise too_deep.at.error(problem, source)
    return grouped


def _too_deep(expression: ExpressionTree) -> ExpressionTree | None:
    """A part that more functions and operators contain than passes can recurse over."""
    waiting = [(expression, 1)]
    while waiting:
        current, depth = waiting.pop()
        if depth > MOST_NESTED:
            return current
        if isinstance(current, FunctionCall):
            waiting.extend((argument, depth + 1) for argument in current.arguments)
    return None


def _grouped(expression: ExpressionTree, depth: int) -> ExpressionTree:
    """The expression with its chains of one operator as balanced trees."""
    if not isinstance(expression, FunctionCall) or depth > MOST_NESTED:
        return expression
    operator = _GROUPABLE.get(expression.name)
    if operator is None:
        arguments = tuple(_grouped(argument, depth + 1) for argument in expression.arguments)
        return replace(expression, arguments=arguments)
    terms: list[ExpressionTree] = []
    current: ExpressionTree = expression
    while isinstance(current, FunctionCall) and _GROUPABLE.get(current.name) == operator:
        is_subtracted = current.name == "sub"
        current, term = current.arguments
        terms.append(FunctionCall("neg", None, (term,), term.at) if is_subtracted else term)
    terms.append(current)
    grouped = [_grouped(term, depth + 1) for term in reversed(terms)]
    return joined_in_halves(grouped, lambda first, second: FunctionCall(operator, None, (first, second), first.at))


def with_step(expression: ExpressionTree) -> ExpressionTree:
    """An expression of a statement with labels, in which the name `step` alone is the scalar tensor step[]."""
    match expression:
        case MatrixName(name, at) if name == STEP:
            return TensorReference(STEP, (), at=at)
        case FunctionCall(_, _, arguments):
            return replace(expression, arguments=tuple(map(with_step, arguments)))
        case _:
            return expression


def check_labelled(expression: ExpressionTree, source: SourceText) -> None:
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
