"""Derivatives: EinSums of every kind as aggregates of terms, whose derivatives follow from those of the aggregates."""

from dataclasses import dataclass

from sparseeinsum.language.eingraph import SELECT, EinSum, Reference
from sparseeinsum.language.generated import GeneratedTensor
from sparseeinsum.language.index_maps import IndexMap
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import AxisBound, Bound, Call, Literal, Operand, Scalar
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS


@dataclass(frozen=True, slots=True)
class Form:
    """`output = aggregate(join(operands))`, as an EinSum; but it is no scan, pick or selection.

    Attributes:
        output: The result, no label twice.
        operands: What it reads.
        join: The expression of the operands; it has no bounds of labels.
        aggregate: A name in AGGREGATES or USER_AGGREGATES; None if no label is aggregated.
        bounds: The bound of every label, a number or an axis.
    """

    output: Reference
    operands: tuple[Reference, ...]
    join: Scalar
    aggregate: str | None
    bounds: dict[str, Literal | AxisBound]

    @property
    def aggregated(self) -> tuple[str, ...]:
        """The labels that the output lacks."""
        return tuple(label for label in self.bounds if label not in self.output.labels)


def form_of(einsum: EinSum, names: ProgramNames) -> Form:
    """An EinSum as a form. A scan aggregates the indices up to each index, a pick sums with all others as 0.

    Args:
        einsum: The EinSum.
        names: The names of the program; generated tensors are added.
    """
    bounds = _bounds(einsum, names)
    if einsum.aggregate in SCANS:
        return _scan(einsum, bounds, names)
    if einsum.aggregate in PICKS:
        return _pick(einsum, bounds, names)
    aggregate = "sum" if einsum.aggregate == SELECT else einsum.aggregate
    return Form(einsum.output, einsum.operands, _with_axis_bounds(einsum.join, bounds), aggregate, bounds)


def _scan(einsum: EinSum, bounds: dict[str, Literal | AxisBound], names: ProgramNames) -> Form:
    """The aggregate, for every index, of the terms at indices up to it; all others are its identity."""
    assert einsum.along is not None
    (read,) = einsum.operands
    term = new_label(einsum.along, bounds)
    aggregate = SCANS[str(einsum.aggregate)].aggregate
    moved = Reference(read.tensor, tuple(term if label == einsum.along else label for label in read.labels))
    operands = (_index(term, bounds[einsum.along], names), _index(einsum.along, bounds[einsum.along], names), moved)
    identity = Literal(AGGREGATES[aggregate].identity("float64"))
    join = Call("where", (Call("le", (Operand(0), Operand(1))), Operand(2), identity))
    return Form(einsum.output, operands, join, aggregate, {**bounds, term: bounds[einsum.along]})


def _pick(einsum: EinSum, bounds: dict[str, Literal | AxisBound], names: ProgramNames) -> Form:
    """The sum of all terms, where those at other indices are 0."""
    assert einsum.along is not None
    position, bound = PICKS[str(einsum.aggregate)].position, bounds[einsum.along]
    index: Scalar = Literal(position) if position >= 0 else Call("sub", (bound, Literal(-position)))
    operands = (_index(einsum.along, bound, names), *einsum.operands)
    join = Call("where", (Call("eq", (Operand(0), index)), Operand(1), Literal(0)))
    return Form(einsum.output, operands, join, "sum", bounds)


def _index(label: str, bound: Literal | AxisBound, names: ProgramNames) -> Reference:
    size = int(bound.value.real) if isinstance(bound, Literal) else bound
    return Reference(names.generate("index", label, size).name, (label,))


def new_label(label: str, taken: dict[str, Literal | AxisBound]) -> str:
    """The label, with underscores appended, so that it is not among those taken."""
    while label in taken:
        label += "_"
    return label


def _bounds(einsum: EinSum, names: ProgramNames) -> dict[str, Literal | AxisBound]:
    """The bound of every label of an EinSum, from its output, else from a tensor, else from a generated one."""
    generated = {tensor.name: tensor for tensor in names.generated.values()}
    bounds: dict[str, Literal | AxisBound] = {}
    for reference in (einsum.output, *einsum.operands):
        if reference.tensor not in generated:
            for axis, label in enumerate(reference.labels):
                bounds.setdefault(label, AxisBound(reference.tensor, axis))
    for reference in einsum.operands:
        if reference.tensor in generated:
            for axis, label in enumerate(reference.labels):
                bounds.setdefault(label, _bound_of_generated(generated[reference.tensor], axis))
    return {label: bounds[label] for label in einsum.labels}


def _bound_of_generated(tensor: GeneratedTensor | IndexMap, axis: int) -> Literal | AxisBound:
    if isinstance(tensor, GeneratedTensor):
        return Literal(tensor.bound) if isinstance(tensor.bound, int) else tensor.bound
    return tensor.axis if axis == len(tensor.index.labels) else AxisBound(tensor.name, axis)


def _with_axis_bounds(expression: Scalar, bounds: dict[str, Literal | AxisBound]) -> Scalar:
    """The expression with bounds of axes in place of those of labels, so that labels can be renamed."""
    match expression:
        case Bound(label):
            return bounds[label]
        case Call(function, arguments):
            return Call(function, tuple(_with_axis_bounds(argument, bounds) for argument in arguments))
        case _:
            return expression
