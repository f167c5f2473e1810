"""Derivatives: what a change of one operand of an EinSum adds to its result, and the same transposed."""

from collections.abc import Callable, Sequence

import numpy as np

from sparseeinsum.language.affine_indices import AffineIndex, Limit
from sparseeinsum.language.derivatives.aggregate_rules import aggregated_values, check_differentiable
from sparseeinsum.language.derivatives.changes import Change, ChangeEinSums, moved
from sparseeinsum.language.derivatives.forms import Form, new_label
from sparseeinsum.language.derivatives.rules import CHANGE, change_of, cotangent_of, read_rule, substituted
from sparseeinsum.language.derivatives.simplification import simplified
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.language.scalar import axis_bounds_of, evaluate, functions_of, operands_of
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import AxisBound, Call, Literal, Operand, Scalar, joined_in_halves
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import Range


def cotangent_of_operand(form: Form, position: int, cotangent: Change, einsums: ChangeEinSums) -> Change:
    """What an operand gets of the cotangent of the result, in reverse mode: the transpose of `tangent_of_result`.

    Args:
        form: The EinSum.
        position: The position of the operand.
        cotangent: The cotangent of the result.
        einsums: Receives EinSums that count.

    Raises:
        SemanticsError: The aggregate or a function has no derivative.
    """
    operands, join = _change(form, position, cotangent.renamed(form.output.labels), einsums, cotangent_of)
    read = form.operands[position]
    labels, bounds = read.labels, dict(form.bounds)
    for axis, label in enumerate(labels):
        if label in labels[:axis]:  # a diagonal: the change is 0 beside it
            other = new_label(label, bounds)
            bounds[other] = second = AxisBound(read.tensor, axis)
            first = Limit(label, AxisBound(read.tensor, labels.index(label)))
            index_map = einsums.names.index_map(AffineIndex(((label, 1),), 0), second, other, (first,))
            operands.append(Reference(index_map.name, (label, other)))
            join = Call("where", (Operand(len(operands) - 1), join, Literal(0)))
            labels = (*labels[:axis], other, *labels[axis + 1 :])
    summed = tuple((label, bound) for label, bound in form.bounds.items() if label not in labels)
    return _made(read.tensor, labels, join, operands, summed, cotangent)


def tangent_of_result(form: Form, position: int, tangent: Change, einsums: ChangeEinSums) -> Change:
    """What the tangent of one operand adds to the tangent of the result, in forward mode; arguments as above."""
    operands, join = _change(form, position, tangent.renamed(form.operands[position].labels), einsums, change_of)
    summed = tuple((label, form.bounds[label]) for label in form.aggregated)
    return _made(form.output.tensor, form.output.labels, join, operands, summed, tangent)


def _made(
    tensor: str,
    labels: tuple[str, ...],
    join: Scalar,
    operands: Sequence[Reference],
    summed: tuple[tuple[str, Literal | AxisBound], ...],
    origin: Change,
) -> Change:
    """The change, with the operands that it uses; equal terms of a sum become a product."""
    used = tuple(dict.fromkeys(operands[index] for index in sorted(operands_of(join))))
    join = moved(join, operands, used)
    read = {label for operand in used for label in operand.labels}
    for label, bound in summed:
        if label not in read:
            join = simplified(Call("mul", (bound, join)))
    is_masked = origin.is_masked or "where" in functions_of(join)
    return Change(tensor, labels, join, used, tuple(label for label, _ in summed if label in read), is_masked)


def _change(
    form: Form,
    position: int,
    change: Change,
    einsums: ChangeEinSums,
    rule: Callable[[Scalar, int, Scalar, Sequence[bool]], Scalar | None],
) -> tuple[list[Reference], Scalar]:
    """Operands, and an expression of them, for every term: what a change of the operand, or the result, gives.

    Args:
        form: The EinSum.
        position: The position of the operand.
        change: The change of the operand or of the result, with labels of the form.
        einsums: Receives EinSums that count.
        rule: `change_of` or its transpose.
    """
    operands = [*form.operands, form.output, *change.operands]
    result = Operand(len(form.operands))
    changed = _shifted(einsums.as_floating(change.join, change.operands), len(form.operands) + 1)
    complexness = einsums.complexness(operands)
    if form.aggregate is not None:
        check_differentiable(form.aggregate, form.join)
    counts = _counts(form, einsums)
    values = aggregated_values(form.aggregate, form.join)
    numbers = [*(value.term for value in values), result, *map(Operand, range(len(operands), len(operands + counts)))]
    parts = []
    for value in values:
        term = None if value.is_constant else rule(value.term, position, changed, complexness)
        if term is None:
            continue
        if change.is_masked and not isinstance(changed, Literal) and _may_be_infinite(term):
            is_undefined = Call("and", (Call("eq", (changed, Literal(0))), Call("ne", (term, term))))
            term = Call("where", (is_undefined, Literal(0), term))
        if value.rule is None:
            parts.append(_reusing(term, form.join, result))
        else:
            parts.append(substituted(read_rule(value.rule, (*value.names, CHANGE)), [*numbers, term]))
    assert parts, "only operands that matter are asked for"
    return operands + counts, joined_in_halves(parts, lambda first, second: simplified(Call("add", (first, second))))


def _counts(form: Form, einsums: ChangeEinSums) -> list[Reference]:
    """The results of the further aggregates that the derivative of an aggregate reads."""
    counts = AGGREGATES[form.aggregate].counts if form.aggregate in AGGREGATES else ()
    return [_count(form, name, aggregate, text, einsums) for name, aggregate, text in counts]


def _count(form: Form, name: str, aggregate: str, text: str, einsums: ChangeEinSums) -> Reference:
    """The result of a further aggregate of the terms of a form, see `AggregateFunction.counts`."""
    join = substituted(read_rule(text, ("u", "v")), (form.join, Operand(len(form.operands))))
    base = f"{form.output.tensor}_{name}"
    return einsums.add(base, form.output.labels, (*form.operands, form.output), join, aggregate)


def _shifted(expression: Scalar, by: int) -> Scalar:
    """The expression with all positions of operands increased."""
    match expression:
        case Operand(index):
            return Operand(index + by)
        case Call(function, arguments):
            return Call(function, tuple(_shifted(argument, by) for argument in arguments))
        case _:
            return expression


def _reusing(expression: Scalar, computed: Scalar, result: Scalar) -> Scalar:
    """The expression with `result` in place of a call that it is the value of."""
    if not isinstance(expression, Call):
        return expression
    if expression == computed:
        return result
    return Call(expression.function, tuple(_reusing(argument, computed, result) for argument in expression.arguments))


def _may_be_infinite(expression: Scalar) -> bool:
    """Whether a function in an expression may give infinity or NaN for small numbers, as 1 / u does, but u / 2 not."""
    if not isinstance(expression, Call):
        return False
    record = FUNCTIONS[expression.function]
    if record.returns_bool:
        return False
    ranges = [_range_of(argument) for argument in expression.arguments]
    has_pole = record.range is None or not record.range(*ranges).is_finite
    return has_pole or any(map(_may_be_infinite, expression.arguments))


def _range_of(argument: Scalar) -> Range:
    """The range of a constant or a bound; of anything else, that of small numbers."""
    match argument:
        case AxisBound():
            return Range(1.0, 2.0)
        case _ if not operands_of(argument) and not any(axis_bounds_of(argument)):
            value = evaluate(argument, ())
            return Range(float(value), float(value)) if np.isrealobj(value) else Range(-1.0, 1.0)
        case _:
            return Range(-1.0, 1.0)
