"""Language: EinSums, programs and EinGraphs. They have names and labels only, neither SQL nor data."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.affine_indices import Limit
from sparseeinsum.language.generated import GeneratedTensor
from sparseeinsum.language.index_maps import IndexMap
from sparseeinsum.language.scalar import PRODUCT, axis_bounds_of, interned, operands_of, write, write_number
from sparseeinsum.language.syntax import Declaration, Import
from sparseeinsum.language.syntax_text import write_limits, write_range, write_statement
from sparseeinsum.language.tensors import Tensor, write_label
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import as_number
from sparseeinsum.operators.expressions import AxisBound, Call, Operand, Scalar
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.presentation.html_tables import html_text

# The aggregate of an EinSum that reads its second operand at the index that the first one gives, an index map. Binding,
# which knows the dtype and the fill of the second operand, replaces it by an aggregate of AGGREGATES.
SELECT = "select"


@dataclass(frozen=True, slots=True)
class Reference:
    """A tensor with a label for every axis, such as A[i, j]. A label that occurs twice selects a diagonal."""

    tensor: str
    labels: tuple[str, ...]

    def relabelled(self, names: Mapping[str, str]) -> "Reference":
        """The reference with other labels; `names` has them by the present ones."""
        return Reference(self.tensor, tuple([names[label] for label in self.labels]))


Promoted = frozenset[tuple[str, int]]  # labels and their tiles


@dataclass(frozen=True, slots=True)
class EinSum:
    """`output = aggregate(join(operands))` over the labels that the output lacks; or a scan of one operand.

    Attributes:
        output: The tensor that it computes, with its labels, no label twice.
        operands: The tensors that it reads. Engines compute EinSums of one or two operands; a rewrite splits others.
        join: The scalar expression of the operands.
        aggregate: A name in AGGREGATES, SCANS, PICKS or USER_AGGREGATES, or SELECT; None if no label is aggregated or
            scanned.
        promoted: Labels that the user promoted, and their tiles.
        along: The label along which a scan accumulates, or at one of whose indices a pick takes a value; always
            demoted.
        state: For a user's aggregate whose state has several numbers: the label that counts these numbers. It is the
            last label of the output, no operand has it, and it is always demoted.
        labels: All labels: those of the output, then the others in order of appearance.
    """

    output: Reference
    operands: tuple[Reference, ...]
    join: Scalar
    aggregate: str | None
    promoted: Promoted = frozenset()
    along: str | None = None
    state: str | None = None
    labels: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        appearing = (*self.output.labels, *(label for operand in self.operands for label in operand.labels))
        object.__setattr__(self, "labels", tuple(dict.fromkeys(appearing)))
        object.__setattr__(self, "join", interned(self.join))
        assert self.operands
        assert operands_of(self.join) == frozenset(range(len(self.operands)))
        if self.aggregate in USER_AGGREGATES:
            assert self.aggregated
            assert (self.state is None) == (USER_AGGREGATES[self.aggregate].numbers == 1)
            assert self.state in (None, *self.output.labels[-1:])
        elif self.along is None:
            is_known = self.aggregate == SELECT or self.aggregate in AGGREGATES
            assert is_known if self.aggregated else self.aggregate is None
        else:
            assert self.join == Operand(0)
            assert self.aggregated == (() if self.aggregate in SCANS else (self.along,))
            assert self.aggregate in PICKS or self.along in self.output.labels
        assert len(set(self.output.labels)) == len(self.output.labels)

    def relabelled(self, names: Mapping[str, str]) -> "EinSum":
        """The EinSum with other labels; `names` has them by the present ones."""
        return replace(
            self,
            output=self.output.relabelled(names),
            operands=tuple([operand.relabelled(names) for operand in self.operands]),
            promoted=frozenset((names[label], tile) for label, tile in self.promoted),
            along=None if self.along is None else names[self.along],
            state=None if self.state is None else names[self.state],
        )

    def promoted_among(self, labels: Set[str]) -> Promoted:
        """The labels among `labels` that the user promoted, and their tiles."""
        return frozenset((label, tile) for label, tile in self.promoted if label in labels)

    @property
    def aggregated(self) -> tuple[str, ...]:
        """The labels that the output lacks, which the aggregate removes."""
        return tuple([label for label in self.labels if label not in self.output.labels])

    @property
    def base_aggregate(self) -> str | None:
        """The aggregate, or the one that a scan accumulates, such as `sum` for `cumsum`; None for a pick."""
        if self.aggregate in PICKS:
            return None
        return self.aggregate if self.along is None else SCANS[str(self.aggregate)].aggregate

    @property
    def is_rewritable(self) -> bool:
        """Whether rewrites may apply: scans, picks and users' aggregates are computed as they are written."""
        return self.along is None and self.aggregate != SELECT and self.aggregate not in USER_AGGREGATES

    @property
    def demoted_labels(self) -> tuple[str, ...]:
        """Labels that every decomposition must demote: those of a scan or a pick, and of states."""
        return tuple(label for label in (self.along, self.state) if label is not None)

    @property
    def is_multilinear(self) -> bool:
        """Whether this is a plain sum of products, or a sum or copy of one operand."""
        return self.aggregate in (None, "sum") and self.join in (PRODUCT, Operand(0))


