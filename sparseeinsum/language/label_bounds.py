"""Language: resolves bound(j), index(j) and ones(j): finds an axis of a tensor that has the bound of the label j.

The scope of a label is the innermost aggregate around it that names it, as in sum[j](...), or else the statement.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sparseeinsum.language.syntax import (
    Assignment,
    BoundExpression,
    Declaration,
    ErrorAt,
    ExpressionTree,
    FunctionCall,
    NumberLiteral,
    Position,
    RangeExpression,
    TensorReference,
    is_aggregate,
    lowercase_labels,
)

Scopes = Mapping[str, int]  # label -> its scope: the id of the aggregate that names it, or STATEMENT
STATEMENT = 0  # no id of an object is 0


def resolve_bounds(assignment: Assignment, declaration: Declaration | None, error: ErrorAt) -> ExpressionTree:
    """The value of an assignment, with axes of tensors in place of labels in bound(j), index(j) and ones(j).

    Args:
        assignment: The statement.
        declaration: The declaration of its target, if there is one, whose bounds also count.
        error: Makes an error of a problem and a place.

    Raises:
        ParseError: No tensor of the statement has the label, or tensors in several scopes have it.
    """
    if not _has_bounds(assignment.value):
        return assignment.value
    return _Resolver(assignment, declaration, error).resolve(assignment.value, {})


def _has_bounds(expression: ExpressionTree) -> bool:
    """Whether an expression has bound(j), index(j) or ones(j), whatever j is."""
    if isinstance(expression, FunctionCall):
        return any(map(_has_bounds, expression.arguments))
    return isinstance(expression, BoundExpression | RangeExpression)


class _Resolver:
    """Resolves the labels of one assignment; `known` has their bounds, by label and scope."""

    def __init__(self, assignment: Assignment, declaration: Declaration | None, error: ErrorAt) -> None:
        self.error = error
        self.target = assignment.target
        self.bounds_by_label: dict[str, dict[int, BoundExpression | int]] = {}
        for label, scope, bound in (
            *_bounds_in(assignment.value, {}),
            *declared_bounds(assignment.target, declaration),
        ):
            self.bounds_by_label.setdefault(label, {}).setdefault(scope, bound)

    def resolve(self, expression: ExpressionTree, scopes: Scopes) -> ExpressionTree:
        """The expression with axes or numbers in place of labels; `scopes` are those of the labels around it."""
        match expression:
            case BoundExpression(label, None, _, at):
                bound = self._bound_in_scope(f"bound({label})", label.lower(), scopes, at)
                return (
                    NumberLiteral(bound, at) if isinstance(bound, int) else replace(bound, label=label.lower(), at=at)
                )
            case RangeExpression(kind, label, None, at):
                return replace(expression, bound=self._bound_in_scope(f"{kind}({label})", label.lower(), scopes, at))
            case RangeExpression(_, _, BoundExpression(label, None, _, at)):
                return replace(expression, bound=self._bound_in_scope(f"bound({label})", label.lower(), scopes, at))
            case FunctionCall(_, _, arguments):
                inner = scopes_inside(expression, scopes)
                return replace(expression, arguments=tuple(self.resolve(argument, inner) for argument in arguments))
            case _:
                return expression

    def _bound_in_scope(self, text: str, label: str, scopes: Scopes, at: Position) -> BoundExpression | int:
        """The bound of a label in its scope, or in the only scope that has one; `text` is for the error."""
        bounds = self.bounds_by_label.get(label, {})
        own = scopes.get(label, STATEMENT)
        if own in bounds:
            return bounds[own]
        if not bounds:
            problem = f"{text} has no bound, because no tensor in the statement has the label {label}"
            raise self.error(f"{problem}; {self._hint(text, label)}", at)
        if len(bounds) > 1:
            problem = f"{text} is ambiguous, because several aggregates have a label {label}"
            raise self.error(f"{problem}; name the axis of a tensor, as in bound(A, 0)", at)
        return next(iter(bounds.values()))

    def _hint(self, text: str, label: str) -> str:
        if text.startswith("bound"):
            return "name the axis of a tensor, as in bound(A, 0)"
        axes = ", ".join(f"{name}: 10" for name in self.target.labels)
        declared = (
            f", or declare tensor {self.target.tensor}[{axes}]" if label in lowercase_labels(self.target.labels) else ""
        )
        return f"give the bound, as in {text[:-1]}: 10){declared}"


def scopes_inside(call: FunctionCall, scopes: Scopes) -> Scopes:
    """The scopes of labels in the arguments of a call, where those around it are `scopes`."""
    if not (call.labels and is_aggregate(call)):
        return scopes
    return {**scopes, **dict.fromkeys(lowercase_labels(call.labels), id(call))}


def _bounds_in(expression: ExpressionTree, scopes: Scopes) -> Iterator[tuple[str, int, BoundExpression | int]]:
    """Every label with its scope, and an axis or a number that is its bound."""
    match expression:
        case TensorReference(name, labels):
            for axis, label in enumerate(lowercase_labels(labels)):
                yield label, scopes.get(label, STATEMENT), BoundExpression(name, axis)
        case RangeExpression(_, label, bound) if isinstance(bound, int) or (
            bound is not None and bound.axis is not None
        ):
            yield label.lower(), scopes.get(label.lower(), STATEMENT), bound
        case FunctionCall(_, _, arguments):
            inner = scopes_inside(expression, scopes)
            for argument in arguments:
                yield from _bounds_in(argument, inner)


def declared_bounds(target: TensorReference, declaration: Declaration | None) -> Iterator[tuple[str, int, int]]:
    """The labels of the target of an assignment, their scope, and the bounds that its declaration gives them."""
    if declaration is not None and len(declaration.axes) == len(target.labels):
        for label, (_, bound) in zip(lowercase_labels(target.labels), declaration.axes, strict=True):
            yield label, STATEMENT, bound
