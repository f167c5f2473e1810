"""Language: EinSums and the graphs that they form; names and labels only, no SQL and no data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.scalar import AGGREGATES, PRODUCT, Operand, Scalar, operands_of, write
from sparseeinsum.language.tensors import Axis, Tensor


@dataclass(frozen=True, slots=True)
class Reference:
    """A tensor under labels, such as A[i, j]; a label that stands twice walks a diagonal."""

    tensor: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EinSum:
    """`output = aggregate(join(operands))` over the labels that the output lacks.

    Attributes:
        output: The tensor computed and its labels, each of them once.
        operands: One or two references.
        join: Scalar expression of the operands.
        aggregate: One of AGGREGATES, or None where no label is aggregated.
        promoted: Labels that were promoted by hand.
    """

    output: Reference
    operands: tuple[Reference, ...]
    join: Scalar
    aggregate: str | None
    promoted: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        assert 1 <= len(self.operands) <= 2
        assert operands_of(self.join) == frozenset(range(len(self.operands)))
        assert self.aggregate in AGGREGATES if self.aggregated else self.aggregate is None
        assert len(set(self.output.labels)) == len(self.output.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, those of the output first, then in order of appearance."""
        appearing = (*self.output.labels, *(label for operand in self.operands for label in operand.labels))
        return tuple(dict.fromkeys(appearing))

    @property
    def aggregated(self) -> tuple[str, ...]:
        """Labels that the output lacks."""
        return tuple(label for label in self.labels if label not in self.output.labels)

    @property
    def is_multilinear(self) -> bool:
        """Whether this is a plain sum of products, or a sum or copy of one operand."""
        return self.aggregate in (None, "sum") and self.join in (PRODUCT, Operand(0))


@dataclass(frozen=True, slots=True)
class DeclaredTensor:
    """What a text says of a tensor.

    Attributes:
        tensor: Its name and axes, and its dtype if the text gives one.
        has_dtype: Whether it does.
    """

    tensor: Tensor
    has_dtype: bool

    def describe(self, found: Tensor) -> str:
        """A tensor's shape, and its dtype where that is declared, for a message."""
        return f"shape {found.shape} and dtype {found.dtype}" if self.has_dtype else f"shape {found.shape}"


