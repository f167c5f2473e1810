"""Language: reads the expressions in brackets as indices, such as 2*i + 1, and refuses those that are none."""

from collections import Counter

from sparseeinsum.language.affine_indices import AffineIndex, Limit
from sparseeinsum.language.syntax import (
    BoundExpression,
    ExpressionTree,
    FunctionCall,
    MatrixName,
    NumberLiteral,
    SourceText,
    references,
)
from sparseeinsum.language.syntax_text import write_expression
from sparseeinsum.operators.expressions import AxisBound

_EXAMPLES = "an index is a whole number, or labels times whole numbers, as in A[0], A[i + 1] and A[2*i + j]"


def affine_index(expression: ExpressionTree, source: SourceText) -> AffineIndex:
    """The expression in brackets as an index.

    Raises:
        ParseError: It is no sum of whole numbers and of labels times whole numbers.
    """
    sums = _sums(expression, source)
    offset = sums.pop("", 0)
    terms = tuple((label, coefficient) for label, coefficient in sums.items() if coefficient)
    if offset < 0 and any(coefficient > 0 for _, coefficient in terms):
        problem = f"the index {write_expression(expression)} is below 0 where its labels are 0; labels start at 0"
        raise expression.at.error(f"{problem}: add to the other indices instead, as in A[i + 1] - A[i]", source)
    return AffineIndex(terms, offset)


def _sums(expression: ExpressionTree, source: SourceText) -> Counter[str]:
    """The coefficients by label; the whole number has the label ''."""
    match expression:
        case NumberLiteral(int(value)) if not isinstance(value, bool):
            return Counter({"": value})
        case MatrixName(name):
            return Counter({name: 1})
        case FunctionCall("neg", None, (argument,)):
            return _scaled(_sums(argument, source), -1)
        case FunctionCall("add" | "sub" as name, None, (first, second)):
            sums = _sums(first, source)
            sums.update(_scaled(_sums(second, source), 1 if name == "add" else -1))
            return sums
        case FunctionCall("mul", None, (first, second)):
            factors = [_sums(first, source), _sums(second, source)]
            numbers = [factor for factor in factors if factor.keys() <= {""}]
            if numbers:
                factors.remove(numbers[0])
                return _scaled(factors[0], numbers[0][""])
    raise expression.at.error(_no_index(expression), source)


def _scaled(sums: Counter[str], factor: int) -> Counter[str]:
    return Counter({label: factor * coefficient for label, coefficient in sums.items()})


def _no_index(expression: ExpressionTree) -> str:
    """The error for an expression that is no index."""
    written = write_expression(expression)
    if any(references(expression)):
        problem = f"{written} is no index, because it reads a tensor"
        return f"{problem}; look values up with a sum over a new label, as in sum[k](A[k] * (index(k) == B[i]))"
    return f"{written} is no index; {_EXAMPLES}"


def limit(index: ExpressionTree, symbol: str, bound: ExpressionTree, source: SourceText) -> Limit:
    """What bounds labels, as in `for j < 3`.

    Raises:
        ParseError: It is no index below a whole number or the bound of an axis.
    """
    match bound:
        case NumberLiteral(int(value)) if value >= 0 and not isinstance(value, bool):
            below: int | AxisBound = value
        case BoundExpression(tensor, int(axis)):
            below = AxisBound(tensor, axis)
        case _:
            problem = f"{write_expression(bound)} is no whole number and no bound of an axis, such as bound(A, 0)"
            raise bound.at.error(problem, source)
    if symbol != "<":
        raise index.at.error(f"labels have bounds as in `for j < 3`, not with {symbol}", source)
    if isinstance(index, MatrixName):
        return Limit(index.name.lower(), below)
    affine = affine_index(index, source)
    if not affine.terms:
        raise index.at.error(
            f"{write_expression(index)} has no label to bound; write a label, as in `for j < 3`", source
        )
    return Limit(affine.lowercase(), below)
