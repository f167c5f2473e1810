"""Derivatives: reverse mode, which computes the gradient of a scalar, and forward mode, which computes tangents."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.derivatives.aggregate_rules import aggregated_values
from sparseeinsum.language.derivatives.changes import Change, ChangeEinSums, at_entries
from sparseeinsum.language.derivatives.forms import Form, form_of
from sparseeinsum.language.derivatives.linear_einsums import (
    is_cumulative_sum,
    moves_values,
    same_of_tangent,
    scan_of_cotangent,
)
from sparseeinsum.language.derivatives.local_changes import cotangent_of_operand, tangent_of_result
from sparseeinsum.language.derivatives.rules import matters
from sparseeinsum.language.eingraph import SELECT, EinSum, Reference, write_einsum
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.operators.expressions import Literal, Operand
from sparseeinsum.presentation.spelling import did_you_mean


@dataclass(frozen=True, slots=True)
class Derivatives:
    """EinSums that compute derivatives.

    Attributes:
        einsums: The EinSums, to be appended to those of the program.
        differentiated: The tensors along which derivatives were taken, which must be of floating point.
        complexes: The tensors that were taken to be complex.
    """

    einsums: tuple[EinSum, ...]
    differentiated: tuple[str, ...]
    complexes: tuple[str, ...] = ()


def reverse_mode(
    einsums: Sequence[EinSum],
    of: str,
    by: Mapping[str, str],
    names: ProgramNames,
    entries: Set[str] = frozenset(),
    complexes: Set[str] = frozenset(),
) -> Derivatives:
    """The gradient of a scalar by some tensors.

    Args:
        einsums: The EinSums of the program, in topological order.
        of: The scalar, a result.
        by: The names of gradients, by the tensors that they are by.
        names: The names of the program; those of EinSums and generated tensors are added.
        entries: Inputs among `by` whose gradients are wanted only where they are not 0.
        complexes: The tensors that hold complex numbers.

    Raises:
        SemanticsError: The result is no scalar, does not depend on a tensor, or an operation has no derivative.
    """
    _check_scalar(einsums, of, complexes)
    _check_entries(einsums, by, entries)
    names.take(by.values())
    path = _between(einsums, frozenset(by), of, complexes)
    added = ChangeEinSums(names, set(path), set(complexes))
    parts: dict[str, list[Change]] = {of: [Change(of, (), Literal(1.0))]}
    for einsum in reversed(einsums):
        result = einsum.output.tensor
        if result not in parts or result not in path:
            continue
        positions = _positions(einsum, path, complexes)
        is_read_once = einsum.aggregate is None and len(positions) == 1
        name = None if result in complexes else by.get(result)
        cotangent = added.total(parts[result], name, most_operands=2 if is_read_once else 1)
        if result in complexes and result in by:
            added.stored(added.as_gradient(cotangent), by[result])
        if einsum.aggregate == SELECT:  # whose index map does not bound the labels of the result by itself
            cotangent = added.whole(cotangent)
        for position in positions:
            part = added.of_kind(_of_operand(einsum, position, cotangent, added))
            parts.setdefault(part.tensor, []).append(part)
    results = {einsum.output.tensor for einsum in einsums}
    for tensor, name in by.items():
        if tensor not in parts:
            raise SemanticsError(_independent(einsums, of, [tensor]))
        if tensor not in results:
            changes = map(at_entries, parts[tensor]) if tensor in entries else parts[tensor]
            added.total(list(map(added.as_gradient, changes)), name)
    return Derivatives(tuple(added.einsums), tuple(sorted(path)), tuple(sorted(complexes)))


def forward_mode(
    einsums: Sequence[EinSum],
    of: Mapping[str, str],
    by: Mapping[str, str],
    names: ProgramNames,
    complexes: Set[str] = frozenset(),
) -> Derivatives:
    """What small changes of tensors add to results: a Jacobian times a vector.

    Args:
        einsums: The EinSums of the program, in topological order.
        of: The names of tangents, by the results that they are of.
        by: Tensors with the changes, by the tensors that change.
        names: The names of the program; those of EinSums and generated tensors are added.
        complexes: The tensors that hold complex numbers; a tensor with changes is one if the tensor that changes is.

    Raises:
        SemanticsError: A result does not depend on any of the tensors, or an operation has no derivative.
    """
    names.take(of.values())
    path = frozenset().union(*(_between(einsums, frozenset(by), result, complexes) for result in of))
    added = ChangeEinSums(names, {*path, *by.values()}, set(complexes))
    tangents: dict[str, Change] = {}
    for einsum in einsums:
        for operand in einsum.operands:
            if operand.tensor in by:
                tangents.setdefault(operand.tensor, _given(operand, by[operand.tensor]))
        result = einsum.output.tensor
        if result not in path or result in by:
            continue
        parts = [_of_result(einsum, position, tangents, added) for position in _positions(einsum, path, complexes)]
        tangents[result] = added.total(parts, of.get(result))
    for result in of:
        if result not in tangents:
            raise SemanticsError(_independent(einsums, result, list(by)))
    return Derivatives(tuple(added.einsums), tuple(sorted(path)), tuple(sorted(complexes)))


def _given(operand: Reference, change: str) -> Change:
    """The change of a tensor that is read at some labels, as the tensor `change` has it."""
    labels = tuple(f"axis{axis}" for axis in range(len(operand.labels)))
    return Change(operand.tensor, labels, Operand(0), (Reference(change, labels),))


def _of_operand(einsum: EinSum, position: int, cotangent: Change, added: ChangeEinSums) -> Change:
    """What the operand at a position gets of the cotangent of a result."""
    if is_cumulative_sum(einsum):
        return scan_of_cotangent(einsum, cotangent, added)
    with _naming(einsum, added.names):
        form = form_of(einsum, added.names)
        return cotangent_of_operand(form, _in_form(form, einsum, position), cotangent, added)


def _of_result(einsum: EinSum, position: int, tangents: Mapping[str, Change], added: ChangeEinSums) -> Change:
    """What the tangent of the operand at a position adds to that of the result."""
    tangent = tangents[einsum.operands[position].tensor]
    if moves_values(einsum):
        return same_of_tangent(einsum, tangent, added)
    with _naming(einsum, added.names):
        form = form_of(einsum, added.names)
        return tangent_of_result(form, _in_form(form, einsum, position), tangent, added)


def _in_form(form: Form, einsum: EinSum, position: int) -> int:
    """The position that an operand has in the form of an EinSum, where generated tensors come first."""
    return position + len(form.operands) - len(einsum.operands)


@contextmanager
def _naming(einsum: EinSum, names: ProgramNames) -> Iterator[None]:
    """Adds the statement to errors."""
    try:
        yield
    except SemanticsError as error:
        statement = write_einsum(einsum, generated=names.generated_by_name)
        raise SemanticsError(f"{error}, in the statement {statement}") from None


def _positions(einsum: EinSum, path: Set[str], complexes: Set[str]) -> list[int]:
    """The positions of the operands on the path whose changes change the result."""
    return [
        position
        for position, operand in enumerate(einsum.operands)
        if operand.tensor in path and _depends(einsum, position, complexes)
    ]


def _depends(einsum: EinSum, position: int, complexes: Set[str]) -> bool:
    complexness = [operand.tensor in complexes for operand in einsum.operands]
    values = aggregated_values(einsum.aggregate, einsum.join)
    return any(not value.is_constant and matters(value.term, position, complexness) for value in values)


def _between(einsums: Sequence[EinSum], by: Set[str], of: str, complexes: Set[str]) -> frozenset[str]:
    """The tensors that depend on those in `by`, themselves included, and on which `of` depends."""
    changing = set(by)
    for einsum in einsums:
        if _positions(einsum, changing, complexes):
            changing.add(einsum.output.tensor)
    path = {of} & changing
    for einsum in reversed(einsums):
        if einsum.output.tensor in path:
            path.update(einsum.operands[position].tensor for position in _positions(einsum, changing, complexes))
    return frozenset(path)


def _check_scalar(einsums: Sequence[EinSum], of: str, complexes: Set[str]) -> None:
    """Refuse a gradient of what is no real scalar result."""
    producer = next((einsum for einsum in einsums if einsum.output.tensor == of), None)
    if producer is None:
        raise SemanticsError(
            f"{of} is no result of the program, so it has no gradient; write a statement that assigns it"
        )
    if producer.output.labels:
        labels = ", ".join(producer.output.labels)
        hint = f"aggregate it, as in loss[] = sum({of}[{labels}]), or use se.jvp"
        raise SemanticsError(f"{of}[{labels}] is no scalar, so it has no gradient; {hint}")
    if of in complexes:
        raise SemanticsError(
            f"{of} is a complex number, so it has no gradient; take that of abs({of}[]) or real({of}[])"
        )


def _check_entries(einsums: Sequence[EinSum], by: Mapping[str, str], entries: Set[str]) -> None:
    """Refuse entries of tensors that are no inputs or by which no gradient is taken."""
    for tensor in sorted(entries - by.keys()):
        raise SemanticsError(
            f"the gradient is asked for at the entries of {tensor}, but not by {tensor}; add it to `by`"
        )
    for einsum in einsums:
        if einsum.output.tensor in entries:
            problem = f"the gradient by {einsum.output.tensor} is asked for at its entries alone, but it is a result"
            raise SemanticsError(f"{problem}; only inputs can be asked for so")


def _independent(einsums: Sequence[EinSum], of: str, by: Sequence[str]) -> str:
    """The error for a derivative that is 0 everywhere."""
    problem = f"{of} does not depend on {', '.join(by)}"
    tensors = dict.fromkeys(reference.tensor for einsum in einsums for reference in (*einsum.operands, einsum.output))
    for name in by:
        if name not in tensors:
            return f"{problem}: the program has no {name}; {did_you_mean(name, tensors, otherwise='it has')}"
    return f"{problem}, or only through what has no derivative but 0, such as comparisons, floor and stop_gradient"