@dataclass(frozen=True, slots=True)
class Program:
    """Statements whose tensors are not looked up yet.

    Attributes:
        einsums: In an order in which each reads only inputs and earlier results.
        declared: Tensors that the text declares.
        outputs: Names of the results to keep: those that no other statement reads.
        layouts: Labels that the left side of an output promotes by hand, for outputs that do.
    """

    einsums: tuple[EinSum, ...]
    declared: tuple[DeclaredTensor, ...] = ()
    outputs: tuple[str, ...] = ()
    layouts: tuple[tuple[str, frozenset[str]], ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors that must exist, in order of appearance."""
        assigned = {einsum.output.tensor for einsum in self.einsums}
        read = (operand.tensor for einsum in self.einsums for operand in einsum.operands)
        return tuple(dict.fromkeys(name for name in read if name not in assigned))


@dataclass(frozen=True, slots=True)
class EinGraph:
    """A directed acyclic graph of EinSums whose tensors, inputs and results, all have shapes.

    Attributes:
        tensors: Every tensor by name.
        einsums: In topological order.
        outputs: Names of the results to keep.
    """

    tensors: Mapping[str, Tensor]
    einsums: tuple[EinSum, ...]
    outputs: tuple[str, ...]

    def bound_of(self, einsum: EinSum, label: str) -> int:
        """Bound of a label of an EinSum."""
        for reference in (*einsum.operands, einsum.output):
            if label in reference.labels:
                return self.tensors[reference.tensor].axes[reference.labels.index(label)].bound
        raise KeyError(label)

    def producer_of(self, name: str) -> EinSum | None:
        """The EinSum that computes a tensor; None for an input."""
        return next((einsum for einsum in self.einsums if einsum.output.tensor == name), None)

    def readers_of(self, name: str) -> int:
        """How many operands refer to a tensor."""
        return sum(operand.tensor == name for einsum in self.einsums for operand in einsum.operands)


def bind(program: Program, inputs: Mapping[str, Tensor]) -> EinGraph:
    """Give every tensor of a program its shape, inferring those of results.

    Args:
        program: Statements in order.
        inputs: The input tensors by name.

    Raises:
        ShapeError: A reference has another number of labels than its tensor has axes, a label two bounds, or a tensor
            another shape or dtype than is declared.
    """
    _check_declared(program.declared, inputs, "the database has")
    tensors = dict(inputs)
    for einsum in program.einsums:
        bounds = _bounds_of(einsum, tensors)
        dtypes = [tensors[operand.tensor].dtype for operand in einsum.operands]
        dtype = "float64" if "float64" in dtypes else "float32"
        axes = tuple(Axis(label, bounds[label]) for label in einsum.output.labels)
        tensors[einsum.output.tensor] = Tensor(einsum.output.tensor, axes, dtype)
    _check_aggregates(program.einsums, tensors)
    _check_declared(program.declared, {name: tensors[name] for name in tensors if name not in inputs}, "computes")
    return EinGraph(MappingProxyType(tensors), program.einsums, program.outputs)


def _bounds_of(einsum: EinSum, tensors: Mapping[str, Tensor]) -> dict[str, int]:
    bounds: dict[str, tuple[int, str]] = {}
    for operand in einsum.operands:
        tensor = tensors[operand.tensor]
        if len(operand.labels) != len(tensor.axes):
            raise ShapeError(
                f"{write_reference(operand)} has {_count(len(operand.labels), 'label')}, but tensor {tensor.name} has "
                f"{_count(len(tensor.axes), 'axis', 'axes')}: {', '.join(axis.name for axis in tensor.axes)}"
            )
        for label, axis in zip(operand.labels, tensor.axes, strict=True):
            known, where = bounds.setdefault(label, (axis.bound, tensor.name))
            if known != axis.bound:
                raise ShapeError(
                    f"label {label} of {einsum.output.tensor} has two bounds: {known} in {where}, "
                    f"{axis.bound} in {tensor.name} (axis {axis.name})"
                )
    return {label: bound for label, (bound, _) in bounds.items()}


def _check_aggregates(einsums: Iterable[EinSum], tensors: Mapping[str, Tensor]) -> None:
    """Only a sum over nothing has a value that every engine agrees on."""
    for einsum in einsums:
        if einsum.aggregate in (None, "sum"):
            continue
        for operand in einsum.operands:
            for label, axis in zip(operand.labels, tensors[operand.tensor].axes, strict=True):
                if label in einsum.aggregated and axis.bound == 0:
                    raise ShapeError(
                        f"{einsum.output.tensor} takes the {einsum.aggregate} over label {label}, which has bound 0 in "
                        f"{operand.tensor}; only sum is defined over nothing"
                    )


def _check_declared(declared: Iterable[DeclaredTensor], tensors: Mapping[str, Tensor], origin: str) -> None:
    for each in declared:
        name = each.tensor.name
        if name in tensors and each.describe(tensors[name]) != each.describe(each.tensor):
            raise ShapeError(
                f"the program declares {name} with {each.describe(each.tensor)}, but {origin} it with "
                f"{each.describe(tensors[name])}"
            )


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def write_reference(reference: Reference, promoted: frozenset[str] = frozenset()) -> str:
    """A reference as program text, its promoted labels in upper case."""
    labels = (label.upper() if label in promoted else label for label in reference.labels)
    return f"{reference.tensor}[{', '.join(labels)}]"


def write_einsum(einsum: EinSum, promoted: frozenset[str]) -> str:
    """An EinSum in upper-case-lower-case notation (SparseEinSum, section 4.3)."""
    names = [write_reference(operand, promoted) for operand in einsum.operands]
    body = write(einsum.join, names)
    if einsum.aggregate is not None:
        body = f"{einsum.aggregate}({body})"
    return f"{write_reference(einsum.output, promoted)} = {body}"