@dataclass(frozen=True, slots=True)
class DeclaredTensor:
    """A tensor that a program declares.

    Attributes:
        tensor: Its name and axes; its dtype and fill, or defaults where the program gives none.
        has_dtype: Whether the program gives a dtype.
        has_fill: Whether the program gives a fill.
    """

    tensor: Tensor
    has_dtype: bool
    has_fill: bool = False

    def matches(self, actual: Tensor) -> bool:
        """Whether a tensor has the declared shape, and the declared dtype and fill if there are any."""
        has_same_dtype = not self.has_dtype or actual.dtype == self.tensor.dtype
        has_same_fill = not self.has_fill or self._has_declared_fill(actual)
        return actual.shape == self.tensor.shape and has_same_dtype and has_same_fill

    def _has_declared_fill(self, actual: Tensor) -> bool:
        try:
            return as_number(self.tensor.fill, actual.dtype) == actual.fill
        except SemanticsError:
            return False

    def describe(self, actual: Tensor) -> str:
        """The shape of a tensor, and its dtype and fill if those are declared, for an error message."""
        dtype = f", dtype {actual.dtype}" if self.has_dtype else ""
        fill = f", fill {write_number(actual.fill)}" if self.has_fill else ""
        return f"shape {actual.shape}{dtype}{fill}"


