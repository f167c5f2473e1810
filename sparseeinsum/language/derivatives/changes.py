"""Derivatives: changes of tensors: expressions that reverse and forward mode sum up and turn into EinSums."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sparseeinsum.language.derivatives.rules import conjugate, is_complex_valued
from sparseeinsum.language.derivatives.simplification import simplified
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.language.scalar import operands_in_order
from sparseeinsum.language.syntax import TensorReference
from sparseeinsum.operators.expressions import AxisBound, Call, Literal, Operand, Scalar, joined_in_halves
from sparseeinsum.operators.functions import FUNCTIONS

_ONLY = "k"  # the label of a sum of one term, for a scalar result that reads no tensor


@dataclass(frozen=True, slots=True)
class Change:
    """An expression with a value for every index of a tensor: its tangent, its cotangent, or a part of one.

    Attributes:
        tensor: The tensor.
        labels: A label for every axis of the tensor, no label twice.
        join: The expression of the operands.
        operands: What it reads. They may lack labels of the tensor; then the values do not depend on these.
        summed: Labels of the operands, besides those of the tensor, over which it is summed.
        is_masked: Whether values may be 0 because a branch of `where`, or a term of an aggregate, was not taken.
    """

    tensor: str
    labels: tuple[str, ...]
    join: Scalar
    operands: tuple[Reference, ...] = ()
    summed: tuple[str, ...] = ()
    is_masked: bool = False

    def renamed(self, labels: tuple[str, ...]) -> "Change":
        """The change with other labels for the axes of the tensor, of which some may be equal."""
        assert not self.summed
        new = dict(zip(self.labels, labels, strict=True))
        operands = tuple(
            replace(operand, labels=tuple(new[label] for label in operand.labels)) for operand in self.operands
        )
        return replace(self, labels=labels, operands=operands)


@dataclass
class ChangeEinSums:
    """Adds the EinSums of changes to a program, none twice.

    Attributes:
        names: The names of the program.
        floating: Tensors that are known to hold numbers of floating point.
        complexes: Tensors that hold complex numbers.
        einsums: The EinSums that were added.
    """

    names: ProgramNames
    floating: set[str]
    complexes: set[str]
    einsums: list[EinSum] = field(default_factory=list)

    def total(self, parts: Sequence[Change], name: str | None = None, most_operands: int = 1) -> Change:
        """The sum of changes of one tensor; it sums over no label.

        Args:
            parts: One change or more, with any labels.
            name: The result that is to have the sum, for every index of the tensor; None if an expression will do.
            most_operands: The greatest number of operands of such an expression; beyond, an EinSum computes it.
        """
        total = parts[0] if len(parts) == 1 else self._added(parts)
        is_simple = not total.summed and len(set(total.operands)) <= most_operands
        return total if is_simple and name is None else self.stored(total, name)

    def _added(self, parts: Sequence[Change]) -> Change:
        """The sum of several changes of one tensor."""
        labels = parts[0].labels
        plain = [(self.stored(part) if part.summed else part).renamed(labels) for part in parts]
        operands = tuple(dict.fromkeys(operand for part in plain for operand in part.operands))
        joins = [moved(part.join, part.operands, operands) for part in plain]
        join = joined_in_halves(joins, lambda first, second: simplified(Call("add", (first, second))))
        return Change(parts[0].tensor, labels, join, operands, (), any(part.is_masked for part in parts))

    def tensor_of(self, change: Change) -> Reference:
        """The tensor, with every label, that holds a change; an EinSum computes it unless there is one."""
        if change.join == Operand(0) and not change.summed and set(change.operands[0].labels) == set(change.labels):
            return change.operands[0]
        (stored,) = self.stored(change, every_label=True).operands
        return stored

    def whole(self, change: Change) -> Change:
        """A change that reads every label of the tensor: itself, or as a tensor that an EinSum computes."""
        read = {label for operand in change.operands for label in operand.labels}
        return change if read >= set(change.labels) else self.stored(change, every_label=True)

    def stored(self, change: Change, name: str | None = None, every_label: bool = False) -> Change:
        """A change as a tensor that an EinSum computes.

        Args:
            change: The change.
            name: The name of the tensor; by default a new one.
            every_label: Whether it has the labels on which the values do not depend, as tensors with a name do.
        """
        operands, join = list(change.operands), self.as_floating(change.join, change.operands)
        used = {label for operand in operands for label in operand.labels}
        is_whole = every_label or name is not None
        labels = change.labels if is_whole else tuple(label for label in change.labels if label in used)
        for axis, label in enumerate(change.labels):
            if label in labels and label not in used:
                ones = self.names.generate("ones", label, AxisBound(change.tensor, axis))
                operands.append(Reference(ones.name, (label,)))
                join = Call("mul", (join, Operand(len(operands) - 1)))
        if not operands:
            operands.append(Reference(self.names.generate("ones", _ONLY, 1).name, (_ONLY,)))
            join = Call("mul", (join, Operand(0)))
        aggregate = "sum" if change.summed or (not change.operands and not labels) else None
        result = self.add(f"d_{change.tensor}", labels, operands, join, aggregate, name)
        self.floating.add(result.tensor)
        return Change(change.tensor, change.labels, Operand(0), (result,), (), change.is_masked)

    def add(
        self,
        base: str,
        labels: tuple[str, ...],
        operands: Sequence[Reference],
        join: Scalar,
        aggregate: str | None,
        name: str | None = None,
        along: str | None = None,
    ) -> Reference:
        """Add an EinSum, unless the program has an equal one already; returns its result.

        Args:
            base: What to name the result; it gets a number if that is taken.
            labels: The labels of the result.
            operands: The operands; those that the join does not use are left out.
            join: The expression of the operands.
            aggregate: The aggregate.
            name: The name of the result, if it is given.
            along: The label along which a scan goes.
        """
        used = tuple(dict.fromkeys(operands[index] for index in operands_in_order(join)))
        expression = moved(join, operands, used)
        key = ("derivative", labels, used, expression, aggregate, along)
        earlier = self.names.values.get(key)
        if earlier is not None and name is None:
            return Reference(earlier.tensor, labels)
        if earlier is not None:
            used, expression, aggregate, along = (Reference(earlier.tensor, labels),), Operand(0), None, None
        output = Reference(self.names.invent(base) if name is None else name, labels)
        self.einsums.append(EinSum(output, used, expression, aggregate, along=along))
        if is_complex_valued(expression, self.complexness(used)):
            self.complexes.add(output.tensor)
        self.names.values.setdefault(key, TensorReference(output.tensor, labels))
        return output

    def complexness(self, operands: Sequence[Reference]) -> list[bool]:
        """Whether each operand holds complex numbers."""
        return [operand.tensor in self.complexes for operand in operands]

    def of_kind(self, change: Change) -> Change:
        """The cotangent of a real tensor without imaginary parts, which change nothing; others as they are."""
        has_parts = is_complex_valued(change.join, self.complexness(change.operands))
        if change.tensor in self.complexes or not has_parts:
            return change
        return replace(change, join=Call("real", (change.join,)))

    def as_gradient(self, cotangent: Change) -> Change:
        """The partial derivatives of the scalar by real and by imaginary parts, as parts of complex numbers."""
        return replace(cotangent, join=conjugate(cotangent.join, self.complexness(cotangent.operands)))

    def as_floating(self, join: Scalar, operands: Sequence[Reference]) -> Scalar:
        """An expression whose values are of floating point even if it reads only truth values and whole numbers."""
        return join if self._is_floating(join, operands) else Call("mul", (Literal(1.0), join))

    def _is_floating(self, join: Scalar, operands: Sequence[Reference]) -> bool:
        match join:
            case Operand(index):
                return operands[index].tensor in self.floating
            case Literal(value):
                return isinstance(value, float | complex)
            case Call("where", (_, *branches)):
                return any(self._is_floating(branch, operands) for branch in branches)
            case Call(function, arguments) if not FUNCTIONS[function].returns_bool:
                return any(self._is_floating(argument, operands) for argument in arguments)
            case _:
                return False


def at_entries(change: Change) -> Change:
    """The change where its tensor is not 0; elsewhere 0."""
    operands = (*change.operands, Reference(change.tensor, change.labels))
    has_entry = Call("ne", (Operand(len(operands) - 1), Literal(0)))
    return replace(change, join=Call("mul", (change.join, has_entry)), operands=operands)


def moved(join: Scalar, operands: Sequence[Reference], to: Sequence[Reference]) -> Scalar:
    """An expression of `operands` as one of the operands `to`, among which they are."""
    match join:
        case Operand(index):
            return Operand(to.index(operands[index]))
        case Call(function, arguments):
            return Call(function, tuple(moved(argument, operands, to) for argument in arguments))
        case _:
            return join
