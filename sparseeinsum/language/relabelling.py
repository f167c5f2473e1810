"""Language: gives an expression other labels."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from sparseeinsum.language.affine_indices import with_labels
from sparseeinsum.language.syntax import (
    AppliedFunction,
    BoundExpression,
    ExpressionTree,
    FunctionCall,
    IndexedReference,
    RangeExpression,
    TensorReference,
)


def relabelled(expression: ExpressionTree, labels: Mapping[str, str]) -> ExpressionTree:
    """The expression with other labels.

    Args:
        expression: The expression.
        labels: New labels by old ones. Other labels of the expression that are among the new ones get new names, too.
    """
    taken = {label.lower() for label in labels.values()}
    names = dict(labels)
    for label in dict.fromkeys(_labels(expression)):
        if label not in names:
            names[label] = _new_label(label, taken)
            taken.add(names[label].lower())
    return _renamed(expression, names)


def _new_label(label: str, taken: Collection[str]) -> str:
    while label.lower() in taken:
        label += "_"
    return label


def _labels(expression: ExpressionTree) -> Iterator[str]:
    """The labels of an expression, as written."""
    match expression:
        case TensorReference() | IndexedReference():
            yield from expression.labels
        case RangeExpression(_, label, bound):
            yield label
            if isinstance(bound, BoundExpression):
                yield from _labels(bound)
        case BoundExpression(label, None):
            yield label
        case AppliedFunction(_, _, indices):
            for index in indices:
                yield from (index,) if isinstance(index, str) else index.labels
        case FunctionCall(_, labels, arguments):
            yield from labels or ()
            for argument in arguments:
                yield from _labels(argument)


def _renamed(expression: ExpressionTree, names: Mapping[str, str]) -> ExpressionTree:
    match expression:
        case TensorReference(_, labels):
            return replace(expression, labels=tuple(names[label] for label in labels))
        case IndexedReference(_, indices) | AppliedFunction(_, _, indices):
            return replace(expression, indices=tuple(with_labels(index, names.__getitem__) for index in indices))
        case RangeExpression(_, label, bound):
            renamed = _renamed(bound, names) if isinstance(bound, BoundExpression) else bound
            return replace(expression, label=names[label], bound=renamed)  # type: ignore[arg-type]  # it stays a bound
        case BoundExpression(label, None):
            return replace(expression, name=names[label])
        case FunctionCall(_, labels, arguments):
            named = None if labels is None else tuple(names[label] for label in labels)
            return replace(expression, labels=named, arguments=tuple(_renamed(part, names) for part in arguments))
        case _:
            return expression