@dataclass(frozen=True, slots=True)
class Program:
    """The statements of a program, before its tensors are looked up in a database.

    Attributes:
        einsums: In topological order: each reads only inputs and earlier results.
        declared: Tensors that the program declares.
        outputs: Names of the outputs: the results that no other statement reads.
        layouts: For every output whose left side promotes labels: its name, and these labels with their tiles.
        generated: Generated tensors, which statements read and no database stores.
        imported: Tensors that the program reads from tables; they hide stored tensors of the same names.
        state: Tensors that a step of a loop replaces, each with the name of the result that replaces it.
        differentiated: Tensors along which derivatives were taken, so that binding refuses whole numbers.
        complexes: Tensors that were taken to be complex, all others to be real, so that binding refuses other dtypes.
        recomputed: Results that were computed before and are computed again, so that both are not merged into one.
    """

    einsums: tuple[EinSum, ...]
    declared: tuple[DeclaredTensor, ...] = ()
    outputs: tuple[str, ...] = ()
    layouts: tuple[tuple[str, Promoted], ...] = ()
    generated: tuple[GeneratedTensor | IndexMap, ...] = ()
    imported: tuple[Import, ...] = ()
    state: tuple[tuple[str, str], ...] = ()
    differentiated: tuple[str, ...] = field(default=(), compare=False)
    complexes: tuple[str, ...] = field(default=(), compare=False)
    recomputed: tuple[str, ...] = field(default=(), compare=False)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors that must exist, in order of appearance; last those of which only a bound is read."""
        defined = {einsum.output.tensor for einsum in self.einsums} | {tensor.name for tensor in self.generated}
        read = [operand.tensor for einsum in self.einsums for operand in einsum.operands]
        bounds = [bound for einsum in self.einsums for bound in axis_bounds_of(einsum.join)]
        bounds += [bound for tensor in self.generated for bound in tensor.bounding_axes()]
        names = (*read, *(bound.tensor for bound in bounds))
        return tuple(dict.fromkeys(name for name in names if name not in defined))

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def __str__(self) -> str:
        """Program text that parses to an equal program; nested aggregates are statements of their own."""
        declarations = [*map(write_statement, self.imported), *map(_write_declaration, self.declared)]
        generated = {tensor.name: tensor for tensor in self.generated}
        if self.state:
            declarations.append(f"state {', '.join(name for name, _ in self.state)}")
        return "\n".join([*declarations, *(write_einsum(einsum, generated=generated) for einsum in self.einsums)])


@dataclass(frozen=True, slots=True)
class EinGraph:
    """A directed acyclic graph of EinSums. All its tensors, inputs and results, have shapes.

    Attributes:
        tensors: Every tensor by name.
        einsums: In topological order.
        outputs: Names of the results that a run returns.
    """

    tensors: Mapping[str, Tensor]
    einsums: tuple[EinSum, ...]
    outputs: tuple[str, ...]

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The tensors that no EinSum computes, by name."""
        computed = {einsum.output.tensor for einsum in self.einsums}
        return {name: tensor for name, tensor in self.tensors.items() if name not in computed}

    def bound_of(self, einsum: EinSum, label: str) -> int:
        """The bound of a label of an EinSum of this graph."""
        for reference in (*einsum.operands, einsum.output):
            if label in reference.labels:
                return self.tensors[reference.tensor].axes[reference.labels.index(label)].bound
        raise KeyError(label)

    def producer_of(self, name: str) -> EinSum | None:
        """The EinSum that computes the tensor `name`; None if that is an input."""
        return next((einsum for einsum in self.einsums if einsum.output.tensor == name), None)

    def count_readers(self) -> Counter[str]:
        """How many operands of all EinSums refer to a tensor, by its name."""
        return Counter(operand.tensor for einsum in self.einsums for operand in einsum.operands)

    def read_once(self) -> frozenset[str]:
        """The tensors that are no outputs, and to which one operand refers."""
        counts = self.count_readers()
        return frozenset(name for name, count in counts.items() if count == 1 and name not in self.outputs)

    def without(self, computed: Container[str], delivered: Container[str]) -> "EinGraph":
        """The EinSums that outputs need which are neither computed nor delivered, with all tensors."""
        outputs = tuple(name for name in self.outputs if name not in computed and name not in delivered)
        remaining = [einsum for einsum in self.einsums if einsum.output.tensor not in computed]
        return EinGraph(self.tensors, needed_einsums(remaining, outputs), outputs)


def needed_einsums(einsums: Sequence[EinSum], results: Iterable[str]) -> tuple[EinSum, ...]:
    """Those EinSums, of some in topological order, that compute the results of these names, or what these read."""
    needed = set(results)
    chosen = []
    for einsum in reversed(einsums):
        if einsum.output.tensor in needed:
            chosen.append(einsum)
            needed.update(operand.tensor for operand in einsum.operands)
    return tuple(reversed(chosen))


def write_reference(reference: Reference, tiles: Mapping[str, int] = MappingProxyType({})) -> str:
    """A reference as program text: labels in `tiles` are promoted, so in upper case, with their tiles if not 1."""
    return f"{reference.tensor}[{', '.join(write_label(label, tiles) for label in reference.labels)}]"


def matches_registration(einsum: EinSum) -> bool:
    """Whether a user's aggregate still has the number of arguments and states for which the EinSum was made."""
    record = USER_AGGREGATES.get(str(einsum.aggregate))
    if record is None:
        return True
    is_of_pairs = isinstance(einsum.join, Call) and einsum.join.function == record.pair
    return is_of_pairs == (record.arguments == 2) and (einsum.state is not None) == (record.numbers > 1)


def aggregate_arguments(einsum: EinSum) -> tuple[Scalar, ...]:
    """The arguments of the aggregate: the join, or the two arguments of a user's aggregate of pairs."""
    record = USER_AGGREGATES.get(str(einsum.aggregate))
    is_of_pairs = record is not None and record.arguments == 2
    return einsum.join.arguments if is_of_pairs and isinstance(einsum.join, Call) else (einsum.join,)


def write_einsum(
    einsum: EinSum,
    tiles: Mapping[str, int] | None = None,
    generated: Mapping[str, GeneratedTensor | IndexMap] = MappingProxyType({}),
) -> str:
    """An EinSum as text, in upper-case-lower-case notation (SparseEinSum paper, section 4.3).

    Args:
        einsum: The EinSum.
        tiles: The promoted labels, which are written in upper case, and their tiles; by default those that the user
            promoted.
        generated: Generated operands by name; they are written as calls, such as index(k: 10).
    """
    tiles = dict(einsum.promoted) if tiles is None else tiles
    if einsum.aggregate == SELECT:
        return _write_selection(einsum, tiles, generated[einsum.operands[0].tensor])
    names = [
        _write_generated(generated[operand.tensor], tiles)
        if operand.tensor in generated
        else write_reference(operand, tiles)
        for operand in einsum.operands
    ]
    body = ", ".join(write(argument, names) for argument in aggregate_arguments(einsum))
    if einsum.aggregate is not None:
        named = tuple(dict.fromkeys((*einsum.aggregated, *einsum.demoted_labels))) if einsum.demoted_labels else ()
        spelled = ", ".join(label.upper() if label in tiles else label for label in named)
        body = f"{einsum.aggregate}[{spelled}]({body})" if named else f"{einsum.aggregate}({body})"
    return f"{write_reference(einsum.output, tiles)} = {body}"


def _write_selection(einsum: EinSum, tiles: Mapping[str, int], index_map: GeneratedTensor | IndexMap) -> str:
    """An EinSum that selects as program text, such as Y[i] = A[i + 1]."""
    assert isinstance(index_map, IndexMap)
    _, read = einsum.operands
    terms = ((label.upper() if label in tiles else label, times) for label, times in index_map.index.terms)
    index = replace(index_map.index, terms=tuple(terms))
    indices = (str(index) if label == index_map.label else write_label(label, tiles) for label in read.labels)
    has_own_limit_only = index_map.limits in ((), (Limit(index_map.index, index_map.axis),))
    limits = "" if has_own_limit_only else write_limits(index_map.limits)
    return f"{write_reference(einsum.output, tiles)} = {read.tensor}[{', '.join(indices)}]{limits}"


def _write_generated(generated: GeneratedTensor | IndexMap, tiles: Mapping[str, int]) -> str:
    if isinstance(generated, IndexMap):
        return _write_comparison(generated, tiles)
    label = generated.label.upper() if generated.label in tiles else generated.label
    bound = generated.bound if isinstance(generated.bound, int) else write(generated.bound)
    return write_range(generated.kind, label, bound)


def _write_comparison(index_map: IndexMap, tiles: Mapping[str, int]) -> str:
    """An index map as a comparison of indices, such as (index(j: bound(A, 0)) == index(i) + 1)."""
    own = {limit.index: limit.bound for limit in reversed(index_map.limits)}
    end = write(index_map.axis)

    def spelled(label: str, bound: int | AxisBound | None) -> str:
        shown = write(bound) if isinstance(bound, AxisBound) else bound
        return write_range("index", label.upper() if label in tiles else label, shown)

    index = index_map.index
    terms = [f"{times} * {spelled(label, own.get(label))}" for label, times in index.terms]
    start = str(index.offset) if index.key is None else str(index)  # program text cannot compare with a key
    parts = [*terms, start, *([end] if index.counts_from_end else [])]
    return f"({spelled(index_map.label, index_map.axis)} == {' + '.join(parts)})"


def _write_declaration(declared: DeclaredTensor) -> str:
    tensor = declared.tensor
    axes = tuple((axis.name, axis.bound) for axis in tensor.axes)
    fill, dtype = tensor.fill if declared.has_fill else None, tensor.dtype if declared.has_dtype else None
    return write_statement(Declaration(tensor.name, axes, fill, dtype))
